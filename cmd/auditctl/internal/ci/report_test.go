// SPDX-License-Identifier: Apache-2.0

package ci_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/ci"
	"github.com/tripline-sh/tripline/daemon/control"
)

// log is a source made for a test.
type log struct {
	calls    []record.Call
	sessions []record.Session
	events   []control.RecordView
	err      error
}

func (l *log) Calls(_ context.Context, _ record.Filter, fn func(record.Call) error) error {
	for _, c := range l.calls {
		if err := fn(c); err != nil {
			return err
		}
	}
	return l.err
}

func (l *log) Sessions(_ context.Context, _, _ time.Time, fn func(record.Session) error) error {
	for _, s := range l.sessions {
		if err := fn(s); err != nil {
			return err
		}
	}
	return nil
}

func (l *log) Events(_ context.Context, _, _ time.Time, _ string, fn func(control.RecordView) error) error {
	for _, e := range l.events {
		if err := fn(e); err != nil {
			return err
		}
	}
	return nil
}

func collect(t *testing.T, l *log) *ci.Report {
	t.Helper()
	f := ci.Format{
		JSONL:   func(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) },
		Summary: func(_ string, in json.RawMessage) string { return string(in) },
		Words:   func(_ *record.Record, bodies map[string]string) string { return bodies["payload"] },
		Zone:    time.UTC,
	}
	job := &ci.Job{Settings: "/home/dev/.claude/settings.json", Agent: "claude", Mode: "guard", Profile: "ci", OnDown: "deny", Key: "k"}
	var calls, events strings.Builder
	r, err := ci.Collect(t.Context(), l, job, &calls, &events, f)
	if !errors.Is(err, l.err) {
		t.Fatal(err)
	}
	if got := strings.Count(calls.String(), "\n"); l.err == nil && got != len(l.calls) {
		t.Errorf("%d lines of calls, want %d", got, len(l.calls))
	}
	if got := strings.Count(events.String(), "\n"); l.err == nil && got != len(l.events) {
		t.Errorf("%d lines of events, want %d", got, len(l.events))
	}
	r.Check = record.Verification{Outcome: "OK", Size: 3, Root: "r"}
	return r
}

func event(kind record.Kind, words string) control.RecordView {
	return control.RecordView{Record: record.Record{Kind: kind}, Bodies: map[string]string{"payload": words}}
}

// spans takes the code spans, which checkSpan proved inert, out of a line; what is left must be ours.
var spans = regexp.MustCompile("`````.*?`````|````.*?````|```.*?```|``.*?``|`[^`]*`")

// ours is what a summary may hold beside code spans.
var ours = regexp.MustCompile(`^[-A-Za-z0-9 .,:;()*#|>+'_]*$`)

func TestAHostileLogMakesAnInertSummary(t *testing.T) {
	t.Parallel()
	for _, h := range hostile {
		l := &log{
			calls: []record.Call{
				{Verdict: "deny", Tool: h, Rule: h, Agent: h, Outcome: h, Input: json.RawMessage(h), Session: h, Floor: true},
				{Verdict: h, Tool: h, Rule: h, Outcome: "ran", Input: json.RawMessage(`{}`)},
				{Verdict: "ask", Tool: "Bash", Rule: h, Outcome: "ran", Input: json.RawMessage(h), Failure: h},
			},
			sessions: []record.Session{{ID: h, Agent: h, Project: h, Prompt: h, Calls: 2}},
			events:   []control.RecordView{event("tamper.x", h), event(record.Kind("tamper."+h), h), event(record.Gap, h), event(record.DaemonAlarm, h), event(record.DaemonStart, h)},
		}
		for i := range l.calls { // JSON that is none cannot be in a log
			if !json.Valid(l.calls[i].Input) {
				l.calls[i].Input, _ = json.Marshal(h)
			}
		}
		r := collect(t, l)
		r.Notes, r.Partly, r.CheckBy = []string{h, h}, h, ""
		r.Check = record.Verification{Outcome: h, Detail: h, Root: h, Warnings: []string{h, h}}
		r.Agents, r.Settings, r.Key, r.Job.Mode, r.Job.OnDown = []string{h}, h, h, h, h
		g := &r.Guard
		g.Version, g.Mode, g.Profile, g.OnDown, g.LastMode, g.LastProfile = h, h, h, h, h+"x", h
		r.Died, r.Away, r.Altered, r.Claimed, r.Alone, r.Before, r.Spooled = true, true, true, true, true, time.Unix(1, 0), 2
		r.Forged = []string{"mode", "on_down"}
		for line := range strings.SplitSeq(r.Markdown(), "\n") {
			checkLine(t, h, line)
			if rest := spans.ReplaceAllString(line, ""); !ours.MatchString(rest) {
				t.Errorf("%q: %q stands in no code span, in %q", h, rest, line)
			}
		}
	}
}

func TestASummaryIsBoundedAndSaysWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	l := &log{}
	for i := range 3_000 {
		l.calls = append(l.calls, record.Call{Verdict: "deny", Tool: fmt.Sprintf("tool%d|`", i), Rule: strings.Repeat("r", 1000), Input: json.RawMessage(`"` + strings.Repeat("`|<", 200) + `"`)})
		l.sessions = append(l.sessions, record.Session{ID: fmt.Sprint(i), Project: strings.Repeat("\u202e", 1000)})
		l.events = append(l.events, event(record.TamperToken, strings.Repeat("\x1b", 500)), event(record.Gap, strings.Repeat("##[", 200)))
	}
	r := collect(t, l)
	text := r.Markdown()
	if len(text) > ci.MaxSummary {
		t.Errorf("%d bytes", len(text))
	}
	for _, want := range []string{"**3000 calls were seen.** 3000 denied", "in 3000 sessions", "3000 alarms, 3000 gaps", "(others)", "more are not shown here"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%.2000s", want, text)
		}
	}
	if n := strings.Count(text, "more are not shown here"); n != 4 {
		t.Errorf("%d lists say that they are cut", n)
	}
}

func TestSeverities(t *testing.T) {
	t.Parallel()
	call := func(verdict string, floor bool) *log {
		return &log{calls: []record.Call{{Verdict: verdict, Floor: floor, Input: json.RawMessage("{}")}}}
	}
	canary := &log{calls: []record.Call{{Verdict: "deny", Source: "canary"}}}
	for _, tt := range []struct {
		name string
		log  *log
		hits string // the severities that are hit
	}{
		{"nothing", &log{}, ""},
		{"a pass", call("pass", false), ""},
		{"an allow", call("allow", false), ""},
		{"a canary", canary, ""},
		{"an ask", call("ask", false), "asked"},
		{"a deny", call("deny", false), "asked denied"},
		{"the floor", call("deny", true), "asked denied floor"},
		{"an alarm", &log{events: []control.RecordView{event(record.TamperSettings, "")}}, "asked denied floor alarm"},
		{"a gap", &log{events: []control.RecordView{event(record.Gap, "")}}, ""},
	} {
		r := collect(t, tt.log)
		for _, name := range []string{"never", "asked", "denied", "floor", "alarm"} {
			s, err := ci.ParseSeverity(name)
			if err != nil {
				t.Fatal(err)
			}
			if hit := r.Hit(s); (hit != "") != strings.Contains(tt.hits, name) {
				t.Errorf("%s, --fail-on %s: %q", tt.name, name, hit)
			}
		}
		for n, f := range []func(*ci.Report){
			func(r *ci.Report) { r.Died = true }, func(r *ci.Report) { r.Away = true }, func(r *ci.Report) { r.Altered = true },
			func(r *ci.Report) { r.Forged = []string{"key"} },
		} {
			c := *r
			f(&c)
			if c.Hit(ci.Alarm) == "" || c.Hit(ci.Never) != "" {
				t.Errorf("%s: fault %d of the guard is no alarm", tt.name, n)
			}
		}
	}
	if _, err := ci.ParseSeverity("all"); err == nil {
		t.Error("all is no severity")
	}
}

func TestWhatWasNotSeenIsSaid(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		log  *log
		want string
	}{
		{"nothing at all", &log{}, "not one event was seen"},
		{"a session without calls", &log{sessions: []record.Session{{ID: "s"}}}, "0 calls were seen: "},
		{"a log that cannot be read", &log{err: errors.New("damaged")}, "**0 calls were seen.**"},
	} {
		if text := collect(t, tt.log).Markdown(); !strings.Contains(text, tt.want) {
			t.Errorf("%s: %q is missing in\n%s", tt.name, tt.want, text)
		}
	}
}
