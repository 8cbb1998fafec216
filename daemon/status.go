// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/daemon/control"
	"github.com/tripline-sh/tripline/daemon/disk"
)

// stateVerified is where the newest verification that ended in OK stands in the log's state.
const stateVerified = "verify/last"

// verified is the newest verification of the log that ended in OK. It is safe for concurrent use.
type verified struct {
	last atomic.Pointer[control.Checked]
}

// newVerified takes up what the log's state knows.
func newVerified(state map[string][]byte) *verified {
	v := &verified{}
	var c control.Checked
	if json.Unmarshal(state[stateVerified], &c) == nil && !c.At.IsZero() {
		v.last.Store(&c)
	}
	return v
}

// getStatus answers from memory: clients ask often.
func (d *Daemon) getStatus(w http.ResponseWriter, _ *http.Request) error {
	p := d.policy.Load()
	loosening, restart, err := d.rules.status()
	now := d.now()
	s := control.Status{
		Version:       d.version,
		PID:           d.pid,
		Started:       d.started,
		Mode:          p.cfg.Mode,
		Profile:       p.cfg.Profile,
		OnDown:        p.cfg.OnDown,
		HookSocket:    d.places.HookSocket,
		ControlSocket: d.places.ControlSocket,
		MetricsAddr:   d.metricsAddr,
		LogDir:        d.log.Dir(),
		Size:          d.log.Size(),
		Root:          d.log.Root(),
		GenesisKey:    d.log.VerifierKey(),
		RuleSet:       p.set.Hash(),
		Rules:         p.set.Len(),
		Loosening:     append(loosening, prefixed("after a restart: ", restart)...),
		Pending:       d.gate.Pending(),
		Alarms:        d.alarms.list(),
		StartedBy:     d.startedBy,
		Verified:      d.verified.last.Load(),
		Anchored:      d.anchor.Load(),
		Disk:          control.Disk{LogBytes: d.log.bytes.Load()},
		Agents:        d.agentStatus(now),
		Live:          d.sessions.live(now),
	}
	if u := d.disk.Load(); u != nil {
		s.Disk.FreeBytes, s.Disk.TotalBytes, s.Disk.FileSystem = u.Free, u.Total, u.Name
	}
	if err != nil {
		s.RulesError = err.Error()
	}
	if err := d.log.Err(); err != nil {
		s.Alarms = append(s.Alarms, "the audit log takes no records: "+err.Error())
	}
	return writeJSON(w, s)
}

// getMetrics hands out Tripline's own metrics, for machines that nothing scrapes.
func (d *Daemon) getMetrics(w http.ResponseWriter, r *http.Request) error {
	d.m.Own().ServeHTTP(w, r)
	return nil
}

// agentStatus is what is known of each agent, by name.
func (d *Daemon) agentStatus(now time.Time) []control.AgentStatus {
	newest, active := d.newest.all(), d.sessions.active(now)
	out := make([]control.AgentStatus, 0, len(d.adapters))
	for _, name := range slices.Sorted(maps.Keys(d.adapters)) {
		a := control.AgentStatus{Agent: name, Sessions: active[name]}
		if at, ok := newest[name]; ok {
			a.LastEvent = &at
		}
		out = append(out, a)
	}
	return out
}

// measure looks at what changes by itself: the log's files, its file system, and the approvals that wait.
func (d *Daemon) measure() {
	d.log.measure()
	d.m.LogFailing(d.log.Err() != nil)
	u, err := disk.Of(d.log.Dir())
	if err == nil {
		d.disk.Store(&u)
		d.m.Disk(u.Free, u.Total)
	}
	oldest := time.Duration(0)
	if d.gate.Pending() > 0 {
		for _, c := range d.gate.List(false) {
			oldest = max(oldest, d.now().Sub(c.Requested))
		}
	}
	d.m.ApprovalOldest(oldest)
}

// noteVerified records how a verification that a person asked for ended. One that ended in OK becomes the newest.
func (d *Daemon) noteVerified(r *http.Request, v record.Verification) {
	e := &audit.Entry{Record: record.Record{
		Kind: record.DaemonVerify, Source: "control", Who: "person", WhoBasis: "claimed",
		Detail: map[string]string{"outcome": v.Outcome, "size": itoa(v.Size), "by": d.name(caller(r))},
	}}
	if v.FirstBad != 0 {
		e.Record.Detail["first_bad"] = itoa(v.FirstBad)
	}
	c := control.Checked{Size: v.Size, At: d.now()}
	if v.Outcome == outcomeOK {
		if value, err := json.Marshal(c); err == nil {
			e.State = []audit.StateOp{{Key: stateVerified, Value: value}}
		}
	}
	if _, ok := d.appendLater(d.workCtx, e); ok && v.Outcome == outcomeOK {
		d.verified.last.Store(&c)
	}
}

// outcomeOK is the outcome of a verification that found nothing.
const outcomeOK = "OK"
