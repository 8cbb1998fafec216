// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tripline-sh/tripline/hooks/agents/claude"
	"github.com/tripline-sh/tripline/hooks/install"
)

// ourHandler is an entry of an earlier install.
func ourHandler(event string) string {
	return `{"type":"command","command":"/old/tripline-hook","args":["-s","/old.sock","-t","1","-n","old","claude","` + event + `"],"timeout":3}`
}

func ourGroup(event string) string { return `{"matcher":"*","hooks":[` + ourHandler(event) + `]}` }

func TestEarlierEntriesAreBroughtUpToDate(t *testing.T) {
	t.Parallel()
	const other = `{"type":"command","command":"x"}`
	for _, tc := range []struct{ name, hooks, foreign string }{
		{"one entry", `"Stop":[` + ourGroup("Stop") + `]`, `{}`},
		{"between foreign groups", `"Stop":[` + foreignHook + `,` + ourGroup("Stop") + `,` + foreignHook + `]`,
			`{"Stop":[` + foreignHook + `,` + foreignHook + `]}`},
		{"three times", `"Stop":[` + ourGroup("Stop") + `,` + ourGroup("Stop") + `,` + ourGroup("Stop") + `]`, `{}`},
		{"in one group with a foreign handler", `"Stop":[{"matcher":"","hooks":[` + ourHandler("Stop") + `,` + other + `]}]`,
			`{"Stop":[{"matcher":"","hooks":[` + other + `]}]}`},
		{"last in one group with a foreign handler", `"Stop":[{"hooks":[` + other + `,` + ourHandler("Stop") + `]}]`,
			`{"Stop":[{"hooks":[` + other + `]}]}`},
		{"twice in one group", `"Stop":[{"matcher":"*","hooks":[` + ourHandler("Stop") + `,` + ourHandler("Stop") + `]}]`, `{}`},
		{"with a narrower matcher", `"PreToolUse":[{"matcher":"Bash","hooks":[` + ourHandler("PreToolUse") + `]}]`, `{}`},
		{"weakened", `"PreToolUse":[` + strings.Replace(ourGroup("PreToolUse"), `"timeout":3`, `"timeout":3,"async":true`, 1) + `]`, `{}`},
		{"under another event", `"Stop":[` + ourGroup("PreToolUse") + `]`, `{}`},
		{"under an event that is no longer registered", `"WorktreeCreate":[` + ourGroup("WorktreeCreate") + `],"Setup":[` + foreignHook + `]`,
			`{"Setup":[` + foreignHook + `]}`},
		{"nothing but an event that is no longer registered", `"Setup":[` + ourGroup("Setup") + `]`, `{}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for _, text := range []string{`{"hooks":{` + tc.hooks + `},"model":"opus"}`, "{\n  \"hooks\": {" + tc.hooks + "}\n}\n"} {
				o := options(t)
				put, err := install.PutText([]byte(text), o)
				if err != nil {
					t.Fatal(err)
				}
				entries, err := install.Installed(put)
				if err != nil || len(entries) != len(claude.Events()) {
					t.Errorf("%d entries, %v in %s", len(entries), err, put)
				}
				for _, e := range entries {
					if e.Under != e.Event || e.Command != o.Binary || e.Token != token {
						t.Errorf("%+v", e)
					}
				}
				for _, from := range []string{text, string(put)} {
					out, err := install.TakeOutText([]byte(from))
					if err != nil {
						t.Fatal(err)
					}
					var got struct{ Hooks json.RawMessage }
					if err := json.Unmarshal(out, &got); err != nil {
						t.Fatalf("%v in %s", err, out)
					}
					if foreign := string(got.Hooks); foreign != tc.foreign && !(foreign == "" && tc.foreign == "{}") {
						t.Errorf("after uninstall: %s\nwant %s", foreign, tc.foreign)
					}
				}
			}
		})
	}
}

// What the hook would refuse behind -- is no entry of ours, and an entry of ours is what the hook takes.
func TestTheDaemonsLineIsReadAsTheHookReadsIt(t *testing.T) {
	t.Parallel()
	for args, want := range map[string][]string{
		`"claude","PreToolUse","--","/d"`:                      {"/d"},
		`"claude","PreToolUse","--","/d","--on-demand","x y"`:  {"/d", "--on-demand", "x y"},
		`"claude","PreToolUse","--","/d","--","claude","Stop"`: {"/d", "--", "claude", "Stop"},
		`"claude","PreToolUse","--"`:                           nil,
		`"claude","PreToolUse","--","triplined"`:               nil,
		`"claude","PreToolUse","--",""`:                        nil,
		`"claude","PreToolUse","--","--","/d"`:                 nil,
		`"claude","PreToolUse","/d"`:                           nil,
		`"claude","--","/d"`:                                   nil,
		`"--","/d"`:                                            nil,
		`"claude","PreToolUse","--","/d",1`:                    nil,
	} {
		text := `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"/x/tripline-hook","args":["-s","/none.sock",` + args + `]}]}]}}`
		entries, err := install.Installed([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			if len(entries) != 0 {
				t.Errorf("%s: %+v", args, entries)
			}
			continue
		}
		if len(entries) != 1 || entries[0].Event != "PreToolUse" || !slices.Equal(entries[0].Daemon, want) {
			t.Errorf("%s: %+v", args, entries)
		}
		var line []string
		if err := json.Unmarshal([]byte(`["-s","/none.sock",`+args+`]`), &line); err != nil {
			t.Fatal(err)
		}
		line[slices.Index(line, "--")+1] = "/nonexistent/triplined" // nothing is started here
		if exit, stdout, stderr := run(t, line); exit != 2 || !strings.Contains(stdout, "daemon.unreachable") {
			t.Errorf("%s: the hook says %d %q %q", args, exit, stdout, stderr)
		}
	}
}

func TestADaemonsLineThatTheHookWouldRefuseIsNotInstalled(t *testing.T) {
	t.Parallel()
	for _, line := range [][]string{{}, {""}, {"triplined"}, {"./triplined"}, {"/d\n"}, {"/d", "a\x00b"}, {"/d", "\xff"}, {"\xff/d"}} {
		o := options(t)
		o.Daemon = line
		if _, err := install.Plan(o); !errors.Is(err, install.ErrOptions) {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func TestTheTokenStaysUntilAnotherIsAskedFor(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Token = ""
	first, err := install.Plan(o)
	apply(t, first, err)
	if len(first.Token) != 32 {
		t.Fatalf("token %q", first.Token)
	}
	second, err := install.Plan(o)
	if err != nil || !second.Empty() || second.Token != first.Token {
		t.Errorf("token %q became %q: %v", first.Token, second.Token, err)
	}
	write(t, o.Path, strings.Replace(read(t, o.Path), first.Token, strings.Repeat("0", 32), 1))
	third, err := install.Plan(o)
	if err != nil || third.Token == first.Token || third.Token == strings.Repeat("0", 32) {
		t.Errorf("of two tokens in the file %q was taken: %v", third.Token, err)
	}
	if one, two := install.Token(), install.Token(); one == two {
		t.Error("two tokens are the same")
	}
}

func TestWarningsNameWhatKeepsHooksFromRunning(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		`{}`:                        "",
		`{"disableAllHooks":false}`: "",
		`{"disableAllHooks":true}`:  "disableAllHooks",
		`{"hooks":{"PreToolUse":[{"hooks":[{"type":"shell"}]}]}}`:                                     "PreToolUse",
		`{"hooks":{"PermissionRequest":[{"hooks":[{"type":"command","onFailure":"deny"}]}]}}`:         "PermissionRequest",
		`{"hooks":{"PreSkillShellCommand":[{"hooks":[{"type":"command","timeout":"5"}]}]}}`:           "PreSkillShellCommand",
		`{"hooks":{"PreToolUse":[{}]}}`:                                                               "PreToolUse",
		`{"hooks":{"Stop":[{"hooks":[{"type":"shell"}]}]}}`:                                           "",
		`{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","timeout":0.5,"onFailure":"block"}]}]}}`: "",
	} {
		o := options(t)
		write(t, o.Path, text)
		c, err := install.Plan(o)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(c.Warnings, "; "); (got == "") != (says == "") || !strings.Contains(got, says) {
			t.Errorf("%s: %q", text, got)
		}
	}
}

// patch applies a unified diff, as strictly as can be.
func patch(t *testing.T, old, diff string) string {
	t.Helper()
	lines := strings.SplitAfter(old, "\n")
	var out strings.Builder
	at := 0
	var hunkOld, hunkNew int
	body := strings.SplitAfter(diff, "\n")
	for i := 2; i < len(body); i++ {
		line := body[i]
		if line == "" {
			continue
		}
		text := line[1:]
		if i+1 < len(body) && strings.HasPrefix(body[i+1], `\ `) {
			text = strings.TrimSuffix(text, "\n")
		}
		switch line[0] {
		case '@':
			if hunkOld != 0 || hunkNew != 0 {
				t.Fatalf("a hunk is short by %d and %d lines:\n%s", hunkOld, hunkNew, diff)
			}
			var start int
			start, hunkOld, hunkNew = header(t, line)
			if hunkOld == 0 {
				start++
			}
			for ; at < start-1; at++ {
				out.WriteString(lines[at])
			}
		case ' ', '-':
			if lines[at] != text {
				t.Fatalf("line %d is %q, the diff has %q", at+1, lines[at], text)
			}
			if at, hunkOld = at+1, hunkOld-1; line[0] == ' ' {
				hunkNew--
				out.WriteString(text)
			}
		case '+':
			hunkNew--
			out.WriteString(text)
		}
	}
	for ; at < len(lines); at++ {
		out.WriteString(lines[at])
	}
	return out.String()
}

func header(t *testing.T, line string) (start, old, new int) {
	t.Helper()
	f := strings.Fields(line)
	span := func(s string) (int, int) {
		first, n, found := strings.Cut(s[1:], ",")
		a, err := strconv.Atoi(first)
		b := 1
		if err == nil && found {
			b, err = strconv.Atoi(n)
		}
		if err != nil {
			t.Fatal(err)
		}
		return a, b
	}
	start, old = span(f[1])
	_, new = span(f[2])
	return start, old, new
}

func TestTheDiffIsTheChange(t *testing.T) {
	t.Parallel()
	for _, f := range files {
		o := options(t)
		write(t, o.Path, f.text)
		c, err := install.Plan(o)
		if err != nil {
			t.Fatal(err)
		}
		if got := patch(t, string(c.Old), c.Diff()); got != string(c.New) {
			t.Errorf("%s: the diff makes\n%s", f.name, got)
		}
		write(t, o.Path, string(c.New))
		back, err := install.PlanRemoval(o.Path, o.Owner)
		if err != nil {
			t.Fatal(err)
		}
		if got := patch(t, string(back.Old), back.Diff()); got != f.text {
			t.Errorf("%s: the diff of the removal makes\n%s", f.name, got)
		}
	}
}

func TestADiffOfFarApartChangesHasHunks(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("{\n  \"hooks\": {\n    \"Stop\": []\n  },\n")
	for i := range 30 {
		fmt.Fprintf(&b, "  \"k%d\": 1,\n", i)
	}
	b.WriteString("  \"z\": 1\n}\n")
	o := options(t)
	write(t, o.Path, b.String())
	c, err := install.Plan(o)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(c.Diff(), "k20") || !strings.Contains(c.Diff(), "\n \"k0\"") && !strings.Contains(c.Diff(), "\n   \"k0\"") {
		t.Errorf("context is wrong:\n%s", c.Diff())
	}
}
