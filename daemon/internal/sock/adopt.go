// SPDX-License-Identifier: Apache-2.0

package sock

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Adopt takes over a socket that somebody else bound and listens on, if it is a Unix stream socket at path. Closing the
// listener leaves its name, which belongs to whoever bound it. f is closed unless Adopt fails.
func Adopt(f *os.File, path string) (*net.UnixListener, error) {
	fd := int(f.Fd())
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return nil, fmt.Errorf("descriptor %q, which was handed over, is no socket: %w", f.Name(), err)
	}
	addr, err := unix.Getsockname(fd)
	if err != nil {
		return nil, fmt.Errorf("socket %q, which was handed over, has no address: %w", f.Name(), err)
	}
	name, ok := addr.(*unix.SockaddrUnix)
	if !ok || kind != unix.SOCK_STREAM {
		return nil, fmt.Errorf("socket %q, which was handed over, is no Unix stream socket", f.Name())
	}
	if !samePath(name.Name, path) {
		return nil, fmt.Errorf("socket %q, which was handed over, is bound to %q; this daemon's place is %q", f.Name(), name.Name, path)
	}
	if !listens(fd) {
		return nil, fmt.Errorf("socket %q, which was handed over, does not listen", f.Name())
	}
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("cannot use socket %q, which was handed over: %w", f.Name(), err)
	}
	ul, ok := l.(*net.UnixListener)
	if !ok {
		l.Close()
		return nil, fmt.Errorf("socket %q, which was handed over, is a %T", f.Name(), l)
	}
	ul.SetUnlinkOnClose(false)
	f.Close()
	return ul, nil
}

// samePath reports whether two paths name the same socket, be it by way of links.
func samePath(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	fa, err := os.Lstat(a)
	if err != nil {
		return false
	}
	fb, err := os.Lstat(b)
	return err == nil && os.SameFile(fa, fb)
}

// Answers reports whether somebody listens at path, be they too busy to accept.
func Answers(path string) bool {
	c, err := net.DialTimeout("unix", path, time.Second)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED)
	}
	c.Close()
	return true
}
