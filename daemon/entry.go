// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"encoding/json"
	"maps"
	"strconv"
	"unicode/utf8"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/audit/redact"
	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/tripwires"
)

// Limits of what goes into a record, in bytes.
const (
	maxBody     = 64 << 10
	maxName     = 256 // ids, tool names and other short strings of the agent
	maxPathText = 1024
	maxMatches  = 64
)

// name redacts and cuts a short string of the agent's.
func (d *Daemon) name(s string) string { return clip(d.red.String(clip(s, 4*maxName)), maxName) }

// path redacts and cuts a path.
func (d *Daemon) path(s string) string {
	return clip(d.red.String(clip(s, 4*maxPathText)), maxPathText)
}

// clip cuts s to at most max bytes, at a border of characters.
func clip(s string, max int) string {
	if len(s) <= max {
		return s
	}
	s = s[:max]
	for len(s) > 0 && !utf8.RuneStart(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	if n := len(s); n > 0 && s[n-1] >= utf8.RuneSelf {
		s = s[:n-1]
	}
	return s
}

func itoa(n uint64) string { return strconv.FormatUint(n, 10) }

// baseRecord fills in what every record of an event says.
func (d *Daemon) baseRecord(x *exchange) record.Record {
	r := record.Record{
		Agent:    d.name(x.req.h.Agent),
		Event:    d.name(x.req.h.Event),
		Session:  x.sess.session,
		Project:  d.path(x.project),
		Source:   x.source,
		Late:     x.late,
		Peer:     x.peer,
		Who:      d.name(x.who),
		WhoBasis: x.basis,
		Detail:   maps.Clone(x.detail),
	}
	if ev := x.ev; ev != nil {
		r.Subagent, r.SubagentType = d.name(ev.Subagent), d.name(ev.SubagentType)
		r.Prompt = d.name(ev.Prompt)
		r.Tool, r.ToolUseID = d.name(ev.Tool), d.name(ev.ToolUseID)
		r.MCPServer, r.MCPSource = d.name(ev.MCPServer), d.name(ev.MCPSource)
		r.Cwd = d.path(ev.Cwd)
		r.AgentMode = d.name(ev.PermissionMode)
		r.DurationMS = ev.DurationMS
	}
	return r
}

// gateEntry is the record of a judged gate event.
func (d *Daemon) gateEntry(x *exchange) *audit.Entry {
	if x.kind == event.KindConfigChange {
		return d.settingsEntry(x)
	}
	if x.mac != "" {
		x.note(detailInputMAC, x.mac)
	}
	r := d.baseRecord(x)
	r.Kind, r.ID, r.Call = record.CallRequested, x.callID, x.callID
	r.Decision = d.decision(x)
	if x.verdict.Decision == event.Deny {
		r.Outcome = record.Blocked
	}
	e := &audit.Entry{Record: r, State: x.unheld()}
	d.addJSON(e, "input", x.ev.Input)
	d.addAnalysis(e, x)
	return e
}

// unheld takes a call that went to the gate off the list of those without a verdict.
func (x *exchange) unheld() []audit.StateOp {
	if x.card == "" {
		return nil
	}
	return []audit.StateOp{{Key: heldPrefix + x.callID}}
}

// decision is the verdict part of a record.
func (d *Daemon) decision(x *exchange) *record.Decision {
	dec := &record.Decision{
		Verdict:  string(x.dec.Verdict),
		Answer:   string(x.verdict.Decision),
		Rule:     d.name(x.dec.Rule),
		Floor:    x.dec.Floor,
		Enforced: x.dec.Enforced,
		Mode:     x.dec.Mode,
		Profile:  x.dec.Profile,
		Gate:     x.gate,
		Card:     x.card,
		RuleSet:  x.dec.RuleSet,
	}
	if x.fail != nil || x.dec.Verdict == "" {
		dec.Verdict, dec.Rule, dec.Enforced = string(x.verdict.Decision), x.verdict.Rule, true
	}
	if x.fail != nil {
		dec.Failure = x.fail.metric
	}
	seen := make(map[tripwires.EffectKind]bool)
	for _, e := range x.dec.Effects {
		if !seen[e.Kind] {
			seen[e.Kind] = true
			dec.Effects = append(dec.Effects, string(e.Kind))
		}
	}
	for _, m := range x.dec.Matches[:min(len(x.dec.Matches), maxMatches)] {
		dec.Matches = append(dec.Matches, d.name(m.Rule))
	}
	return dec
}

// analysis is the body of that name: everything of the decision that may hold text of the call.
type analysis struct {
	Reason  string             `json:"reason"`
	Instead string             `json:"instead,omitempty"`
	Told    string             `json:"told,omitempty"` // what the agent was told, if that is more than the reason
	Effects []tripwires.Effect `json:"effects"`
	Matches []tripwires.Match  `json:"matches"`
}

func (d *Daemon) addAnalysis(e *audit.Entry, x *exchange) {
	a := analysis{Reason: x.dec.Reason, Instead: x.dec.Instead, Effects: x.dec.Effects, Matches: x.dec.Matches}
	if x.dec.Verdict == "" || x.card != "" || x.fail != nil {
		a.Told = x.verdict.Reason
	}
	if a.Reason == "" {
		a.Reason = x.verdict.Reason
	}
	if a.Effects == nil {
		a.Effects = []tripwires.Effect{}
	}
	if a.Matches == nil {
		a.Matches = []tripwires.Match{}
	}
	b, err := json.Marshal(a)
	if err != nil { // strings and bools only: cannot happen
		return
	}
	d.addJSON(e, "analysis", b)
}

// addJSON adds a redacted JSON body, if there is one.
func (d *Daemon) addJSON(e *audit.Entry, name string, raw json.RawMessage) {
	if len(raw) > 0 {
		addBody(e, name, d.red.JSON(raw, maxBody))
	}
}

// addText adds a redacted text body, if there is one.
func (d *Daemon) addText(e *audit.Entry, name, text string) {
	if text != "" {
		addBody(e, name, d.red.Text([]byte(text), maxBody))
	}
}

func addBody(e *audit.Entry, name string, r redact.Result) {
	e.Bodies = append(e.Bodies, audit.RawBody{Name: name, Data: r.Data, Full: r.Full, Redacted: r.Redacted, Cut: r.Cut})
}

// failureEntries are the records of an event that could not be judged: what people query, and, where the event was not
// what its agent is known to send, the mark of that.
func (d *Daemon) failureEntries(x *exchange) (first, second *audit.Entry) {
	undecodable := x.fail.metric == failUndecodable.metric || x.fail.metric == failTooLarge.metric
	x.note("failure", x.fail.rule)
	if x.req.oversize {
		x.note("payload_len", strconv.FormatInt(x.req.streamLen, 10))
		x.note("payload_sha256", x.req.streamHash)
	}
	if x.peer == nil {
		x.peer, _ = peerRecord(x.req)
	}
	if x.verdict.Decision == event.Deny {
		x.who, x.basis = "rule:"+x.fail.rule, "proved"
	}
	r := d.baseRecord(x)
	if !x.recorded { // else the id is taken
		r.ID = x.callID
	}
	switch {
	case x.recorded && x.gates && x.kind != event.KindConfigChange:
		r.Kind, r.Call, r.Outcome = record.CallRejected, x.callID, record.Blocked
	case x.gates && x.kind != event.KindConfigChange:
		r.Kind, r.Call = record.CallRequested, x.callID
		r.Decision = d.decision(x)
		if x.verdict.Decision == event.Deny { // a spooled one may have passed
			r.Outcome = record.Blocked
		}
		if x.mac != "" {
			x.note(detailInputMAC, x.mac)
			r.Detail = x.detail
		}
	case x.gates && !undecodable:
		r.Kind, r.Decision = record.TamperSettings, d.decision(x)
	case undecodable && !x.req.oversize:
		r.Kind = record.TamperUndecodable
		if x.gates {
			r.Decision = d.decision(x)
		}
	default:
		r.Kind = record.SessionEvent
	}
	first = &audit.Entry{Record: r, State: x.unheld()}
	if x.ev != nil {
		d.addJSON(first, "input", x.ev.Input)
	} else if !x.req.oversize && len(x.req.payload) > 0 {
		d.addText(first, "payload", string(x.req.payload[:min(len(x.req.payload), 4*maxBody)]))
	}
	d.addAnalysis(first, x)
	if undecodable {
		d.m.Undecodable(x.req.h.Agent)
	}
	if r.Kind == record.CallRequested && x.fail.metric == failUndecodable.metric {
		t := r
		t.Kind, t.ID, t.Decision, t.Outcome = record.TamperUndecodable, "", nil, ""
		second = &audit.Entry{Record: t}
	}
	return first, second
}

// appendLater appends a record on which no reply depends. What cannot be recorded is declared by a gap.
func (d *Daemon) appendLater(ctx context.Context, e *audit.Entry) (audit.Receipt, bool) {
	ctx, cancel := context.WithTimeout(ctx, d.limits.write)
	defer cancel()
	r, err := d.log.Append(ctx, e)
	if err != nil {
		d.gaps.add("log", 1)
		d.m.Dropped("log", 1)
		return r, false
	}
	return r, true
}

// raise adds an alarm to an entry. Its text names the kind, the place and the time, and never content. Room is made by
// taking alarms off whose time is over.
func (d *Daemon) raise(e *audit.Entry, key string, stays bool) {
	now := d.now()
	for _, k := range d.alarms.over(now) {
		d.alarms.clear(k)
		e.State = append(e.State, audit.StateOp{Key: alarmPrefix + k})
	}
	text := string(e.Record.Kind)
	if p := e.Record.Detail["path"]; p != "" {
		text += " " + p
	}
	text += " (" + now.UTC().Format("2006-01-02T15:04:05Z") + ")"
	if v := d.alarms.set(key, alarm{Text: text, At: now, Stays: stays}); v != nil {
		e.State = append(e.State, audit.StateOp{Key: alarmPrefix + key, Value: v})
	}
}
