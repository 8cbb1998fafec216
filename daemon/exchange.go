// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"time"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/daemon/internal/proc"
	"github.com/tripline-sh/tripline/hooks/agents"
	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/tripwires"
)

// exchange is one event on its way through the pipeline: what is known of it so far. One goroutine owns it.
type exchange struct {
	req     *request
	p       *policy // in force when the event arrived; a reload does not change it under way
	adapter agents.Adapter
	kind    event.Kind
	gates   bool // a failure of ours must deny
	workBy  time.Time
	source  string // hook, canary or spool
	canary  bool   // a test of ours and no call of an agent
	late    bool
	at      time.Time // when the event came; of a spooled one what its hook claims, never later than now

	ev        *event.Event // nil until it was decoded
	sess      sessionKey
	peer      *record.Peer
	agentProc proc.Process // PID 0 = could not tell
	firstCwd  string
	project   string
	token     string // what is wrong with the install token, "" if nothing is
	canonical []byte // canonical input
	mac       string // its keyed hash
	callID    string

	call     tripwires.Call
	dec      tripwires.Decision
	settings *settingsChange // config-change only
	verdict  event.Verdict   // what the agent is told
	gate     string
	card     string
	who      string
	basis    string
	fail     *failure
	detail   map[string]string
	durable  []func()       // what memory takes over once the record is durable
	recorded bool           // the verdict is on record
	later    []*audit.Entry // records of a refusal that had no time left to wait for them

	stage string
	since time.Time
	times []stageTime
	held  time.Duration // time that the call waited for a person
}

type stageTime struct {
	stage string
	d     time.Duration
}

// begin makes the exchange of a request.
func (d *Daemon) begin(req *request) *exchange {
	now := d.now()
	x := &exchange{
		req:    req,
		p:      d.policy.Load(),
		kind:   event.KindOther,
		gates:  d.failClosed(req.h.Agent, req.h.Event),
		source: sourceHook,
		callID: record.NewID(now),
		at:     now,
		since:  now,
	}
	if a := d.adapters[req.h.Agent]; a != nil {
		x.adapter = a
		if k, ok := a.Kind(req.h.Event); ok {
			x.kind = k
		}
	}
	x.sess.agent = req.h.Agent
	// What the work leaves is for the record of a failure and the way back.
	left := req.decideBy.Sub(now)
	x.workBy = earliest(now.Add(d.limits.answer), req.decideBy.Add(-min(500*time.Millisecond, max(0, left/4))))
	return x
}

// enter ends the current stage and begins the next one.
func (d *Daemon) enter(x *exchange, stage string) {
	now := d.now()
	x.leave(now)
	x.stage, x.since = stage, now
	if d.seam.stage != nil {
		d.seam.stage(x.req.h.Event, stage)
	}
}

// leave ends the current stage. The time for which a person was waited for is no time of ours.
func (x *exchange) leave(now time.Time) {
	if x.stage == "" {
		return
	}
	took := now.Sub(x.since)
	if x.stage == "gate" {
		took = max(0, took-x.held)
	}
	x.times = append(x.times, stageTime{x.stage, took})
	x.stage = ""
}

// note adds a fact to the record.
func (x *exchange) note(key, value string) {
	if x.detail == nil {
		x.detail = make(map[string]string)
	}
	x.detail[key] = value
}

// fanOut writes what the reply did not wait for and tells the metrics about an event, after its reply is on its way.
func (d *Daemon) fanOut(x *exchange) {
	for _, e := range x.later {
		d.appendLater(d.workCtx, e)
	}
	now := d.now()
	x.leave(now)
	if x.canary {
		d.canaryDone(x)
		return
	}
	for _, t := range x.times {
		d.m.Stage(t.stage, t.d)
	}
	if started := time.Unix(0, x.req.h.Started); x.source == sourceHook && !started.After(now) && now.Sub(started) < maxDeadline {
		d.m.Hook(x.req.h.Agent, max(0, now.Sub(started)-x.held))
	}
	if x.fail != nil && x.gates {
		d.m.FailClosed(x.fail.metric)
	}
	if x.ev == nil || x.kind != event.KindPreTool && x.kind != event.KindSkillShell || x.late {
		return
	}
	d.m.Call(x.req.h.Agent, x.ev.Tool, string(x.verdict.Decision))
	if x.dec.Rule != "" {
		d.m.Tripwire(x.dec.Rule, string(x.dec.Verdict))
		if x.dec.Floor && x.dec.Verdict == event.Deny {
			d.m.Floor(x.dec.Rule)
		}
	}
}
