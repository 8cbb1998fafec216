// SPDX-License-Identifier: Apache-2.0

// Package sock opens Unix sockets the careful way: a private directory first, one instance by a lock, the mode set before
// the name appears, a stale socket dialled before it is removed, and the peer's credentials on accept.
package sock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// PrivateDir makes sure that path is a directory that only this user can enter: created 0700 when absent, refused when it
// is a symbolic link, belongs to somebody else or can be written by others. Read permission of others is taken away.
func PrivateDir(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("cannot create directory: %w", err)
	}
	fi, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if err := checkOwned(path, fi); err != nil {
		return err
	}
	if fi.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(path, 0o700); err != nil {
			return err
		}
	}
	return checkParent(path)
}

// checkOwned refuses what is no directory of ours.
func checkOwned(path string, fi fs.FileInfo) error {
	switch {
	case fi.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%q is a symbolic link; a real directory is needed", path)
	case !fi.IsDir():
		return fmt.Errorf("%q is not a directory", path)
	case fi.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%q can be written by other users (mode %#o); make it 0700", path, fi.Mode().Perm())
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.New("no owner information on this platform")
	}
	if int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%q belongs to uid %d, not to this user (uid %d)", path, st.Uid, os.Geteuid())
	}
	return nil
}

// checkParent refuses a parent directory in which anybody could replace ours.
func checkParent(path string) error {
	parent := filepath.Dir(path)
	fi, err := os.Stat(parent)
	if err != nil {
		return err
	}
	if fi.Mode().Perm()&0o002 != 0 && fi.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("%q, the directory above, can be written by everybody", parent)
	}
	return nil
}
