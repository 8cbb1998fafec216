// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"strconv"
	"time"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/hooks/spool"
	"github.com/tripline-sh/tripline/hooks/spool/ingest"
)

// count tells the metrics what a hook did by itself with a gate event.
func (s *spoolReader) count(x *exchange, e *ingest.Entry) {
	if !x.gates {
		return
	}
	switch e.Meta.Answer {
	case spool.Passed:
		s.d.m.FailOpen()
	case spool.Denied:
		reason := "hook-failed"
		switch e.Meta.Fault {
		case spool.Absent, spool.Unreachable, spool.Impostor:
			reason = "daemon-away"
		case spool.Timeout:
			reason = "hook-timeout"
		}
		s.d.m.FailClosed(reason)
	}
}

// safeEntries are the records of a spooled event, also of one that makes a part of the daemon panic: such a one must
// neither end the daemon nor come back for ever.
func (s *spoolReader) safeEntries(ctx context.Context, e *ingest.Entry) (x *exchange, entries []*audit.Entry) {
	x = s.begin(e)
	defer func() {
		if recover() == nil {
			return
		}
		s.d.logger.Error().Str("event", s.d.eventName(x)).Str("stage", "spool").Msg("panic")
		x.note("stage", "spool")
		x.note("failure", failPanic.rule)
		r := record.Record{Kind: record.SessionEvent, Source: x.source, Late: true, Detail: x.detail}
		if x.gates {
			r.Kind, r.ID, r.Call = record.CallRequested, x.callID, x.callID
			r.Decision = &record.Decision{
				Verdict: string(x.verdict.Decision), Answer: string(x.verdict.Decision), Rule: failPanic.rule, Enforced: true, Failure: failPanic.metric,
			}
			if x.verdict.Decision == event.Deny {
				r.Outcome = record.Blocked
			}
		}
		if x.adapter != nil { // nothing else of such an event is known not to panic again
			r.Agent, r.Event = x.adapter.Name(), s.d.eventName(x)
		}
		entries = []*audit.Entry{{Record: r}}
	}()
	return x, s.entries(ctx, e, x)
}

// begin makes the exchange of a spooled event.
func (s *spoolReader) begin(e *ingest.Entry) *exchange {
	d := s.d
	req := &request{h: &e.Header, received: d.now(), deadline: d.now().Add(time.Minute), decideBy: d.now().Add(time.Minute), payload: e.Payload}
	x := d.begin(req)
	x.source, x.late = "spool", true
	x.at = earliest(x.at, time.Unix(0, e.Header.Started))
	x.note("fault", e.Meta.Fault.Rule())
	x.note("answered", e.Meta.Answer.String())
	x.note(detailSpooledAt, time.Unix(0, e.Header.Started).UTC().Format(time.RFC3339Nano))
	if e.Meta.Flags&spool.FlagSent != 0 {
		x.note("sent", "1") // the daemon may have a record of its own
	}
	x.verdict = event.Verdict{Decision: event.Pass}
	if x.gates && e.Meta.Answer == spool.Denied {
		x.verdict = event.Verdict{Decision: event.Deny, Rule: e.Meta.Fault.Rule()}
	}
	return x
}

// entries are the records of a spooled event: what it would have been in time, marked as late, with what the hook told
// its agent instead of a verdict of ours.
func (s *spoolReader) entries(ctx context.Context, e *ingest.Entry, x *exchange) []*audit.Entry {
	d := s.d
	f := d.decode(x)
	if e.Meta.Flags&(spool.FlagCut|spool.FlagOpen) != 0 {
		x.note("payload_read", strconv.FormatUint(e.Meta.Read, 10))
		if f != nil {
			f = &failTooLarge
		}
	}
	if f != nil {
		x.fail = f
		first, second := d.failureEntries(x)
		if second != nil {
			return []*audit.Entry{first, second}
		}
		return []*audit.Entry{first}
	}
	d.enrich(x)
	if first := s.known(x, e); first != nil {
		return []*audit.Entry{first}
	}
	if !x.gates {
		first, more := d.observed(ctx, x)
		return append([]*audit.Entry{first}, more...)
	}
	x.fail = &failure{rule: e.Meta.Fault.Rule(), metric: e.Meta.Fault.Rule()}
	if x.kind == event.KindConfigChange {
		r := d.baseRecord(x)
		r.Kind, r.Decision = record.ConfigSettings, d.decision(x)
		return []*audit.Entry{{Record: r}}
	}
	first := d.gateEntry(x)
	d.settle(x, first)
	return []*audit.Entry{first}
}

// known is the record of an event that the daemon has on record already, since it was sent the whole of it: nil for any
// other. A judged call whose hook did not wait for the answer was denied by it, and its outcome is set right here.
func (s *spoolReader) known(x *exchange, e *ingest.Entry) *audit.Entry {
	d := s.d
	gate := x.kind == event.KindPreTool || x.kind == event.KindSkillShell
	if e.Meta.Flags&spool.FlagSent == 0 || gate && e.Meta.Answer != spool.Denied {
		return nil
	}
	r := d.baseRecord(x)
	k := sessionKey{r.Agent, r.Session}
	switch {
	case gate:
		o := d.calls.overruled(k, r.Subagent, r.ToolUseID, r.Tool, x.mac)
		if o == nil {
			return nil
		}
		r.Kind, r.Call, r.Outcome = record.CallRejected, o.call, record.Blocked
		r.Who, r.WhoBasis = "rule:"+e.Meta.Fault.Rule(), "claimed"
	case x.kind == event.KindPostTool || x.kind == event.KindPostToolFailure:
		if !d.calls.ended(k, r.Subagent, r.ToolUseID, r.Tool, x.mac) {
			return nil
		}
		r.Kind = record.SessionEvent
	default:
		return nil
	}
	return &audit.Entry{Record: r}
}
