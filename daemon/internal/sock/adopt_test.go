// SPDX-License-Identifier: Apache-2.0

package sock

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// handedOver returns a listening socket at path as somebody else would hand it over.
func handedOver(t *testing.T, path string) *os.File {
	t.Helper()
	l, err := Listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	f, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	t.Cleanup(func() { f.Close() })
	return f
}

func TestAdoptServesAndLeavesTheName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Symlink(dir, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for path, bound := range map[string]string{
		filepath.Join(dir, "a"): filepath.Join(dir, "a"),
		filepath.Join(dir, "b"): dir + "//./b",
		filepath.Join(dir, "c"): filepath.Join(dir, "link", "c"),
	} {
		f := handedOver(t, bound)
		keep, err := syscall.Dup(int(f.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		l, err := Adopt(f, path)
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		s, err := l.AcceptUnix()
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		c.Close()
		if !Answers(path) {
			t.Errorf("%s: nobody answers", path)
		}
		l.Close()
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("the name went away: %v", err)
		}
		if !Answers(path) {
			t.Errorf("%s: closing ended the socket for its owner", path)
		}
		syscall.Close(keep)
		if Answers(path) {
			t.Errorf("%s: a dead socket answers", path)
		}
	}
	if Answers(filepath.Join(dir, "none")) {
		t.Error("no socket answers")
	}
}

func TestAdoptRefusesWhatItWasNotToldOf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	socket := func(domain, kind int, addr syscall.Sockaddr) *os.File {
		fd, err := syscall.Socket(domain, kind, 0)
		if err != nil {
			t.Fatal(err)
		}
		if addr != nil {
			if err := syscall.Bind(fd, addr); err != nil {
				t.Fatal(err)
			}
		}
		f := os.NewFile(uintptr(fd), "given")
		t.Cleanup(func() { f.Close() })
		return f
	}
	file, err := os.Create(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	tests := []struct {
		name, says string
		f          *os.File
	}{
		{"a file", "no socket", file},
		{"a socket of another place", "this daemon's place is", handedOver(t, filepath.Join(dir, "other"))},
		{"datagrams", "no Unix stream socket", socket(syscall.AF_UNIX, syscall.SOCK_DGRAM, &syscall.SockaddrUnix{Name: filepath.Join(dir, "d")})},
		{"a network", "no Unix stream socket", socket(syscall.AF_INET, syscall.SOCK_STREAM, nil)},
		{"no name", "this daemon's place is", socket(syscall.AF_UNIX, syscall.SOCK_STREAM, nil)},
		{"nobody called listen", "does not listen", socket(syscall.AF_UNIX, syscall.SOCK_STREAM, &syscall.SockaddrUnix{Name: path})},
	}
	for _, tt := range tests {
		if l, err := Adopt(tt.f, path); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, %v; want %q", tt.name, l, err, tt.says)
		}
	}
}
