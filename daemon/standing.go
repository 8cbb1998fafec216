// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"fmt"
	"io/fs"
	"os"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/daemon/internal/sock"
)

// patienceWithPlaces is how many looks in a row, a second apart, must find a place gone: a service manager that stops us takes its
// sockets first.
const patienceWithPlaces = 2

// standing is what this daemon holds by name: the lock by which it is found and ended, and the socket at which hooks find it. Who
// cleans a runtime directory away, as a logout does, takes both, and leaves a daemon that holds the log, that no hook reaches, and
// that no command can end.
type standing struct {
	lock   *sock.Lock
	path   string // of the hooks' socket
	socket fs.FileInfo
	lent   bool // the socket is the service manager's

	// Of the keeper alone.
	misses int
	told   bool // of a lent socket
}

// stand notes what is held, once all of it is.
func (d *Daemon) stand(lock *sock.Lock) error {
	s := &standing{lock: lock, path: d.places.HookSocket, lent: d.manager.lends(hookSocketName)}
	fi, err := os.Lstat(s.path)
	if err != nil && !s.lent {
		return fmt.Errorf("the socket of hooks is gone already: %w", err)
	}
	s.socket = fi // nil if the manager's has no name any more
	d.standing.Store(s)
	return nil
}

// gone says what has lost its name, "" if nothing has.
func (s *standing) gone() (what string, lock bool) {
	if !s.lock.Stands() {
		return "the lock file is gone, or another file has its name", true
	}
	if now, err := os.Lstat(s.path); err != nil || s.socket == nil || !os.SameFile(now, s.socket) {
		return "the socket of hooks is gone, or another file has its name", false
	}
	return "", false
}

// keepStanding ends a daemon whose lock or socket lost its name: the next one, which a hook, a service manager or a person starts,
// takes over in good order, while this one would only keep it from the log. The socket of a service manager is not ours to make
// anew: a person is told.
func (d *Daemon) keepStanding(ctx context.Context) {
	s := d.standing.Load()
	if s == nil || d.stopping() {
		return
	}
	what, lock := s.gone()
	if what == "" {
		s.misses, s.told = 0, false
		return
	}
	ends := lock || !s.lent
	if s.misses++; s.misses < patienceWithPlaces || s.told && !ends {
		return
	}
	e := &audit.Entry{Record: record.Record{Kind: record.DaemonAlarm, Detail: map[string]string{"what": what, "path": d.path(s.path)}}}
	if !ends {
		d.raise(e, "standing", false)
	}
	ctx, cancel := context.WithTimeout(ctx, d.limits.write)
	defer cancel()
	_, err := d.log.Append(ctx, e)
	if !ends {
		d.logger.Error().Str("path", s.path).Msg(what + "; `auditctl stop` and `auditctl start` make it anew")
		s.told = err == nil // else it is tried again
		return
	}
	d.standing.Store(nil)
	select {
	case d.fatal <- fmt.Errorf("%s (%s)", what, d.places.RunDir):
	default: // it ends for another reason
	}
}
