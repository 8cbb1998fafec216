// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxLog is the size from which a start begins a new file. What one run says is bounded by what it meets; what many starts say
// is not.
const maxLog = 8 << 20

// openLog opens the file of messages to append to, made with its directory when it is not there. One that has grown too large
// is moved to path.1 first; starts at the same time move it once.
func openLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the directory of the log file: %w", err)
	}
	for range 8 {
		f, again, err := openOrMove(path)
		if err != nil {
			return nil, fmt.Errorf("cannot open the log file: %w", err)
		}
		if !again {
			return f, nil
		}
	}
	return nil, fmt.Errorf("log file %q keeps being replaced", path)
}

// openOrMove opens path; again is true if path has come to name another file.
func openOrMove(path string) (f *os.File, again bool, err error) {
	// NONBLOCK: a FIFO without a reader must not hold us.
	f, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, false, err
	}
	defer func() {
		if err != nil || again {
			f.Close()
			f = nil
		}
	}()
	fi, err := f.Stat()
	if err != nil {
		return f, false, err
	}
	if !fi.Mode().IsRegular() {
		return f, false, fmt.Errorf("%q is not a regular file", path)
	}
	if fi.Mode().Perm()&0o077 != 0 {
		if err := f.Chmod(0o600); err != nil {
			return f, false, err
		}
	}
	if fi.Size() <= maxLog {
		return f, false, nil
	}
	// The lock ends with f. Whoever has it may move the file, if it is still there.
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return f, false, nil // somebody else is about to, and we may end up in the old file: it is not lost
	}
	named, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !os.SameFile(named, fi):
		return f, true, nil
	case err != nil:
		return f, false, err
	}
	return f, true, os.Rename(path, path+".1")
}

// letGo puts the log in the place of a standard error that is a pipe: who reads it waits for the daemon to come up and is told why if
// it does not. Afterwards the daemon must not depend on a reader.
func letGo(stderr io.Writer, log *os.File) error {
	f, ok := stderr.(*os.File)
	if !ok {
		return nil
	}
	if fi, err := f.Stat(); err != nil || fi.Mode()&fs.ModeNamedPipe == 0 {
		return err
	}
	return unix.Dup2(int(log.Fd()), int(f.Fd()))
}
