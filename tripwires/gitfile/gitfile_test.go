// SPDX-License-Identifier: Apache-2.0

package gitfile

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/tripwires/paths"
	"github.com/tripline-sh/tripline/tripwires/view"
)

// work is a work tree made by the real git.
type work struct {
	*testing.T
	dir string
}

func newWork(t *testing.T, init ...string) work {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED: git is not installed, so the reader is not compared with it here")
	}
	w := work{t, filepath.Join(t.TempDir(), "shop")}
	if err := os.Mkdir(w.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	w.git(append([]string{"init", "-q"}, init...)...)
	return w
}

func (w work) git(args ...string) string {
	w.Helper()
	return w.gitIn(w.dir, args...)
}

func (w work) gitIn(dir string, args ...string) string {
	w.Helper()
	out, err := w.run(dir, args...)
	if err != nil {
		w.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (w work) run(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
		"LC_ALL=C"}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (w work) write(name, content string) {
	w.Helper()
	p := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
		w.Fatal(err)
	}
}

// old sets a file's times back, so that it is not of the same instant as the index.
func (w work) old(names ...string) {
	w.Helper()
	then := time.Unix(1_700_000_000, 123_000_000)
	for _, n := range names {
		if err := os.Chtimes(filepath.Join(w.dir, n), then, then); err != nil {
			w.Fatal(err)
		}
	}
}

func (w work) open() *Repo {
	w.Helper()
	r, err := Open(w.dir, reader(w.T))
	if err != nil {
		w.Fatal(err)
	}
	return r
}

func reader(t *testing.T) view.Reader {
	return view.NewPool(4).Reader(t.Context())
}

func (w work) state(rel string) State {
	w.Helper()
	s, err := w.open().FileState(rel)
	if err != nil && s != Unknown {
		w.Errorf("state of %q: %v with error %v", rel, s, err)
	}
	return s
}

func TestEveryIndexVersionAndObjectFormatIsRead(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2", "3", "4"} {
		for _, format := range []string{"sha1", "sha256"} {
			t.Run("version "+version+" "+format, func(t *testing.T) {
				t.Parallel()
				w := newWork(t, "--object-format="+format)
				for _, n := range []string{"main.go", "src/a.go", "src/ab.go", "src/deep/er/x.go", "src-2/y.go", "z"} {
					w.write(n, "content of "+n)
				}
				w.old("main.go", "src/a.go")
				w.git("add", ".")
				w.git("commit", "-q", "-m", "first")
				w.write("planned.go", "x")
				if version != "2" {
					w.git("add", "-N", "planned.go") // needs the second flags of version 3
				}
				w.git("update-index", "--index-version", version)
				w.write("untracked.txt", "u")
				w.write("src/ab.go", "CONTENT OF src/ab.g!")

				r := w.open()
				for rel, want := range map[string]bool{
					".": true, "src": true, "src/deep": true, "src/deep/er": true, "sr": false, "src-": false, "dist": false,
					"src/a.go": true, "src/a.goo": false, "main.go/x": false, "z": true, "zz": false, "untracked.txt": false,
				} {
					if got, err := r.TracksUnder(rel); got != want || err != nil {
						t.Errorf("TracksUnder(%q) = %v, %v; want %v", rel, got, err, want)
					}
				}
				for rel, want := range map[string]State{
					"main.go": Restorable, "src/a.go": Restorable, "z": Restorable, "src/ab.go": Modified,
					"untracked.txt": Untracked, "gone.txt": Untracked, "src": Untracked,
				} {
					if got, err := r.FileState(rel); got != want || err != nil {
						t.Errorf("FileState(%q) = %v, %v; want %v", rel, got, err, want)
					}
				}
				if version != "2" {
					if got := w.state("planned.go"); got != Modified {
						t.Errorf("a file that was only announced to git is %v; want modified", got)
					}
				}
			})
		}
	}
}

func TestAFileIsRestorableOnlyWithTheContentThatGitHolds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(w work)
		want   State
	}{
		{"untouched", func(work) {}, Restorable},
		{"rewritten with other content of the same length and time", func(w work) { w.write("f", "CONTENT"); w.old("f") }, Modified},
		{"grown", func(w work) { w.write("f", "content and more") }, Modified},
		{"touched, the same content", func(w work) { w.old("f") }, Restorable},
		{"made executable", func(w work) { _ = os.Chmod(filepath.Join(w.dir, "f"), 0o755) }, Modified},
		{"deleted", func(w work) { _ = os.Remove(filepath.Join(w.dir, "f")) }, Restorable},
		{"replaced by a link", func(w work) {
			_ = os.Remove(filepath.Join(w.dir, "f"))
			_ = os.Symlink("g", filepath.Join(w.dir, "f"))
		}, Modified},
		{"replaced by a directory", func(w work) {
			_ = os.Remove(filepath.Join(w.dir, "f"))
			w.write("f/x", "content")
		}, Modified},
		{"replaced by another file with the same content", func(w work) {
			w.write("f2", "content")
			_ = os.Rename(filepath.Join(w.dir, "f2"), filepath.Join(w.dir, "f"))
		}, Restorable},
		{"staged, not committed", func(w work) { w.write("f", "staged"); w.git("add", "f") }, Restorable},
		{"changed after it was staged", func(w work) { w.write("f", "staged"); w.git("add", "f"); w.write("f", "edited") }, Modified},
		{"removed from the index only", func(w work) { w.git("rm", "-q", "--cached", "f") }, Untracked},
		{"assumed unchanged and changed", func(w work) {
			w.git("update-index", "--assume-unchanged", "f")
			w.write("f", "secretly")
		}, Modified},
		{"outside of a sparse checkout", func(w work) { w.git("update-index", "--skip-worktree", "f") }, Modified},
		{"in conflict", func(w work) {
			w.git("checkout", "-q", "-b", "other")
			w.write("f", "theirs")
			w.git("commit", "-q", "-a", "-m", "theirs")
			w.git("checkout", "-q", "-")
			w.write("f", "ours")
			w.git("commit", "-q", "-a", "-m", "ours")
			if out, err := w.run(w.dir, "merge", "-q", "other"); err == nil {
				w.Errorf("the merge did not conflict: %s", out)
			}
		}, Modified},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWork(t)
			w.write("f", "content")
			w.write("g", "other")
			w.git("add", ".")
			w.git("commit", "-q", "-m", "first")
			tt.change(w)
			if got := w.state("f"); got != tt.want {
				t.Errorf("state is %v; want %v", got, tt.want)
			}
		})
	}
}

func TestFilesOfTheSameInstantAsTheIndexAreComparedByContent(t *testing.T) {
	t.Parallel()
	// The classic race: written, added, and written again before the clock moves on.
	w := newWork(t)
	w.write("f", "one")
	w.git("add", "f")
	info, err := os.Stat(filepath.Join(w.dir, "f"))
	if err != nil {
		t.Fatal(err)
	}
	m := info.ModTime()
	if err := os.Chtimes(filepath.Join(w.dir, ".git/index"), m, m); err != nil {
		t.Fatal(err)
	}
	if got := w.state("f"); got != Restorable {
		t.Errorf("a racy entry with the same content is %v; want restorable", got)
	}
	r := w.open()
	if err := r.load(); err != nil {
		t.Fatal(err)
	}
	w.write("f", "two")
	if err := os.Chtimes(filepath.Join(w.dir, "f"), m, m); err != nil {
		t.Fatal(err)
	}
	if got, err := r.FileState("f"); got != Modified || err != nil {
		t.Errorf("a racy entry with other content is %v, %v; want modified", got, err)
	}
}

func TestLinkedWorkTreesAndSubmodulesHaveTheirOwnIndex(t *testing.T) {
	t.Parallel()
	w := newWork(t)
	w.write("src/a.go", "a")
	w.git("add", ".")
	w.git("commit", "-q", "-m", "first")
	linked := filepath.Join(filepath.Dir(w.dir), "linked")
	w.git("worktree", "add", "-q", linked)
	r, err := Open(linked, reader(t))
	if err != nil {
		t.Fatal(err)
	}
	if s, err := r.FileState("src/a.go"); s != Restorable || err != nil {
		t.Errorf("in a linked work tree: %v, %v; want restorable", s, err)
	}
	w.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", w.dir, "vendor/lib")
	sub, err := Open(filepath.Join(w.dir, "vendor/lib"), reader(t))
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := sub.TracksUnder("src"); !ok || err != nil {
		t.Errorf("in a submodule: %v, %v; want true", ok, err)
	}
	outer := w.open()
	if _, err := outer.TracksUnder("vendor/lib/src"); !errors.Is(err, ErrUnknown) {
		t.Errorf("the outer index answered for a submodule's files: %v", err)
	}
	if ok, err := outer.TracksUnder("vendor"); !ok || err != nil {
		t.Errorf("vendor holds a submodule: %v, %v; want true", ok, err)
	}
	if s, err := NewTrees(w.dir, reader(t)).State(filepath.Join(w.dir, "vendor/lib/src/a.go")); s != Restorable || err != nil {
		t.Errorf("Trees: a submodule's file is %v, %v; want restorable", s, err)
	}
}

func TestIndexesThatDoNotTellAllAreUnknown(t *testing.T) {
	t.Parallel()
	tests := map[string]func(w work){
		"split index":      func(w work) { w.git("update-index", "--split-index") },
		"sparse index":     func(w work) { w.git("sparse-checkout", "set", "--cone", "--sparse-index", "only") },
		"garbage":          func(w work) { w.write(".git/index", "DIRC and then garbage that is long enough") },
		"empty file":       func(w work) { w.write(".git/index", "") },
		"foreign worktree": func(w work) { w.git("config", "core.worktree", "/elsewhere") },
		"unknown objects":  func(w work) { w.git("config", "extensions.objectFormat", "sha3") },
		"too big": func(w work) {
			if err := os.Truncate(filepath.Join(w.dir, ".git/index"), maxIndex+1); err != nil {
				w.Fatal(err)
			}
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWork(t)
			w.write("only/a", "a")
			w.write("rest/deep/b", "b")
			w.write("build/c", "c")
			w.git("add", ".")
			w.git("commit", "-q", "-m", "first")
			change(w)
			r := w.open()
			if s, err := r.FileState("only/a"); s != Unknown || !errors.Is(err, ErrUnknown) {
				t.Errorf("state is %v, %v; want unknown", s, err)
			}
			if _, err := r.TracksUnder("dist"); !errors.Is(err, ErrUnknown) {
				t.Errorf("TracksUnder: %v; want unknown", err)
			}
			c := paths.New(paths.Options{Cwd: w.dir, Reader: reader(t)})
			if ok, why := NewTrees(c.Root(), reader(t)).Regenerable(c.Place(w.dir + "/dist")); ok {
				t.Errorf("dist is regenerable (%s) although the index could not be read", why)
			}
		})
	}
}

func TestOpenTellsNoRepositoryFromCouldNotTell(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		setup func(m *view.Memory)
		want  error // nil = some other error
		ok    bool
	}{
		{"nothing there", func(*view.Memory) {}, ErrNoRepo, false},
		{"an empty .git", func(m *view.Memory) { m.AddDir("/p/s/.git") }, ErrNoRepo, false},
		{"a repository without an index", func(m *view.Memory) { m.AddFile("/p/s/.git/HEAD", nil) }, nil, true},
		{"a pointer", func(m *view.Memory) {
			m.AddFile("/p/s/.git", []byte("gitdir: ../main.git\n"))
			m.AddFile("/p/main.git/HEAD", nil)
		}, nil, true},
		{"a pointer to nothing", func(m *view.Memory) { m.AddFile("/p/s/.git", []byte("gitdir: ../x\n")) }, ErrNoRepo, false},
		{"a file that is no pointer", func(m *view.Memory) { m.AddFile("/p/s/.git", []byte("hello")) }, nil, false},
		{"a pointer that is too long", func(m *view.Memory) { m.AddFile("/p/s/.git", make([]byte, maxPointer+1)) }, view.ErrTooLarge, false},
		{"a link that leads in a circle", func(m *view.Memory) { m.AddLink("/p/s/.git", ".git") }, view.ErrLoop, false},
		{"a FIFO as commondir", func(m *view.Memory) {
			m.AddFile("/p/s/.git/HEAD", nil)
			m.AddFIFO("/p/s/.git/commondir")
		}, view.ErrNotRegular, false},
		{"not allowed", func(m *view.Memory) {
			m.AddFile("/p/s/.git/HEAD", nil)
			m.Deny("/p/s/.git")
		}, view.ErrDenied, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := view.NewMemory()
			tt.setup(m)
			_, err := Open("/p/s", m)
			switch {
			case tt.ok && err != nil, !tt.ok && err == nil, tt.want != nil && !errors.Is(err, tt.want):
				t.Errorf("error %v; want ok %v, %v", err, tt.ok, tt.want)
			case tt.want == nil && errors.Is(err, ErrNoRepo):
				t.Errorf("%v: what could not be told counts as no repository", err)
			}
		})
	}
}

func TestRegenerableNeedsANameAndAnIndexThatTracksNothingThere(t *testing.T) {
	t.Parallel()
	w := newWork(t)
	for _, n := range []string{"src/a.go", "build/keep.txt", "dist/x.js", "nested/.keep", "other/target/t", ".env"} {
		w.write(n, n)
	}
	w.git("add", "src", "build/keep.txt", "nested/.keep")
	w.git("commit", "-q", "-m", "first")
	inner := filepath.Join(w.dir, "nested/inner")
	w.write("nested/inner/dist/tracked.js", "x")
	w.gitIn(inner, "init", "-q")
	w.gitIn(inner, "add", ".")
	w.write("out/clone/x", "x")
	w.gitIn(filepath.Join(w.dir, "out"), "init", "-q")
	if err := os.Symlink(t.TempDir(), filepath.Join(w.dir, "coverage")); err != nil {
		t.Fatal(err)
	}

	r := reader(t)
	c := paths.New(paths.Options{Cwd: w.dir, Reader: r})
	trees := NewTrees(c.Root(), r)
	for name, want := range map[string]bool{
		"dist": true, "dist/x.js": true, "node_modules": true, "other/target": true, "src/__pycache__": true,
		"build": false, "build/new": false, "src": false, ".env": false, "nested/inner/dist": false, "out": false,
		"coverage/x": false, ".": false,
	} {
		if got, why := trees.Regenerable(c.Place(filepath.Join(w.dir, name))); got != want {
			t.Errorf("Regenerable(%q) = %v (%s); want %v", name, got, why, want)
		}
	}
}

func TestThePartOfARepositoryIsStillInIt(t *testing.T) {
	t.Parallel()
	w := newWork(t)
	w.write("app/build/tracked", "x")
	w.git("add", ".")
	r := reader(t)
	c := paths.New(paths.Options{Cwd: w.dir, Project: w.dir + "/app", Reader: r})
	if ok, why := NewTrees(c.Root(), r).Regenerable(c.Place(w.dir + "/app/build")); ok {
		t.Errorf("regenerable: %s", why)
	}
}

func TestTheIndexIsNotPartOfTheReadSet(t *testing.T) {
	t.Parallel()
	w := newWork(t)
	w.write("f", "x")
	w.git("add", ".")
	r := view.NewPool(2).Reader(context.Background())
	repo, err := Open(w.dir, r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := repo.TracksUnder("."); err != nil {
		t.Fatal(err)
	}
	for _, e := range r.ReadSet() {
		if strings.HasSuffix(e.Path, "/index") {
			t.Errorf("%q is bound to approvals: the next git status would void them", e.Path)
		}
	}
}
