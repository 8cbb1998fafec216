// SPDX-License-Identifier: Apache-2.0

package spool_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tripline-sh/tripline/hooks/spool"
	"github.com/tripline-sh/tripline/hooks/wire"
)

var (
	meta   = spool.Meta{Answer: spool.Silent, Fault: spool.Absent, Read: 2}
	header = wire.Header{Agent: "claude", Event: "Stop"}
)

func write(dir string) error { return spool.Write(dir, meta, header, []byte("{}")) }

func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func dropped(t *testing.T, dir string) int64 {
	t.Helper()
	fi, err := os.Lstat(filepath.Join(dir, spool.DroppedName))
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	return fi.Size()
}

func TestWriteMakesOnePrivateFile(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "spool")
	if err := write(dir); err != nil {
		t.Fatal(err)
	}
	got := names(t, dir)
	if len(got) != 1 {
		t.Fatalf("the spool holds %q", got)
	}
	size, tmp, ok := spool.ParseName(got[0])
	fi, err := os.Lstat(filepath.Join(dir, got[0]))
	if err != nil || !ok || tmp || fi.Size() != size || fi.Mode() != 0o600 {
		t.Errorf("%q (parsed %d, %v, %v) has size %d and mode %v", got[0], size, tmp, ok, fi.Size(), fi.Mode())
	}
	if fi, err := os.Lstat(dir); err != nil || fi.Mode() != 0o700|os.ModeDir {
		t.Errorf("the spool has mode %v, %v", fi.Mode(), err)
	}
}

// The agent's umask must not leave entries that the daemon cannot open. A umask belongs to the process: no parallel.
func TestWriteUnderAHostileUmask(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o777))
	base := t.TempDir()
	if err := os.Chmod(base, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(base, "spool")
	if err := write(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range names(t, dir) {
		if fi, err := os.Lstat(filepath.Join(dir, name)); err != nil || fi.Mode() != 0o600 {
			t.Errorf("%s has mode %v, %v", name, fi.Mode(), err)
		}
	}
}

func TestWriteKeepsItsBounds(t *testing.T) {
	t.Parallel()
	fake := func(i, size int) string { return fmt.Sprintf("%019d-1-a-%d.evt", i, size) }
	for name, tc := range map[string]struct {
		n, size int
		ending  string
		want    error
	}{
		"one entry below the limit": {spool.MaxEntries - 1, 10, ".evt", nil},
		"the limit of entries":      {spool.MaxEntries, 10, ".evt", spool.ErrFull},
		"unfinished ones count":     {spool.MaxEntries, 10, ".tmp", spool.ErrFull},
		"foreign names count":       {spool.MaxEntries + 100, 10, ".foreign", spool.ErrFull},
		"just below 64 MiB":         {63, 1 << 20, ".evt", nil},
		"64 MiB":                    {64, 1 << 20, ".evt", spool.ErrFull},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			one := filepath.Join(t.TempDir(), "one")
			if err := os.WriteFile(one, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			for i := range tc.n {
				// Only names count, so that these may be one empty file.
				path := filepath.Join(dir, strings.Replace(fake(i, tc.size), ".evt", tc.ending, 1))
				if err := os.Link(one, path); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 3 {
				if err := write(dir); !errors.Is(err, tc.want) {
					t.Fatalf("write %d: %v, want %v", i, err, tc.want)
				}
				if tc.want == nil {
					break
				}
			}
			wantEntries, wantDropped := tc.n+1, int64(0)
			if tc.want != nil {
				wantEntries, wantDropped = tc.n+1, 3 // the count is a file too
			}
			if n, d := len(names(t, dir)), dropped(t, dir); n != wantEntries || d != wantDropped {
				t.Errorf("the spool holds %d files and counts %d drops, want %d and %d", n, d, wantEntries, wantDropped)
			}
		})
	}
}

func TestTheCountOfDropsIsBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%019d-1-a-%d.evt", 1, spool.MaxEntry)), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 64 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%019d-2-a-%d.evt", i, 1<<20)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, spool.DroppedName), make([]byte, spool.MaxDropped-1), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := write(dir); !errors.Is(err, spool.ErrFull) {
			t.Fatal(err)
		}
	}
	if d := dropped(t, dir); d != spool.MaxDropped {
		t.Errorf("the count is %d, want %d", d, spool.MaxDropped)
	}
}

func TestWriteRefusesPlacesThatAreNotItsOwn(t *testing.T) {
	t.Parallel()
	real := t.TempDir()
	for name, tc := range map[string]struct {
		make func(t *testing.T, path string) error
	}{
		"a link to a directory": {func(_ *testing.T, path string) error { return os.Symlink(real, path) }},
		"a link to nothing":     {func(_ *testing.T, path string) error { return os.Symlink("/nonexistent/x", path) }},
		"a file":                {func(_ *testing.T, path string) error { return os.WriteFile(path, nil, 0o600) }},
		"a FIFO":                {func(_ *testing.T, path string) error { return syscall.Mkfifo(path, 0o600) }},
		"a directory that others may write to": {func(_ *testing.T, path string) error {
			return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o777))
		}},
		"a directory of another user": {func(t *testing.T, path string) error {
			if err := errors.Join(os.Mkdir(path, 0o700), os.Chown(path, 12345, -1)); err != nil {
				t.Skip("NOT TESTED: only root can give a directory away: ", err)
			}
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "spool")
			if err := tc.make(t, dir); err != nil {
				t.Fatal(err)
			}
			if err := write(dir); err == nil {
				t.Error("the event was spooled there")
			}
		})
	}
	t.Run("a directory whose parent is missing", func(t *testing.T) {
		t.Parallel()
		if err := write(filepath.Join(t.TempDir(), "a", "b")); !errors.Is(err, syscall.ENOENT) {
			t.Errorf("got %v", err)
		}
	})
	t.Cleanup(func() {
		if n := names(t, real); len(n) > 0 {
			t.Errorf("a link was followed: %q", n)
		}
	})
}

// What stands in the place of the count must not be followed, waited for, or written to.
func TestDropsAreNotCountedInForeignThings(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(path, victim string) error{
		"a link":      func(path, victim string) error { return os.Symlink(victim, path) },
		"a FIFO":      func(path, _ string) error { return syscall.Mkfifo(path, 0o600) },
		"a directory": func(path, _ string) error { return os.Mkdir(path, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			victim := filepath.Join(t.TempDir(), "victim")
			if err := os.WriteFile(victim, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			for i := range 65 {
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%019d-2-a-%d.evt", i, 1<<20)), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := put(filepath.Join(dir, spool.DroppedName), victim); err != nil {
				t.Fatal(err)
			}
			if err := write(dir); !errors.Is(err, spool.ErrFull) {
				t.Errorf("got %v, want %v", err, spool.ErrFull)
			}
			if b, err := os.ReadFile(victim); err != nil || string(b) != "x" {
				t.Errorf("the victim holds %q, %v", b, err)
			}
		})
	}
}

func TestManyHooksAtOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "spool")
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			if err := write(dir); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := names(t, dir); len(n) != 40 {
		t.Errorf("the spool holds %d entries, want 40", len(n))
	}
}
