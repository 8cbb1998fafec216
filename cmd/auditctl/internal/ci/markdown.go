// SPDX-License-Identifier: Apache-2.0

package ci

import (
	"fmt"
	"strings"
	"time"
)

// MaxSummary bounds a summary; services cut or refuse ones of a megabyte.
const MaxSummary = 500 << 10

// page builds the summary. Each list has a room of its own, so that none can crowd out another.
type page struct{ strings.Builder }

func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// list writes rows until their room is used up, and says how many of all there are left out.
func (p *page) list(room, rows, all int, row func(int) string) {
	shown := 0
	for used := 0; shown < rows; shown++ {
		text := row(shown)
		if used += len(text) + 1; used > room {
			break
		}
		p.line("%s", text)
	}
	if shown < all {
		p.line("")
		p.line("%d more are not shown here; the JSON lines hold all of them.", all-shown)
	}
	p.line("")
}

// Markdown renders the report. Every text that is not ours stands in a code span.
func (r *Report) Markdown() string {
	p := &page{}
	p.line("## Tripline: what the agent did")
	p.line("")
	r.head(p)
	r.verification(p)
	r.toolTable(p)
	r.stopped(p)
	r.events(p, "Alarms", r.Alarms, r.NAlarm)
	r.events(p, "Gaps: what could not be recorded", r.Gaps, r.NGap)
	r.sessions(p)
	r.foot(p)
	return p.String()
}

func (r *Report) head(p *page) {
	calls := "**0 calls were seen.**"
	if r.Calls > 0 {
		calls = fmt.Sprintf("**%s seen.** %d denied (%d on the floor), %d asked about, in %s.",
			plural(r.Calls, "call was", "calls were"), r.Denied, r.Floor, r.Asked, plural(r.NSession, "session", "sessions"))
	}
	p.line("%s %s, %s.", calls, plural(r.NAlarm, "alarm", "alarms"), plural(r.NGap, "gap in the record", "gaps in the record"))
	p.line("")
	warn := func(format string, args ...any) { p.line("> **Warning:** "+format, args...); p.line("") }
	switch {
	case r.Silent():
		warn("not one event was seen, though %s was wired in %s. Either it did not run in this job, or it ran with its hooks switched off.",
			Code(r.Job.Agent, 50), Code(r.Settings, 500))
	case r.Calls == 0:
		warn("0 calls were seen: %s ran and used no tool, or its tools ran with hooks switched off.", Code(r.Job.Agent, 50))
	}
	r.guardWarnings(warn)
	if r.Altered {
		warn("the hooks in %s are not the ones that were put there when the job began: calls may have run without them.", Code(r.Settings, 500))
	}
	if r.Spooled > 0 {
		warn("%s left by hooks that found no daemon; they are in no list below.", plural(r.Spooled, "event was", "events were"))
	}
	if len(r.Forged) > 0 {
		warn("the file of the job, %s, does not tell what the log and the arguments tell: %s. Someone changed it; the log was believed.",
			Code(jobFile, 50), strings.Join(r.Forged, ", "))
	}
	if r.Starts > 1 {
		warn("the daemon was started %d times.", r.Starts)
	}
	if r.Failed > 0 {
		warn("%s answered without a judgement, because Tripline itself failed; the rule of each says why.", plural(r.Failed, "call was", "calls were"))
	}
	if r.Partly != "" {
		warn("part of the log could not be read: %s", Code(r.Partly, 500))
	}
	for _, n := range r.Notes {
		warn("%s", Code(n, 500))
	}
}

// guardWarnings tell of a guard that was not there all the time.
func (r *Report) guardWarnings(warn func(string, ...any)) {
	if !r.Before.IsZero() {
		warn("the job was finished before, at %s. Nothing that ran after that was guarded, and nothing of it is in the log.", clock(r.Before))
	}
	if r.Claimed {
		warn("the file of the job tells that it was finished before. The log does not prove it, so that it counts for nothing here.")
	}
	what := "calls that gate were denied"
	if r.onDown() == "allow" {
		what = "calls RAN UNCHECKED (on_down is allow)"
	}
	if r.Died {
		warn("the daemon was gone, or gave no answer, before the job was finished. From then on %s, and this summary ends where its log ends.", what)
	}
	if r.Away {
		warn("the daemon was stopped before the job was finished, and the log does not prove that a finish did it. While it was away %s.", what)
	}
}

// onDown is what hooks did without a daemon, at the worst.
func (r *Report) onDown() string {
	if r.Job.OnDown == "allow" || r.Guard.OnDown == "" {
		return r.Job.OnDown
	}
	return r.Guard.OnDown
}

func (r *Report) verification(p *page) {
	v := r.Check
	switch {
	case r.CheckBy != "":
		p.line("**The log could not be verified:** %s", Code(r.CheckBy, 500))
	case v.Outcome == "OK":
		p.line("The log verifies: **OK**, %s, root %s.", plural(int(v.Size), "record", "records"), Code(v.Root, 100))
	default:
		p.line("**THE LOG DOES NOT VERIFY: %s**, %s, first bad record %d. %s", Code(v.Outcome, 20), plural(int(v.Size), "record", "records"), v.FirstBad,
			Code(v.Detail, 500))
	}
	p.line("")
	p.line("Key: %s", Code(r.Key, 300))
	p.line("")
	if r.Alone {
		p.line("> **Warning:** nothing outside of the job vouches for this log: no key was given, so that it is the one which the directory itself names.")
		p.line("")
	}
	for i, w := range v.Warnings {
		if i == 10 {
			break
		}
		p.line("- warning: %s", Code(w, 500))
	}
	p.line("")
}

func (r *Report) toolTable(p *page) {
	if len(r.Tools) == 0 {
		return
	}
	p.line("| tool | calls | pass | allow | asked | denied | of these on the floor |")
	p.line("|---|--:|--:|--:|--:|--:|--:|")
	names := r.tools()
	p.list(60<<10, len(names), len(names), func(i int) string {
		t := r.Tools[names[i]]
		name := Cell(names[i], 100)
		if names[i] == "" {
			name = "(others)"
		}
		return fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %d |", name, t.total(), t.Pass, t.Allow, t.Ask, t.Deny+t.Floor, t.Floor)
	})
}

func (r *Report) stopped(p *page) {
	if len(r.Stopped) == 0 {
		return
	}
	p.line("### Denied and asked (%d)", r.Denied+r.Asked)
	p.line("")
	p.list(200<<10, len(r.Stopped), r.Denied+r.Asked, func(i int) string {
		s := &r.Stopped[i]
		word := "asked"
		switch {
		case s.Floor:
			word = "**floor**"
		case s.Verdict == "deny":
			word = "**denied**"
		}
		if !s.Enforced {
			word += " (only observed)"
		}
		return fmt.Sprintf("- %s %s by %s, then %s: %s %s", clock(s.Time), word, Code(s.Rule, 100), outcome(s.Outcome), Code(s.Tool, 100), Code(s.What, maxWords))
	})
}

func (r *Report) events(p *page, title string, list []Event, all int) {
	if len(list) == 0 {
		return
	}
	p.line("### %s (%d)", title, all)
	p.line("")
	p.list(60<<10, len(list), all, func(i int) string {
		e := &list[i]
		return fmt.Sprintf("- %s %s %s", clock(e.Time), Code(e.Kind, 60), Code(e.Words, maxWords))
	})
}

func (r *Report) sessions(p *page) {
	if len(r.Sessions) == 0 {
		return
	}
	p.line("### Sessions (%d)", r.NSession)
	p.line("")
	p.list(60<<10, len(r.Sessions), r.NSession, func(i int) string {
		s := &r.Sessions[i]
		state := "not ended"
		if s.Ended {
			state = "ended"
		}
		return fmt.Sprintf("- %s %s, %s to %s, %s: %s, %d denied, %d asked, %d failed, in %s", Code(s.Agent, 50), Code(s.ID, 80), clock(s.First), clock(s.Last),
			state, plural(s.Calls, "call", "calls"), s.Denied, s.Asked, s.Failed, Code(s.Project, 200))
	})
}

func (r *Report) foot(p *page) {
	g := &r.Guard
	mode, profile := g.Mode, g.Profile
	if g.Started.IsZero() {
		mode, profile = r.Job.Mode, r.Job.Profile
	}
	p.line("Mode %s, profile %s, without a daemon %s.", Code(mode, 20), Code(profile, 20), Code(r.onDown(), 20))
	if g.LastMode != g.Mode || g.LastProfile != g.Profile {
		p.line("That changed: in the end it was mode %s, profile %s.", Code(g.LastMode, 20), Code(g.LastProfile, 20))
	}
	for _, a := range r.Agents {
		p.line("Agent: %s.", Code(a, 100))
	}
	if g.Version != "" {
		p.line("Tripline %s.", Code(g.Version, 100))
	}
}

// outcome is a word of ours; anything else in its place is a text like others.
func outcome(s string) string {
	switch s {
	case "ran", "failed", "blocked", "rejected", "pending", "unknown":
		return s
	}
	return Code(s, 20)
}

func clock(t time.Time) string { return t.Format("15:04:05") }

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
