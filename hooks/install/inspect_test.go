// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tripline-sh/tripline/hooks/install"
)

func TestInspectSaysWhatDecidesWhetherHooksRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text     string
		want     install.Settings // without handlers
		handlers int
		mention  string // what exactly one handler mentions
		err      bool
	}{
		"an empty object": {text: "{}"},
		"switches": {text: `{"disableAllHooks": true, "allowManagedHooksOnly": true,}`,
			want: install.Settings{DisableAll: true, ManagedOnly: true, Warnings: []string{"line 1 holds a comment, a trailing comma or something else that is no JSON: the client skips this whole file, our hooks included", "disableAllHooks is true in this file: the client will run no hook of it"}}},
		"a switch that is a text":      {text: `{"disableAllHooks": "true"}`},
		"the last of two counts":       {text: `{"allowManagedHooksOnly": true, "allowManagedHooksOnly": false}`},
		"names of variables, no value": {text: `{"env": {"PATH": "secret", "BASH_ENV": "x", "PATH": "y"}}`, want: install.Settings{Env: []string{"BASH_ENV", "PATH"}}},
		"a handler in a shell": {text: `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"/x/tripline-hook -s /s claude PreToolUse"}]}]}}`,
			handlers: 1, mention: "tripline-hook"},
		"a mention in an unknown field":  {text: `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"a","x":{"y":["tripline-hook"]}}]}]}}`, handlers: 1, mention: "tripline-hook"},
		"a mention in escapes":           {text: `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"\u0074ripline-hook"}]}]}}`, handlers: 1, mention: "tripline-hook"},
		"something that is no group":     {text: `{"hooks":{"Stop":["tripline-hook", 5]}}`, handlers: 2, mention: "tripline-hook"},
		"hooks that are no object":       {text: `{"hooks":[]}`, err: true},
		"hooks twice":                    {text: `{"hooks":{},"hooks":{}}`, err: true},
		"no JSON":                        {text: `{`, err: true},
		"an empty file":                  {text: ``, err: true},
		"an array":                       {text: `[]`, err: true},
		"variables that are no object":   {text: `{"env": ["PATH"]}`},
		"an entry that cannot be loaded": {text: `{"hooks":{"PreToolUse":[{"hooks":[{"type":"what"}]}]}}`, handlers: 1, mention: "what", want: install.Settings{Warnings: []string{"an entry under PreToolUse cannot be loaded: the client will skip this whole file, our hooks included"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := install.Inspect([]byte(c.text))
			if (err != nil) != c.err {
				t.Fatalf("error %v", err)
			}
			mentioned := 0
			for _, h := range got.Handlers {
				if h.Ours {
					t.Errorf("%+v passes for ours", h)
				}
				if h.Mentions(c.mention, "") {
					mentioned++
				}
			}
			if len(got.Handlers) != c.handlers || c.mention != "" && mentioned != 1 {
				t.Errorf("%d handlers, %d mention %q", len(got.Handlers), mentioned, c.mention)
			}
			got.Handlers = nil
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// What Wanted says is what Plan writes, to the last argument.
func TestWantedIsWhatPlanWrites(t *testing.T) {
	t.Parallel()
	o := options(t)
	want, err := install.Wanted(o)
	if err != nil {
		t.Fatal(err)
	}
	change, err := install.Plan(o)
	apply(t, change, err)
	got, err := install.Installed([]byte(read(t, o.Path)))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("installed %+v\nwanted %+v\n%v", got, want, err)
	}
	s, err := install.Inspect([]byte(read(t, o.Path)))
	if err != nil || len(s.Handlers) != len(want) || slices.ContainsFunc(s.Handlers, func(h install.Handler) bool { return !h.Ours || !h.Mentions(o.Token) }) {
		t.Errorf("%+v, %v", s, err)
	}
	args := want[0].Args()
	if !slices.Contains(args, o.Token) || args[len(args)-1] != "PreToolUse" {
		t.Errorf("%q", args)
	}
	o.Binary = "relative"
	if _, err := install.Wanted(o); err == nil {
		t.Error("bad options pass")
	}
}

// Whatever Plan can build upon, Inspect can read, and they agree on which handlers are ours.
func FuzzInspect(f *testing.F) {
	for _, file := range files {
		f.Add([]byte(file.text))
	}
	f.Add([]byte(`{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"/x/tripline-hook","args":["-s","/s","claude","PreToolUse"]}]}]},"env":{"A":"b"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := install.Inspect(slices.Clone(b))
		installed, ierr := install.Installed(slices.Clone(b))
		if len(s.Handlers) > 256 { // Installed has a bound of its own
			return
		}
		if (err != nil) != (ierr != nil) {
			t.Fatalf("Inspect: %v, Installed: %v", err, ierr)
		}
		ours := 0
		for _, h := range s.Handlers {
			if h.Ours {
				ours++
				if !h.Mentions("tripline-hook") {
					t.Errorf("an entry of ours does not mention our hook")
				}
			}
		}
		if ours != len(installed) {
			t.Errorf("%d of ours, %d installed", ours, len(installed))
		}
	})
}

func TestAFileThatTheClientSkipsIsTold(t *testing.T) {
	t.Parallel()
	for text, line := range map[string]string{
		"": "", " \n": "", "{}": "", "\ufeff{\r\n}\r\n": "", `{"a": "// text, /* text */ ,}"}`: "", "{\"a\":1,\"a\":2}": "",
		"{\n\n // mine\n}":              "line 3 ",
		"{\r\n  \"a\": 1,\r\n}":         "line 3 ",
		"{\"a\": [1, 2,]}":              "line 1 ",
		"{\n\"a\": 1 /* mine */\n}":     "line 2 ",
		"\ufeff{\n\"a\": 1}\n// mine\n": "line 3 ",
		"{\n'a': 1}":                    "line 2 ",
	} {
		if got := install.Skipped([]byte(text)); (got == "") != (line == "") || !strings.HasPrefix(got, line) {
			t.Errorf("%q: %q, want %q", text, got, line)
		}
	}
}
