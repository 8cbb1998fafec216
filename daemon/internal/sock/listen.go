// SPDX-License-Identifier: Apache-2.0

package sock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"
)

// CheckPath reports whether a socket can have this path: the kernel's limit is far below that of file names, and its own
// error does not say so.
func CheckPath(path string) error {
	if len(path) > maxPath {
		return fmt.Errorf("socket path %q has %d bytes, but the system allows %d; set TRIPLINE_HOME or XDG_RUNTIME_DIR to a shorter directory",
			path, len(path), maxPath)
	}
	return nil
}

// Listen binds a socket at path with mode 0600, in a directory that PrivateDir checked. A socket that nobody answers is
// removed first; one that is answered is an error, and so is anything that is no socket of ours.
func Listen(ctx context.Context, path string) (*net.UnixListener, error) {
	if err := CheckPath(path); err != nil {
		return nil, err
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l, err := bind(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("cannot listen: %w", err)
	}
	ul, ok := l.(*net.UnixListener)
	if !ok {
		l.Close()
		return nil, fmt.Errorf("listener for %q is a %T", path, l)
	}
	return ul, nil
}

// removeStale removes the socket of a dead process.
func removeStale(path string) error {
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if fi.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%q is in the way: it is not a socket; move it away", path)
	}
	if st, ok := fi.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%q is in the way: it is another user's socket", path)
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		c.Close()
		return fmt.Errorf("%q is answered by another process; stop that first", path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("%q is in the way and cannot be told dead: %w", path, err)
	}
	return os.Remove(path)
}
