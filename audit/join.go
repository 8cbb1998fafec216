// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
)

// patience is how long after the last sign of its session a call without an end counts as pending.
const patience = 30 * time.Minute

// joined is a call while its records come in, and then while it is put together.
type joined struct {
	id      string
	session string
	parts   []part
	ended   bool // its end was seen, or it was denied
	early   bool // began before the range; kept so that its later records find it

	// From the decoded parts.
	req     *record.Record // call.requested, else approval.requested or, for a call without a request, its only record
	reqFile *file
	end     *record.Record // the last of call.finished, call.failed, call.rejected
	endFile *file
	gate    record.Kind // the last decision on its card
	card    string
	prompt  bool // the agent itself asked its person
	ran     bool // we denied it, and it ran all the same
	seqs    []uint64
	who     string // as recorded; later records rule
	basis   string
}

// part is one record of a call, not yet decoded.
type part struct {
	f    *file
	leaf []byte
}

// denied is how the answer stands in a leaf. Inside a string its quotes would be escaped.
var denied = []byte(`"answer":"deny"`)

// take keeps one more record.
func (j *joined) take(f *file, h record.Head, leaf []byte) {
	j.parts = append(j.parts, part{f, leaf})
	switch h.Kind {
	case record.CallFinished, record.CallFailed, record.CallRejected:
		j.ended = true
	case record.CallRequested:
		j.ended = j.ended || bytes.Contains(leaf, denied)
	}
}

// decode reads the records that were kept.
func (j *joined) decode() error {
	for _, p := range j.parts {
		r, err := record.Unmarshal(p.leaf)
		if err != nil {
			return fmt.Errorf("%w: call %q: %v", ErrDamaged, j.id, err)
		}
		j.add(p.f, r)
	}
	j.parts = nil
	return nil
}

// begins says whether a record can be the first of a call.
func begins(r record.Head) bool {
	switch r.Kind {
	case record.CallRequested, record.ApprovalRequested, record.TamperUnrecorded:
		return true
	case record.CallFinished, record.CallFailed, record.CallRejected:
		return r.Call == "" || r.Call == r.ID // nobody asked for it
	}
	return false
}

// callID returns the id of the call that a record is about, "" if of none.
func callID(r record.Head) string {
	if r.Call == "" && begins(r) && r.Kind != record.ApprovalRequested {
		return r.ID
	}
	return r.Call
}

// add puts one more record to the call.
func (j *joined) add(f *file, r *record.Record) {
	j.seqs = append(j.seqs, r.Seq)
	if r.Who != "" {
		j.who, j.basis = r.Who, r.WhoBasis
	}
	if r.Decision != nil && r.Decision.Card != "" {
		j.card = r.Decision.Card
	} else if strings.HasPrefix(string(r.Kind), "approval.") && r.Detail["card"] != "" {
		j.card = r.Detail["card"]
	}
	switch r.Kind {
	case record.CallRequested:
		j.req, j.reqFile = r, f
	case record.ApprovalRequested, record.TamperUnrecorded:
		if j.req == nil {
			j.req, j.reqFile = r, f
		}
	case record.CallFinished, record.CallFailed, record.CallRejected:
		if j.req == nil {
			j.req, j.reqFile = r, f
		}
		j.end, j.endFile = r, f
	case record.ApprovalApproved, record.ApprovalDenied, record.ApprovalExpired, record.ApprovalCancelled,
		record.ApprovalLapsed, record.ApprovalRevoked, record.ApprovalRefused:
		j.gate = r.Kind
	case record.TamperDeniedRan:
		j.ran = true
	}
	if r.Event == "PermissionRequest" {
		j.prompt = true
	}
}

// decision is what the rules said; for a call that still waits at the gate, what its card tells of it.
func (j *joined) decision() record.Decision {
	switch {
	case j.req.Decision != nil:
		return *j.req.Decision
	case j.req.Kind == record.ApprovalRequested:
		return record.Decision{Verdict: "ask", Rule: j.req.Detail["rule"], Enforced: true}
	}
	return record.Decision{}
}

// answer is what the agent was told. While a held call waits it was told nothing yet.
func (j *joined) answer() string {
	if j.req.Kind == record.ApprovalRequested {
		return ""
	}
	return j.decision().Answer
}

// outcome says what became of the call; alive, whether an end can still come from its session.
func (j *joined) outcome(alive bool) string {
	switch {
	case j.end != nil && j.end.Outcome != "":
		return j.end.Outcome
	case j.end != nil && j.end.Kind == record.CallFailed:
		return record.Failed
	case j.end != nil && j.end.Kind == record.CallRejected:
		return record.Rejected
	case j.end != nil, j.ran, j.req.Kind == record.TamperUnrecorded:
		return record.Ran
	case j.answer() == "deny":
		return record.Blocked
	case j.answer() == "" && j.refused():
		return record.Blocked
	case alive && j.req.Source != "canary": // whose call never runs
		return record.Pending
	}
	return record.OutcomeUnknown
}

// refused says whether the gate said no.
func (j *joined) refused() bool {
	switch j.gate {
	case record.ApprovalDenied, record.ApprovalExpired, record.ApprovalCancelled, record.ApprovalLapsed,
		record.ApprovalRevoked, record.ApprovalRefused:
		return true
	}
	return false
}

// decider says who let the call run or stopped it, and on what evidence. What the daemon recorded rules; the rest is
// inferred from what happened.
func (j *joined) decider(outcome string) (who, basis string) {
	d := j.decision()
	ran := outcome == record.Ran || outcome == record.Failed
	switch {
	case j.who != "":
		return j.who, j.basis
	case outcome == record.Ran && (j.req.Kind == record.TamperUnrecorded || j.req == j.end || j.answer() == "deny"):
		return "bypass", "inferred" // nobody asked us, or nobody heard us
	case j.req == j.end && outcome == record.Failed:
		return "unknown", "inferred"
	case j.gate == record.ApprovalApproved, j.gate == record.ApprovalDenied:
		return "person", "claimed"
	case (j.answer() == "deny" || j.answer() == "allow") && d.Rule != "":
		return "rule:" + d.Rule, "proved"
	case j.answer() == "ask" && ran, j.prompt && (ran || outcome == record.Rejected):
		return "agent-prompt", "inferred"
	case ran || outcome == record.Rejected:
		return "agent-auto", "inferred"
	}
	return "unknown", "inferred"
}

// build makes the call as people see it. Bodies may be nil.
func (j *joined) build(alive bool, req, end map[string][]byte) record.Call {
	r, d := j.req, j.decision()
	outcome := j.outcome(alive)
	who, basis := j.decider(outcome)
	c := record.Call{
		ID: j.id, Seq: r.Seq, Time: r.Time, Session: r.Session, Subagent: r.Subagent, Agent: r.Agent, Event: r.Event,
		Tool: r.Tool, ToolUseID: r.ToolUseID, Cwd: r.Cwd, Project: r.Project,
		Verdict: d.Verdict, Answer: j.answer(), Enforced: d.Enforced, Floor: d.Floor, Rule: d.Rule,
		Who: who, WhoBasis: basis, Card: j.card, Failure: d.Failure, Outcome: outcome,
		Input: object(req["input"]), Source: r.Source, Late: r.Late, Records: j.seqs,
	}
	var analysis struct {
		Reason  string          `json:"reason"`
		Effects json.RawMessage `json:"effects"`
	}
	if json.Unmarshal(req["analysis"], &analysis) == nil {
		c.Reason, c.Effects = analysis.Reason, analysis.Effects
	} else if r.Kind == record.ApprovalRequested {
		c.Reason, _, _ = strings.Cut(string(req["analysis"]), "\n") // the reason, then effects in words
	}
	if j.end != nil {
		c.DurationMS, c.Error = j.end.DurationMS, string(end["error"])
	}
	return c
}

// object returns b if it is a JSON object on its own, else null.
func object(b []byte) json.RawMessage {
	if t := strings.TrimLeft(string(b[:min(len(b), 16)]), " \t\r\n"); strings.HasPrefix(t, "{") && json.Valid(b) {
		return b
	}
	return json.RawMessage("null")
}
