// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// daemonName is what the daemon's process is called.
const daemonName = "triplined"

// ErrStillRuns is wrapped by the error about a daemon that was told to end and did not.
var ErrStillRuns = errors.New("the daemon does not end")

// Holder returns the process id of the daemon that holds the lock file, 0 if none does: a file that a dead daemon left, whatever
// process its number names by now, counts for nothing.
func Holder(lock string) (int, error) {
	f, err := os.OpenFile(lock, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close() // gives a lock up, too
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return 0, fmt.Errorf("lock file %q is no regular file", lock)
	}
	switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); {
	case err == nil:
		return 0, nil
	case !errors.Is(err, syscall.EWOULDBLOCK):
		return 0, fmt.Errorf("cannot tell whether %q is locked: %w", lock, err)
	}
	for range 10 { // a daemon that begins has the lock a moment before it says so
		b, err := io.ReadAll(io.NewSectionReader(f, 0, 32))
		if err != nil {
			return 0, err
		}
		if pid, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && pid > 1 {
			return pid, nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return 0, fmt.Errorf("a process holds the lock %q, but the file does not say which", lock)
}

// End asks the daemon that holds the lock to end, and waits for it, at most as long as limit. It returns the process id that it
// had, 0 if none ran. No other program is ever signalled.
func End(ctx context.Context, lock string, limit time.Duration) (int, error) {
	pid, err := Holder(lock)
	if pid == 0 || err != nil {
		return 0, err
	}
	// the handle stays with this process even if its number is given to another one
	p, err := os.FindProcess(pid)
	if err != nil {
		return 0, fmt.Errorf("the lock %q is held, but there is no process %d: %w", lock, pid, err)
	}
	defer func() { _ = p.Release() }()
	name, uid, err := identify(pid)
	if err != nil {
		return 0, fmt.Errorf("cannot tell what process %d is, which the lock %q names: %w", pid, lock, err)
	}
	if name != daemonName || uid != os.Getuid() {
		return 0, fmt.Errorf("the lock %q names process %d, which is %q of user %d and no %s of this user; it was left alone", lock, pid, name, uid, daemonName)
	}
	if err := p.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return 0, fmt.Errorf("cannot end the daemon (process %d): %w", pid, err)
	}
	return pid, await(ctx, lock, pid, limit)
}

// await waits until the process no longer holds the lock.
func await(ctx context.Context, lock string, pid int, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if now, err := Holder(lock); err == nil && now != pid {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (process %d, after %v)", ErrStillRuns, pid, limit)
		case <-tick.C:
		}
	}
}
