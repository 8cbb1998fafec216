// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"sync"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/daemon/internal/proc"
)

// maxSessions bounds what is remembered of sessions. Forgetting one costs only its first directory.
const maxSessions = 1024

// sessionLife is for how long a session without an event counts as active.
const sessionLife = 24 * time.Hour

// sessionKey names one session of one agent.
type sessionKey struct{ agent, session string }

// session is what is remembered of a session between its events.
type session struct {
	firstCwd    string
	project     string
	tokenWarned bool
	started     bool         // its start was seen
	first       time.Time    // its oldest event
	last        time.Time    // its newest event
	cwd         string       // of its newest event, as it may be shown
	agent       proc.Process // that runs it; PID 0 = could not tell
	letGo       time.Time    // when it was told to call our hooks no more; zero if it was not, or calls them all the same
	used        uint64       // for forgetting the one that was idle longest
}

// sessions remembers the live sessions. It is safe for concurrent use.
type sessions struct {
	mu    sync.Mutex
	clock uint64
	known map[sessionKey]*session
}

func newSessions() *sessions { return &sessions{known: make(map[sessionKey]*session)} }

// seen notes an event in cwd and returns the session's first directory and last known project.
func (s *sessions) seen(k sessionKey, cwd string) (firstCwd, project string) {
	if k.session == "" {
		return cwd, ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.get(k)
	if e.firstCwd == "" {
		e.firstCwd = cwd
	}
	return e.firstCwd, e.project
}

// sighting is what one event shows of its session.
type sighting struct {
	at    time.Time
	cwd   string       // as it may be shown
	agent proc.Process // PID 0 = could not tell
	start bool         // the event is the session's start
	hook  time.Time    // when the hook was called; a claim
}

// note keeps what an event shows of its session.
func (s *sessions) note(k sessionKey, v sighting) {
	if k.session == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.get(k)
	e.started = e.started || v.start
	if v.at.IsZero() || v.at.Before(e.last) {
		return
	}
	if e.first.IsZero() {
		e.first = v.at
	}
	e.last = v.at
	if v.cwd != "" {
		e.cwd = v.cwd
	}
	if v.agent.PID > 0 {
		e.agent = v.agent
	}
	if v.hook.After(e.letGo) {
		e.letGo = time.Time{}
	}
}

// active counts the sessions of each agent that started, did not end, and had an event within sessionLife.
func (s *sessions) active(now time.Time) map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]int)
	for k, e := range s.known {
		if e.started && now.Sub(e.last) < sessionLife {
			out[k.agent]++
		}
	}
	return out
}

// setProject remembers the project root that a decision used.
func (s *sessions) setProject(k sessionKey, project string) {
	if k.session == "" || project == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.get(k).project = project
}

// warnToken reports whether this is the session's first event with a bad token.
func (s *sessions) warnToken(k sessionKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.get(k)
	first := !e.tokenWarned
	e.tokenWarned = true
	return first
}

// end forgets a session that ended, at a time if that is given: if it went on since, nothing happens and end reports false.
func (s *sessions) end(k sessionKey, at time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.known[k]; e != nil && !at.IsZero() && e.last.After(at) {
		return false
	}
	delete(s.known, k)
	return true
}

// get returns the session, made if need be. The caller holds mu.
func (s *sessions) get(k sessionKey) *session {
	s.clock++
	e := s.known[k]
	if e == nil {
		if len(s.known) >= maxSessions {
			s.forget()
		}
		e = &session{}
		s.known[k] = e
	}
	e.used = s.clock
	return e
}

// forget drops the session that was idle longest. The caller holds mu.
func (s *sessions) forget() {
	var idle sessionKey
	oldest := s.clock + 1
	for k, e := range s.known {
		if e.used < oldest {
			idle, oldest = k, e.used
		}
	}
	delete(s.known, idle)
}

// replay rebuilds the memory from a record of the log's tail, and reports whether the record ended its session.
func (s *sessions) replay(r *record.Record) (ended bool) {
	k := sessionKey{r.Agent, r.Session}
	switch {
	case r.Session == "":
	case r.Kind == record.SessionEnd:
		at := time.Time{}
		if r.Late {
			at = happened(r)
		}
		return s.end(k, at)
	default:
		s.seen(k, r.Cwd)
		v := sighting{at: happened(r), cwd: r.Cwd, start: r.Kind == record.SessionStart}
		if r.Event != "" && !r.Late {
			v.hook = r.Time
		}
		if r.Peer != nil {
			v.agent.PID = r.Peer.AgentPID // settled when all is read
		}
		s.note(k, v)
		s.setProject(k, r.Project)
		if r.Detail[detailLetGo] != "" {
			s.goes(k, r.Time)
		}
	}
	return false
}

// happened is when what a record of an event tells of happened: one from the spool is younger than its event. Zero if it
// does not say.
func happened(r *record.Record) time.Time {
	if !r.Late {
		return r.Time
	}
	at, err := time.Parse(time.RFC3339Nano, r.Detail[detailSpooledAt])
	if err != nil {
		return time.Time{}
	}
	return at
}
