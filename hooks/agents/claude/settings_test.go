// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tripline-sh/tripline/hooks/agents/claude"
)

// base is a settings file with our hooks in it.
const base = `{
  "model": "opus",
  "permissions": {"allow": ["Bash(ls)"], "defaultMode": "plan"},
  "hooks": {"PreToolUse": [{"matcher": "*", "hooks": [{"type": "command", "command": "/x", "args": ["a"]}]}]},
  "env": {"A": "b"},
  "cleanupPeriodDays": 40
}
`

func edit(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(base) }

var judged = []struct {
	name     string
	old, new string
	harmless bool
}{
	{"nothing changes", base, base, true},
	{"only white space and order change", `{"model":"a","hooks":{}}`, "{\n\t\"hooks\": {},\n\t\"model\": \"a\"\n}", true},
	{"another model", base, edit("opus", "sonnet"), true},
	{"a spelling of the same text", base, edit(`"opus"`, `"\u006fpus"`), true},
	{"a permission rule comes", base, edit(`"Bash(ls)"`, `"Bash(ls)", "Bash(rm *)"`), true},
	{"a list of permissions comes", base, edit(`"defaultMode"`, `"ask": ["Write"], "defaultMode"`), true},
	{"permissions go", `{"permissions":{"deny":["Read"],"defaultMode":"bypassPermissions"}}`, `{}`, true},
	{"the first harmless setting of an empty file", ``, `{"permissions":{"allow":["Bash(ls)"]}}`, true},
	{"a theme and an output style", base, edit(`{
  "model"`, `{ "theme": "dark", "outputStyle": "Explanatory", "language": "de", "model"`), true},
	{"transcripts are kept longer", base, edit("40", "90"), true},

	{"a hook goes", base, edit(`"command": "/x", `, ``), false},
	{"all hooks go", base, `{"model": "opus"}`, false},
	{"a hook's argument changes", base, edit(`["a"]`, `["b"]`), false},
	{"a hook gets async", base, edit(`"args": ["a"]`, `"args": ["a"], "async": true`), false},
	{"hooks are switched off", base, edit(`"model"`, `"disableAllHooks": true, "model"`), false},
	{"hooks are switched off in escapes", base, edit(`"model"`, `"disable\u0041llHooks": true, "model"`), false},
	{"the environment changes", base, edit(`"A": "b"`, `"A": "b", "PATH": "."`), false},
	{"the environment goes", base, edit(`"env": {"A": "b"},`, ``), false},
	{"a helper that runs code", base, edit(`"model"`, `"apiKeyHelper": "x", "model"`), false},
	{"a status line, which runs code", base, edit(`"model"`, `"statusLine": {"type": "command"}, "model"`), false},
	{"a plugin", base, edit(`"model"`, `"enabledPlugins": {"a@b": true}, "model"`), false},
	{"an MCP server", base, edit(`"model"`, `"enableAllProjectMcpServers": true, "model"`), false},
	{"an unknown key", base, edit(`"model"`, `"zz": 1, "model"`), false},
	{"an unknown key under permissions", base, edit(`"defaultMode"`, `"zz": 1, "defaultMode"`), false},
	{"a known key in another case", base, edit(`"model"`, `"Model": "x", "model"`), false},
	{"prompts are bypassed", base, edit(`"plan"`, `"bypassPermissions"`), false},
	{"edits are accepted", base, edit(`"plan"`, `"acceptEdits"`), false},
	{"a harmless and a harmful change", base, edit("opus", "sonnet", `"b"`, `"c"`), false},

	{"a value that makes the client drop the file", base, edit(`"opus"`, `5`), false},
	{"a list that makes the client drop the file", base, edit(`["Bash(ls)"]`, `"Bash"`), false},
	{"a list with something else in it", base, edit(`["Bash(ls)"]`, `["Bash(ls)", 1]`), false},
	{"permissions that are no object", base, edit(`{"allow": ["Bash(ls)"], "defaultMode": "plan"}`, `[]`), false},
	{"a theme that nobody knows", base, edit(`"model"`, `"theme": "x", "model"`), false},
	{"null for a value", base, edit(`"opus"`, `null`), false},
	{"transcripts are kept shorter", base, edit("40", "1"), false},
	{"transcripts are kept as by default, which is shorter", base, edit(`,
  "cleanupPeriodDays": 40`, ``), false},
	{"transcripts are kept for no sensible time", base, edit("40", "1e400"), false},

	{"a key twice", base, edit(`"model": "opus"`, `"model": "opus", "model": "sonnet"`), false},
	{"hooks twice", base, edit(`"env"`, `"hooks": {}, "env"`), false},
	{"a nested key twice", base, edit(`"A": "b"`, `"A": "b", "A": "b"`), false},
	{"a comment comes", base, edit(`"model"`, `/* x */ "model"`), false},
	{"a trailing comma comes", base, edit(`40`, `40,`), false},
	{"a model changes in a file with comments", "{// x\n\"model\":\"a\",}", "{// x\n\"model\":\"b\",}", true},
	{"the result is empty", base, ``, false},
	{"the result is cut off", base, base[:len(base)-3], false},
	{"the result is no object", base, `[]`, false},
	{"the result starts with a byte order mark", base, "\ufeff" + base, false},
	{"the result is not UTF-8", base, edit("opus", "\xff"), false},
	{"the earlier file was broken", `{`, `{}`, false},
	{"the result is a bomb", base, `{"a":` + strings.Repeat("[", 1<<20), false},
	{"the result is deep", base, `{"model":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`, false},
}

func TestJudgeSettings(t *testing.T) {
	t.Parallel()
	for _, tc := range judged {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			old := append([]byte{}, tc.old...)
			got, why := claude.JudgeSettings("/h/.claude/settings.json", old, []byte(tc.new))
			if got != tc.harmless || why == "" {
				t.Errorf("harmless %v: %s", got, why)
			}
			if string(old) != tc.old {
				t.Error("the judge changed what it was given")
			}
			if got, _ := claude.JudgeSettings("/etc/claude-code/managed-settings.json", old, []byte(tc.new)); got {
				t.Error("an administrator's file was judged harmless")
			}
		})
	}
}

func TestNoFileIsNeverHarmless(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ old, new []byte }{{nil, []byte("{}")}, {[]byte("{}"), nil}, {nil, nil}} {
		if ok, why := claude.JudgeSettings("/p/.claude/settings.json", tc.old, tc.new); ok {
			t.Errorf("%q to %q: %s", tc.old, tc.new, why)
		}
	}
}

func TestTheReasonHoldsNoValues(t *testing.T) {
	t.Parallel()
	for _, after := range []string{`{"model":["s3cret"]}`, `{"env":{"KEY":"s3cret"}}`, `{"model":s3cret}`, `{"permissions":{"allow":"s3cret"}}`} {
		if ok, why := claude.JudgeSettings("/p", []byte(`{}`), []byte(after)); ok || strings.Contains(why, "s3cret") {
			t.Errorf("%v %s", ok, why)
		}
	}
	if _, why := claude.JudgeSettings("/p", []byte(`{}`), []byte(`{"\u001b[31m\u202e`+strings.Repeat("x", 1000)+`":1}`)); len(why) > 300 || strings.ContainsAny(why, "\x1b\u202e") {
		t.Errorf("%q", why)
	}
}

func TestSettingsFile(t *testing.T) {
	t.Parallel()
	homes := []string{"/home/dev", "/root"}
	for path, want := range map[string]bool{
		"/home/dev/.claude/settings.json":                               true,
		"~/.claude/settings.json":                                       true,
		"/home/dev/project/.claude/settings.json":                       true,
		"/home/dev/project/.claude/settings.local.json":                 true,
		".claude/settings.json":                                         true,
		"/p/x/../.claude/./settings.json":                               true,
		"/p/.Claude/Settings.JSON":                                      true,
		"/root/.claude/remote-settings.json":                            true,
		"/etc/claude-code/managed-settings.json":                        true,
		"/etc/claude-code/managed-settings.d/10-x.json":                 true,
		"/Library/Application Support/ClaudeCode/managed-settings.json": true,
		"/home/dev/.claude/settings.json.bak":                           false,
		"/home/dev/.claude/CLAUDE.md":                                   false,
		"/home/dev/project/settings.json":                               false,
		"/home/dev/.vscode/settings.json":                               false,
		"/p/.claude/remote-settings.json":                               false,
		"/etc/claude-code/other.json":                                   false,
		"":                                                              false,
	} {
		if got := claude.SettingsFile(path, homes); got != want {
			t.Errorf("%q: %v", path, got)
		}
	}
}

func FuzzJudgeSettings(f *testing.F) {
	for _, tc := range judged {
		if len(tc.new) < 1<<12 {
			f.Add([]byte(tc.old), []byte(tc.new))
		}
	}
	f.Fuzz(func(t *testing.T, old, new []byte) {
		ok, _ := claude.JudgeSettings("/h/.claude/settings.json", old, new)
		if !ok || string(old) == string(new) {
			return
		}
		var a, b map[string]json.RawMessage
		if json.Unmarshal(old, &a) != nil && len(old) > 0 || json.Unmarshal(new, &b) != nil {
			return // with comments: nothing to compare it with here
		}
		for _, key := range []string{"hooks", "env", "disableAllHooks", "statusLine", "apiKeyHelper"} {
			var x, y any
			_ = json.Unmarshal(a[key], &x)
			_ = json.Unmarshal(b[key], &y)
			one, _ := json.Marshal(x)
			two, _ := json.Marshal(y)
			if string(one) != string(two) {
				t.Fatalf("%s went from %s to %s and was judged harmless", key, one, two)
			}
		}
	})
}
