// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/tripline-sh/tripline/daemon/internal/sock"
)

// ErrStopped is returned by Start when a hook started the daemon although a person stopped it.
var ErrStopped = errors.New("a person stopped the daemon")

// IsRunning reports whether a start failed because another daemon has these places.
func IsRunning(err error) bool {
	var running *sock.RunningError
	return errors.As(err, &running)
}

const (
	// yield is how long a daemon that a hook started waits for one that is ending.
	yield = time.Second

	// yieldPause is the pause between looks at it.
	yieldPause = 20 * time.Millisecond
)

// takeLock makes this the only daemon of its places. One that a hook started stays away where a person stopped the daemon, and
// takes over from one that is ending; any other start ends that state.
func (d *Daemon) takeLock(ctx context.Context) (*sock.Lock, error) {
	p := &d.places
	if err := d.heedMarker(); err != nil {
		return nil, err
	}
	until := d.started.Add(yield)
	lock, err := sock.AcquireLock(p.LockFile)
	for d.onDemand && IsRunning(err) && d.now().Before(until) && !sock.Answers(p.HookSocket) {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(yieldPause):
		}
		lock, err = sock.AcquireLock(p.LockFile)
	}
	if err != nil {
		return nil, err
	}
	// Whoever stops the daemon leaves the marker first and then looks for the holder of the lock: so one of the two sees the other.
	if err := d.heedMarker(); err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	if d.onDemand {
		return lock, nil
	}
	if err := os.Remove(p.StoppedFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.logger.Warn().Err(err).Msg("the stopped marker cannot be removed: hooks will not start the daemon")
	}
	return lock, nil
}

// heedMarker fails if a hook started this daemon against a person's word.
func (d *Daemon) heedMarker() error {
	if !d.onDemand {
		return nil
	}
	switch _, err := os.Lstat(d.places.StoppedFile); {
	case err == nil:
		return ErrStopped
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("cannot tell whether a person stopped the daemon: %w", err)
	}
	return nil
}
