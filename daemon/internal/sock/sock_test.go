// SPDX-License-Identifier: Apache-2.0

package sock

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestPrivateDir(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		setup func(t *testing.T, dir string)
		err   string
	}{
		{"an absent directory is created", func(*testing.T, string) {}, ""},
		{"a readable one is made private", func(t *testing.T, d string) { mkdir(t, d, 0o755) }, ""},
		{"a group-writable one is refused", func(t *testing.T, d string) { mkdir(t, d, 0o770) }, "other users"},
		{"a world-writable one is refused", func(t *testing.T, d string) { mkdir(t, d, 0o777) }, "other users"},
		{"a symbolic link is refused", func(t *testing.T, d string) {
			target := filepath.Join(t.TempDir(), "real")
			mkdir(t, target, 0o700)
			if err := os.Symlink(target, d); err != nil {
				t.Fatal(err)
			}
		}, "symbolic link"},
		{"a file is refused", func(t *testing.T, d string) {
			if err := os.WriteFile(d, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "cannot create"},
		{"a world-writable parent is refused", func(t *testing.T, d string) {
			if err := os.Chmod(filepath.Dir(d), 0o777); err != nil {
				t.Fatal(err)
			}
		}, "everybody"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "run")
			tt.setup(t, dir)
			err := PrivateDir(dir)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want %q in it", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			fi, err := os.Stat(dir)
			if err != nil || fi.Mode().Perm() != 0o700 {
				t.Errorf("mode %v, %v", fi.Mode(), err)
			}
		})
	}
}

func TestPrivateDirRefusesForeignOwner(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("LOUD: not root, so no directory of another user can be made here")
	}
	dir := filepath.Join(t.TempDir(), "run")
	mkdir(t, dir, 0o700)
	if err := os.Chown(dir, 4242, 4242); err != nil {
		t.Fatal(err)
	}
	if err := PrivateDir(dir); err == nil || !strings.Contains(err.Error(), "uid 4242") {
		t.Errorf("error %v", err)
	}
}

func TestSecondLockNamesTheHolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	l, err := AcquireLock(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = AcquireLock(path)
	var running *RunningError
	if !errors.As(err, &running) || running.PID != os.Getpid() {
		t.Fatalf("error %v", err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	l, err = AcquireLock(path)
	if err != nil {
		t.Fatalf("after release: %v", err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
}

func TestLockRefusesWhatIsNoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link, fifo := filepath.Join(dir, "link"), filepath.Join(dir, "fifo")
	if err := os.Symlink("elsewhere", link); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, fifo, dir} {
		if _, err := AcquireLock(path); err == nil {
			t.Errorf("%s was locked", path)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "elsewhere")); err == nil {
		t.Error("the lock followed a symbolic link")
	}
}

func TestListen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.sock")
	l, err := Listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	fi, err := os.Lstat(path)
	if err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}
	if _, err := Listen(t.Context(), path); err == nil || !strings.Contains(err.Error(), "answered by another process") {
		t.Errorf("a live socket was taken over: %v", err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	l, err = Listen(t.Context(), path)
	if err != nil {
		t.Fatalf("a stale socket was not replaced: %v", err)
	}
	l.Close()
}

func TestListenRefusesWhatIsInTheWay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, link} {
		if _, err := Listen(t.Context(), path); err == nil || !strings.Contains(err.Error(), "not a socket") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if b, _ := os.ReadFile(file); string(b) != "precious" {
		t.Error("the file was touched")
	}
	long := filepath.Join(dir, strings.Repeat("x", 120))
	if _, err := Listen(t.Context(), long); err == nil || !strings.Contains(err.Error(), "TRIPLINE_HOME") {
		t.Errorf("long path: %v", err)
	}
}

func TestPeerOfIsThisProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.sock")
	l, err := Listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p, err := PeerOf(s)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if int(p.UID) != os.Geteuid() || int(p.PID) != os.Getpid() || p.Gone() {
		t.Errorf("peer %+v, gone %v", p, p.Gone())
	}
}

func mkdir(t *testing.T, dir string, mode os.FileMode) {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, mode); err != nil {
		t.Fatal(err)
	}
}

func TestWhoAsksForTheHolderKeepsNobodyFromTheLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	asker, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer asker.Close()
	fd := int(asker.Fd())
	if err := syscall.Flock(fd, syscall.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(4*askerPause, func() { _ = syscall.Flock(fd, syscall.LOCK_UN) })
	l, err := AcquireLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	// one that never ends is waited for no longer than that
	if err := syscall.Flock(fd, syscall.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	var running *RunningError
	if _, err := AcquireLock(path); !errors.As(err, &running) {
		t.Errorf("error %v", err)
	}
}

func TestALockStandsAsLongAsItsNameIsThere(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(path string) error{
		"removed":   os.Remove,
		"moved":     func(path string) error { return os.Rename(path, path+"2") },
		"directory": func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
		"replaced":  func(path string) error { return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600)) },
		"linked": func(path string) error {
			return errors.Join(os.Rename(path, path+"2"), os.Symlink(path+"2", path))
		},
	} {
		path := filepath.Join(t.TempDir(), "run", "lock")
		if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		l, err := AcquireLock(path)
		if err != nil {
			t.Fatal(err)
		}
		if !l.Stands() {
			t.Errorf("%s: it does not stand", name)
		}
		if err := lose(path); err != nil {
			t.Fatal(err)
		}
		if l.Stands() {
			t.Errorf("%s: it stands", name)
		}
		if err := l.Release(); err != nil {
			t.Error(err)
		}
	}
}
