// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tailscale/hujson"

	"github.com/tripline-sh/tripline/hooks/agents/claude"
	"github.com/tripline-sh/tripline/hooks/install"
)

const token = "00112233445566778899aabbccddeeff"

// options are those of an install into dir/.claude, which exists.
func options(t testing.TB) install.Options {
	t.Helper()
	home := t.TempDir()
	if err := os.Chmod(home, 0o700); err != nil { // whatever the umask
		t.Fatal(err)
	}
	dir := filepath.Join(home, ".claude")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path, err := install.SettingsPath("", home)
	if err != nil {
		t.Fatal(err)
	}
	return install.Options{
		Path: path, Owner: os.Getuid(), Binary: "/home/dev/.local/bin/tripline-hook", Socket: "/run/user/1000/tripline/hook.sock",
		Spool: "/home/dev/.local/state/tripline/spool", ServerUID: 1000, Token: token,
	}
}

// daemonLine starts the daemon.
var daemonLine = []string{"/home/dev/.local/bin/triplined", "--on-demand", "--home=/home/d \u00e9 \"v\"", "--", "\\"}

// onDemand are options with a daemon that hooks start.
func onDemand(t testing.TB) install.Options {
	o := options(t)
	o.Daemon = daemonLine
	return o
}

// daemonOf is the daemon's command line that o wants in the entry of an event.
func daemonOf(o install.Options, event string) []string {
	switch event {
	case "PreToolUse", "PreSkillShellCommand", "ConfigChange", "SessionStart", "UserPromptSubmit":
		return o.Daemon
	}
	return nil
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func apply(t testing.TB, c *install.Change, err error) *install.Change {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(); err != nil {
		t.Fatal(err)
	}
	return c
}

// foreignHook is somebody else's group, in one line.
const foreignHook = `{"matcher":"Bash","hooks":[{"type":"command","command":"./check.sh","timeout":5}]}`

// files are settings files in many hands: tables, properties and fuzz seeds in one.
var files = []struct{ name, text string }{
	{"an empty object", `{}`},
	{"an empty object and an end of line", "{}\n"},
	{"an empty object with a blank", "{ }\n"},
	{"an empty object on two lines", "{\n}\n"},
	{"an empty object on three lines", "{\n\n}"},
	{"an empty object with a comment", "{\n  // nothing yet\n}\n"},
	{"an empty object with a comment on its line", "{ /* nothing yet */ }\n"},
	{"one line", `{"model":"opus"}`},
	{"one line with blanks", `{ "model": "opus", "theme": "dark" }`},
	{"one line without blanks", `{"model":"opus","theme":"dark"}`},
	{"one line with a trailing comma", `{"model": "opus",}`},
	{"one line with blanks and a trailing comma", `{ "model": "opus" , }`},
	{"one line with empty hooks", `{"hooks":{},"model":"opus"}`},
	{"one line with empty hooks and blanks", `{"hooks": { } }`},
	{"one line with foreign hooks", `{"hooks":{"PreToolUse":[` + foreignHook + `],"Stop":[]},"model":"opus"}`},
	{"one line with an empty list", `{"hooks":{"PreToolUse":[]}}`},
	{"one line with an empty list with a blank", `{"hooks":{"PreToolUse":[ ],"Notification":[ ]}}`},
	{"one line but for an empty list", "{\"hooks\":{\"PreToolUse\":[ ],\"Notification\":[\n]}}"},
	{"two spaces", "{\n  \"model\": \"opus\"\n}\n"},
	{"four spaces", "{\n    \"model\": \"opus\",\n    \"theme\": \"dark\"\n}\n"},
	{"tabs", "{\n\t\"model\": \"opus\"\n}\n"},
	{"tabs and no blank behind the colon", "{\n\t\"model\":\"opus\"\n}"},
	{"three spaces and no final end of line", "{\n   \"model\" : \"opus\"\n}"},
	{"CRLF", "{\r\n  \"model\": \"opus\",\r\n  \"theme\": \"dark\"\r\n}\r\n"},
	{"CRLF with comments", "{\r\n  // about models\r\n  \"model\": \"opus\" // mine\r\n}\r\n"},
	{"CRLF with a trailing comma", "{\r\n\t\"model\": \"opus\",\r\n}\r\n"},
	{"CRLF and an empty list", "{\r\n  \"hooks\": {\r\n    \"Stop\": []\r\n  }\r\n}\r\n"},
	{"a trailing comma", "{\n  \"model\": \"opus\",\n}\n"},
	{"a trailing comma and a comment behind it", "{\n  \"model\": \"opus\", // mine\n}\n"},
	{"a comment between the value and its comma", "{\n  \"model\": \"opus\" /* mine */ ,\n  // end\n}\n"},
	{"a line comment behind the last value", "{\n  \"model\": \"opus\" // mine\n}\n"},
	{"a line comment with blanks behind it", "{\n  \"model\": \"opus\" // mine  \t\n}\n"},
	{"a line comment behind the last value of one line", "{\"model\": \"opus\" // mine\n}\n"},
	{"a comment before the bracket", "{\n  \"model\": \"opus\"\n  /* end */ }\n"},
	{"comments around the whole", "// mine\n{\n  \"model\": \"opus\"\n}\n// end\n"},
	{"an indented whole", "  {\n    \"model\": \"opus\"\n  }\n"},
	{"blank lines", "{\n\n  \"model\": \"opus\"\n\n\n}\n\n"},
	{"the last member on the line of the bracket", "{\n  \"model\": \"opus\"}"},
	{"the first member on the line of the bracket", "{ \"model\": \"opus\",\n  \"theme\": \"dark\"}"},
	{"mixed ends of lines", "{\n  \"model\": \"opus\",\r\n  \"theme\": \"dark\"\n}\n"},
	{"empty hooks", "{\n  \"hooks\": {}\n}\n"},
	{"empty hooks on two lines", "{\n  \"hooks\": {\n  },\n  \"model\": \"opus\"\n}\n"},
	{"empty hooks with a comment", "{\n  \"hooks\": { // none\n  }\n}\n"},
	{"empty hooks with a block comment", "{\n  \"hooks\": { /* none */ }\n}\n"},
	{"empty lists", "{\n  \"hooks\": {\n    \"PreToolUse\": [],\n    \"PostToolUse\": [ ],\n    \"Stop\": [\n    ]\n  }\n}\n"},
	{"an empty list of an event that is not ours", "{\n  \"hooks\": {\n    \"Setup\": []\n  }\n}\n"},
	{"an empty list with a comment", "{\n  \"hooks\": {\n    \"PreToolUse\": [\n      // none\n    ]\n  }\n}\n"},
	{"foreign hooks before", "{\n  \"hooks\": {\n    \"PreToolUse\": [\n      " + foreignHook + "\n    ]\n  }\n}\n"},
	{"foreign hooks with trailing commas", "{\n  \"hooks\": {\n    \"PreToolUse\": [\n      " + foreignHook + ",\n    ],\n  },\n}\n"},
	{"foreign hooks with comments", "{\n  \"hooks\": { // all\n    \"PreToolUse\": [ // two\n      " + foreignHook + ", // one\n      " + foreignHook + " // two\n    ], // end\n    \"Stop\": [" + foreignHook + "] /* s */\n  }\n}\n"},
	{"foreign hooks in one line in a long file", "{\n  \"hooks\": {\"PreToolUse\": [" + foreignHook + "]},\n  \"model\": \"opus\"\n}\n"},
	{"foreign hooks of an unknown shape", "{\n  \"hooks\": {\n    \"Stop\": [5, null, {}, {\"hooks\": 1}, {\"hooks\": []}]\n  }\n}\n"},
	{"a program that is called like ours", `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"/x/tripline-hook","args":["--version"]},{"type":"command","command":"/x/tripline-hook"},{"type":"command","command":"/x/tripline-hook -s /s claude Stop"}]}]}}`},
	{"keys of every kind", "{\n  \"a\\u0062\": [1, {\"b\": [[], {}]}],\n  \"env\": {\"X\": \"\\ud83d\\ude00 é\"}\n}\n"},
	{"everything", "{\n  \"$schema\": \"https://json.schemastore.org/claude-code-settings.json\",\n  \"permissions\": {\n    \"allow\": [\n      \"Bash(ls)\"\n    ]\n  },\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"hooks\": [\n          {\n            \"type\": \"command\",\n            \"command\": \"say done\"\n          }\n        ]\n      }\n    ]\n  },\n  \"model\": \"opus\"\n}\n"},
}

func put(t testing.TB, text string, o install.Options) string {
	t.Helper()
	b, err := install.PutText([]byte(text), o)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return string(b)
}

// check installs into a file with this text, looks at the result, and takes it out again.
func check(t testing.TB, o install.Options, text string) {
	t.Helper()
	once := put(t, text, o)
	entries, err := install.Installed([]byte(once))
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, e := range entries {
		if seen[e.Under] || e.Under != e.Event || e.Token != o.Token || e.Command != o.Binary || !slices.Equal(e.Daemon, daemonOf(o, e.Event)) {
			t.Errorf("an entry twice or wrong: %+v", e)
		}
		seen[e.Under] = true
	}
	if len(entries) != len(claude.Events()) {
		t.Errorf("%d entries", len(entries))
	}
	if json.Valid([]byte(text)) && !json.Valid([]byte(once)) {
		t.Errorf("JSON became something else:\n%s", once)
	}
	if again := put(t, once, o); again != once {
		t.Errorf("a second install would change the file:\n%s\nto\n%s", once, again)
	}
	if back, err := install.TakeOutText([]byte(once)); err != nil || string(back) != text {
		t.Errorf("install and uninstall left %v\n%q\nof\n%q\nby way of\n%s", err, back, text, once)
	}
}

// checkUpdate installs, installs something else over it, and goes back.
func checkUpdate(t testing.TB, o install.Options, text string) {
	t.Helper()
	other := o
	other.Token, other.Binary, other.AllowOnDown, other.Spool = strings.Repeat("0", 32), "/opt/bin/tripline-hook", true, ""
	once := put(t, text, o)
	moved := put(t, once, other)
	if entries, err := install.Installed([]byte(moved)); err != nil || len(entries) != len(claude.Events()) || entries[0].Token != other.Token {
		t.Errorf("after an update: %d entries, %v", len(entries), err)
	}
	if other.Daemon = daemonLine; o.Daemon != nil {
		other.Daemon = nil
	}
	if redone := put(t, moved, other); redone == moved {
		t.Errorf("another daemon's line changes nothing in\n%s", redone)
	} else {
		moved = redone
	}
	if back := put(t, moved, o); back != once {
		t.Errorf("updating to and fro changed the file:\n%s\nbecame\n%s", once, back)
	}
}

func apply1(t testing.TB, o install.Options) {
	t.Helper()
	c, err := install.Plan(o)
	apply(t, c, err)
}

func TestUninstallGivesBackEveryFileByteForByte(t *testing.T) {
	t.Parallel()
	for _, f := range files {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			for _, o := range []install.Options{options(t), onDemand(t)} {
				check(t, o, f.text)
				checkUpdate(t, o, f.text)
				for _, text := range []string{f.text, "\ufeff" + f.text} {
					write(t, o.Path, text)
					apply1(t, o)
					if wired := read(t, o.Path); strings.HasPrefix(text, "\ufeff") != strings.HasPrefix(wired, "\ufeff") {
						t.Errorf("%q became %q", text, wired)
					}
					removal, err := install.PlanRemoval(o.Path, o.Owner)
					apply(t, removal, err)
					if back := read(t, o.Path); back != text {
						t.Errorf("on disk, %q became %q", text, back)
					}
				}
			}
		})
	}
}

// Every combination of indentation, end of line, comments, trailing commas and foreign hooks.
func TestUninstallGivesBackEveryStyle(t *testing.T) {
	t.Parallel()
	o, demand := options(t), onDemand(t)
	for _, indent := range []string{"", "  ", "\t"} {
		for _, eol := range []string{"\n", "\r\n"} {
			if indent == "" && eol != "\n" {
				continue // on one line, but for its last end
			}
			for _, comment := range []string{"", " // note", " /* note */"} {
				for _, comma := range []string{"", ","} {
					for _, hooks := range []string{"", "{}", "{PreToolUse[]}", "{PreToolUse[G]}", "{PreToolUse[G,G],Stop[],Setup[G]}"} {
						for _, last := range []bool{false, true} {
							text := styled(indent, eol, comment, comma, hooks, last)
							if _, err := hujson.Parse([]byte(text)); err != nil {
								t.Fatalf("%v in\n%s", err, text)
							}
							check(t, o, text)
							if last {
								check(t, demand, text)
							}
						}
					}
				}
			}
		}
	}
}

// styled writes a settings file. hooks is a sketch of its hooks, last puts them behind the other settings.
func styled(indent, eol, comment, comma, hooks string, last bool) string {
	var b strings.Builder
	var list func(depth int, open, shut string, items ...func(depth int))
	newline := func(depth int) {
		if b.WriteString(comment); indent != "" || strings.HasPrefix(comment, " //") {
			b.WriteString(eol + strings.Repeat(indent, depth))
		}
	}
	list = func(depth int, open, shut string, items ...func(depth int)) {
		b.WriteString(open)
		for i, item := range items {
			newline(depth + 1)
			item(depth + 1)
			if i < len(items)-1 {
				b.WriteString(",")
			} else {
				b.WriteString(comma)
			}
		}
		if len(items) > 0 {
			newline(depth)
		}
		b.WriteString(shut)
	}
	group := func(int) { b.WriteString(foreignHook) }
	event := func(name string, groups ...func(int)) func(int) {
		return func(depth int) {
			b.WriteString(`"` + name + `": `)
			list(depth, "[", "]", groups...)
		}
	}
	member := func(depth int) {
		b.WriteString(`"hooks": `)
		switch hooks {
		case "{}":
			list(depth, "{", "}")
		case "{PreToolUse[]}":
			list(depth, "{", "}", event("PreToolUse"))
		case "{PreToolUse[G]}":
			list(depth, "{", "}", event("PreToolUse", group))
		default:
			list(depth, "{", "}", event("PreToolUse", group, group), event("Stop"), event("Setup", group))
		}
	}
	members := []func(int){func(int) { b.WriteString(`"model": "opus"`) }}
	if hooks != "" && last {
		members = append(members, member)
	} else if hooks != "" {
		members = append([]func(int){member}, members...)
	}
	list(0, "{", "}", members...)
	b.WriteString(eol)
	return b.String()
}

func FuzzInstall(f *testing.F) {
	for _, file := range files {
		f.Add(file.text)
	}
	plain, demand := options(f), onDemand(f)
	f.Fuzz(func(t *testing.T, text string) {
		o := plain
		if len(text)%2 == 1 {
			o = demand
		}
		once, err := install.PutText([]byte(text), o)
		if err != nil {
			return
		}
		if found, _ := install.Installed([]byte(text)); len(found) > 0 {
			if again, err := install.PutText(once, o); err != nil || string(again) != string(once) {
				t.Fatalf("not stable: %v\n%s", err, once)
			}
			return
		}
		check(t, o, text)
		checkUpdate(t, o, text)
	})
}

func TestTheClientReadsWhatTheDesignSays(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.AllowOnDown = true
	o.Daemon = []string{"/opt/bin/triplined", "--on-demand", "--run-dir=/r"}
	write(t, o.Path, `{"hooks":{"PreToolUse":[`+foreignHook+`]}}`)
	apply1(t, o)
	var got struct {
		Hooks map[string][]map[string]any
	}
	if err := json.Unmarshal([]byte(read(t, o.Path)), &got); err != nil {
		t.Fatal(err)
	}
	for _, r := range claude.Events() {
		groups := got.Hooks[r.Event]
		if r.Event == "PreToolUse" {
			if fmt.Sprint(groups[0]["matcher"]) != "Bash" {
				t.Error("the foreign hook does not stand first any more")
			}
			groups = groups[1:]
		}
		args := []any{"-s", o.Socket, "-u", "1000", "-q", o.Spool, "-t", fmt.Sprint(r.Deadline.Milliseconds()), "-n", token,
			"-o", "allow", "claude", r.Event}
		if daemonOf(o, r.Event) != nil {
			args = append(args, "--", "/opt/bin/triplined", "--on-demand", "--run-dir=/r")
		}
		handler := map[string]any{"type": "command", "command": o.Binary, "timeout": r.Timeout.Seconds(), "args": args}
		if r.Event == "PreToolUse" || r.Event == "PreSkillShellCommand" || r.Event == "ConfigChange" {
			handler["onFailure"] = "block"
		}
		want := []map[string]any{{"matcher": "*", "hooks": []any{handler}}}
		if !reflect.DeepEqual(groups, want) {
			t.Errorf("%s: %v\nwant %v", r.Event, groups, want)
		}
	}
}

func TestANewFileComesAndGoes(t *testing.T) {
	t.Parallel()
	o := options(t)
	if err := os.Remove(filepath.Dir(o.Path)); err != nil {
		t.Fatal(err)
	}
	c, err := install.Plan(o)
	apply(t, c, err)
	if c.Old != nil || !strings.HasPrefix(c.Diff(), "--- /dev/null\n") {
		t.Errorf("old %q, diff %.40q", c.Old, c.Diff())
	}
	text := read(t, o.Path)
	if !strings.HasPrefix(text, "{\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\n        \"matcher\": \"*\",\n") || !strings.HasSuffix(text, "    ]\n  }\n}\n") || strings.Contains(text, " \n") {
		t.Errorf("the new file is\n%s", text)
	}
	info, err := os.Stat(o.Path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	removal, err := install.PlanRemoval(o.Path, o.Owner)
	apply(t, removal, err)
	if removal.SHA256() != "absent" {
		t.Errorf("hash %s", removal.SHA256())
	}
	if _, err := os.Lstat(o.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
	if c, err := install.PlanRemoval(o.Path, o.Owner); err != nil || !c.Empty() {
		t.Errorf("removing from no file: %v", err)
	}
}
