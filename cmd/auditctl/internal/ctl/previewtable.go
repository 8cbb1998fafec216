// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/preview"
)

// previewTable prints the report for people: the answer first, then rule by rule what it would have stopped.
func (a *app) previewTable(o *previewOptions, rep *preview.Report) error {
	s := &rep.Summary
	var b strings.Builder
	a.prose(&b, "", a.answer(o, s))
	for _, line := range totals(s) {
		a.prose(&b, "", line)
	}
	names := projectNames(rep)
	for i := range rep.Rules {
		a.previewRule(&b, o, &rep.Rules[i], rep.Calls, names)
	}
	b.WriteString("\n")
	for _, n := range notes(o, s) {
		a.prose(&b, "", n)
	}
	if _, err := io.WriteString(a.Out, b.String()); err != nil {
		return err
	}
	a.previewUnread(rep)
	b.Reset()
	a.command(&b, "Next: ", a.paste("install", "claude"), "(shows the change first, and asks)")
	_, err := io.WriteString(a.Out, b.String())
	return err
}

// prose writes a text in lines that fit, each behind indent.
func (a *app) prose(b *strings.Builder, indent, text string) {
	for _, line := range wrap(show.Line(text, 4000), a.screenWidth()-len(indent)) {
		b.WriteString(indent + line + "\n")
	}
}

// command writes what can be pasted whole, and a remark beside it or, if the line would be too long, below.
func (a *app) command(b *strings.Builder, label, paste, remark string) {
	line := label + paste
	b.WriteString(line)
	switch {
	case remark == "":
	case runewidth.StringWidth(line)+3+runewidth.StringWidth(remark) <= a.screenWidth():
		b.WriteString("   " + remark)
	default:
		b.WriteString("\n" + strings.Repeat(" ", len(label)) + remark)
	}
	b.WriteString("\n")
}

// group is the calls of one rule that look the same, in one project.
type group struct {
	sameCall
	n, today, refused int
	first, last       time.Time
	by                string // who refused them; the last one, if there are several
}

type sameCall struct{ verdict, project, text string }

// groups puts the same calls of a rule together: those that came most often first, of equals the newest.
func groups(calls []preview.Call, rule string) []*group {
	known := map[sameCall]*group{}
	var all []*group
	for i := range calls {
		c := &calls[i]
		if c.Rule != rule {
			continue
		}
		key := sameCall{string(c.Verdict), c.Project, callText(c)}
		g := known[key]
		if g == nil {
			g = &group{sameCall: key, first: c.Time}
			known[key], all = g, append(all, g)
		}
		g.n++
		g.last = c.Time // calls are sorted
		if c.Today {
			g.today++
		}
		if c.Refused != "" {
			g.refused++
			g.by = refuser(c)
		}
	}
	slices.SortStableFunc(all, func(x, y *group) int { return cmp.Or(cmp.Compare(y.n, x.n), y.last.Compare(x.last)) })
	return all
}

// callText is what a call is known by: the command of a shell, else the tool and what it is used on.
func callText(c *preview.Call) string {
	text := summary(c.Tool, c.Input)
	if c.Tool != "Bash" {
		if len(c.Project) > 1 {
			text = strings.TrimPrefix(text, c.Project+"/")
		}
		text = c.Tool + " " + text
	}
	return show.Line(text, 4096)
}

// previewRule prints one rule with its calls.
func (a *app) previewRule(b *strings.Builder, o *previewOptions, r *preview.Rule, calls []preview.Call, names map[string]string) {
	a.ruleHead(b, r)
	all := groups(calls, r.Rule)
	shown := all
	if o.limit > 0 {
		shown = all[:min(len(all), o.limit)]
	}
	hidden := r.Asked + r.Denied
	rows := make([][]string, 0, len(shown))
	for _, g := range shown {
		hidden -= g.n
		count, verdict := "", g.verdict
		if g.n > 1 {
			count = thousands(g.n) + "x"
		}
		if g.today > 0 {
			verdict += "*"
		}
		rows = append(rows, []string{count, verdict, names[g.project], during(g.first, g.last, a.Now()), refusals(g), g.text})
	}
	a.columns(b, rows)
	switch {
	case hidden > 0 && o.limit > 0:
		fmt.Fprintf(b, "  and %s; --limit 0 shows all\n", more(hidden))
	case hidden > 0:
		fmt.Fprintf(b, "  and %s, too old to be held\n", more(hidden))
	}
	switch {
	case r.Floor:
		b.WriteString("  this is the floor: no rule, mode or approval lifts it\n")
	case r.Relax != "":
		label, remark := "  too strict for you? ", ""
		if r.AllProjects > 1 {
			remark = fmt.Sprintf("(--everywhere: in all %s projects)", thousands(r.AllProjects))
		}
		switch p := bothered(r); {
		case p == "":
			remark = "(in the project you type it in)"
		case r.AllProjects > 1:
			label = "  too strict in " + names[p] + "? "
		}
		a.command(b, label, r.Relax, remark)
	case r.Layer == "user" || r.Layer == "system" || r.Layer == "project":
		a.command(b, fmt.Sprintf("  this is a rule of the %s's own files: ", r.Layer), a.paste("rules", "show", r.Rule), "")
	case r.Rule == "mode.unmapped":
		b.WriteString("  this is the setting unmapped of the config\n")
	case r.Layer == "mode":
		a.command(b, "  the milder mode: ", a.paste("preview", "--mode", "guard"), "")
	}
}

// ruleHead writes a rule's name, how often it would have stopped something, and why.
func (a *app) ruleHead(b *strings.Builder, r *preview.Rule) {
	name := show.Line(dash(r.Rule), 200)
	var plain, tinted []string
	add := func(n int, word, color string) {
		if n > 0 {
			plain = append(plain, thousands(n)+" "+word)
			tinted = append(tinted, a.tint(color, thousands(n)+" "+word))
		}
	}
	add(r.Denied, "denied", red)
	add(r.Asked, "asked", yellow)
	fmt.Fprintf(b, "\n%s  %s", name, strings.Join(tinted, ", "))
	why := show.Line(r.Why, 300)
	used := runewidth.StringWidth(name) + 2 + len(strings.Join(plain, ", "))
	switch {
	case why == "":
		b.WriteString("\n")
	case used+2+runewidth.StringWidth(why) <= a.screenWidth():
		b.WriteString("  " + why + "\n")
	default:
		b.WriteString("\n")
		a.prose(b, "  ", why)
	}
}

const (
	verdictColumn = 1  // is coloured
	narrow        = 20 // columns are too few for a command
)

// columns prints rows, indented and aligned, without the columns that are empty. The last one is cut at the screen's width.
func (a *app) columns(b *strings.Builder, rows [][]string) {
	var widths [6]int
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
					if a.screenWidth()-used-1 < narrow { // on a line of its own
						b.WriteString("\n     ")
						used = 5
					}
					c = runewidth.Truncate(c, a.screenWidth()-used-1, "…")
				}
				b.WriteString(" " + c + "\n")
				break
			}
			if widths[i] == 0 {
				continue
			}
			pad := strings.Repeat(" ", widths[i]-runewidth.StringWidth(c)+1)
			used += widths[i] + 2
			switch i {
			case 0:
				c, pad = pad[1:]+c, " "
			case verdictColumn:
				c = a.tint(map[string]string{"deny": red, "ask": yellow}[strings.TrimSuffix(c, "*")], c)
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
