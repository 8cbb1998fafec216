// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"io/fs"
	"strconv"
	"sync"
	"time"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/hooks/spool"
	"github.com/tripline-sh/tripline/hooks/spool/ingest"
)

const (
	// spoolPrefix is where the names of ingested entries stand in the log's state until their files are gone.
	spoolPrefix = "spool/"
	spoolBatch  = 1024
)

// spoolReader takes events from the spool into the log. Everything in there is unauthenticated and late.
type spoolReader struct {
	d *Daemon

	mu   sync.Mutex      // one ingestion at a time
	seen map[string]bool // ingested names that the log's state still holds
}

func newSpoolReader(d *Daemon, state map[string][]byte) *spoolReader {
	s := &spoolReader{d: d, seen: make(map[string]bool)}
	for k := range state {
		s.seen[k[len(spoolPrefix):]] = true
	}
	return s
}

// run ingests now and every minute.
func (s *spoolReader) run(ctx context.Context) {
	minute := time.NewTicker(time.Minute)
	defer minute.Stop()
	for {
		s.ingest(ctx)
		select {
		case <-ctx.Done():
			return
		case <-minute.C:
		}
	}
}

// ingest records what is in the spool now. It stops at the first record that cannot be written; the rest waits.
func (s *spoolReader) ingest(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sp, err := ingest.Open(s.d.places.SpoolDir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			s.d.logger.Warn().Err(err).Msg("the spool cannot be used")
		}
		return
	}
	res, err := sp.Scan(spoolBatch)
	if err != nil {
		s.d.logger.Warn().Err(err).Msg("the spool cannot be read")
		return
	}
	s.d.m.Spool(len(res.Names))
	s.d.gaps.add("spool_bad", len(res.Bad))
	s.d.m.Dropped("spool-bad", len(res.Bad))
	for i, name := range res.Names {
		if ctx.Err() != nil || !s.one(ctx, sp, name) {
			return
		}
		s.d.m.Spool(len(res.Names) - i - 1)
	}
	s.declare(ctx, sp, res.Dropped)
}

// one ingests one entry; false means that the log takes none at the moment.
func (s *spoolReader) one(ctx context.Context, sp *ingest.Spool, name string) bool {
	if !s.seen[name] {
		e, err := sp.Load(name)
		switch {
		case errors.Is(err, ingest.ErrForeign):
			s.d.gaps.add("spool_bad", 1)
			s.d.m.Dropped("spool-bad", 1)
			return true
		case err != nil:
			return true // gone, or tried again in a minute
		}
		if !s.record(ctx, e) {
			return false
		}
		s.seen[name] = true
		s.d.m.Ingested(1)
	}
	if err := sp.Remove(name); err != nil {
		s.d.logger.Warn().Err(err).Msg("a spooled event cannot be removed")
	}
	return true
}

// record appends the records of one entry, and takes names off the state whose files are gone.
func (s *spoolReader) record(ctx context.Context, e *ingest.Entry) bool {
	x, entries := s.safeEntries(ctx, e)
	first := entries[0]
	first.State = append(first.State, audit.StateOp{Key: spoolPrefix + e.Name, Value: []byte{1}})
	gone := 0
	for name := range s.seen {
		if gone++; gone > 256 {
			break
		}
		first.State = append(first.State, audit.StateOp{Key: spoolPrefix + name})
	}
	if _, err := s.d.log.Append(ctx, first); err != nil {
		return false
	}
	for _, op := range first.State {
		if op.Value == nil {
			delete(s.seen, op.Key[len(spoolPrefix):])
		}
	}
	s.count(x, e)
	for _, m := range entries[1:] {
		s.d.appendLater(ctx, m)
	}
	return true
}

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
	x.note("spooled_at", time.Unix(0, e.Header.Started).UTC().Format(time.RFC3339Nano))
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

// declare records what hooks could not even spool.
func (s *spoolReader) declare(ctx context.Context, sp *ingest.Spool, n int64) {
	if n <= 0 {
		return
	}
	e := &audit.Entry{Record: record.Record{Kind: record.Gap, Source: "spool", Detail: map[string]string{
		"count": strconv.FormatInt(n, 10), "lost_spool_full": strconv.FormatInt(n, 10),
	}}}
	if _, err := s.d.log.Append(ctx, e); err != nil {
		return
	}
	s.d.m.Dropped("spool-full", int(n))
	if err := sp.Declared(n); err != nil {
		s.d.logger.Warn().Err(err).Msg("the count of dropped events cannot be reset")
	}
}
