// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/tripwires/view"
)

const relaxedEntry = "  - rule: delete.outside\n    to: ask\n    when: {project: [\"/home/dev/shop\"]}\n"

func TestTuneEntriesAreInsertedAndNothingElseChanges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ before, after string }{
		"no file":              {"", relaxedHeader + relaxedEntry},
		"a list":               {"version: 1\ntune:\n  - {rule: delete.project, to: ask}\n", "version: 1\ntune:\n  - {rule: delete.project, to: ask}\n" + relaxedEntry},
		"comments and blanks":  {"# mine\nversion: 1 # one\n\ntune:\n  # first\n  - rule: delete.project # x\n    to: ask\n\n# the end\n", "# mine\nversion: 1 # one\n\ntune:\n  # first\n  - rule: delete.project # x\n    to: ask\n" + relaxedEntry + "\n# the end\n"},
		"no line end":          {"version: 1\ntune:\n  - {rule: delete.project, to: ask}", "version: 1\ntune:\n  - {rule: delete.project, to: ask}\n" + relaxedEntry},
		"no indentation":       {"version: 1\ntune:\n- {rule: delete.project, to: ask}\n", "version: 1\ntune:\n- {rule: delete.project, to: ask}\n" + strings.ReplaceAll(relaxedEntry[2:], "\n  ", "\n")},
		"rules behind":         {"version: 1\ntune:\n  - {rule: delete.project, to: ask}\n\nrules:\n  - {id: a, deny: [Bash]}\n", "version: 1\ntune:\n  - {rule: delete.project, to: ask}\n" + relaxedEntry + "\nrules:\n  - {id: a, deny: [Bash]}\n"},
		"rules and no tune":    {"version: 1\nrules:\n  - id: a\n    deny: [Bash]\n# end\n", "version: 1\nrules:\n  - id: a\n    deny: [Bash]\ntune:\n" + relaxedEntry + "# end\n"},
		"line ends of Windows": {"version: 1\r\ntune:\r\n  - {rule: delete.project, to: ask}\r\n", "version: 1\r\ntune:\r\n  - {rule: delete.project, to: ask}\r\n" + strings.ReplaceAll(relaxedEntry, "\n", "\r\n")},
		"it is there":          {"version: 1\ntune:\n  - {rule: delete.outside, to: ask, when: {project: [/home/dev/shop]}}\n", "version: 1\ntune:\n  - {rule: delete.outside, to: ask, when: {project: [/home/dev/shop]}}\n"},
		"it is overruled":      {"version: 1\ntune:\n" + relaxedEntry + "  - {rule: delete.outside, to: deny}\n", "version: 1\ntune:\n" + relaxedEntry + "  - {rule: delete.outside, to: deny}\n" + relaxedEntry},
		"a document's start":   {"---\nversion: 1\ntune:\n  - {rule: delete.project, to: ask}\n", "---\nversion: 1\ntune:\n  - {rule: delete.project, to: ask}\n" + relaxedEntry},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := AddTune("r.yaml", []byte(c.before), "delete.outside", event.Ask, []string{"/home/dev/shop"})
			if err != nil || string(got) != c.after {
				t.Errorf("%v\n%s\nwant\n%s", err, got, c.after)
			}
		})
	}
}

func TestTuneEntriesAreNotInsertedWhereItIsNotSafe(t *testing.T) {
	t.Parallel()
	add := func(data, id string, to event.Decision, projects ...string) error {
		_, err := AddTune("r.yaml", []byte(data), id, to, projects)
		return err
	}
	for name, data := range map[string]string{
		"a list in one line":      "version: 1\ntune: [{rule: delete.project, to: ask}]\n",
		"a file in one line":      "{version: 1, rules: [{id: a, deny: [Bash]}]}\n",
		"an end of the document":  "version: 1\ntune:\n  - {rule: delete.project, to: ask}\n...\n",
		"a dash on its own line":  "version: 1\ntune:\n  -\n    rule: delete.project\n    to: ask\n",
		"a list over three lines": "version: 1\ntune: [\n  {rule: delete.project, to: ask},\n]\n",
	} {
		if err := add(data, "delete.outside", event.Ask); !errors.Is(err, ErrLayout) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var re *RuleError
	if err := add("version: 1\ntune: x\n", "delete.outside", event.Ask); !errors.As(err, &re) || re.Line != 2 || re.File != "r.yaml" {
		t.Errorf("a broken file: %v", err)
	}
	for _, p := range []string{"relative", "/a/../b", "/a\nb", "/a\x00", "/a\xff", "/a\u2028b", ""} {
		if err := add("", "delete.outside", event.Ask, p); err == nil || errors.Is(err, ErrLayout) {
			t.Errorf("project %q: %v", p, err)
		}
	}
	for _, id := range []string{"", "x", "delete.outside\n", "a.b: c", strings.Repeat("a", 100) + ".b"} {
		if err := add("", id, event.Ask); err == nil {
			t.Errorf("id %q is taken", id)
		}
	}
	if err := add("", "delete.outside", event.Allow); err == nil {
		t.Error("allow is taken")
	}
}

func TestARelaxedRuleCountsInItsProjectOnly(t *testing.T) {
	t.Parallel()
	dir := `/home/dev/my "shop" \ [é] {x}: #1`
	data, err := AddTune("r.yaml", nil, "delete.regenerable", event.Pass, []string{dir})
	if err != nil {
		t.Fatal(err)
	}
	s := load(t, userFile(string(data)))
	if i, ok := s.Tuned("delete.regenerable", dir+"/below"); !ok || i.To != event.Pass || i.Line == 0 {
		t.Errorf("tuned: %v %v", i, ok)
	}
	if _, ok := s.Tuned("delete.regenerable", "/home/dev/other"); ok {
		t.Error("tuned elsewhere")
	}
	e := newEngine(t, Options{Rules: s})
	m := view.NewMemory()
	for cwd, want := range map[string]event.Decision{dir: event.Pass, "/home/dev/other": event.Ask} {
		c := bashCall("rm -rf node_modules && npm ci")
		c.Cwd, c.FirstCwd = cwd, cwd
		if d := e.Evaluate(t.Context(), c, m.NewReader()); d.Verdict != want {
			t.Errorf("%s: got %s, want %s", cwd, d.Verdict, want)
		}
	}
}

func TestProjectRootsAreFoundAsCallsFindThem(t *testing.T) {
	t.Parallel()
	m := view.NewMemory()
	m.AddDir("/home/dev/shop/.git")
	m.AddDir("/home/dev/shop/src/api")
	m.AddLink("/home/dev/link", "/home/dev/shop")
	m.AddDir("/etc/nginx")
	for dir, want := range map[string]string{
		"/home/dev/shop/src/api": "/home/dev/shop", "/home/dev/link/src": "/home/dev/link /home/dev/shop", "/home/dev/none": "/home/dev/none", "/etc/nginx": "", "/": "",
	} {
		if got := strings.Join(ProjectRoots(dir, m.NewReader()), " "); got != want {
			t.Errorf("%s: got %q, want %q", dir, got, want)
		}
	}
}

func FuzzAddTune(f *testing.F) {
	for _, s := range []string{"", goodRules, soften, harden, "version: 1\ntune:\n- rule: delete.project\n  to: ask\n# c", "version: 1\ntune: [{rule: delete.project, to: ask}]",
		"version: 1\ntune:\n  - rule: delete.project\n    to: |-\n      ask\n\n\n#x\nrules:\n  - {id: a, deny: [Bash]}", "  version: 1\n  tune:\n    - {rule: a.b, to: deny}\n", "\ufeffversion: 1\n"} {
		f.Add([]byte(s), "/home/dev/shop")
	}
	f.Fuzz(func(t *testing.T, data []byte, project string) {
		before := bytes.Clone(data)
		out, err := AddTune("r.yaml", data, "delete.outside", event.Ask, []string{project})
		if !bytes.Equal(before, data) {
			t.Fatal("the input was changed")
		}
		if err != nil {
			if err.Error() == "" || out != nil {
				t.Fatalf("%v with a result", err)
			}
			return
		}
		_, tunes, err := parseRules(LayerUser, "r.yaml", out)
		if err != nil || len(tunes) == 0 {
			t.Fatalf("the result does not load: %v\n%s", err, out)
		}
		i := len(tunes) - 1
		for i > 0 && tunes[i].rule != "delete.outside" {
			i--
		}
		if tn := tunes[i]; tn.rule != "delete.outside" || tn.to != event.Ask || len(tn.when.projects) != 1 || tn.when.projects[0] != project {
			t.Fatalf("the entry is %v", tn)
		}
		if len(before) == 0 {
			return
		}
		if bytes.Equal(out, before) {
			return
		}
		// every foreign byte is there: the result is the input with one piece put in
		n := len(out) - len(before)
		for at := 0; at <= len(before); at++ {
			if bytes.HasPrefix(out, before[:at]) && bytes.Equal(out[at+n:], before[at:]) {
				return
			}
		}
		t.Fatalf("foreign bytes changed:\n%q\n%q", before, out)
	})
}
