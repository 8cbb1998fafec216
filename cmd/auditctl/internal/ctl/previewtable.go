// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/preview"
)

// previewTable prints the report for people: the answer first, then rule by rule what it would have stopped.
func (a *app) previewTable(o *previewOptions, rep *preview.Report) error {
	s := &rep.Summary
	var b strings.Builder
	fmt.Fprintln(&b, a.headline(o, s))
	if s.Mode == "observe" {
		fmt.Fprintln(&b, "in mode observe only the floor is enforced; the rest would have been recorded")
	}
	names := projectNames(rep.Calls)
	for i := range rep.Rules {
		if err := a.previewRule(&b, o, &rep.Rules[i], rep.Calls, names); err != nil {
			return err
		}
	}
	b.WriteString("\n")
	notes(&b, s)
	fmt.Fprintf(&b, "Next: %s   (shows its change first; %s takes it out again)\n", a.paste("install", "claude"), a.paste("uninstall", "claude"))
	if _, err := io.WriteString(a.Out, b.String()); err != nil {
		return err
	}
	a.previewUnread(rep)
	return nil
}

// headline is the answer in one line.
func (a *app) headline(o *previewOptions, s *preview.Summary) string {
	return fmt.Sprintf("%s: %s in %s of %s: %s would have run as before, %s asked, %s denied (%.2f %%)",
		a.period(o, s), numbered(s.Calls, "call"), numbered(s.Sessions, "session"), numbered(s.Projects, "project"), thousands(s.AsBefore), thousands(s.Asked),
		thousands(s.Denied), s.Stopped)
}

// period names the time range: in days if that is what was asked for.
func (a *app) period(o *previewOptions, s *preview.Summary) string {
	if n, ok := strings.CutSuffix(o.since, "d"); ok && o.until == "" {
		if days, err := strconv.Atoi(n); err == nil {
			return numbered(days, "day")
		}
	}
	end := "now"
	if s.To != nil {
		end = stamp(*s.To)
	}
	return stamp(*s.From) + " to " + end
}

// previewRule prints one rule with its newest calls.
func (a *app) previewRule(b *strings.Builder, o *previewOptions, r *preview.Rule, calls []preview.Call, names map[string]string) error {
	var what []string
	if r.Denied > 0 {
		what = append(what, a.tint(red, thousands(r.Denied)+" denied"))
	}
	if r.Asked > 0 {
		what = append(what, a.tint(yellow, thousands(r.Asked)+" asked"))
	}
	fmt.Fprintf(b, "\n%s  %s", show.Line(dash(r.Rule), 200), strings.Join(what, ", "))
	if r.Why != "" {
		fmt.Fprintf(b, "  %s", show.Line(r.Why, 300))
	}
	b.WriteString("\n")
	own := slices.DeleteFunc(slices.Clone(calls), func(c preview.Call) bool { return c.Rule != r.Rule })
	shown := newestOfEach(own, o.limit)
	rows := make([][]string, 0, len(shown))
	for i := range shown {
		c := &shown[i]
		rows = append(rows, []string{c.Time.Format("2006-01-02 15:04"), string(c.Verdict), names[c.Project], show.Line(marks(c), 100), show.Line(summary(c.Tool, c.Input), 4096)})
	}
	a.columns(b, rows)
	if n := r.Asked + r.Denied - len(shown); n > 0 {
		fmt.Fprintf(b, "  and %s earlier; --limit 0 shows all\n", thousands(n))
	}
	switch {
	case r.Floor:
		b.WriteString("  this is the floor: no rule, mode or approval lifts it\n")
	case r.Relax != "":
		fmt.Fprintf(b, "  too strict for you? %s", r.Relax)
		if r.AllProjects > 1 {
			fmt.Fprintf(b, "   (in one of %d projects; --everywhere: in all)", r.AllProjects)
		}
		b.WriteString("\n")
	case r.Layer == "user" || r.Layer == "system" || r.Layer == "project":
		fmt.Fprintf(b, "  this is a rule of the %s's own files\n", r.Layer)
	}
	return nil
}

// marks are what a reader should know of a call before its text.
func marks(c *preview.Call) string {
	var m []string
	if c.Refused != "" {
		m = append(m, "did not run ("+c.Refused+")")
	}
	if c.Today {
		m = append(m, "as of today")
	}
	return strings.Join(m, ", ")
}

// columns prints rows, indented and aligned; the last column is cut at the terminal's width.
func (a *app) columns(b *strings.Builder, rows [][]string) {
	var widths [5]int
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], runewidth.StringWidth(c))
		}
	}
	for _, row := range rows {
		b.WriteString(" ")
		used := 1
		for i, c := range row {
			if i == len(row)-1 {
				if a.Width > 0 {
					c = runewidth.Truncate(c, max(a.Width-used-1, 10), "…")
				}
				b.WriteString(" " + c + "\n")
				break
			}
			if widths[i] == 0 {
				continue
			}
			pad := strings.Repeat(" ", widths[i]-runewidth.StringWidth(c)+1)
			used += widths[i] + 2
			if i == 1 {
				c = a.tint(map[string]string{"deny": red, "ask": yellow}[c], c)
			}
			b.WriteString(" " + c + pad)
		}
	}
}

func (a *app) tint(color, s string) string {
	if color == "" || !a.color() {
		return s
	}
	return color + s + reset
}

// projectNames are the shortest names that tell projects apart: the last part of the path, or all of it.
func projectNames(calls []preview.Call) map[string]string {
	paths := map[string]string{}
	bases := map[string]int{}
	for _, c := range calls {
		if _, ok := paths[c.Project]; !ok {
			paths[c.Project] = ""
			bases[filepath.Base(c.Project)]++
		}
	}
	for p := range paths {
		name := filepath.Base(p)
		if bases[name] > 1 {
			name = p
		}
		paths[p] = show.Line(dash(name), 60)
	}
	paths[""] = "-"
	return paths
}

// notes say what the numbers do not.
func notes(b *strings.Builder, s *preview.Summary) {
	if s.Asked+s.Denied == 0 {
		b.WriteString("Nothing would have been stopped.\n")
	}
	if s.Refused > 0 {
		fmt.Fprintf(b, "%s of these did not run at that time either: you, a hook or the client refused them.\n", thousands(s.Refused))
	}
	if s.Today > 0 || s.PassedToday > 0 {
		b.WriteString("As of today: files and git's index were looked at as they are now, not as they were then.")
		if s.Today > 0 {
			fmt.Fprintf(b, " That decided on %s of these calls.", thousands(s.Today))
		}
		if s.PassedToday > 0 {
			fmt.Fprintf(b, " Of the others, %s delete or replace something that may have been there.", thousands(s.PassedToday))
		}
		b.WriteString("\n")
	}
	if s.TooLarge > 0 {
		fmt.Fprintf(b, "%s too large to be judged here.\n", numbered(s.TooLarge, "call"))
	}
	if s.LeftOut > 0 {
		fmt.Fprintf(b, "%s counted above, too old to be listed.\n", numbered(s.LeftOut, "call"))
	}
}

// previewUnread says on stderr what was read, what could not be, and how long it took.
func (a *app) previewUnread(rep *preview.Report) {
	s, u := &rep.Summary, &rep.Summary.Unread
	fmt.Fprintf(a.Err, "read %s (%s) in %.1f s; nothing left this machine\n", numbered(s.Files, "transcript"), preview.Size(s.Bytes), float64(s.DurationMS)/1000)
	var parts []string
	for _, p := range []struct {
		n    int64
		what string
	}{{u.Broken, "broken line"}, {u.Oversized, "oversized line"}, {u.Unfinished, "unfinished line"}, {u.Files, "unreadable file"}, {u.Links, "link"}, {u.Beyond, "entry beyond the bounds"}} {
		if p.n > 0 {
			parts = append(parts, numbered(int(p.n), p.what))
		}
	}
	if len(parts) > 0 {
		fmt.Fprintf(a.Err, "not read: %s\n", strings.Join(parts, ", "))
	}
}

// numbered is a number with its word.
func numbered(n int, word string) string {
	if n != 1 {
		if w, ok := strings.CutPrefix(word, "entry"); ok {
			word = "entries" + w
		} else {
			word += "s"
		}
	}
	return thousands(n) + " " + word
}

// thousands groups digits.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
