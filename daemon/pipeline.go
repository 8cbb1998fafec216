// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/hooks/wire"
	"github.com/tripline-sh/tripline/tripwires"
	"github.com/tripline-sh/tripline/tripwires/view"
)

// maxReason is the size of the text that a deny gives the model, anchor included.
const maxReason = 2000

// process is the whole way of one event, in nine stages. It returns the reply that the hook must give, and the exchange,
// for whoever sends the reply to fan out afterwards (stage 9). It never panics, and its reply never lets a call run
// whose record is not durable.
func (d *Daemon) process(ctx context.Context, req *request) (reply wire.Reply, x *exchange) {
	x = d.begin(req)
	defer func() {
		if v := recover(); v != nil {
			reply = d.panicked(ctx, x)
		}
	}()

	d.enter(x, "decode") // native JSON -> event.Event
	if f := d.decode(x); f != nil {
		return d.refuse(ctx, x, *f), x
	}

	d.enter(x, "enrich") // who asks, for which project, in which session
	d.enrich(x)
	if !x.gates {
		return d.observe(ctx, x), x
	}

	d.enter(x, "analyse") // what would this do, what do the rules say
	work, cancel := context.WithDeadline(ctx, x.workBy)
	defer cancel()
	if f := d.analyse(work, x); f != nil {
		return d.refuse(ctx, x, *f), x
	}

	d.enter(x, "decide") // what that means for this agent
	d.decide(x)

	d.enter(x, "gate") // a person's word, where the verdict asks for one
	if x.verdict.Decision == event.Ask && x.gate == gateHold {
		if f := d.hold(ctx, x); f != nil {
			return d.refuse(ctx, x, *f), x
		}
	}

	d.enter(x, "redact") // secrets out, long bodies cut
	entry := d.gateEntry(x)

	d.enter(x, "append") // durable, or no call runs
	receipt, err := d.append(ctx, x, entry)
	if err != nil {
		return d.unrecorded(x), x
	}
	x.recorded = true
	d.settle(x, entry)

	d.enter(x, "encode") // verdict -> native reply
	return d.answer(x, receipt), x
}

// decode turns the payload into an event.
func (d *Daemon) decode(x *exchange) *failure {
	if x.adapter == nil {
		return &failUnknownAgent
	}
	if x.req.oversize {
		return &failTooLarge
	}
	ev, err := x.adapter.Decode(x.req.h.Event, x.req.payload)
	if err != nil || ev == nil {
		return &failUndecodable
	}
	if x.gates && !ev.Kind.Gates() { // a gate event that is taken for none would pass unjudged
		return &failUndecodable
	}
	x.ev, x.kind = ev, ev.Kind
	x.sess.session = d.name(ev.Session)
	if x.canary = d.isCanary(x); x.canary {
		x.source = sourceCanary
	}
	x.gates = x.gates || ev.Kind.Gates()
	if len(ev.Input) > 0 {
		if x.canonical, err = x.adapter.CanonicalInput(ev.Tool, ev.Input); err != nil {
			return &failUndecodable
		}
		x.mac = d.inputMAC(x.canonical)
	}
	return nil
}

// analyse asks the rules, in a goroutine of its own: whatever happens there, this one answers in time. Those that were
// given up and still run are bounded with the others, or they would pile up with their payloads.
func (d *Daemon) analyse(ctx context.Context, x *exchange) *failure {
	type result struct {
		dec      tripwires.Decision
		settings *settingsChange
		panicked bool
	}
	select {
	case d.judging <- struct{}{}:
	case <-ctx.Done():
		return d.late(ctx)
	}
	done := make(chan result, 1)
	reader := d.pool.Reader(ctx)
	d.wg.Go(func() {
		var r result
		defer func() {
			if recover() != nil {
				r.panicked = true
			}
			<-d.judging
			done <- r
		}()
		if x.kind == event.KindConfigChange {
			r.settings = d.settings.judge(x.ev, reader, d.now(), d.judges[x.req.h.Agent])
			return
		}
		r.dec = x.p.engine.Evaluate(ctx, x.call, reader)
		d.guardProcess(&r.dec)
	})
	select {
	case r := <-done:
		switch {
		case r.panicked:
			return &failPanic
		case ctx.Err() != nil:
			return d.late(ctx)
		}
		x.dec, x.settings = r.dec, r.settings
		return nil
	case <-ctx.Done():
		return d.late(ctx)
	}
}

// late names why a context ended.
func (d *Daemon) late(ctx context.Context) *failure {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &failDeadline
	}
	return &failStopping
}

// decide maps the engine's decision to what this agent is told.
func (d *Daemon) decide(x *exchange) {
	if x.kind == event.KindConfigChange {
		x.verdict = x.settings.verdict
		return
	}
	x.project = x.dec.Project
	if !x.canary {
		d.sessions.setProject(x.sess, x.dec.Project)
	}
	v := event.Verdict{Decision: x.dec.Verdict, Rule: x.dec.Rule}
	if !x.dec.Enforced {
		v.Decision = event.Pass
	}
	switch v.Decision {
	case event.Pass:
		v.Rule = ""
	case event.Allow:
		v.Reason = tripwires.RenderReason(x.dec)
		x.who, x.basis = "rule:"+x.dec.Rule, "proved"
	case event.Ask:
		x.gate = x.dec.Gate
		if x.gate == "" {
			x.gate = x.p.cfg.Gate
		}
		switch {
		case x.gate == gateHold:
		case x.gate == gateNative && x.kind == event.KindPreTool:
			v.Reason = tripwires.RenderAsk(x.dec, x.call)
		case x.gate == gateNative: // the agent has no prompt for this event
			v.Decision = event.Deny
			v.Reason = tripwires.RenderReason(x.dec) + " It needs a person's approval, and the agent cannot ask for one here."
		default:
			v.Decision = event.Deny
			v.Reason = tripwires.RenderReason(x.dec) + " It needs an approval through the gate " + x.gate + ", which this version does not have."
		}
	default:
		v.Decision = event.Deny
		v.Reason = tripwires.RenderReason(x.dec)
	}
	if v.Decision == event.Deny {
		x.who, x.basis = "rule:"+x.dec.Rule, "proved"
	}
	x.verdict = v
	if x.canary {
		x.decideCanary()
	}
}

// append makes the record durable before the hook's patience ends.
func (d *Daemon) append(ctx context.Context, x *exchange, e *audit.Entry) (audit.Receipt, error) {
	actx, cancel := context.WithDeadline(ctx, x.req.decideBy)
	defer cancel()
	return d.log.Append(actx, e)
}

// settle remembers a judged call for whatever comes after it. It runs before the reply, since the agent's next event
// may be here sooner than this goroutine.
func (d *Daemon) settle(x *exchange, e *audit.Entry) {
	for _, f := range x.durable {
		f()
	}
	if x.kind == event.KindConfigChange || x.canary { // a canary's call never runs
		return
	}
	r := &e.Record
	o := &openCall{
		call: r.ID, key: sessionKey{r.Agent, r.Session}, subagent: r.Subagent, id: r.ToolUseID, tool: r.Tool, mac: x.mac,
		answer: x.verdict.Decision, who: x.who, basis: x.basis,
	}
	if x.card != "" && x.verdict.Decision == event.Allow {
		o.readSet = view.Code(x.dec.ReadSet)
	}
	d.calls.add(o)
}
