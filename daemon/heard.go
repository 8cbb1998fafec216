// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"maps"
	"sync"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/hooks/event"
)

// newest keeps the time of each agent's newest event. It is safe for concurrent use.
type newest struct {
	mu sync.Mutex
	at map[string]time.Time // by agent
}

// move takes over a time that is newer than the one that is known, and reports whether it is.
func (n *newest) move(agent string, at time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !at.After(n.at[agent]) {
		return false
	}
	if n.at == nil {
		n.at = make(map[string]time.Time)
	}
	n.at[agent] = at
	return true
}

func (n *newest) all() map[string]time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.at)
}

// heard notes an event of an agent that this version knows.
func (d *Daemon) heard(agent string, at time.Time) {
	if d.adapters[agent] != nil && d.newest.move(agent, at) {
		d.m.LastEvent(agent, at)
	}
}

// carriedOut notes that a denial took the number of its record out of the log.
func (d *Daemon) carriedOut(seq uint64) {
	for {
		old := d.anchor.Load()
		if seq <= old || d.anchor.CompareAndSwap(old, seq) {
			return
		}
	}
}

// replay takes up what a record of the log's tail tells of agents and anchors.
func (d *Daemon) replay(r *record.Record) {
	if r.Source == sourceCanary {
		d.replayAnchor(r)
		return
	}
	if r.Event != "" {
		d.heard(r.Agent, happened(r))
	}
	d.replayAnchor(r)
	if d.sessions.replay(r) {
		d.calls.end(sessionKey{r.Agent, r.Session})
	}
	d.calls.replay(r)
}

// replayAnchor takes up the number of a denial's record. One that failed on our side may have been answered without it.
func (d *Daemon) replayAnchor(r *record.Record) {
	if dec := r.Decision; dec != nil && dec.Answer == string(event.Deny) && dec.Failure == "" && !r.Late {
		d.carriedOut(r.Seq)
	}
}
