// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"strings"
	"testing"

	"github.com/tripline-sh/tripline/tripwires/view"
)

const (
	denyMake  = "version: 1\nrules:\n  - id: make\n    deny: [\"Bash(make:*)\"]\n"
	askMake   = "version: 1\nrules:\n  - id: make\n    ask: [\"Bash(make:*)\"]\n"
	allowMake = "version: 1\nrules:\n  - id: make\n    allow: [\"Bash(make:*)\"]\n"
	askMakeX  = "version: 1\nrules:\n  - id: make\n    ask: [\"Bash(make:*)\"]\n    except: [\"Bash(make test)\"]\n"
	askOther  = "version: 1\nrules:\n  - id: other\n    ask: [\"Bash(other:*)\"]\n"
	soften    = "version: 1\ntune:\n  - {rule: delete.regenerable, to: pass}\n"
	harden    = "version: 1\ntune:\n  - {rule: delete.regenerable, to: deny}\n"
)

func TestTightenNeverLoosens(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		old, next         string
		tightens, loosens bool
		command, before   string // a command and its verdict under old
		merged            string // and under the merged set
	}{
		"nothing changes":           {askMake, askMake, false, false, "make", "ask", "ask"},
		"a deny is added":           {"", denyMake, true, false, "make", "pass", "deny"},
		"a verdict is raised":       {askMake, denyMake, true, true, "make", "ask", "deny"},
		"a verdict is lowered":      {denyMake, askMake, true, true, "make", "deny", "deny"},
		"a deny is removed":         {denyMake, "", false, true, "make", "deny", "deny"},
		"a file is emptied of it":   {denyMake, askOther, true, true, "make", "deny", "deny"},
		"an allow is added":         {"", allowMake, false, true, "make", "pass", "pass"},
		"an allow is removed":       {allowMake, "", true, false, "make", "allow", "pass"},
		"an allow becomes a deny":   {allowMake, denyMake, true, false, "make", "allow", "deny"},
		"an exception is added":     {askMake, askMakeX, true, true, "make test", "ask", "ask"},
		"an exception is removed":   {askMakeX, askMake, true, true, "make test", "pass", "ask"},
		"a softening tune is added": {"", soften, false, true, "rm -rf dist", "ask", "ask"},
		"a softening tune goes":     {soften, "", true, false, "rm -rf dist", "pass", "ask"},
		"a hardening tune is added": {"", harden, true, false, "rm -rf dist", "ask", "deny"},
		"a hardening tune goes":     {harden, "", false, true, "rm -rf dist", "deny", "deny"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := func(text string) *Set {
				if text == "" {
					return load(t)
				}
				return load(t, userFile(text))
			}
			old, next := set(c.old), set(c.next)
			merged, tightened, loosened := Tighten(old, next)
			if (len(tightened) > 0) != c.tightens || (len(loosened) > 0) != c.loosens {
				t.Errorf("tightened %q, loosened %q", tightened, loosened)
			}
			check := func(what string, s *Set, want string) {
				t.Helper()
				if d := bash(t, newEngine(t, Options{Rules: s}), view.NewMemory(), c.command); string(d.Verdict) != want {
					t.Errorf("%s: got %s by %q, want %s", what, d.Verdict, d.Rule, want)
				}
			}
			check("old", old, c.before)
			check("merged", merged, c.merged)
			// What was stored is loaded again after a restart, and says the same.
			stored := load(t, merged.Files()...)
			check("stored", stored, c.merged)
			again, more, _ := Tighten(stored, next)
			check("again", again, c.merged)
			if len(more) > 0 && !strings.Contains(name, "allow") && !strings.Contains(name, "softening") {
				t.Errorf("the same file tightens twice: %q", more)
			}
		})
	}
}

func TestManyEditsBeforeAReloadStayBoundedAndStrict(t *testing.T) {
	t.Parallel()
	s := load(t, userFile(askOther))
	for i := range 40 {
		next := load(t, userFile(strings.ReplaceAll(denyMake, "make", "m"+strings.Repeat("x", i))))
		s, _, _ = Tighten(s, next)
	}
	if n := len(s.Files()); n > maxGenerations+2 {
		t.Errorf("%d files are kept", n)
	}
	if d := bash(t, newEngine(t, Options{Rules: s}), view.NewMemory(), "mxxx"); d.Verdict != "deny" {
		t.Errorf("an edit in between was lost: %s", d.Verdict)
	}
	if _, err := Load(s.Files()); err != nil {
		t.Error(err)
	}
}
