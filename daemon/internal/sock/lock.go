// SPDX-License-Identifier: Apache-2.0

package sock

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// RunningError says that another instance holds the lock.
type RunningError struct {
	Path string // of the lock file
	PID  int    // of its holder, 0 if the file does not say
}

func (e *RunningError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("another triplined holds %q", e.Path)
	}
	return fmt.Sprintf("another triplined is running (pid %d, lock %q)", e.PID, e.Path)
}

// Lock is a held lock file. Its content is the holder's process id.
type Lock struct{ f *os.File }

// AcquireLock takes the lock at path without waiting. It is held until Release or the end of the process. The file itself
// is never removed, so that two starters cannot lock two different files.
func AcquireLock(path string) (*Lock, error) {
	for range 8 {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
		if err != nil {
			return nil, fmt.Errorf("cannot open the lock file: %w", err)
		}
		l, again, err := lockFile(f, path)
		if err == nil && !again {
			return l, nil
		}
		f.Close()
		if err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("lock file %q keeps being replaced", path)
}

// lockFile locks f; again is true if path no longer names f.
func lockFile(f *os.File, path string) (l *Lock, again bool, err error) {
	err = flock(f)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, false, &RunningError{Path: path, PID: readPID(f)}
	}
	if err != nil {
		return nil, false, fmt.Errorf("cannot lock %q: %w", path, err)
	}
	held, err := f.Stat()
	if err != nil {
		return nil, false, err
	}
	if !held.Mode().IsRegular() {
		return nil, false, fmt.Errorf("lock file %q is not a regular file", path)
	}
	if named, err := os.Lstat(path); err != nil || !os.SameFile(held, named) {
		return nil, true, nil
	}
	if err := f.Truncate(0); err != nil {
		return nil, false, fmt.Errorf("cannot write the lock file: %w", err)
	}
	if _, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return nil, false, fmt.Errorf("cannot write the lock file: %w", err)
	}
	return &Lock{f: f}, false, nil
}

// Those who only ask who holds the lock share it for an instant.
const (
	askers     = 40 // looks that find it shared, at most
	askerPause = 5 * time.Millisecond
)

// flock locks f, with EWOULDBLOCK if a daemon has it. Whoever merely asks for its holder does not count as one.
func flock(f *os.File) error {
	fd := int(f.Fd())
	for range askers {
		err := syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		if err := syscall.Flock(fd, syscall.LOCK_SH|syscall.LOCK_NB); err != nil {
			return err
		}
		if err := syscall.Flock(fd, syscall.LOCK_UN); err != nil {
			return err
		}
		time.Sleep(askerPause)
	}
	return syscall.EWOULDBLOCK
}

// Stands reports whether the lock file still has its name, by which others find out that this daemon runs.
func (l *Lock) Stands() bool {
	held, err := l.f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(l.f.Name())
	return err == nil && os.SameFile(held, named)
}

// Release empties the file and gives the lock up.
func (l *Lock) Release() error {
	return errors.Join(l.f.Truncate(0), l.f.Close())
}

func readPID(f *os.File) int {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 32))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}
