// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/hooks/agents/claude"
	"github.com/tripline-sh/tripline/tripwires"
)

// rulesHome is a home with a project, in which commands run as at a terminal, without a daemon.
type rulesHome struct {
	t    *testing.T
	home string
}

func newRulesHome(t *testing.T) *rulesHome {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(home, "shop", ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	return &rulesHome{t, home}
}

func (h *rulesHome) rules(name string) string {
	return filepath.Join(h.home, ".config", "tripline", "rules.d", name)
}

// run types input at the terminal and returns the exit code and both streams.
func (h *rulesHome) run(input string, args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	env := Env{
		In: strings.NewReader(input), Out: &o, Err: &e, InTTY: true, Now: time.Now, Exe: "/opt/x/auditctl", Name: "auditctl",
		Getwd: func() (string, error) { return filepath.Join(h.home, "shop"), nil },
		Getenv: func(name string) string {
			if name == "HOME" {
				return h.home
			}
			return ""
		},
	}
	code = Run(context.Background(), env, "test", args)
	return code, o.String(), e.String()
}

func TestOnlyATypedYesRelaxesARule(t *testing.T) {
	t.Parallel()
	for _, input := range []string{"", "\n", "y\n", "no\n", "YES\n", "yes", "yes please\n", "\x1b[Ayes\n"} {
		h := newRulesHome(t)
		code, out, errs := h.run(input, "rules", "relax", "delete.regenerable")
		if _, err := os.Stat(h.rules(relaxedFile)); code != exitError || err == nil || !strings.Contains(out, "+  - rule: delete.regenerable") {
			t.Errorf("%q: exit %d, %v\n%s%s", input, code, err, out, errs)
		}
	}
	h := newRulesHome(t)
	code, out, errs := h.run("yes\n", "rules", "relax", "delete.regenerable")
	fi, err := os.Stat(h.rules(relaxedFile))
	if code != exitOK || err != nil || fi.Mode().Perm() != 0o600 {
		t.Fatalf("exit %d, %v\n%s%s", code, err, out, errs)
	}
	if code, out, errs := h.run("", "explain", "--", "rm -rf node_modules && npm ci"); code != exitOK {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}

func TestALinkedFileOfRulesIsWrittenWhereItLies(t *testing.T) {
	t.Parallel()
	h := newRulesHome(t)
	dots := filepath.Join(h.home, "dots.yaml")
	const before = "# kept in another place\nversion: 1\ntune:\n  - {rule: delete.project, to: ask}\n"
	if err := os.MkdirAll(h.rules(""), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dots, []byte(before), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dots, h.rules(relaxedFile)); err != nil {
		t.Fatal(err)
	}
	code, out, errs := h.run("", "rules", "relax", "delete.outside", "--everywhere", "--yes")
	data, err := os.ReadFile(dots)
	if code != exitOK || err != nil || !strings.HasPrefix(string(data), before) || !strings.HasSuffix(string(data), "  - rule: delete.outside\n    to: ask\n") {
		t.Errorf("exit %d, %v\n%s\n%s%s", code, err, data, out, errs)
	}
	if fi, err := os.Lstat(h.rules(relaxedFile)); err != nil || fi.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v", err)
	}
	// what is no file is left alone
	other := newRulesHome(t)
	if err := os.MkdirAll(other.rules(relaxedFile), 0o700); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := other.run("", "rules", "relax", "delete.outside", "--yes"); code != exitError || !strings.Contains(errs, "not a regular file") {
		t.Errorf("a directory: exit %d, %s", code, errs)
	}
	dangling := newRulesHome(t)
	if err := os.MkdirAll(dangling.rules(""), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", dangling.rules(relaxedFile)); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := dangling.run("", "rules", "relax", "delete.outside", "--yes"); code != exitError {
		t.Errorf("a link to nothing: exit %d, %s", code, errs)
	}
}

func TestNewRulesPassTheirOwnCasesAndLint(t *testing.T) {
	t.Parallel()
	for i, patterns := range [][]string{
		{"Bash(make:*)"}, {"Bash"}, {"Bash(echo:*)"}, {"Read(~/.netrc)"}, {"Write(/etc/**)"}, {"Edit(*.pem)", "Read(a/b/*.txt)"}, {"WebFetch"}, {"WebFetch(domain:*.x.test)"},
		{"mcp__a"}, {"mcp__a__b"}, {"mcp__a*"}, {"mcp__a@user"}, {"PowerShell"}, {"SomeTool"}, {"Bash(git commit -m:*)", "Bash(git push)"}, nil,
	} {
		for _, verdict := range []string{"deny", "ask"} {
			o := &newRuleOptions{why: `a "reason": {x} # y`}
			if verdict == "deny" {
				o.deny = patterns
			} else {
				o.ask = patterns
			}
			text, err := newRule(o, fmt.Sprintf("r%d", i))
			if err != nil {
				t.Errorf("%q: %v", patterns, err)
				continue
			}
			files := []tripwires.File{{Path: "r.yaml", Layer: tripwires.LayerUser, Data: []byte(text)}}
			found, err := tripwires.Lint(context.Background(), files)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range found {
				if f.Severity != tripwires.LintNote || !strings.Contains(f.Text, "own cases") || strings.Contains(text, "    match:") {
					t.Errorf("%q: %v\n%s", patterns, f, text)
				}
			}
		}
	}
}

func FuzzImportedRulesLoad(f *testing.F) {
	for _, s := range []string{"Bash(npm run test:*)", "Read(~/x/**)", "WebFetch(domain:x)", "mcp__s__t", "Bash(a && b)", "Edit(\"')", "Bash(\u2028:*)", "a\nb", "Read(# x: [)", "Bash(\\:*)", "Write({a,b})"} {
		f.Add(s, s, "/home/dev/shop", true)
	}
	f.Fuzz(func(t *testing.T, deny, other, project string, allow bool) {
		s := importSource{path: "/home/dev/.claude/" + other, name: "user", lists: claude.Permissions{Deny: []string{deny, other}, Ask: []string{deny}, Allow: []string{other}}}
		if filepath.IsAbs(project) && filepath.Clean(project) == project && !strings.ContainsFunc(project, func(r rune) bool { return r < ' ' || r >= 0x7f }) {
			s.name, s.project = "project", project
		}
		text, n := importText([]importSource{s}, allow)
		if n == 0 {
			return
		}
		set, err := tripwires.Load([]tripwires.File{{Path: "r.yaml", Layer: tripwires.LayerUser, Data: []byte(text)}})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		got := 0
		for _, r := range set.Rules() {
			if r.Layer == tripwires.LayerUser {
				got++
				if !strings.HasPrefix(r.ID, "claude.") || r.Verdict == "allow" && !allow {
					t.Fatalf("rule %s %s\n%s", r.ID, r.Verdict, text)
				}
			}
		}
		if got != n {
			t.Fatalf("%d rules, want %d\n%s", got, n, text)
		}
	})
}
