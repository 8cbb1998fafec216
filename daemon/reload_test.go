// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/daemon/control"
)

const denyRules = `version: 1
rules:
  - id: frozen
    deny: ["Bash(deploy-tool:*)"]
    why: "deploys are frozen"
`

func (b *bench) status() control.Status {
	b.t.Helper()
	s, err := b.client.Status(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func (b *bench) reload(dry bool) control.ReloadResponse {
	b.t.Helper()
	r, err := b.client.Reload(b.t.Context(), control.ReloadRequest{DryRun: dry, Proof: control.Proof{Level: "L0"}})
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// deploys sends a call that the rules of these tests are about and returns the answer.
func (b *bench) deploys() string {
	b.t.Helper()
	d, _ := reason(b.t, b.send("PreToolUse", b.bash("deploy-tool prod", "x")))
	return d
}

func TestTighteningAppliesAtOnceAndLooseningWaits(t *testing.T) {
	t.Parallel()
	b := running(t)
	rules := filepath.Join(b.places.RulesDir, "a.yaml")
	if d := b.deploys(); d != "pass" {
		t.Fatalf("without rules: %s", d)
	}
	write(t, rules, denyRules)
	b.eventually("the new rule denies", func() bool { return b.deploys() == "deny" })
	if err := os.Remove(rules); err != nil {
		t.Fatal(err)
	}
	b.eventually("the removal is seen as loosening", func() bool { return len(b.status().Loosening) == 1 })
	if d := b.deploys(); d != "deny" {
		t.Errorf("a removed rule is gone before a person reloads: %s", d)
	}
	if r := b.reload(true); !r.Changed || len(r.Loosened) != 1 || b.deploys() != "deny" {
		t.Errorf("dry run: %+v", r)
	}
	if r := b.reload(false); !r.Changed || len(r.Loosened) != 1 {
		t.Errorf("reload: %+v", r)
	}
	if d := b.deploys(); d != "pass" {
		t.Errorf("after the reload: %s", d)
	}
	if s := b.status(); len(s.Loosening) != 0 {
		t.Errorf("status %+v", s)
	}
	var triggers []string
	for _, r := range b.kinds(record.ConfigRules) {
		triggers = append(triggers, r.Detail["trigger"]+"/"+r.Who)
	}
	if got := strings.Join(triggers, " "); got != "start/ file/ file/ person/person" {
		t.Errorf("records: %s", got)
	}
}

func TestBadRulesKeepTheLastGoodOnes(t *testing.T) {
	t.Parallel()
	b := place(t)
	rules := filepath.Join(b.places.RulesDir, "a.yaml")
	write(t, rules, denyRules)
	b.start()
	write(t, rules, "version: 1\nrules: BAD [")
	b.eventually("the error shows", func() bool { return b.status().RulesError != "" })
	if d := b.deploys(); d != "deny" {
		t.Errorf("with a bad file: %s", d)
	}
	_, err := b.client.Reload(t.Context(), control.ReloadRequest{Proof: control.Proof{Level: "L0"}})
	var re *control.ResponseError
	if !errors.As(err, &re) || re.Status != http.StatusUnprocessableEntity || re.Hint == "" {
		t.Errorf("reload: %v", err)
	}
	// A restart finds the bad file and goes on with the last good set.
	b.stop()
	b.start()
	if d := b.deploys(); d != "deny" || b.status().RulesError == "" {
		t.Errorf("after a restart: %s, %+v", d, b.status())
	}
	// An emptied file is a removal: it waits, across a restart too.
	write(t, rules, "")
	b.eventually("the empty file is no error or is one", func() bool { return b.deploys() == "deny" })
	b.stop()
	b.start()
	if d := b.deploys(); d != "deny" {
		t.Errorf("an emptied file loosened at a restart: %s", d)
	}
}

func TestLooseningWhileNoDaemonRunsWaitsToo(t *testing.T) {
	t.Parallel()
	b := place(t)
	rules := filepath.Join(b.places.RulesDir, "a.yaml")
	write(t, rules, denyRules)
	b.start()
	b.stop()
	if err := os.Remove(rules); err != nil {
		t.Fatal(err)
	}
	write(t, b.places.ConfigFile, "mode: observe\n")
	b.start()
	s := b.status()
	if d := b.deploys(); d != "deny" || s.Mode != "guard" || len(s.Loosening) != 2 {
		t.Errorf("%s, %+v", d, s)
	}
	b.reload(false)
	if s := b.status(); s.Mode != "observe" || b.deploys() != "pass" {
		t.Errorf("after the reload: %+v", s)
	}
}

func TestConfigurationFollowsTheSameRule(t *testing.T) {
	t.Parallel()
	b := running(t)
	write(t, b.places.ConfigFile, "mode: plan\nmetrics: {listen: '127.0.0.1:0'}\n")
	b.eventually("the stricter mode is in force", func() bool { return b.status().Mode == "plan" })
	write(t, b.places.ConfigFile, "mode: observe\non_down: allow\ngate: hold\n")
	b.eventually("the looser values wait", func() bool { return len(b.status().Loosening) == 3 })
	if s := b.status(); s.Mode != "plan" || s.OnDown != "deny" {
		t.Errorf("status %+v", s)
	}
	if r := b.reload(false); len(r.Loosened) != 3 {
		t.Errorf("reload %+v", r)
	}
	if s := b.status(); s.Mode != "observe" || s.OnDown != "allow" {
		t.Errorf("status %+v", s)
	}
}

func TestObserveModeRecordsAndDoesNotBlock(t *testing.T) {
	t.Parallel()
	b := place(t)
	write(t, b.places.RulesDir+"/a.yaml", denyRules)
	b.start(func(o *Options) { o.Overrides["mode"] = "observe" })
	if r := b.send("PreToolUse", b.bash("deploy-tool prod", "1")); !isPass(r) {
		t.Errorf("reply %+v", r)
	}
	if dec := b.one(record.CallRequested).Decision; dec.Verdict != "deny" || dec.Answer != "pass" || dec.Enforced {
		t.Errorf("decision %+v", dec)
	}
}

func TestFlagsHoldForOneRunOnly(t *testing.T) {
	t.Parallel()
	b := running(t, func(o *Options) { o.Overrides["mode"] = "plan" })
	if s := b.status(); s.Mode != "plan" {
		t.Errorf("status %+v", s)
	}
	write(t, b.places.ConfigFile, "mode: ask\n")
	b.eventually("the file is read", func() bool { return len(b.kinds(record.ConfigRules)) == 2 })
	if s := b.status(); s.Mode != "plan" {
		t.Errorf("the file beat the flag: %+v", s)
	}
	b.stop()
	b.start()
	if s := b.status(); s.Mode != "ask" || len(s.Loosening) != 0 {
		t.Errorf("without the flag: %+v", s)
	}
}

func TestAStartWithABrokenFileSaysWhereAndKeepsTheLastGoodSet(t *testing.T) {
	t.Parallel()
	rules := func(b *bench) string { return filepath.Join(b.places.RulesDir, "a.yaml") }
	conf := func(b *bench) string { return b.places.ConfigFile }
	tests := []struct {
		name string
		file func(*bench) string
		text string
		line string // "" = the file as a whole
	}{
		{"rules that are no YAML", rules, "version: 1\nrules: hunter2 [", ":2"},
		{"a pattern that is none", rules, "version: 1\nrules:\n  - id: a\n    deny: [\"hunter2(\"]\n    why: x\n", ":4"},
		{"an unknown key in a rule", rules, "version: 1\nrules:\n  - id: a\n    hunter2: x\n", ":4"},
		{"an own case that fails", rules, "version: 1\nrules:\n  - id: a\n    deny: [\"Bash(x)\"]\n    why: x\n    match: [\"hunter2\"]\n", ":6"},
		{"a configuration that is no YAML", conf, "profile: standard\nmode: [hunter2\n", ":2"},
		{"an unknown key", conf, "profile: standard\nhunter2: x\n", ":2"},
		{"a repeated key", conf, "mode: plan\nmode: hunter2\n", ":2"},
		{"a value that is none", conf, "# x\nprofile: standard\nmode: hunter2\n", ":3"},
		{"a nested value that is none", conf, "mode: plan\nmetrics:\n  listen: 'hunter2:1'\n", ":3"},
		{"a configuration that is too large", conf, strings.Repeat("# hunter2\n", 4000), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := place(t)
			write(t, rules(b), denyRules)
			b.start()
			b.stop()
			write(t, tt.file(b), tt.text)
			b.start()
			if d := b.deploys(); d != "deny" {
				t.Errorf("the last good set is not in force: %s", d)
			}
			b.d.rules.check(t.Context()) // as every minute
			b.d.rules.check(t.Context())
			var warned []string
			for line := range strings.Lines(b.log.String()) {
				if strings.Contains(line, "the last good ones stay in force") {
					warned = append(warned, line)
				}
			}
			at := `"at":"` + tt.file(b) + tt.line + `"`
			if len(warned) != 1 || !strings.Contains(warned[0], `"level":"warn"`) || !strings.Contains(warned[0], at) {
				t.Errorf("warned %q, want one with %s", warned, at)
			}
			if strings.Contains(b.log.String(), "hunter2") {
				t.Error("the daemon's own log quotes the file")
			}
			if s := b.status(); !strings.HasPrefix(s.RulesError, tt.file(b)+tt.line+":") {
				t.Errorf("status says %q", s.RulesError)
			}
			if v := b.metric("tripline_config_last_reload_successful"); v != 0 {
				t.Errorf("the metric says %v", v)
			}
			// Another error is told anew, and so is the same one after a good file.
			write(t, conf(b), "mode: other\n")
			b.eventually("the other error is told", func() bool {
				return strings.Contains(b.log.String(), `"at":"`+conf(b)+`:1"`)
			})
		})
	}
}

func TestAFileThatMakesTheParserPanicIsABrokenFile(t *testing.T) {
	t.Parallel()
	var fails atomic.Bool
	b := place(t)
	write(t, b.places.RulesDir+"/a.yaml", denyRules)
	b.start(func(o *Options) {
		o.seam.stage = func(_, stage string) {
			if stage == "rules" && fails.Load() {
				panic("hunter2")
			}
		}
	})
	fails.Store(true)
	b.d.rules.check(t.Context())
	if s := b.status(); s.RulesError == "" || b.deploys() != "deny" || strings.Contains(b.log.String(), "hunter2") {
		t.Errorf("status %+v; log %s", s, b.log)
	}
	if _, err := b.client.Reload(t.Context(), control.ReloadRequest{Proof: control.Proof{Level: "L0"}}); err == nil {
		t.Error("a person's reload takes it")
	}
	fails.Store(false)
	b.d.rules.check(t.Context())
	if s := b.status(); s.RulesError != "" {
		t.Errorf("status %+v", s)
	}
}
