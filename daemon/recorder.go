// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"strings"
	"time"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/daemon/approval"
)

// heldPrefix is where calls stand in the log's state from the request of their approval to their verdict: what is left
// there at start had no verdict.
const heldPrefix = "held/"

// surfaceStart is the surface of what the daemon itself decides when it starts.
const surfaceStart = "start"

// approvalRecorder makes the gate's edges durable, each with its record in one transaction.
type approvalRecorder struct{ d *Daemon }

// Record implements approval.Recorder.
func (r approvalRecorder) Record(ctx context.Context, ev approval.Event) (uint64, error) {
	d := r.d
	c := ev.Card
	e := &audit.Entry{Record: record.Record{
		Kind:      ev.Kind,
		Call:      ev.Call,
		Agent:     d.name(c.Agent),
		Session:   d.name(c.Session),
		Subagent:  d.name(c.Subagent),
		Tool:      d.name(c.Tool),
		ToolUseID: d.name(c.ToolUseID),
		Cwd:       d.path(c.Cwd),
		Project:   d.path(c.Project),
		Source:    "control",
		Detail:    map[string]string{},
	}}
	if e.Record.Call == "" {
		e.Record.Call = c.Call
	}
	for k, v := range ev.Detail {
		e.Record.Detail[k] = d.name(v)
	}
	if c.ID != "" {
		e.Record.Detail["card"] = c.ID
		e.Record.Detail["rule"] = d.name(c.Rule)
	}
	switch ev.Kind {
	case record.ApprovalApproved, record.ApprovalDenied, record.ApprovalRevoked, record.ApprovalCancelled:
		if c.DecidedBy != "" && ev.Call == "" && ev.Detail["surface"] != surfaceStart {
			e.Record.Who, e.Record.WhoBasis = "person", "claimed"
		}
	case record.ApprovalRequested:
		e.Record.Source = sourceHook
		if ev.Call != "" {
			e.State = append(e.State, audit.StateOp{Key: heldPrefix + ev.Call, Value: []byte(c.ID)})
		}
		d.addJSON(e, "input", c.Input)
		d.addText(e, "analysis", strings.Join(append([]string{c.Reason}, c.Effects...), "\n"))
	}
	d.addText(e, "comment", c.Comment)
	for _, op := range ev.State {
		e.State = append(e.State, audit.StateOp{Key: op.Key, Value: op.Value})
	}
	receipt, err := d.log.Append(ctx, e)
	if err != nil {
		return 0, err
	}
	r.count(ev)
	return receipt.Seq, nil
}

// count tells the metrics about an edge.
func (r approvalRecorder) count(ev approval.Event) {
	outcome, ok := strings.CutPrefix(string(ev.Kind), "approval.")
	if !ok { // an alarm, counted where it was appended
		return
	}
	var wait time.Duration
	switch ev.Kind {
	case record.ApprovalRequested:
		return
	case record.ApprovalApproved, record.ApprovalDenied, record.ApprovalExpired, record.ApprovalCancelled:
		wait = ev.At.Sub(ev.Card.Requested)
	}
	r.d.m.ApprovalDone(outcome, wait)
}
