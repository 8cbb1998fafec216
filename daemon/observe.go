// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/hooks/wire"
	"github.com/tripline-sh/tripline/tripwires/view"
)

// observe records an event that waits for no verdict, and answers with silence. The record comes first here too: then no
// answered event is ever lost.
func (d *Daemon) observe(ctx context.Context, x *exchange) wire.Reply {
	x.verdict = event.Verdict{Decision: event.Pass}
	d.enter(x, "redact")
	e, more := d.observed(ctx, x)
	d.enter(x, "append")
	if _, err := d.append(ctx, x, e); err != nil {
		return d.unrecorded(x)
	}
	for _, m := range more {
		d.appendLater(ctx, m)
	}
	d.enter(x, "encode")
	return d.encode(x.req.h.Agent, x.req.h.Event, x.verdict)
}

// observed builds the record of an event, and those of what it shows about earlier ones.
func (d *Daemon) observed(ctx context.Context, x *exchange) (e *audit.Entry, more []*audit.Entry) {
	ev := x.ev
	r := d.baseRecord(x)
	e = &audit.Entry{Record: r}
	switch x.kind {
	case event.KindPostTool, event.KindPostToolFailure, event.KindPermissionDenied:
		return d.ended(ctx, x)
	case event.KindToolBatch:
		return d.batch(ctx, x)
	case event.KindPermissionRequest:
		e.Record.Kind = record.SessionEvent
		x.note(detailAsked, "1")
		x.note(detailInputMAC, x.mac)
		e.Record.Detail = x.detail
		e.Record.Call = d.calls.asked(sessionKey{r.Agent, r.Session}, r.Subagent, r.Tool, x.mac)
		d.addJSON(e, "input", ev.Input)
		return e, nil
	case event.KindSessionStart:
		e.Record.Kind = record.SessionStart
		if !x.late { // what the files held when a spooled one started is not known any more
			d.readSettings(ctx, x, e)
		}
	case event.KindSessionEnd:
		e.Record.Kind = record.SessionEnd
		at := time.Time{}
		if x.late {
			at = x.at
		}
		if d.sessions.end(x.sess, at) {
			d.calls.end(sessionKey{r.Agent, r.Session})
		}
	case event.KindStop:
		e.Record.Kind = record.SessionStop
		if !x.late { // what waits now was asked after it
			d.gate.CancelWaiting(ctx, r.Session, r.Subagent)
		}
	case event.KindPrompt:
		e.Record.Kind = record.Prompt
		d.addText(e, "prompt", ev.PromptText)
	case event.KindSubagentStart, event.KindSubagentStop:
		e.Record.Kind = record.SessionSubagent
	default:
		e.Record.Kind = record.SessionEvent
		d.addJSON(e, "input", ev.Input)
		d.addJSON(e, "payload", ev.Raw)
	}
	x.noteText(d, "source", ev.Source)
	x.noteText(d, "reason", ev.Reason)
	e.Record.Detail = x.detail
	return e, nil
}

func (x *exchange) noteText(d *Daemon, key, text string) {
	if text != "" {
		x.note(key, d.name(text))
	}
}

// ended is the record of a call's end, joined to its request.
func (d *Daemon) ended(ctx context.Context, x *exchange) (e *audit.Entry, more []*audit.Entry) {
	ev := x.ev
	r := d.baseRecord(x)
	switch x.kind {
	case event.KindPostTool:
		r.Kind, r.Outcome = record.CallFinished, record.Ran
	case event.KindPostToolFailure:
		r.Kind, r.Outcome = record.CallFailed, record.Failed
	default:
		r.Kind, r.Outcome = record.CallRejected, record.Rejected
	}
	if x.mac != "" {
		x.note(detailInputMAC, x.mac)
	}
	if ev.Interrupted {
		x.note("interrupted", "1")
	}
	x.noteText(d, "reason", ev.Reason)
	o := d.calls.finish(sessionKey{r.Agent, r.Session}, r.Subagent, r.ToolUseID, r.Tool, x.mac)
	if o == nil {
		x.note("unjoined", "1")
	} else {
		r.Call = o.call
		if r.Outcome == record.Failed && o.answer == event.Deny && strings.Contains(clip(ev.Error, 200), "Tripline ") {
			r.Outcome = record.Blocked // the failure that the agent tells of is our denial
		}
		if r.Outcome == record.Ran || r.Outcome == record.Failed {
			r.Who, r.WhoBasis = o.allowedBy(ev.PermissionMode)
		}
		more = d.compare(ctx, x, r, o)
	}
	r.Detail = x.detail
	e = &audit.Entry{Record: r}
	d.addJSON(e, "input", ev.Input)
	d.addJSON(e, "response", ev.Response)
	d.addText(e, "error", ev.Error)
	return e, more
}

// compare looks for differences between the call that was judged and the one that ended.
func (d *Daemon) compare(ctx context.Context, x *exchange, r record.Record, o *openCall) (more []*audit.Entry) {
	alarm := func(kind record.Kind, detail map[string]string) {
		t := r
		t.Kind, t.ID, t.Outcome, t.Detail, t.DurationMS = kind, "", "", detail, nil
		more = append(more, &audit.Entry{Record: t})
	}
	if o.mac != "" && x.mac != "" && o.mac != x.mac {
		alarm(record.TamperRewritten, map[string]string{"judged": o.mac, "ran": x.mac})
	}
	if r.Outcome != record.Ran && r.Outcome != record.Failed {
		return more
	}
	if o.answer == event.Deny {
		alarm(record.TamperDeniedRan, nil)
		d.raise(more[len(more)-1], "denied-ran/"+o.call, false)
	}
	if len(o.readSet) > 0 {
		if changed := view.Recheck(o.readSet, d.pool.Reader(ctx)); len(changed) > 0 {
			alarm(record.TamperScriptChanged, map[string]string{"path": d.path(changed[0]), "count": strconv.Itoa(len(changed))})
		}
	}
	return more
}

// allowedBy says who let a call run, as far as the agent's own claims allow to tell.
func (o *openCall) allowedBy(mode string) (who, basis string) {
	switch {
	case o.who != "":
		return o.who, o.basis
	case o.prompted || o.answer == event.Ask:
		return "agent-prompt", "inferred"
	case mode == "bypassPermissions":
		return "bypass", "inferred"
	case mode == "":
		return "unknown", "inferred"
	}
	return "agent-auto", "inferred"
}

// batch records the end of a turn, and what its list of calls shows: calls that were never asked for, and calls without
// an end.
func (d *Daemon) batch(ctx context.Context, x *exchange) (e *audit.Entry, more []*audit.Entry) {
	r := d.baseRecord(x)
	r.Kind = record.SessionEvent
	x.note("calls", strconv.Itoa(len(x.ev.Batch)))
	k := sessionKey{r.Agent, r.Session}
	ingested := false
	for i := range x.ev.Batch {
		b := &x.ev.Batch[i]
		mac := ""
		if canonical, err := x.adapter.CanonicalInput(b.Tool, b.Input); err == nil && len(b.Input) > 0 {
			mac = d.inputMAC(canonical)
		}
		id, tool := d.name(b.ToolUseID), d.name(b.Tool)
		o := d.calls.take(k, r.Subagent, id, tool, mac)
		if o == nil && !ingested && !x.late {
			// Perhaps it was asked for while no daemon ran.
			ingested = true
			d.spool.ingest(ctx)
			o = d.calls.take(k, r.Subagent, id, tool, mac)
		}
		if o != nil && (o.done || o.answer == event.Deny) {
			continue
		}
		t := r
		t.Tool, t.ToolUseID, t.Kind, t.Outcome, t.Detail = tool, id, record.CallRejected, record.Rejected, map[string]string{"seen_in": r.Event}
		t.Who, t.WhoBasis = "", ""
		switch {
		case o != nil:
			t.Call = o.call
			if o.answer == event.Ask {
				t.Outcome, t.Who, t.WhoBasis = record.Blocked, "agent-prompt", "inferred"
			}
		case !refusedByAgent(b.Response):
			t.Kind, t.Outcome = record.TamperUnrecorded, record.Ran
		}
		m := &audit.Entry{Record: t}
		d.addJSON(m, "input", b.Input)
		d.addJSON(m, "response", b.Response)
		if t.Kind == record.TamperUnrecorded {
			d.raise(m, "unrecorded/"+r.Session, false)
		}
		more = append(more, m)
	}
	r.Detail = x.detail
	return &audit.Entry{Record: r}, more
}

// refusedByAgent reports whether a response is the agent's own error, as for an unknown tool or input that its schema
// refuses: such a call never ran. It is text, so this is an inference and no more.
func refusedByAgent(response json.RawMessage) bool {
	return bytes.HasPrefix(bytes.TrimLeft(response, " \t\r\n[{\""), []byte("<tool_use_error>")) ||
		bytes.HasPrefix(response, []byte(`"\u003ctool_use_error`))
}
