// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/hooks/agents/claude"
)

func TestParseVersion(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"2.1.332": "2.1.332", "2.1.332-beta.1": "2.1.332", "0.0.1": "0.0.1", "2147483647.0.0": "2147483647.0.0",
		"": "", "2.1": "", "2.1.3.4": "", "v2.1.3": "", "02.1.3": "", "2.1.x": "", "-1.2.3": "", "2..3": "", "0.0.0": "", "+2.1.3": "",
		"99999999999.1.1": "", "2.1.3\x1b[2J": "", " 2.1.3": "",
	} {
		v, ok := claude.ParseVersion(text)
		if ok != (want != "") || ok && v.String() != want {
			t.Errorf("%q: %v, %v; want %q", text, v, ok, want)
		}
	}
}

func TestVersionsCompareByNumber(t *testing.T) {
	t.Parallel()
	order := []claude.Version{{1, 9, 999}, {2, 0, 0}, {2, 1, 9}, claude.FirstSupported, {2, 1, 197}, claude.FirstOnFailure, {2, 1, 1000}, {2, 2, 0}, {10, 0, 0}}
	for i, v := range order {
		for j, w := range order {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got := v.Compare(w); got != want {
				t.Errorf("%v, %v: %d, want %d", v, w, got, want)
			}
		}
	}
}

func put(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func link(t *testing.T, target, path string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestInstalledVersionIsToldWithoutRunningAnything(t *testing.T) {
	t.Parallel()
	const pkg = `{"name":"@anthropic-ai/claude-code","version":"2.1.332","bin":{"claude":"cli.js"}}`
	for name, c := range map[string]struct {
		make func(t *testing.T, dir string) string
		want string
	}{
		"a link to a release by its number": {func(t *testing.T, d string) string {
			return link(t, put(t, d+"/share/claude/versions/2.1.332", "#!/bin/sh\ntouch ran\n"), d+"/bin/claude")
		}, "2.1.332"},
		"a link to a release's folder": {func(t *testing.T, d string) string {
			return link(t, put(t, d+"/versions/2.1.100/claude", ""), d+"/bin/claude")
		}, "2.1.100"},
		"a link to a link": {func(t *testing.T, d string) string {
			return link(t, link(t, put(t, d+"/versions/2.1.5", ""), d+"/current"), d+"/bin/claude")
		}, "2.1.5"},
		"a package with a script": {func(t *testing.T, d string) string {
			put(t, d+"/lib/node_modules/@anthropic-ai/claude-code/package.json", pkg)
			return link(t, put(t, d+"/lib/node_modules/@anthropic-ai/claude-code/cli.js", ""), d+"/bin/claude")
		}, "2.1.332"},
		"a package with a native program below": {func(t *testing.T, d string) string {
			put(t, d+"/claude-code/package.json", pkg)
			return link(t, put(t, d+"/claude-code/vendor/bin/claude", ""), d+"/bin/claude")
		}, "2.1.332"},
		"another package of that file name": {func(t *testing.T, d string) string {
			put(t, d+"/x/package.json", `{"name":"claude","version":"9.9.9"}`)
			return put(t, d+"/x/claude", "")
		}, ""},
		"a package file that is no JSON": {func(t *testing.T, d string) string {
			put(t, d+"/x/package.json", "{")
			return put(t, d+"/x/claude", "")
		}, ""},
		"a package file that is a pipe": {func(t *testing.T, d string) string {
			path := put(t, d+"/x/claude", "")
			if err := syscall.Mkfifo(d+"/x/package.json", 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}, ""},
		"a hostile number":     {func(t *testing.T, d string) string { return put(t, d+"/versions/2.1.\x1b[2J", "") }, ""},
		"a plain program":      {func(t *testing.T, d string) string { return put(t, d+"/bin/claude", "") }, ""},
		"nothing":              {func(_ *testing.T, d string) string { return d + "/bin/claude" }, ""},
		"a link to nowhere":    {func(t *testing.T, d string) string { return link(t, d+"/gone", d+"/bin/claude") }, ""},
		"a link in a circle":   {func(t *testing.T, d string) string { return link(t, d+"/bin/claude", d+"/bin/claude") }, ""},
		"the number elsewhere": {func(t *testing.T, d string) string { return put(t, d+"/releases/2.1.332/claude", "") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			v, ok := claude.InstalledVersion(c.make(t, dir))
			if ok != (c.want != "") || ok && v.String() != c.want {
				t.Errorf("%v, %v; want %q", v, ok, c.want)
			}
			if _, err := os.Lstat(filepath.Join(dir, "ran")); err == nil {
				t.Error("the program ran")
			}
		})
	}
}

func TestTranscriptVersionIsThatOfTheNewestLineOfTheNewestFile(t *testing.T) {
	t.Parallel()
	line := func(v string) string {
		return `{"type":"user","version":"` + v + `","message":{"version":"9.9.9"}}` + "\n"
	}
	newer := time.Date(2026, 11, 24, 9, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct{ old, new, want string }{
		"the newest file counts":                {line("2.1.1"), line("2.1.332"), "2.1.332"},
		"the newest line counts":                {"", line("2.1.331") + line("2.1.332"), "2.1.332"},
		"a line without one is passed over":     {"", line("2.1.332") + `{"type":"summary"}` + "\n", "2.1.332"},
		"a cut line at the end":                 {"", line("2.1.332") + `{"type":"user","version":"2.1.4`, "2.1.332"},
		"only the end of a large file is read":  {"", line("2.1.1") + strings.Repeat(" ", 300<<10) + "\n" + line("2.1.332"), "2.1.332"},
		"nothing near the end":                  {"", line("2.1.1") + strings.Repeat(" ", 300<<10), ""},
		"a version inside of something is none": {"", `{"message":{"version":"2.1.332"}}` + "\n", ""},
		"a hostile version":                     {"", `{"version":"2.1.332\u001b[2J"}` + "\n" + `{"version":5}` + "\n" + `[]` + "\n", ""},
		"an empty file":                         {line("2.1.1"), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for path, f := range map[string]struct {
				text string
				at   time.Time
			}{"a/1.jsonl": {c.old, newer.Add(-time.Hour)}, "b/2.jsonl": {c.new, newer}, "b/3.txt": {line("2.1.3"), newer.Add(time.Hour)}} {
				p := put(t, filepath.Join(dir, "projects", path), f.text)
				if err := os.Chtimes(p, f.at, f.at); err != nil {
					t.Fatal(err)
				}
			}
			if err := syscall.Mkfifo(filepath.Join(dir, "projects", "b", "pipe.jsonl"), 0o600); err != nil {
				t.Fatal(err)
			}
			v, at, ok := claude.TranscriptVersion(dir)
			if ok != (c.want != "") || ok && (v.String() != c.want || !at.Equal(newer)) {
				t.Errorf("%v, %v, %v; want %q", v, at, ok, c.want)
			}
		})
	}
	if _, _, ok := claude.TranscriptVersion(filepath.Join(t.TempDir(), "gone")); ok {
		t.Error("found something in nothing")
	}
}
