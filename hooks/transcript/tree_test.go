// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// plant makes a client's directory with these transcripts below projects.
func plant(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		p := filepath.Join(dir, "projects", name)
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func open(t *testing.T, dir string) *Tree {
	t.Helper()
	tree, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tree.Close() })
	return tree
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestOnlyTranscriptsAreListedAndNothingIsFollowed(t *testing.T) {
	t.Parallel()
	dir := plant(t, map[string]string{
		"-home-dev-shop/s1.jsonl":                                        "{}\n",
		"-home-dev-shop/s1/subagents/agent-1.jsonl":                      "{}\n",
		"-home-dev-shop/s1/subagents/agent-1.meta.json":                  "{}",
		"-home-dev-shop/s1/subagents/workflows/w/agent-2.jsonl":          "{}\n",
		"-home-dev-shop/s1/subagents/notes.jsonl":                        "not an agent's",
		"-home-dev-shop/s1/tool-results/x.jsonl":                         "a result",
		"-home-dev-shop/s1/other/agent-3.jsonl":                          "not below subagents",
		"-home-dev-shop/memory/MEMORY.md":                                "",
		"-home-dev-shop/agent-4.jsonl":                                   "an older client's\n",
		"-home-dev-shop/\x1b[2J\n.jsonl":                                 "{}\n",
		"loose.jsonl":                                                    "not in a project",
		"deep/s/subagents/" + strings.Repeat("d/", 30) + "agent-5.jsonl": "too deep",
	})
	projects := filepath.Join(dir, "projects")
	outside := filepath.Join(t.TempDir(), "outside.jsonl")
	must(t, os.WriteFile(outside, []byte(call("toolu_x", "ls")+"\n"), 0o600))
	must(t, os.Symlink(outside, filepath.Join(projects, "-home-dev-shop/link.jsonl")))
	must(t, os.Symlink("..", filepath.Join(projects, "-home-dev-shop/loop")))
	must(t, os.Symlink(filepath.Dir(outside), filepath.Join(projects, "linked-project")))
	must(t, os.Mkdir(filepath.Join(projects, "-home-dev-shop/dir.jsonl"), 0o700))
	must(t, syscall.Mkfifo(filepath.Join(projects, "-home-dev-shop/fifo.jsonl"), 0o600))
	must(t, os.Mkdir(filepath.Join(projects, "-home-dev-shop/s2"), 0o700))
	must(t, os.Symlink("../s1/subagents", filepath.Join(projects, "-home-dev-shop/s2/subagents")))

	files, s, err := open(t, dir).Files(context.Background())
	must(t, err)
	var got []string
	for _, f := range files {
		got = append(got, fmt.Sprintf("%q<%s", f.Path, f.Main))
	}
	want := []string{
		`"-home-dev-shop/\x1b[2J\n.jsonl"<`,
		`"-home-dev-shop/agent-4.jsonl"<`,
		`"-home-dev-shop/s1.jsonl"<`,
		`"-home-dev-shop/s1/subagents/agent-1.jsonl"<-home-dev-shop/s1.jsonl`,
		`"-home-dev-shop/s1/subagents/workflows/w/agent-2.jsonl"<-home-dev-shop/s1.jsonl`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if s.Links != 4 || s.Irregular != 1 || s.Beyond != 1 || s.Unreadable != 0 {
		t.Errorf("%+v", s)
	}
}

func TestAFileThatChangedItsKindIsNotOpened(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(path string) error{
		"it became a link":      func(p string) error { return os.Symlink("other.jsonl", p) },
		"it became a link out":  func(p string) error { return os.Symlink("/etc/hostname", p) },
		"it became a FIFO":      func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"it became a directory": func(p string) error { return os.Mkdir(p, 0o700) },
		"it is gone":            func(string) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := plant(t, map[string]string{"p/s.jsonl": call("toolu_1", "ls") + "\n", "p/other.jsonl": call("toolu_2", "ls") + "\n"})
			tree := open(t, dir)
			path := filepath.Join(dir, "projects/p/s.jsonl")
			must(t, os.Remove(path))
			must(t, change(path))
			_, s, err := NewReader(Options{}).ReadFile(context.Background(), tree, File{Path: "p/s.jsonl"}, 0, &Visitor{Call: func(c *Call) error {
				t.Errorf("read %+v", c)
				return nil
			}})
			if err != nil || s.Irregular+s.Unreadable != 1 || s.Files != 0 {
				t.Errorf("%+v, %v", s, err)
			}
		})
	}
}

func TestAClientWithoutTranscripts(t *testing.T) {
	t.Parallel()
	if _, err := Open(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "projects"), nil, 0o600))
	if _, err := Open(dir); err == nil {
		t.Error("a file was opened as a directory")
	}
}

func TestADirectoryOfTranscriptsMayBeALinkItself(t *testing.T) {
	t.Parallel()
	dir := plant(t, map[string]string{"p/s.jsonl": "{}\n"})
	linked := t.TempDir()
	must(t, os.Symlink(filepath.Join(dir, "projects"), filepath.Join(linked, "projects")))
	if files, _, err := open(t, linked).Files(context.Background()); err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
}

func TestAFileGoesOnWhereItEndedAndBeginsAnewWhenItShrank(t *testing.T) {
	t.Parallel()
	one, two := call("toolu_1", "ls")+"\n", call("toolu_2", "ls")+"\n"
	dir := plant(t, map[string]string{"p/s.jsonl": one})
	tree := open(t, dir)
	r := NewReader(Options{})
	var got []string
	read := func(from int64) int64 {
		next, _, err := r.ReadFile(context.Background(), tree, File{Path: "p/s.jsonl"}, from, collect(&got))
		must(t, err)
		return next
	}
	next := read(0)
	must(t, os.WriteFile(filepath.Join(dir, "projects/p/s.jsonl"), []byte(one+two), 0o600))
	if next = read(next); next != int64(len(one+two)) || len(got) != 2 {
		t.Fatalf("offset %d, %q", next, got)
	}
	must(t, os.WriteFile(filepath.Join(dir, "projects/p/s.jsonl"), []byte(two), 0o600))
	if next = read(next); next != int64(len(two)) || len(got) != 3 {
		t.Fatalf("offset %d, %q", next, got)
	}
}

// A file that grows faster than it is read ends where it ended at first; the rest is for the next reading.
func TestAFileThatGrowsWhileItIsReadEnds(t *testing.T) {
	t.Parallel()
	line := call("toolu_1", "ls") + "\n"
	dir := plant(t, map[string]string{"p/s.jsonl": strings.Repeat(line, 3)})
	f, err := os.OpenFile(filepath.Join(dir, "projects/p/s.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	defer f.Close()
	n := 0
	next, _, err := NewReader(Options{}).ReadFile(context.Background(), open(t, dir), File{Path: "p/s.jsonl"}, 0, &Visitor{Call: func(*Call) error {
		n++
		_, err := f.WriteString(strings.Repeat(line, 2))
		return err
	}})
	if err != nil || n != 3 || next != int64(3*len(line)) {
		t.Errorf("%d calls, offset %d, %v", n, next, err)
	}
}

func TestALineAsLongAsADiskCanBeInterrupted(t *testing.T) {
	t.Parallel()
	dir := plant(t, map[string]string{"p/s.jsonl": ""})
	must(t, os.Truncate(filepath.Join(dir, "projects/p/s.jsonl"), 1<<36))
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, _, err := NewReader(Options{}).ReadFile(ctx, open(t, dir), File{Path: "p/s.jsonl"}, 0, &Visitor{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

func TestWhereASessionBegan(t *testing.T) {
	t.Parallel()
	dir := plant(t, map[string]string{
		"p/s.jsonl":                    "{\"type\":\"mode\"}\nbroken\n{\"text\":\"\\\"cwd\\\":1\"}\n{\"type\":\"user\",\"cwd\":\"/home/dev/shop\"}\n{\"cwd\":\"/later\"}\n",
		"p/s/subagents/agent-1.jsonl":  "{\"cwd\":\"/home/dev/shop/src\"}\n",
		"p/lost/subagents/agent.jsonl": "",
		"p/none.jsonl":                 "{}\n",
	})
	tree, r := open(t, dir), NewReader(Options{})
	for file, want := range map[File]string{
		{Path: "p/s.jsonl"}: "/home/dev/shop",
		{Path: "p/s/subagents/agent-1.jsonl", Main: "p/s.jsonl"}:    "/home/dev/shop",
		{Path: "p/s/subagents/agent-1.jsonl", Main: "p/gone.jsonl"}: "/home/dev/shop/src",
		{Path: "p/none.jsonl"}: "",
	} {
		if got := r.FirstCwd(tree, file); got != want {
			t.Errorf("%+v: %q, want %q", file, got, want)
		}
	}
}
