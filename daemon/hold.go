// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/daemon/approval"
	"github.com/tripline-sh/tripline/daemon/internal/proc"
	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/hooks/wire"
	"github.com/tripline-sh/tripline/tripwires"
)

// The gates that this version has.
const (
	gateNative = "native"
	gateHold   = "hold"
)

const (
	// holdMargin is how long before the hook's own deadline a hold ends at the latest.
	holdMargin = 10 * time.Second
	// lifeCheck is how often a waiting call looks whether its agent still lives.
	lifeCheck = 500 * time.Millisecond
)

// hold brings a call to the approval gate and turns what comes of it into the verdict. While it waits, the hook is told
// to be patient; the end of the hook, of its agent or of the daemon ends the wait and leaves the card to be decided.
func (d *Daemon) hold(ctx context.Context, x *exchange) *failure {
	call := d.approvalCall(x, x.dec)
	ectx, cancel := context.WithDeadline(ctx, x.workBy)
	ticket, err := d.gate.Enter(ectx, call)
	cancel()
	x.card = ticket.Card
	if err != nil {
		d.logger.Error().Err(err).Msg("the approval gate failed")
	}
	if err != nil || ticket.State != approval.Waiting {
		d.useTicket(x, ticket)
		return nil
	}
	if err := d.joinCard(ctx, x, call, ticket.Card); err != nil {
		d.logger.Error().Err(err).Msg("a held call cannot be recorded")
		return &failLog
	}
	out := d.await(ctx, x, ticket.Card)
	if out.State != approval.Approved {
		x.verdict = event.Verdict{Decision: event.Deny, Rule: out.Code, Reason: out.Text}
		x.who, x.basis = "rule:"+x.dec.Rule, "proved"
		if out.State == approval.Denied {
			x.who, x.basis = "person", "claimed"
		}
		return nil
	}
	return d.release(ctx, x, ticket.Card)
}

// joinCard puts a call on record that waits for the card of an earlier one, as the gate does for the call that opened it:
// no call is held that a restart could not account for.
func (d *Daemon) joinCard(ctx context.Context, x *exchange, call approval.Call, card string) error {
	c, err := d.gate.Show(card)
	if err != nil || c.Call == x.callID { // a card that is gone: the wait tells
		return nil
	}
	r := d.baseRecord(x)
	r.Kind, r.Call = record.ApprovalRequested, x.callID
	r.Detail = map[string]string{"card": card, "rule": d.name(call.Rule), "joined": "1"}
	e := &audit.Entry{Record: r, State: []audit.StateOp{{Key: heldPrefix + x.callID, Value: []byte(card)}}}
	d.addJSON(e, "input", x.ev.Input)
	d.addText(e, "analysis", strings.Join(append([]string{call.Reason}, call.Effects...), "\n"))
	actx, cancel := context.WithDeadline(ctx, x.workBy)
	defer cancel()
	_, err = d.log.Append(actx, e)
	return err
}

// release lets an approved call run, if it is still the call that was approved: everything is judged again first.
func (d *Daemon) release(ctx context.Context, x *exchange, card string) *failure {
	work, cancel := context.WithDeadline(ctx, earliest(d.now().Add(d.limits.answer), x.req.decideBy))
	defer cancel()
	x.p = d.policy.Load()
	first := x.dec
	if f := d.analyse(work, x); f != nil {
		return f
	}
	if x.dec.Verdict != event.Ask {
		if x.dec.Verdict == event.Deny {
			x.verdict = event.Verdict{Decision: event.Deny, Rule: approval.CodeStale,
				Reason: "Tripline denied this call: it was approved, but the rules refuse it now. " + tripwires.RenderReason(x.dec)}
			x.who, x.basis = "rule:"+x.dec.Rule, "proved"
			return nil
		}
		x.dec = first // nothing asks any more; the approval is still what lets it run
	}
	ticket, err := d.gate.Consume(work, card, d.approvalCall(x, x.dec))
	if err != nil {
		d.logger.Error().Err(err).Msg("the approval gate failed")
	}
	d.useTicket(x, ticket)
	return nil
}

// useTicket turns a final ticket into the verdict.
func (d *Daemon) useTicket(x *exchange, t approval.Ticket) {
	if t.State == approval.Approved {
		x.verdict = event.Verdict{Decision: event.Allow, Rule: x.dec.Rule, Reason: "Tripline: approved by a person (approval " + t.Card + ")."}
		x.who, x.basis = "person", "claimed"
		return
	}
	x.verdict = event.Verdict{Decision: event.Deny, Rule: t.Code, Reason: t.Text}
	x.who, x.basis = "rule:"+x.dec.Rule, "proved"
}

// await waits for a person, with the hook on hold.
func (d *Daemon) await(ctx context.Context, x *exchange, card string) approval.Outcome {
	started := d.now()
	defer func() { x.held += d.now().Sub(started) }()
	until := earliest(started.Add(x.p.cfg.Hold), x.req.deadline.Add(-holdMargin))
	hctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	defer context.AfterFunc(d.stopCtx, cancel)()
	switch {
	case x.req.conn == nil || len(x.req.payload) > d.limits.holdSize || d.stopping():
		cancel() // nobody waits: the call is told its card at once
	default:
		b, err := wire.AppendReply(nil, &wire.Reply{Kind: wire.KindHold})
		if err == nil {
			_ = x.req.conn.SetWriteDeadline(d.now().Add(d.limits.write))
			_, err = x.req.conn.Write(b)
		}
		if err != nil {
			cancel()
			break
		}
		watching := make(chan struct{})
		go func() { // ends with hctx, at the latest lifeCheck later
			defer close(watching)
			d.watchHook(hctx, cancel, x)
		}()
		defer func() {
			cancel()
			_ = x.req.conn.SetReadDeadline(time.Unix(1, 0))
			<-watching
			_ = x.req.conn.SetReadDeadline(time.Time{})
		}()
	}
	out, err := d.gate.Wait(hctx, card)
	if err != nil {
		d.logger.Error().Err(err).Msg("the approval gate failed")
	}
	return out
}

// watchHook cancels when the hook closes its socket, its agent ends, or the daemon stops.
func (d *Daemon) watchHook(ctx context.Context, cancel context.CancelFunc, x *exchange) {
	defer cancel()
	var agent *proc.Watch
	if x.peer != nil && x.peer.AgentPID > 0 {
		if w, err := proc.NewWatch(x.peer.AgentPID); err == nil {
			agent = w
			defer w.Close()
		}
	}
	// The hook sends nothing after its frame, so a read ends when it is gone, or at its deadline.
	var b [1]byte
	for ctx.Err() == nil {
		_ = x.req.conn.SetReadDeadline(time.Now().Add(lifeCheck))
		if _, err := x.req.conn.Read(b[:]); err == nil || !isTimeout(err) {
			return
		}
		if agent != nil && agent.Gone() {
			return
		}
	}
}

// approvalCall is the call as the gate must know it: what makes it the same call, and what its card shows.
func (d *Daemon) approvalCall(x *exchange, dec tripwires.Decision) approval.Call {
	ev := x.ev
	c := approval.Call{
		Tool:      d.name(ev.Tool),
		Canonical: x.canonical,
		Cwd:       d.path(ev.Cwd),
		Project:   d.path(dec.Project),
		Agent:     ev.Agent,
		RuleHash:  dec.RuleHash,
		ReadSet:   dec.ReadSet,
		Session:   x.sess.session,
		ID:        x.callID,
		Subagent:  d.name(ev.Subagent),
		ToolUseID: d.name(ev.ToolUseID),
		Input:     d.red.JSON(ev.Input, maxBody).Data,
		Rule:      dec.Rule,
		Reason:    d.red.String(dec.Reason),
		NotBound:  notBound(dec),
		Recent:    d.recent(x),

		BindSession: dec.Session,
	}
	if x.peer != nil {
		c.UID = x.peer.UID
	}
	// The card is stored, so it holds redacted text; the token must still tell apart what redaction made equal.
	if c.Tool != ev.Tool || c.Cwd != ev.Cwd || c.Project != dec.Project {
		c.Canonical = slices.Concat(c.Canonical, []byte{0}, []byte(ev.Tool), []byte{0}, []byte(ev.Cwd), []byte{0}, []byte(dec.Project))
	}
	for _, e := range dec.Effects {
		c.Effects = append(c.Effects, d.red.String(show.Line(e.Words(), 500)))
	}
	return c
}

// notBound lists what an approval of a call does not pin down.
func notBound(dec tripwires.Decision) []string {
	out := []string{"the environment, and what the programs that it starts do by themselves"}
	if len(dec.ReadSet) == 0 {
		out = append(out, "the content of files that it uses")
	}
	for _, e := range dec.Effects {
		if e.Certainty == tripwires.Uncertain {
			return append(out, "targets that could not be told beforehand")
		}
	}
	return out
}

// recent says from the log what the session did just before: tools and verdicts, no arguments.
func (d *Daemon) recent(x *exchange) []string {
	ctx, cancel := context.WithTimeout(d.workCtx, 200*time.Millisecond)
	defer cancel()
	tail, err := d.log.Tail(ctx, 100)
	if err != nil {
		return nil
	}
	var out []string
	for i := len(tail) - 1; i >= 0 && len(out) < 5; i-- {
		r := &tail[i]
		if r.Kind != record.CallRequested || r.Session != x.sess.session || r.Agent != x.sess.agent || r.Decision == nil {
			continue
		}
		out = append(out, r.Time.UTC().Format("15:04:05Z")+" "+show.Line(r.Tool, 64)+" "+r.Decision.Answer+" "+r.Decision.Rule)
	}
	return out
}
