// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/tripwires"
)

// policy is what is in force: configuration and rules, compiled. It is immutable and swapped as a whole.
type policy struct {
	base   config.Config // what the file says, as far as it is in force
	cfg    config.Config // base with the overrides of the command line
	set    *tripwires.Set
	engine *tripwires.Engine
}

// Keys of the log's state under which the last good policy stands.
const (
	stateRules  = "policy/rules"
	stateConfig = "policy/config"
)

// maxDiffText bounds the lines of one difference as they are stored and listed.
const maxDiffText = 32 << 10

// compile makes a policy.
func (d *Daemon) compile(base config.Config, set *tripwires.Set) (*policy, error) {
	cfg := base
	if err := applyOverrides(&cfg, d.overrides); err != nil {
		return nil, err
	}
	engine, err := tripwires.New(tripwires.Options{
		Rules:    set,
		Mode:     cfg.Mode,
		Profile:  cfg.Profile,
		Unmapped: event.Decision(cfg.Unmapped),
		OwnPaths: d.ownPaths,
		Settings: d.judges["claude"],
	})
	if err != nil {
		return nil, err
	}
	return &policy{base: base, cfg: cfg, set: set, engine: engine}, nil
}

// readDisk reads configuration and rules as they stand on disk. A file that makes a parser panic is a broken file.
func (d *Daemon) readDisk() (cfg config.Config, set *tripwires.Set, err error) {
	defer func() {
		if recover() != nil {
			cfg, set, err = config.Config{}, nil, errors.New("a file of the rules or the configuration cannot be read: its parser fails")
		}
	}()
	if d.seam.stage != nil {
		d.seam.stage("", "rules")
	}
	cfg, err = config.Load(d.places.ConfigFile)
	if err != nil {
		return cfg, nil, err
	}
	files, err := tripwires.ReadRulesDir(d.places.RulesDir, tripwires.LayerUser)
	if err != nil {
		return cfg, nil, err
	}
	set, err = tripwires.Load(files)
	return cfg, set, err
}

// applyOverrides sets the keys that were given on the command line.
func applyOverrides(c *config.Config, overrides map[string]string) error {
	for _, key := range config.Keys() {
		if v, ok := overrides[key]; ok {
			if err := c.Set(key, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// lastPolicy is the policy that was in force when the log was last written; ok is false at a first start, or when what
// is stored cannot be used any more.
func (d *Daemon) lastPolicy(state map[string][]byte) (cfg config.Config, set *tripwires.Set, ok bool) {
	rules, has := state[stateRules]
	if !has {
		return cfg, nil, false
	}
	var files []tripwires.File
	if err := json.Unmarshal(rules, &files); err != nil {
		return cfg, nil, false
	}
	set, err := tripwires.Load(files)
	if err != nil {
		return cfg, nil, false
	}
	cfg = config.Default()
	var values map[string]string
	if json.Unmarshal(state[stateConfig], &values) == nil {
		for k, v := range values {
			_ = cfg.Set(k, v) // a value that this version does not know falls back to the default
		}
	}
	return cfg, set, true
}

// tightened merges what is on disk into what is in force so that nothing becomes weaker.
func tightened(old *policy, cfg config.Config, set *tripwires.Set) (merged config.Config, rules *tripwires.Set, diff difference) {
	rules, diff.tightened, diff.loosened = tripwires.Tighten(old.set, set)
	merged = old.base
	for _, c := range cfg.Diff(old.base) {
		switch {
		case c.Restart:
			diff.restart = append(diff.restart, c.String())
		case c.Tightens:
			_ = merged.Set(c.Key, c.New) // the value comes from a checked configuration
			diff.tightened = append(diff.tightened, c.String())
		default:
			diff.loosened = append(diff.loosened, c.String())
		}
	}
	return merged, rules, diff
}

// difference is what two policies differ in, a line each.
type difference struct {
	tightened, loosened, restart []string
}

func (f difference) empty() bool { return len(f.tightened)+len(f.loosened) == 0 }

// policyEntry is the record of a policy that comes into force, with its state.
func (d *Daemon) policyEntry(p *policy, trigger string, diff difference) (*audit.Entry, error) {
	files, err := json.Marshal(p.set.Files())
	if err != nil {
		return nil, err
	}
	values := make(map[string]string)
	for _, key := range config.Keys() {
		values[key] = p.base.Get(key)
	}
	cfg, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	e := &audit.Entry{
		Record: record.Record{Kind: record.ConfigRules, Source: "control", Detail: map[string]string{
			"trigger":   trigger,
			"rule_set":  p.set.Hash(),
			"rules":     strconv.Itoa(p.set.Len()),
			"mode":      p.cfg.Mode,
			"profile":   p.cfg.Profile,
			"tightened": strconv.Itoa(len(diff.tightened)),
			"loosened":  strconv.Itoa(len(diff.loosened)),
		}},
		State: []audit.StateOp{{Key: stateRules, Value: files}, {Key: stateConfig, Value: cfg}},
	}
	if len(files) > audit.MaxStateValue {
		return nil, fmt.Errorf("rules of %d bytes are too large to be kept", len(files))
	}
	lines := slices.Concat(prefixed("tightened: ", diff.tightened), prefixed("loosened: ", diff.loosened), prefixed("restart: ", diff.restart))
	d.addText(e, "diff", clip(strings.Join(lines, "\n"), maxDiffText))
	return e, nil
}

func prefixed(p string, lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = p + l
	}
	return out
}
