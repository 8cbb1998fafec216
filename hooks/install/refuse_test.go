// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tripline-sh/tripline/hooks/install"
)

func TestWhatCannotBeReadIsNotTouched(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, text string }{
		{"an empty file", ""},
		{"white space", " \n"},
		{"two byte order marks", "\ufeff\ufeff{}"},
		{"broken JSON", `{"hooks":`},
		{"a list", `[]`},
		{"two objects", `{}{}`},
		{"bytes that are not UTF-8", "{\"model\":\"\xff\"}"},
		{"hooks that are a list", `{"hooks":[]}`},
		{"hooks that are null", `{"hooks":null}`},
		{"an event that is no list", `{"hooks":{"Stop":{}}}`},
		{"hooks twice", `{"hooks":{},"hooks":{}}`},
		{"hooks twice in escapes", `{"hooks":{},"h\u006foks":{}}`},
		{"an event twice", `{"hooks":{"Stop":[],"Stop":[]}}`},
		{"a bomb", `{"a":` + strings.Repeat("[", 1<<19)},
		{"a large file", `{"a":"` + strings.Repeat("x", 1<<20) + `"}`},
		{"thousands of copies of our entry", `{"hooks":{"Stop":[{"hooks":[` + strings.TrimSuffix(strings.Repeat(ourHandler("Stop")+",", 1000), ",") + `]}]}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			write(t, o.Path, tc.text)
			_, err := install.Plan(o)
			if !errors.Is(err, install.ErrRefused) || len(err.Error()) > 300 || strings.Contains(err.Error(), "xxx") {
				t.Errorf("install: %v", err)
			}
			if _, err := install.PlanRemoval(o.Path, o.Owner); !errors.Is(err, install.ErrRefused) {
				t.Errorf("uninstall: %v", err)
			}
			if read(t, o.Path) != tc.text {
				t.Error("the file was changed")
			}
		})
	}
}

func TestPlacesThatAreNotTheOwnersAloneAreRefused(t *testing.T) {
	t.Parallel()
	dir := func(o install.Options) string { return filepath.Dir(o.Path) }
	for _, tc := range []struct {
		name string
		make func(t *testing.T, o *install.Options)
		says string
	}{
		{"another owner", func(_ *testing.T, o *install.Options) { o.Owner++ }, "another user"},
		{"a file that a group may write", func(t *testing.T, o *install.Options) { chmod(t, o.Path, 0o664) }, "chmod go-w"},
		{"a file that all may write", func(t *testing.T, o *install.Options) { chmod(t, o.Path, 0o602) }, "chmod go-w"},
		{"a folder that a group may write", func(t *testing.T, o *install.Options) { chmod(t, dir(*o), 0o770) }, "chmod go-w"},
		{"a link out of its folder", func(t *testing.T, o *install.Options) {
			link(t, filepath.Join(t.TempDir(), "victim.json"), o.Path)
		}, "out of its folder"},
		{"a link to the folder's neighbour", func(t *testing.T, o *install.Options) {
			beside := filepath.Join(dir(*o)+"-x", "settings.json")
			if err := os.Mkdir(filepath.Dir(beside), 0o700); err != nil {
				t.Fatal(err)
			}
			link(t, beside, o.Path)
		}, "out of its folder"},
		{"a link that leads nowhere", func(t *testing.T, o *install.Options) {
			remove(t, o.Path)
			if err := os.Symlink("missing.json", o.Path); err != nil {
				t.Fatal(err)
			}
		}, "leads nowhere"},
		{"a folder that is a link out of home", func(t *testing.T, o *install.Options) {
			remove(t, o.Path)
			remove(t, dir(*o))
			if err := os.Symlink(t.TempDir(), dir(*o)); err != nil {
				t.Fatal(err)
			}
		}, "out of its folder"},
		{"a directory", func(t *testing.T, o *install.Options) {
			remove(t, o.Path)
			if err := os.Mkdir(o.Path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "not a regular file"},
		{"a pipe", func(t *testing.T, o *install.Options) {
			remove(t, o.Path)
			if err := syscall.Mkfifo(o.Path, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "not a regular file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			write(t, o.Path, "{}\n")
			tc.make(t, &o)
			if _, err := install.Plan(o); !errors.Is(err, install.ErrRefused) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("install: %v", err)
			}
			if _, err := install.PlanRemoval(o.Path, o.Owner); !errors.Is(err, install.ErrRefused) {
				t.Errorf("uninstall: %v", err)
			}
		})
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// link moves the file at from to target and leaves a link.
func link(t *testing.T, target, from string) {
	t.Helper()
	if err := os.Rename(from, target); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, from); err != nil {
		t.Fatal(err)
	}
}

func TestLinksInsideTheirFolderAreFollowed(t *testing.T) {
	t.Parallel()
	o := options(t)
	home := filepath.Dir(filepath.Dir(o.Path))
	real := filepath.Join(home, "dotfiles", "claude")
	if err := os.MkdirAll(real, 0o700); err != nil {
		t.Fatal(err)
	}
	remove(t, filepath.Dir(o.Path))
	if err := os.Symlink("dotfiles/claude", filepath.Dir(o.Path)); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(real, "mine.json"), "{\n  \"hooks\": {}\n}\n")
	chmod(t, filepath.Join(real, "mine.json"), 0o640)
	if err := os.Symlink("mine.json", o.Path); err != nil {
		t.Fatal(err)
	}
	apply1(t, o)
	info, err := os.Stat(filepath.Join(real, "mine.json"))
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the mode became %v, %v", info.Mode(), err)
	}
	if target, err := os.Readlink(o.Path); err != nil || target != "mine.json" {
		t.Errorf("the link is gone: %q, %v", target, err)
	}
	if entries, err := install.Installed([]byte(read(t, filepath.Join(real, "mine.json")))); err != nil || len(entries) == 0 {
		t.Errorf("not installed behind the link: %v", err)
	}
	if left, err := os.ReadDir(real); err != nil || len(left) != 2 {
		t.Errorf("files are left over: %v, %v", left, err)
	}
}

func TestAChangeMeanwhileIsNotLost(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name       string
		start, now string // "" = no file
	}{
		{"other bytes", "{}", `{"a":1}`},
		{"a file where none was", "", "{}"},
		{"no file where one was", "{}", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			if tc.start != "" {
				write(t, o.Path, tc.start)
			}
			c, err := install.Plan(o)
			if err != nil {
				t.Fatal(err)
			}
			if tc.now == "" {
				remove(t, o.Path)
			} else {
				write(t, o.Path, tc.now)
			}
			if err := c.Apply(); !errors.Is(err, install.ErrChanged) {
				t.Errorf("got %v", err)
			}
			if b, _ := os.ReadFile(o.Path); string(b) != tc.now {
				t.Errorf("the file holds %q", b)
			}
			if left, err := os.ReadDir(filepath.Dir(o.Path)); err != nil || len(left) > 1 {
				t.Errorf("files are left over: %v, %v", left, err)
			}
		})
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*install.Options){
		"a relative binary":              func(o *install.Options) { o.Binary = "tripline-hook" },
		"a binary of another name":       func(o *install.Options) { o.Binary = "/bin/true" },
		"a relative socket":              func(o *install.Options) { o.Socket = "hook.sock" },
		"no socket":                      func(o *install.Options) { o.Socket = "" },
		"an end of line in the socket":   func(o *install.Options) { o.Socket = "/a\nb" },
		"a spool that is not UTF-8":      func(o *install.Options) { o.Spool = "/\xff" },
		"a short token":                  func(o *install.Options) { o.Token = "abc" },
		"a relative settings file":       func(o *install.Options) { o.Path = "settings.json" },
		"a uid that nobody can have":     func(o *install.Options) { o.ServerUID = -1 },
		"a folder whose parent is wrong": func(o *install.Options) { o.Path = "/nonexistent/x/settings.json" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			change(&o)
			if _, err := install.Plan(o); err == nil {
				t.Error("accepted")
			}
		})
	}
	if _, err := install.SettingsPath("rel", "/home/dev"); !errors.Is(err, install.ErrOptions) {
		t.Errorf("a relative config directory: %v", err)
	}
	if p, err := install.SettingsPath("/cfg", "/home/dev"); err != nil || p != "/cfg/settings.json" {
		t.Errorf("%q, %v", p, err)
	}
}

// A carriage return that ends no line could not be told from the end of a line that is put behind it. What is ours can be
// taken out nevertheless.
func TestAFileWithALoneCarriageReturnIsNotWired(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"{\r}", "{\r\r\n}", "{\r\"model\":\"opus\"\r}\r", "{\n\"a\": [\r]}\n"} {
		o := options(t)
		write(t, o.Path, text)
		if _, err := install.Plan(o); !errors.Is(err, install.ErrRefused) {
			t.Errorf("%q: install: %v", text, err)
		}
		if c, err := install.PlanRemoval(o.Path, o.Owner); err != nil || !c.Empty() {
			t.Errorf("%q: uninstall: %v", text, err)
		}
	}
}
