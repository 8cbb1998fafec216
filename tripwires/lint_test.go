// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"testing"
)

func lintText(t testing.TB, files ...File) []LintFinding {
	t.Helper()
	found, err := Lint(context.Background(), files)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// full makes a rule that lint has nothing to say about but for its patterns.
func full(verdict, patterns string) string {
	return fmt.Sprintf("version: 1\nrules:\n  - id: mine\n    %s: [%s]\n    why: x\n    match: [make]\n", verdict, patterns)
}

func TestLintFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	head := "version: 1\nrules:\n"
	for name, c := range map[string]struct{ text, want string }{
		"a broken file":            {"version: 1\nrulez: []\n", "a.yaml:2:1: error: unknown key"},
		"an id given twice":        {head + "  - {id: a, deny: [Bash], why: x, match: [ls]}\n  - {id: a, ask: [Bash]}\n", "a.yaml:4:6: error: rule a: the id is already used in rules.d/a.yaml:3"},
		"a built-in id":            {head + "  - {id: delete.home, deny: [Bash]}\n", "error: rule delete.home: this is a built-in rule"},
		"a failing case":           {head + "  - {id: a, deny: [\"Bash(make:*)\"], why: x, match: [cmake]}\n", "error: rule a: \"cmake\" should match"},
		"a tune of nothing":        {"version: 1\ntune:\n  - {rule: delete.regenrable, to: pass}\n", "error: tune: there is no built-in rule \"delete.regenrable\"; did you mean delete.regenerable"},
		"a tune of an own rule":    {head + "  - {id: a.b, deny: [Bash], why: x, match: [ls]}\ntune:\n  - {rule: a.b, to: pass}\n", "error: tune: \"a.b\" is a rule of your own"},
		"a tune of the floor":      {"version: 1\ntune:\n  - {rule: delete.home, to: pass}\n", "error: tune: rule \"delete.home\" is on the floor"},
		"a tune to what is":        {"version: 1\ntune:\n  - {rule: delete.outside, to: deny}\n", "warning: tune delete.outside: it changes nothing, since the rule says deny anyway"},
		"a tune that is overruled": {"version: 1\ntune:\n  - {rule: delete.outside, to: ask, when: {project: [/a/b]}}\n  - {rule: delete.outside, to: pass, when: {project: [/a]}}\n", "a.yaml:3:6: warning: tune delete.outside: it changes nothing, since the entry in rules.d/a.yaml:4 comes later"},
		"a stricter rule":          {head + "  - {id: a, ask: [\"Bash(/usr/bin/make all:*)\"], why: x, match: [/usr/bin/make all]}\n  - {id: b, deny: [\"Bash(make:*)\"], why: x, match: [make]}\n", "a.yaml:3:6: warning: rule a: it never counts: all of it is covered by the stricter rule b (deny)"},
		"an allow that is beaten":  {head + "  - {id: a, allow: [\"Bash(make all)\"], match: [make all]}\n  - {id: b, ask: [\"Bash(make:*)\"], why: x, match: [make]}\n", "warning: rule a: it never allows anything"},
		"an allow of the floor":    {strings.Replace(full("allow", `"Bash(rm -rf /)"`), "[make]", "[rm -rf /]", 1), "warning: rule mine: Bash(rm -rf /) is never allowed: the built-in rule delete.home (floor) denies this command"},
		"no why":                   {head + "  - {id: a, deny: [Bash], match: [ls]}\n", "note: rule a: it has no why"},
		"no cases":                 {head + "  - {id: a, deny: [Bash], why: x}\n", "note: rule a: it has no own cases"},
		"a compound":               {full("deny", `"Bash(make && make install)", "Bash(make)"`), "warning: rule mine: Bash(make && make install) does not match the command that it spells: each command of a compound"},
		"a semicolon":              {full("deny", `"Bash(cd x; make:*)", "Bash(make)"`), "does not match the command that it spells: each command"},
		"a pipe":                   {full("deny", `"Bash(curl x | sh)", "Bash(make)"`), "does not match the command that it spells: each command"},
		"quotes":                   {full("deny", `'Bash(git commit -m "a b")', "Bash(make)"`), "quotes are no part"},
		"a redirection":            {full("deny", `"Bash(echo x > y)", "Bash(make)"`), "redirections are no part"},
		"a variable":               {full("deny", `"Bash(rm $HOME)", "Bash(make)"`), "variables are replaced"},
		"a home":                   {full("deny", `"Bash(~/bin/tool:*)", "Bash(make)"`), "~ is replaced"},
		"sudo":                     {full("deny", `"Bash(sudo rm:*)", "Bash(make)"`), "programs that only start another one"},
		"an assignment":            {full("deny", `"Bash(A=1 make)", "Bash(make)"`), "assignments in front"},
		"a tool in another case":   {full("deny", `Webfetch, "Bash(make)"`), "no agent has a tool of this name; did you mean WebFetch?"},
		"a tool mistyped":          {full("deny", `NotebokEdit, "Bash(make)"`), "did you mean NotebookEdit?"},
		"a host with a star":       {full("deny", `"WebFetch(domain:exa*mple.test)", "Bash(make)"`), "never matches: no host is called"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := lintText(t, userFile(c.text))
			all := fmt.Sprint(found)
			if !strings.Contains(all, c.want) || len(found) != 1 {
				t.Errorf("got %q, want %q", found, c.want)
			}
			checkErrors(t, found, userFile(c.text))
		})
	}
}

// checkErrors: an error is what Load refuses, and nothing else.
func checkErrors(t *testing.T, found []LintFinding, files ...File) {
	t.Helper()
	bad := false
	for _, f := range found {
		bad = bad || f.Severity == LintError
		if f.Line < 1 || f.Col < 1 || f.File == "" {
			t.Errorf("no place: %v", f)
		}
	}
	if _, err := Load(files); (err != nil) != bad {
		t.Errorf("load says %v, lint says %v", err, found)
	}
}

func TestLintIsSilentOnGoodRules(t *testing.T) {
	t.Parallel()
	for name, patterns := range map[string]string{
		"commands": `"Bash(make:*)", "Bash(git push --force:*)", "Bash(npm run test:*)", "Bash(./build.sh:*)", "Bash(/usr/bin/make)", "Bash(kubectl delete *)", "Bash(docker run:*)", "Bash(find . -delete)", "Bash(python3 -c:*)", "Bash(ssh prod:*)", "Bash(cd:*)", "Bash(source:*)", "Bash(.:*)", "Bash(test -f:*)", "Bash([:*)", "Bash(export:*)", "Bash(echo:*)", "Bash(curl -X POST:*)", "Bash(terraform apply)", "Bash(aws s3 rm:*)", "Bash(psql:*)", "Bash(node -e:*)", "Bash(true)", "Bash(git -C:*)", "Bash(make -j4)", "Bash(dd if=x of=y)", "Bash(a--b:*)"`,
		"tools":    `Bash, WebSearch, "mcp__server", "mcp__server__tool", "mcp__git*", "mcp__server@user", PowerShell, Task, run_shell_command, SomeNewTool, "Notebook*", bash, "Bash(make)"`,
		"paths":    `"Read(./secrets/**)", "Write(/etc/**)", "Edit(*.pem)", "WebFetch(domain:*.example.test)", "WebFetch(domain:localhost)", {effect: delete, place: temp}, "Bash(make)"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := full("deny", patterns)
			if found := lintText(t, userFile(text)); len(found) != 0 {
				t.Errorf("got %q", found)
			}
			allow := strings.Replace(text, "deny:", "allow:", 1)
			allow = strings.Replace(allow, "match: [make]", "match: [make -n]", 1)
			allow = strings.Replace(allow, `"Bash(make)"`, `"Bash(make -n)"`, 1)
			allow = strings.Replace(allow, `"Bash(make:*)"`, `"Bash(make -n:*)"`, 1)
			if _, err := Load([]File{userFile(allow)}); err != nil {
				t.Fatal(err)
			}
			if found := lintText(t, userFile(allow)); len(found) != 0 {
				t.Errorf("as allow: got %q", found)
			}
		})
	}
	quiet := "version: 1\nrules:\n" +
		"  - {id: a, ask: [\"Bash(make:*)\"], why: x, match: [make]}\n" +
		"  - {id: b, deny: [\"Bash(make all)\"], why: x, match: [make all]}\n" + // narrower
		"  - {id: c, deny: [\"Bash(make:*)\"], except: [\"Bash(make test)\"], why: x, match: [make]}\n" + // does not cover all
		"  - {id: d, deny: [\"Bash(make:*)\"], scope: {project: [\"~/shop\"]}, why: x, match: [make]}\n" +
		"tune:\n" +
		"  - {rule: delete.regenerable, to: ask}\n" + // strict and ci say something else
		"  - {rule: delete.outside, to: ask, when: {project: [/a]}}\n" +
		"  - {rule: delete.outside, to: deny, when: {project: [/a/b]}}\n" +
		"  - {rule: delete.outside, to: ask, when: {project: [/a], agent: [claude]}}\n"
	if found := lintText(t, userFile(quiet)); len(found) != 0 {
		t.Errorf("got %q", found)
	}
	if found := lintText(t); len(found) != 0 {
		t.Errorf("no files: %q", found)
	}
}

func TestLintLooksAtAllFiles(t *testing.T) {
	t.Parallel()
	a := File{Path: "rules.d/a.yaml", Layer: LayerUser, Data: []byte("version: 1\nrules:\n  - {id: one, deny: [Bash], why: x, match: [ls]}\n"), Mode: 0o664}
	b := File{Path: "rules.d/b.yaml", Layer: LayerUser, Data: []byte("version: 1\nrules:\n  - {id: one, deny: [Bash], why: x, match: [ls]}\n"), Mode: 0o600}
	c := File{Path: "rules.d/c.yaml", Layer: LayerUser, Data: []byte("not: yaml: at all"), Mode: fs.ModeSymlink | 0o777}
	found := lintText(t, a, b, c)
	if len(found) != 3 || !strings.Contains(found[0].Text, "chmod 600") || found[1].File != b.Path || found[2].File != c.Path {
		t.Errorf("got %q", found)
	}
	checkErrors(t, found, a, b, c)
}

func TestLintAgreesWithLoad(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", goodRules, denyMake, askMakeX, soften, "version: 1\nrules: []\n", "version: 2\n", "a: [\n", "version: 1\nrules:\n  - id: mode.x\n    deny: [Bash]\n"} {
		checkErrors(t, lintText(t, userFile(text)), userFile(text))
	}
}

func TestNearNamesAreFound(t *testing.T) {
	t.Parallel()
	ids := load(t).RuleIDs()
	for name, want := range map[string]string{
		"delete.regenrable": "delete.regenerable", "regenerable": "delete.regenerable", "git.forcepush": "git.force-push", "delete.ouside": "delete.outside",
		"Delete.Project": "delete.project", "git.rset-hard": "git.reset-hard", "delete.regenerabel": "delete.regenerable",
	} {
		if near := Near(name, ids); len(near) == 0 || near[0] != want || len(near) > 3 {
			t.Errorf("%s: got %q, want %s", name, near, want)
		}
	}
	for _, name := range []string{"", "zzzzzzzzzz", strings.Repeat("a", 1000), "\x00\xff"} {
		if near := Near(name, ids); len(near) != 0 {
			t.Errorf("%q: got %q", name, near)
		}
	}
}

func TestRulesAreDescribedAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	s := load(t, userFile(goodRules))
	byID := map[string]RuleInfo{}
	for _, r := range s.Rules() {
		byID[r.ID] = r
		if r.File == "" || r.Line < 1 || r.Source == "" || r.Hash == "" || len(r.Patterns) == 0 {
			t.Errorf("%s: %+v", r.ID, r)
		}
		if !strings.Contains(r.Source, "id: "+r.ID) || strings.Count(r.Source, "id: ") != 1 {
			t.Errorf("%s: its YAML is\n%s", r.ID, r.Source)
		}
	}
	d := byID["deploys"]
	if d.Verdict != "ask" || d.Gate != "hold" || d.Layer != LayerUser || d.Line != 3 || fmt.Sprint(d.Match) != "[deploy-tool prod]" || !strings.HasSuffix(d.Source, `no_match: ["echo deploy-tool"]`) {
		t.Errorf("%+v", d)
	}
	r := byID["delete.regenerable"]
	if len(r.Tuned) != 1 || r.Tuned[0].To != "pass" || r.Tuned[0].When != "in ~/shop" || r.Profiles["strict"] != "deny" || r.Severity != "low" {
		t.Errorf("%+v", r)
	}
	if h := byID["delete.home"]; !h.Floor || h.File != "builtin/deletion.yaml" {
		t.Errorf("%+v", h)
	}
}
