// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"slices"
	"strings"
	"time"

	"github.com/tripline-sh/tripline/daemon/control"
	"github.com/tripline-sh/tripline/daemon/internal/proc"
)

// unseenLife is for how long a session counts as live after its newest event if its agent's process is not known.
const unseenLife = 10 * time.Minute

// detailLetGo marks, in the Detail of records, a session's word that it took up a settings file without our hooks.
const detailLetGo = "let_go"

// live returns the sessions that did not end and whose agent process is alive, oldest first.
func (s *sessions) live(now time.Time) []control.LiveSession {
	type entry struct {
		control.LiveSession
		first time.Time
		agent proc.Process
	}
	var all []entry
	s.mu.Lock()
	for k, e := range s.known {
		if e.last.IsZero() || now.Sub(e.last) >= sessionLife {
			continue
		}
		all = append(all, entry{control.LiveSession{
			Agent: k.agent, Session: k.session, PID: int(e.agent.PID), Cwd: e.cwd, LastEvent: e.last, LetGo: !e.letGo.IsZero(),
		}, e.first, e.agent})
	}
	s.mu.Unlock()
	alive := make(map[proc.Process]bool) // sessions may share a process
	all = slices.DeleteFunc(all, func(e entry) bool {
		if e.agent.PID <= 0 {
			return now.Sub(e.LastEvent) >= unseenLife
		}
		is, known := alive[e.agent]
		if !known {
			is = e.agent.Alive()
			alive[e.agent] = is
		}
		return !is
	})
	slices.SortFunc(all, func(a, b entry) int {
		if c := a.first.Compare(b.first); c != 0 {
			return c
		}
		return strings.Compare(a.Session, b.Session)
	})
	out := make([]control.LiveSession, len(all))
	for i, e := range all {
		out[i] = e.LiveSession
	}
	return out
}

// goes notes that a session takes up, at a time, a settings file without our hooks. A hook that is called later shows that
// it did not.
func (s *sessions) goes(k sessionKey, at time.Time) {
	if k.session == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.get(k).letGo = at
}

// settle finds the agent processes of sessions that were read back from the log, which knows their numbers only: what
// started after a session's newest event is another process with that number.
func (s *sessions) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.known {
		if e.agent.PID <= 0 || e.agent.Start != 0 {
			continue
		}
		p, err := proc.Lookup(e.agent.PID)
		if err != nil || p.Ended || p.Began().After(e.last.Add(time.Second)) {
			continue // without a start it is never alive
		}
		e.agent = p
	}
}
