// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"strings"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/hooks/wire"
)

// maxShownRule bounds the rule at the end of a text, in bytes.
const maxShownRule = 100

// answer renders the verdict. A deny carries the anchor of its record, so that whoever keeps the agent's transcript can
// tell later whether the log still holds it, and last of all its rule.
func (d *Daemon) answer(x *exchange, receipt audit.Receipt) wire.Reply {
	v := x.verdict
	if v.Decision == event.Deny {
		v.Reason = ending(v.Reason, " [log "+itoa(receipt.Seq)+" "+receipt.Root+"]", x.shownRule())
		d.carriedOut(receipt.Seq)
	}
	return d.encode(x.req.h.Agent, x.req.h.Event, v)
}

// shownRule is the rule that a refusal ends in. Where the gate refused, it is the rule that asked: that one has a name which a
// person can look up.
func (x *exchange) shownRule() string {
	if strings.HasPrefix(x.verdict.Rule, "approval-") && x.dec.Rule != "" {
		return x.dec.Rule
	}
	return x.verdict.Rule
}

// ending puts the anchor, if there is one, and the rule behind a text, which gives way to them.
func ending(reason, anchor, rule string) string {
	if rule != "" {
		anchor += " [rule " + show.Line(rule, maxShownRule) + "]"
	}
	return show.Text(reason, maxReason-len(anchor)) + anchor
}

// unrecorded answers a call whose record could not be made durable: it must not run.
func (d *Daemon) unrecorded(x *exchange) wire.Reply {
	d.gaps.add("log", 1)
	d.m.Dropped("log", 1)
	d.logger.Error().Str("event", d.eventName(x)).Msg("the audit log cannot be written")
	x.fail = &failLog
	if !x.gates {
		return wire.Reply{Kind: wire.KindFinal}
	}
	x.verdict = event.Verdict{Decision: event.Deny, Rule: failLog.rule, Reason: ending(failLog.text(), "", failLog.rule)}
	return d.encode(x.req.h.Agent, x.req.h.Event, x.verdict)
}

// refuse records a failure and answers it: a deny where a verdict was due, else silence.
func (d *Daemon) refuse(ctx context.Context, x *exchange, f failure) wire.Reply {
	x.fail = &f
	if x.gates {
		x.verdict = event.Verdict{Decision: event.Deny, Rule: f.rule, Reason: f.text()}
	} else {
		x.verdict = event.Verdict{Decision: event.Pass}
	}
	d.enter(x, "redact")
	first, second := d.failureEntries(x)
	d.enter(x, "append")
	if !d.now().Before(x.req.decideBy) { // no time is left to wait for the record; it is written after the reply
		x.later = append(x.later, first)
		if second != nil {
			x.later = append(x.later, second)
		}
		if x.ev != nil && first.Record.Kind == record.CallRequested {
			d.settle(x, first)
		}
		d.enter(x, "encode")
		v := x.verdict
		if v.Decision == event.Deny {
			v.Reason = ending(v.Reason, "", v.Rule)
		}
		return d.encode(x.req.h.Agent, x.req.h.Event, v)
	}
	receipt, err := d.append(ctx, x, first)
	if err != nil {
		if reply := d.unrecorded(x); x.gates {
			return reply
		}
		return wire.Reply{Kind: wire.KindFinal}
	}
	if x.ev != nil && first.Record.Kind == record.CallRequested {
		d.settle(x, first)
	}
	if second != nil {
		d.appendLater(ctx, second)
	}
	d.enter(x, "encode")
	return d.answer(x, receipt)
}

// eventName is the event's name for the daemon's own log: only names that an adapter knows, since any other is the
// caller's own text.
func (d *Daemon) eventName(x *exchange) string {
	if x.adapter != nil {
		if _, ok := x.adapter.Kind(x.req.h.Event); ok {
			return x.req.h.Event
		}
	}
	return "unknown"
}

// panicked answers after a panic in any stage. Even rendering the answer may be what panics.
func (d *Daemon) panicked(ctx context.Context, x *exchange) (reply wire.Reply) {
	stage := x.stage
	d.logger.Error().Str("event", d.eventName(x)).Str("stage", stage).Msg("panic")
	defer func() {
		if v := recover(); v != nil {
			d.gaps.add("panic", 1)
			d.m.Dropped("panic", 1)
			f := failPanic
			x.fail = &f
			reply = wire.Reply{Kind: wire.KindFinal}
			if x.gates {
				reply.Exit, reply.Stderr = 2, []byte("tripline: denied ("+f.rule+")\n")
			}
		}
	}()
	x.note("stage", stage)
	x.settings, x.durable, x.later = nil, nil, nil
	if x.recorded { // what is on record says that the call could run
		d.calls.deny(x.callID, sessionKey{d.name(x.req.h.Agent), x.sess.session})
	}
	return d.refuse(ctx, x, failPanic)
}
