// SPDX-License-Identifier: Apache-2.0

package dev_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// home is a home with a program in it that answers as auditctl does where completions are asked for.
func home(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	for _, name := range []string{"auditctl", "tripline"} {
		text := "#!/bin/sh\ncase $2 in bash) echo '# bash completion V2 for " + name + " ' ;; *) echo '# fish completion for " + name + " ' ;; esac\n"
		put(t, filepath.Join(home, "programs", name), text, 0o700)
	}
	return home
}

func put(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	// a child that another test starts meanwhile must not hold the file open: it could not be run then
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, []byte(text), mode)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
}

// extras runs extras.sh in a home. What go keeps is that of this process.
func extras(t *testing.T, home string, env []string, args ...string) {
	t.Helper()
	kept, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE", "GOFLAGS").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(kept), "\n")
	cmd := exec.Command("./extras.sh", args...)
	cmd.Env = append([]string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "GOCACHE=" + lines[0], "GOMODCACHE=" + lines[1], "GOFLAGS=" + lines[2],
		"XDG_CONFIG_HOME=" + t.TempDir()}, env...) // where go counts its own use
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("extras.sh %q: %v\n%s", args, err, out)
	}
}

// below lists what is in a directory, directories included.
func below(t *testing.T, dir string) []string {
	t.Helper()
	out := []string{}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(dir, path); rel != "." && !strings.HasPrefix(rel, "programs") {
			out = append(out, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestExtrasLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	h := home(t)
	if err := os.Mkdir(filepath.Join(h, ".local"), 0o700); err != nil {
		t.Fatal(err)
	}
	extras(t, h, nil, "add", filepath.Join(h, "programs/auditctl"))
	for _, path := range []string{"bash-completion/completions/tripline", "fish/vendor_completions.d/auditctl.fish", "man/man1/auditctl.1", "man/man1/auditctl-query.1"} {
		if _, err := os.Stat(filepath.Join(h, ".local/share", path)); err != nil {
			t.Error(err)
		}
	}
	extras(t, h, nil, "remove")
	if diff := cmp.Diff([]string{".local"}, below(t, h)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	extras(t, h, nil, "remove") // again: nothing to do is no failure
}

func TestExtrasLeaveWhatIsOfOthers(t *testing.T) {
	t.Parallel()
	h := home(t)
	for _, path := range []string{".local/share/man/man1/auditctl.1", ".local/share/fish/config", ".local/share/bash-completion/completions/git"} {
		put(t, filepath.Join(h, path), "somebody's\n", 0o600)
	}
	want := below(t, h)
	extras(t, h, nil, "add", filepath.Join(h, "programs/auditctl"))
	extras(t, h, nil, "remove")
	if diff := cmp.Diff(want, below(t, h)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	// a directory for data that somebody chose stays, empty or not
	data := filepath.Join(h, "data")
	put(t, filepath.Join(data, "man/man1/auditctl.1"), `.TH "AUDITCTL" "1" "" "Tripline" "Tripline"`, 0o600)
	extras(t, h, []string{"XDG_DATA_HOME=" + data}, "remove")
	if diff := cmp.Diff([]string{}, below(t, data)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}
