// SPDX-License-Identifier: Apache-2.0

package ci

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/daemon/control"
)

// Source is where the past is read from.
type Source interface {
	Calls(ctx context.Context, f record.Filter, fn func(record.Call) error) error
	Sessions(ctx context.Context, from, to time.Time, fn func(record.Session) error) error
	Events(ctx context.Context, from, to time.Time, kind string, fn func(control.RecordView) error) error
}

// How much of a long job is kept for the summary; all of it is counted, and all of it is in the JSON lines.
const (
	maxStopped  = 2000
	maxSessions = 300
	maxEvents   = 500
	maxTools    = 200
	maxWords    = 300 // bytes of one text of the log
)

// Format is how values of the log are written down. The command that has these for its other outputs gives them.
type Format struct {
	JSONL   func(io.Writer, any) error                      // one value on one line
	Summary func(tool string, input json.RawMessage) string // the telling part of a call's input
	Words   func(*record.Record, map[string]string) string  // what an event says
	Zone    *time.Location
}

// Report is what the log of a job tells.
type Report struct {
	Job      *Job
	Calls    int
	Denied   int // the floor included, enforced or not
	Asked    int
	Floor    int
	Failed   int               // calls that were answered without a judgement
	Tools    map[string]*Tally // by tool; beyond maxTools all others are in ""
	Stopped  []Stop            // denied and asked calls, oldest first
	Sessions []record.Session
	NSession int
	Alarms   []Event
	NAlarm   int
	Gaps     []Event
	NGap     int
	Starts   int // of the daemon
	Prompts  int
	// Partly says that part of the log could not be read, "" if all could.
	Partly string

	Guard    Guard
	Settings string    // the file that was wired, as the log tells it; else as the job does
	Key      string    // under which the log was checked
	Died     bool      // the daemon ended without a word, or gave no answer
	Away     bool      // the daemon was stopped, and nothing proves that a finish did it
	Altered  bool      // the hooks were not as they had been put there
	Forged   []string  // what the job's file tells otherwise than the log or the arguments, in words of ours
	Before   time.Time // when an earlier finish ended the guard; zero = none did, as far as the log can prove it
	Claimed  bool      // the job's file tells of an earlier finish that the log does not prove
	Alone    bool      // no key was given: nothing outside the directory vouches for it
	Agents   []string  // each agent that was seen, with its version

	Check   record.Verification
	CheckBy string   // what could not be checked and why, "" if all was
	Spooled int      // events that hooks left and no daemon took
	Notes   []string // what went wrong at the end of the job, in our words
}

// Tally counts the calls of one tool by verdict.
type Tally struct{ Pass, Allow, Ask, Deny, Floor int }

// Stop is a denied or asked call.
type Stop struct {
	Time                                time.Time
	Verdict, Outcome, Rule, Agent, Tool string
	What                                string
	Floor, Enforced                     bool
}

// Event is a record beside calls.
type Event struct {
	Time  time.Time
	Kind  string
	Words string
}

// Collect reads the whole log into a report and, where they are not nil, into two files of JSON lines.
func Collect(ctx context.Context, src Source, job *Job, calls, events io.Writer, f Format) (*Report, error) {
	r := &Report{Job: job, Settings: job.Settings, Key: job.Key, Tools: map[string]*Tally{}}
	err := src.Calls(ctx, record.Filter{}, func(c record.Call) error {
		c.Time = c.Time.In(f.Zone)
		if c.Input == nil {
			c.Input = json.RawMessage("null")
		}
		r.addCall(&c, f)
		if calls == nil {
			return nil
		}
		return f.JSONL(calls, c)
	})
	if err != nil {
		return r, fmt.Errorf("calls: %w", err)
	}
	err = src.Sessions(ctx, time.Time{}, time.Time{}, func(s record.Session) error {
		if r.NSession++; len(r.Sessions) < maxSessions {
			s.First, s.Last = s.First.In(f.Zone), s.Last.In(f.Zone)
			r.Sessions = append(r.Sessions, s)
		}
		return nil
	})
	if err != nil {
		return r, fmt.Errorf("sessions: %w", err)
	}
	err = src.Events(ctx, time.Time{}, time.Time{}, "", func(v control.RecordView) error {
		v.Record.Time = v.Record.Time.In(f.Zone)
		r.Guard.add(&v.Record)
		r.addEvent(&v, f)
		if events == nil {
			return nil
		}
		return f.JSONL(events, v)
	})
	if err != nil {
		return r, fmt.Errorf("events: %w", err)
	}
	return r, nil
}

func (r *Report) addCall(c *record.Call, f Format) {
	if c.Source == "canary" {
		return // ours, not the agent's
	}
	r.Calls++
	tally := r.tally(c.Tool)
	switch {
	case c.Floor:
		r.Floor++
		r.Denied++
		tally.Floor++
	case c.Verdict == "deny":
		r.Denied++
		tally.Deny++
	case c.Verdict == "ask":
		r.Asked++
		tally.Ask++
	case c.Verdict == "allow":
		tally.Allow++
	default:
		tally.Pass++
	}
	if c.Failure != "" {
		r.Failed++
	}
	if (c.Verdict == "deny" || c.Verdict == "ask" || c.Floor) && len(r.Stopped) < maxStopped {
		r.Stopped = append(r.Stopped, Stop{
			Time: c.Time, Verdict: c.Verdict, Outcome: c.Outcome, Rule: clip(c.Rule), Agent: clip(c.Agent), Tool: clip(c.Tool),
			What: clip(f.Summary(c.Tool, c.Input)), Floor: c.Floor, Enforced: c.Enforced,
		})
	}
}

// tally finds the counts of a tool. Names come from the agent: there may be any number of them.
func (r *Report) tally(tool string) *Tally {
	name := clip(tool)
	if t := r.Tools[name]; t != nil {
		return t
	}
	if len(r.Tools) >= maxTools {
		name = ""
	}
	if r.Tools[name] == nil {
		r.Tools[name] = &Tally{}
	}
	return r.Tools[name]
}

func (r *Report) addEvent(v *control.RecordView, f Format) {
	k := v.Record.Kind
	add := func(list *[]Event, n *int) {
		if *n++; len(*list) < maxEvents {
			*list = append(*list, Event{v.Record.Time, string(k), clip(f.Words(&v.Record, v.Bodies))})
		}
	}
	switch {
	case k == record.DaemonStart:
		r.Starts++
	case k == record.Prompt:
		r.Prompts++
	case k == record.Gap:
		add(&r.Gaps, &r.NGap)
	case k == record.DaemonAlarm, strings.HasPrefix(string(k), "tamper."):
		add(&r.Alarms, &r.NAlarm)
	}
}

// clip bounds what is kept of one text; it is cut once more, with a mark, where it is shown.
func clip(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxWords+4)], "") }

// Silent reports whether nothing at all came from an agent.
func (r *Report) Silent() bool { return r.Calls == 0 && r.NSession == 0 && r.Prompts == 0 }

// tools lists the names of tools, the most used first.
func (r *Report) tools() []string {
	names := make([]string, 0, len(r.Tools))
	for n := range r.Tools {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b string) int {
		if d := r.Tools[b].total() - r.Tools[a].total(); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return names
}

func (t *Tally) total() int { return t.Pass + t.Allow + t.Ask + t.Deny + t.Floor }

// Severity is what fails a job, from the least to the gravest.
type Severity string

// The severities. Each includes the graver ones that follow it.
const (
	Never  Severity = "never"
	Asked  Severity = "asked"
	Denied Severity = "denied"
	Floor  Severity = "floor"
	Alarm  Severity = "alarm"
)

// ParseSeverity reads a value of --fail-on.
func ParseSeverity(s string) (Severity, error) {
	switch v := Severity(s); v {
	case Never, Asked, Denied, Floor, Alarm:
		return v, nil
	}
	return "", fmt.Errorf("%q is not one of never, asked, denied, floor, alarm", s)
}

// Hit says what of the chosen severity, or of a graver one, happened; "" if nothing did. A daemon that was gone, hooks that
// were changed, and a file of the job that was, count as alarms. Modes that only observe count as if they had enforced.
func (r *Report) Hit(s Severity) string {
	order := []struct {
		s         Severity
		n         int
		one, many string
	}{
		{Asked, r.Asked, "call was asked about", "calls were asked about"},
		{Denied, r.Denied - r.Floor, "call was denied", "calls were denied"},
		{Floor, r.Floor, "call was denied by the floor", "calls were denied by the floor"},
		{Alarm, r.NAlarm, "alarm was raised", "alarms were raised"},
	}
	if s == Never {
		return ""
	}
	var hits []string
	counts := false
	for _, o := range order {
		counts = counts || o.s == s
		if counts && o.n > 0 {
			hits = append(hits, plural(o.n, o.one, o.many))
		}
	}
	if r.Died {
		hits = append(hits, "the daemon was gone")
	}
	if r.Away {
		hits = append(hits, "the daemon was stopped")
	}
	if r.Altered {
		hits = append(hits, "the hooks were changed")
	}
	if len(r.Forged) > 0 {
		hits = append(hits, "the file of the job was changed")
	}
	return strings.Join(hits, ", ")
}
