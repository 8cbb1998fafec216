// SPDX-License-Identifier: Apache-2.0

package view

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func TestTheMachineTellsDeniedFromAbsent(t *testing.T) {
	t.Parallel()
	dir := disk(t)
	put(t, dir+"/closed/f", "x")
	put(t, dir+"/secret", "x")
	put(t, dir+"/pass/f", "x")
	for name, mode := range map[string]os.FileMode{"/closed": 0, "/secret": 0, "/pass": 0o111, "/pass/f": 0o644, "": 0o755} {
		if err := os.Chmod(dir+name, mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(dir+"/closed", 0o700); _ = os.Chmod(dir+"/pass", 0o700) })
	tree := osTree{}
	base, err := os.Open(dir) // now: its parents are closed to others
	if err != nil {
		t.Fatal(err)
	}
	defer base.Close() //nolint:errcheck // a test's directory
	at := handle(base.Fd())
	done := make(chan struct{})
	go func() {
		defer close(done)
		// As root nothing is denied, so give up root's view of files on a thread that then ends with this goroutine.
		runtime.LockOSThread()
		if os.Getuid() == 0 {
			if err := unix.Setfsuid(65534); err != nil {
				t.Errorf("setfsuid: %v", err)
				return
			}
		}
		closed, err := tree.dir(at, "closed")
		if err != nil {
			t.Errorf("a closed directory itself: %v", err)
			return
		}
		defer tree.close(closed)
		if _, err := tree.stat(closed, "f"); !errors.Is(err, ErrDenied) {
			t.Errorf("stat in a closed directory: %v; want %v", err, ErrDenied)
		}
		if _, err := tree.list(closed, 9); !errors.Is(err, ErrDenied) {
			t.Errorf("list of a closed directory: %v; want %v", err, ErrDenied)
		}
		if _, _, err := tree.read(at, "secret", 9); !errors.Is(err, ErrDenied) {
			t.Errorf("read of a closed file: %v; want %v", err, ErrDenied)
		}
		if _, err := tree.stat(at, "none"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("absent: %v", err)
		}
		pass, err := tree.dir(at, "pass")
		if err != nil {
			t.Errorf("a directory that may only be passed: %v", err)
			return
		}
		defer tree.close(pass)
		if data, _, err := tree.read(pass, "f", 9); string(data) != "x" || err != nil {
			t.Errorf("a file below a directory that may only be passed: %q, %v", data, err)
		}
	}()
	<-done
}
