// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/daemon/internal/sock"
)

// The names under which a service manager hands over sockets.
const (
	hookSocketName    = "hook"
	controlSocketName = "control"
)

// Manager is the service manager that started the daemon: what it handed over, and how it is told how the daemon is.
type Manager struct {
	// Sockets are listening sockets that it keeps, by their names, hook and control. The daemon takes them over; at stop they
	// stay bound, so that the manager can start the daemon for the next caller. A socket that is not there is bound as ever.
	Sockets []*os.File
	// Notify takes lines such as READY=1. It must not block. nil = the manager wants to hear nothing.
	Notify func(state string) error
	// Watchdog is the silence after which the manager takes the daemon for dead and starts it again. 0 = it does not watch.
	Watchdog time.Duration

	turned atomic.Pointer[time.Time] // when the keeper last came round
	stuck  atomic.Bool               // the last commit did not end in time
}

// commitTimeout is how long a commit may take.
const commitTimeout = 5 * time.Second

// keeperPatience is how long the keeper, which comes round every second, may take at least before it counts as hung.
const keeperPatience = 3 * time.Second

// check reports sockets that have no use.
func (m *Manager) check() error {
	if m == nil {
		return nil
	}
	seen := make(map[string]bool)
	for _, f := range m.Sockets {
		name := f.Name()
		switch {
		case name != hookSocketName && name != controlSocketName:
			return fmt.Errorf("the service manager gave a socket called %q; FileDescriptorName= knows %s and %s", name, hookSocketName, controlSocketName)
		case seen[name]:
			return fmt.Errorf("the service manager gave two sockets called %q", name)
		}
		seen[name] = true
	}
	return nil
}

// listener returns the socket that the manager gave under a name, or a new one at path.
func (m *Manager) listener(ctx context.Context, name, path string) (*net.UnixListener, error) {
	if m != nil {
		for _, f := range m.Sockets {
			if f.Name() == name {
				return sock.Adopt(f, path)
			}
		}
	}
	return sock.Listen(ctx, path)
}

// lends reports whether the manager gave a socket under a name.
func (m *Manager) lends(name string) bool {
	return m != nil && slices.ContainsFunc(m.Sockets, func(f *os.File) bool { return f.Name() == name })
}

// tell gives the manager a state and a line for people. A manager that cannot be told is not the daemon's business.
func (m *Manager) tell(state, status string) {
	if m == nil || m.Notify == nil {
		return
	}
	status = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, clip(status, 200))
	if state != "" {
		state += "\n"
	}
	_ = m.Notify(state + "STATUS=" + status)
}

// cameRound notes that the keeper works.
func (m *Manager) cameRound() {
	if m != nil {
		now := time.Now()
		m.turned.Store(&now)
	}
}

// committed notes whether commits end. One that fails soon, as on a full disk, is tried again by the log until it works, and a
// daemon started anew could do no better; one that hangs is another matter.
func (m *Manager) committed(c audit.CommitInfo) {
	if m != nil {
		m.stuck.Store(c.Err != nil && c.Duration >= commitTimeout)
	}
}

// watchdog tells the manager that the daemon works, twice within the time that it allows, as long as that is true.
func (d *Daemon) watchdog(ctx context.Context) {
	m := d.manager
	m.cameRound()
	every := m.Watchdog / 2
	patience := max(every, keeperPatience)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for well := true; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		why := ""
		switch {
		case m.stuck.Load() && d.log.Err() != nil:
			why = "the audit log does not end a commit"
		case time.Since(*m.turned.Load()) > patience:
			why = "the daemon hangs"
		}
		switch {
		case why == "":
			_ = m.Notify("WATCHDOG=1")
			if !well {
				m.tell("", d.serving())
			}
		case well:
			d.logger.Error().Str("why", why).Msg("the service manager is not told any more that the daemon works")
			m.tell("", why)
		}
		well = why == ""
	}
}

// serving is the daemon's state in words, for the manager.
func (d *Daemon) serving() string { return "judging calls at " + d.places.HookSocket }
