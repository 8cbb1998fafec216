// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/preview"
)

// answer says how often Tripline would have been in the way: by the day, since that is how a person feels it.
func (a *app) answer(o *previewOptions, s *preview.Summary) string {
	asked, denied := s.Asked, s.Denied
	if s.Mode == "observe" {
		asked, denied = 0, s.Floor
	}
	text := often(asked, s.Days, "prompt") + " and " + often(denied, s.Days, "block")
	when := ""
	switch {
	case s.Days == 1:
		when = "on the one day with agent calls "
	case s.Days > 1:
		when = fmt.Sprintf("on %s days with agent calls ", thousands(s.Days))
	}
	return strings.ToUpper(text[:1]) + text[1:] + ", " + when + a.period(o, s) + "."
}

// often says how often something came in so many days.
func often(n, days int, word string) string {
	switch {
	case n == 0:
		return "no " + word + "s"
	case days <= 1:
		return numbered(n, word)
	case n < days:
		return numbered(n, word) + " in all"
	}
	return "about " + numbered((n+days/2)/days, word) + " a day"
}

// period names the time range: in days if that is what was asked for.
func (a *app) period(o *previewOptions, s *preview.Summary) string {
	if n, ok := strings.CutSuffix(o.since, "d"); ok && o.until == "" {
		if days, err := strconv.Atoi(n); err == nil && days > 1 {
			return "in the last " + numbered(days, "day")
		}
	}
	if s.To == nil {
		return "since " + border(*s.From)
	}
	end := border(*s.To)
	if midnight(*s.To) {
		end = border(s.To.AddDate(0, 0, -1)) // the last day of the range
	}
	return "from " + border(*s.From) + " to " + end
}

func midnight(t time.Time) bool { return t.Hour() == 0 && t.Minute() == 0 && t.Second() == 0 }

// border is a time in the first line, which has to be short.
func border(t time.Time) string {
	if midnight(t) {
		return t.Format("2 Jan 2006")
	}
	return t.Format("2 Jan 2006 15:04")
}

// totals are the numbers behind the answer.
func totals(s *preview.Summary) []string {
	lines := []string{fmt.Sprintf("%s in %s of %s: %s as before, %s (ask), %s (deny).",
		numbered(s.Calls, "call"), numbered(s.Sessions, "session"), numbered(s.Projects, "project"), thousands(s.AsBefore), numbered(s.Asked, "prompt"), numbered(s.Denied, "block"))}
	if s.Asked+s.Denied == 0 {
		return lines
	}
	text := fmt.Sprintf("%.2f %% of all calls stopped", s.Stopped)
	switch {
	case s.Refused == 1:
		text += ", one of them refused then, too"
	case s.Refused > 1:
		text += fmt.Sprintf(", %s of them refused then, too", thousands(s.Refused))
	}
	if s.Days > 1 && s.Busiest != nil {
		if d, err := time.Parse(time.DateOnly, s.Busiest.Date); err == nil {
			text += fmt.Sprintf("; most on %s: %s", d.Format("Mon 2 Jan 2006"), thousands(s.Busiest.Asked+s.Busiest.Denied))
		}
	}
	lines = append(lines, text+".")
	if s.Mode == "observe" {
		lines = append(lines, "Mode observe records such verdicts and lets the calls run, but for those of the floor.")
	}
	return lines
}

// notes say what the numbers do not.
func notes(o *previewOptions, s *preview.Summary) []string {
	var all []string
	if s.Today > 0 {
		all = append(all, "* decided by the files as they are now.")
	}
	const gone = "Files that were there then and are gone now could not be seen. "
	switch {
	case s.PassedToday == 1:
		all = append(all, gone+"One call that passes here deletes or replaces something: it may have been stopped then.")
	case s.PassedToday > 1:
		all = append(all, gone+thousands(s.PassedToday)+" calls that pass here delete or replace something: some may have been stopped then.")
	}
	if s.TooLarge > 0 {
		all = append(all, numbered(s.TooLarge, "call")+" too large to be judged here.")
	}
	switch {
	case s.LeftOut > 0 && o.limit > 0:
		all = append(all, fmt.Sprintf("The oldest %s count in the totals alone; --limit 0 lists them, too.", numbered(s.LeftOut, "call")))
	case s.LeftOut > 0:
		all = append(all, fmt.Sprintf("The oldest %s count in the totals alone: there are too many to be held.", numbered(s.LeftOut, "call")))
	}
	return all
}

// more is a number of further calls.
func more(n int) string {
	if n == 1 {
		return "1 more call"
	}
	return thousands(n) + " more calls"
}

// refuser says who refused a call at that time, as the client tells it.
func refuser(c *preview.Call) string {
	switch {
	case c.Refused == "cancelled" || c.Refused == "interrupted" || c.RefusedBy == "user_abort":
		return "cancelled"
	case c.RefusedBy == "hook":
		return "hook refused"
	case c.RefusedBy == "config" || c.Refused == "permission-rule" || strings.HasPrefix(c.Refused, "automode-"):
		return "agent refused" // its own lists and settings
	case c.Refused == "user-rejected":
		return "you refused"
	}
	return "refused"
}

// refusals marks the calls that did not run then either.
func refusals(g *group) string {
	if g.refused == 0 || g.refused == g.n {
		return g.by
	}
	return fmt.Sprintf("%s %s", g.by, thousands(g.refused))
}

// during is the time of a call, or of the first and the last of several.
func during(first, last, now time.Time) string {
	from, to := dayAndTime(first, now), dayAndTime(last, now)
	switch {
	case first.Equal(last) || from == to:
		return from
	case first.Format(time.DateOnly) == last.Format(time.DateOnly):
		return from + " to " + last.Format("15:04")
	case first.Year() != now.Year() || last.Year() != now.Year():
		return first.Format("2 Jan 2006") + " to " + last.Format("2 Jan 2006")
	}
	return from + " to " + to
}

// dayAndTime leaves the year out if it is this one.
func dayAndTime(t, now time.Time) string {
	switch {
	case t.IsZero():
		return "-"
	case t.Year() == now.Year():
		return t.Format("2 Jan 15:04")
	}
	return t.Format("2 Jan 2006 15:04")
}

// maxProjectName is how many columns the name of a project takes.
const maxProjectName = 20

// projectNames are short names that tell projects apart: the last part of the path or, where that is not enough, its end.
func projectNames(rep *preview.Report) map[string]string {
	names := map[string]string{"": "-"}
	bases := map[string]int{}
	add := func(p string) {
		if _, ok := names[p]; !ok {
			names[p] = ""
			bases[filepath.Base(p)]++
		}
	}
	for i := range rep.Calls {
		add(rep.Calls[i].Project)
	}
	for i := range rep.Rules {
		for _, p := range rep.Rules[i].Projects {
			add(p)
		}
	}
	for p := range names {
		if p == "" {
			continue
		}
		name := filepath.Base(p)
		if bases[name] > 1 {
			name = filepath.Join(filepath.Base(filepath.Dir(p)), name)
		}
		name = show.Line(name, 0)
		if cut := runewidth.StringWidth(name) - maxProjectName; cut > 0 {
			name = runewidth.TruncateLeft(name, cut+1, "…")
		}
		names[p] = name
	}
	return names
}
