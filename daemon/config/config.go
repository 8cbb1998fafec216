// SPDX-License-Identifier: Apache-2.0

// Package config knows where Tripline keeps its files and what its configuration says. It turns the file and overrides
// into one checked value; all defaults stand here and nowhere else. Both the daemon and auditctl use it.
package config

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Config is the whole configuration. Values are checked: a Config that Load or Set returned needs no further validation.
type Config struct {
	Mode          string        // guard, ask, plan, auto or observe
	Profile       string        // standard, strict or ci
	OnDown        string        // deny or allow: what install tells hooks to do while no daemon runs
	Gate          string        // native or hold: the default gate of an ask
	Hold          time.Duration // how long a held call waits for a person
	Unmapped      string        // pass, ask or deny: tools that nothing knows
	MetricsListen string        // HOST:PORT on loopback, unix:PATH or off
	LogRetention  string        // "forever", the only value that this version knows
}

// Bounds of Hold. The upper one is far above what any agent's hook timeout allows; the wait itself also ends before the
// hook's own deadline.
const (
	minHold = time.Second
	maxHold = time.Hour
)

// Default returns the configuration of an absent file.
func Default() Config {
	return Config{
		Mode:          "guard",
		Profile:       "standard",
		OnDown:        "deny",
		Gate:          "native",
		Hold:          120 * time.Second,
		Unmapped:      "pass",
		MetricsListen: "127.0.0.1:9717",
		LogRetention:  "forever",
	}
}

// Keys returns the configuration keys as they are written in the file, in the order in which they are documented. Each is
// a flag of triplined with dots and underscores as dashes.
func Keys() []string {
	return []string{"mode", "profile", "on_down", "gate", "hold", "unmapped", "metrics.listen", "log.retention"}
}

// Choices of the keys that have a closed list of values.
var (
	modes     = []string{"guard", "ask", "plan", "auto", "observe"}
	profiles  = []string{"standard", "strict", "ci"}
	onDowns   = []string{"deny", "allow"}
	unmappeds = []string{"pass", "ask", "deny"}
)

// Set gives one key a value, after checking it. The error names the key and what it accepts.
func (c *Config) Set(key, value string) error {
	switch key {
	case "mode":
		return choose(&c.Mode, key, value, modes)
	case "profile":
		return choose(&c.Profile, key, value, profiles)
	case "on_down":
		return choose(&c.OnDown, key, value, onDowns)
	case "unmapped":
		return choose(&c.Unmapped, key, value, unmappeds)
	case "gate":
		if value == "webhook" {
			return fmt.Errorf("%s: the webhook gate is not part of this version; use native or hold", key)
		}
		return choose(&c.Gate, key, value, []string{"native", "hold"})
	case "hold":
		d, err := time.ParseDuration(value)
		if err != nil || d < minHold || d > maxHold {
			return fmt.Errorf("%s: %q is not a duration between %s and %s, such as 120s", key, value, minHold, maxHold)
		}
		c.Hold = d
	case "metrics.listen":
		if err := checkListen(value); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		c.MetricsListen = value
	case "log.retention":
		if value != "forever" {
			return fmt.Errorf("%s: %q is not possible in this version, which never deletes records; the only value is forever", key, value)
		}
		c.LogRetention = value
	default:
		return fmt.Errorf("unknown key %q; known keys: %s", key, strings.Join(Keys(), ", "))
	}
	return nil
}

// Get returns the value of one key as Set takes it; "" for an unknown key.
func (c Config) Get(key string) string {
	switch key {
	case "mode":
		return c.Mode
	case "profile":
		return c.Profile
	case "on_down":
		return c.OnDown
	case "gate":
		return c.Gate
	case "hold":
		return c.Hold.String()
	case "unmapped":
		return c.Unmapped
	case "metrics.listen":
		return c.MetricsListen
	case "log.retention":
		return c.LogRetention
	}
	return ""
}

func choose(dst *string, key, value string, choices []string) error {
	if !slices.Contains(choices, value) {
		return fmt.Errorf("%s: %q is not one of %s", key, value, strings.Join(choices, ", "))
	}
	*dst = value
	return nil
}

// checkListen accepts off, unix:PATH, and HOST:PORT where HOST is a loopback address: metrics have no authentication.
func checkListen(value string) error {
	if value == "off" {
		return nil
	}
	if path, ok := strings.CutPrefix(value, "unix:"); ok {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("%q: the path after unix: must be absolute", value)
		}
		return nil
	}
	host, port, err := net.SplitHostPort(value)
	if err != nil {
		return fmt.Errorf("%q is none of HOST:PORT, unix:PATH and off", value)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return fmt.Errorf("%q: the port is not a number between 0 and 65535", value)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%q: only loopback addresses are allowed, since metrics have no authentication; use a scraper on this machine", value)
	}
	return nil
}

// strictness orders the values of the keys whose change can loosen; a higher number is stricter.
var strictness = map[string][]string{
	"mode":     {"observe", "auto", "guard", "ask", "plan"},
	"profile":  {"ci", "standard", "strict"},
	"on_down":  {"allow", "deny"},
	"unmapped": {"pass", "ask", "deny"},
}

// Change is one key that differs between two configurations.
type Change struct {
	Key      string
	Old, New string
	// Tightens is true if the new value is surely stricter; every other change counts as loosening.
	Tightens bool
	// Restart is true if the running daemon cannot adopt the value.
	Restart bool
}

// String renders the change for people and for records: "mode: guard -> ask".
func (c Change) String() string { return c.Key + ": " + c.Old + " -> " + c.New }

// Diff lists what changes from old to c, in the order of Keys.
func (c Config) Diff(old Config) []Change {
	var out []Change
	for _, key := range Keys() {
		o, n := old.Get(key), c.Get(key)
		if o == n {
			continue
		}
		order := strictness[key]
		out = append(out, Change{
			Key: key, Old: o, New: n,
			Tightens: slices.Index(order, n) > slices.Index(order, o),
			Restart:  key == "metrics.listen" || key == "log.retention",
		})
	}
	return out
}
