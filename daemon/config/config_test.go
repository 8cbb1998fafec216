// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLoad(t *testing.T) {
	t.Parallel()
	with := func(f func(*Config)) Config {
		c := Default()
		f(&c)
		return c
	}
	tests := []struct {
		name string
		yaml string
		want Config
		err  string // part of the error; "" = none
	}{
		{"an empty file is the default", "", Default(), ""},
		{"comments only are the default", "# nothing\n", Default(), ""},
		{"every key can be set", "mode: ask\nprofile: strict\non_down: allow\ngate: hold\nhold: 30s\nunmapped: deny\nmetrics:\n  listen: \"off\"\nlog:\n  retention: forever\n",
			Config{"ask", "strict", "allow", "hold", 30 * time.Second, "deny", "off", "forever"}, ""},
		{"a bare off is the word, not a boolean", "metrics: {listen: off}\n", with(func(c *Config) { c.MetricsListen = "off" }), ""},
		{"a key may be written as the documents name it", "metrics.listen: off\nlog.retention: forever\n", with(func(c *Config) { c.MetricsListen = "off" }), ""},
		{"a key written both ways is refused", "metrics: {listen: off}\nmetrics.listen: off\n", Config{}, "tripline.yaml:2: metrics.listen is given twice"},
		{"an error of a dotted key names its line", "mode: ask\nmetrics.listen: everywhere\n", Config{}, "tripline.yaml:2: metrics.listen"},
		{"an unknown key is one line of text", "mood: ask\n", Config{}, `tripline.yaml:1: unknown field "mood"`},
		{"ipv6 loopback is loopback", "metrics: {listen: '[::1]:0'}\n", with(func(c *Config) { c.MetricsListen = "[::1]:0" }), ""},
		{"metrics on every interface are refused", "metrics: {listen: '0.0.0.0:9717'}\n", Config{}, "loopback"},
		{"metrics on a name are refused", "metrics: {listen: 'example.com:9717'}\n", Config{}, "loopback"},
		{"metrics without a host are refused", "metrics: {listen: ':9717'}\n", Config{}, "loopback"},
		{"a port out of range is refused", "metrics: {listen: '127.0.0.1:70000'}\n", Config{}, "port"},
		{"a relative metrics socket is refused", "metrics: {listen: 'unix:m.sock'}\n", Config{}, "absolute"},
		{"an unknown key is an error with its position", "mode: guard\nmoed: ask\n", Config{}, "tripline.yaml:2: unknown field"},
		{"a repeated key is an error", "mode: guard\nmode: observe\n", Config{}, "mode"},
		{"an unknown mode names the choices", "mode: yolo\n", Config{}, "guard, ask, plan, auto, observe"},
		{"retention other than forever is refused rather than ignored", "log: {retention: 30d}\n", Config{}, "never deletes"},
		{"the webhook gate is refused rather than ignored", "gate: webhook\n", Config{}, "not part of this version"},
		{"a hold without a unit is refused", "hold: '120'\n", Config{}, "duration"},
		{"a negative hold is refused", "hold: -5s\n", Config{}, "duration"},
		{"a list where a word should be is an error", "mode: [guard]\n", Config{}, "tripline.yaml:1: "},
		{"deep flow nesting is refused before parsing", strings.Repeat("[", 9000), Config{}, "nested"},
		{"deep block nesting is refused before parsing", strings.Repeat("- ", 4000), Config{}, "nested"},
		{"a huge file is refused", strings.Repeat("#", maxFile+1), Config{}, "larger"},
		{"binary garbage is an error", "\x00\x01\xff\xfe{", Config{}, "tripline.yaml:1: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "tripline.yaml")
			if err := os.WriteFile(path, []byte(tt.yaml), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := Load(path)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || !strings.Contains(err.Error(), path) {
					t.Fatalf("error %v, want one with %q and the path", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestLoadAbsentFileIsDefault(t *testing.T) {
	t.Parallel()
	got, err := Load(filepath.Join(t.TempDir(), "none.yaml"))
	if err != nil || got != Default() {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestLoadDoesNotHangOnAFIFO(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tripline.yaml")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "regular") {
		t.Errorf("error %v", err)
	}
}

func TestGetReturnsWhatSetTook(t *testing.T) {
	t.Parallel()
	for _, key := range Keys() {
		c := Default()
		v := c.Get(key)
		if v == "" {
			t.Errorf("Get(%q) is empty", key)
		}
		if err := c.Set(key, v); err != nil {
			t.Errorf("Set(%q, %q): %v", key, v, err)
		}
		if c != Default() {
			t.Errorf("Set(%q, %q) changed %+v", key, v, c)
		}
	}
	var c Config
	if c.Set("nope", "x") == nil || c.Get("nope") != "" {
		t.Error("an unknown key was accepted")
	}
}

func TestDiffTellsTighteningFromLoosening(t *testing.T) {
	t.Parallel()
	tests := []struct {
		key, value string
		tightens   bool
	}{
		{"mode", "plan", true},
		{"mode", "ask", true},
		{"mode", "observe", false},
		{"mode", "auto", false},
		{"profile", "strict", true},
		{"profile", "ci", false},
		{"on_down", "allow", false},
		{"unmapped", "ask", true},
		{"gate", "hold", false},
		{"hold", "60s", false},
		{"metrics.listen", "off", false},
	}
	for _, tt := range tests {
		c := Default()
		if err := c.Set(tt.key, tt.value); err != nil {
			t.Fatal(err)
		}
		d := c.Diff(Default())
		if len(d) != 1 || d[0].Key != tt.key || d[0].Tightens != tt.tightens {
			t.Errorf("%s=%s: %+v", tt.key, tt.value, d)
		}
	}
	if d := Default().Diff(Default()); d != nil {
		t.Errorf("equal configurations differ: %v", d)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "mode: ask\n", "metrics: {listen: off}", "a: &a [*a]", "? - ? -", "{{{{", "mode: !!binary x", "\"\\u0000\": 1"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse(data)
		if err != nil {
			return
		}
		for _, key := range Keys() {
			if e := c.Set(key, c.Get(key)); e != nil {
				t.Errorf("accepted a value that does not check: %v", e)
			}
		}
	})
}
