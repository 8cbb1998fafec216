// SPDX-License-Identifier: Apache-2.0

package ci

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"unicode"

	"github.com/tripline-sh/tripline/audit/show"
)

// The summary is Markdown that a service renders with the rights of its page, and standard output is read line by line for
// commands to the runner. What the log holds was chosen by an agent, a model or a repository. So it stands in the summary
// only inside code spans, on one line each, where Markdown knows no markup, no HTML, no link and no mention; what could end
// the span early or mean something to a runner is spelled as an escape, in the way of package show.

// maxTicks is the longest run of backticks that a code span may hold as it is: renderers give up on very long fences.
const maxTicks = 4

// runnerCommand is how commands begin that runners find anywhere in a line: ##[group], ##vso[...], ##teamcity[...].
var runnerCommand = regexp.MustCompile(`##([A-Za-z.]*)\[`)

// Code returns s as a Markdown code span of at most about limit bytes; limit <= 0 means none.
func Code(s string, limit int) string {
	s = Inert(show.Line(s, limit))
	longest, run := 0, 0
	var b strings.Builder
	for _, r := range s {
		if r != '`' {
			run = 0
			b.WriteRune(r)
			continue
		}
		if run++; run > maxTicks {
			b.WriteString(`\x60`)
			continue
		}
		longest = max(longest, run)
		b.WriteByte('`')
	}
	s = b.String()
	if strings.Trim(s, " ") == "" {
		return "`-`"
	}
	fence := strings.Repeat("`", longest+1)
	if longest > 0 {
		s = " " + s + " " // one blank on each side is taken off by the renderer
	}
	return fence + s + fence
}

// Cell is Code for a cell of a table, in which a bar would begin the next one whatever stands around it.
func Cell(s string, limit int) string {
	return Code(strings.NewReplacer("|", `\x7c`, "`", `\x60`).Replace(show.Line(s, limit)), 0)
}

// Inert takes away what a runner would read as a command from one line of text. The rest stays as it is.
func Inert(line string) string {
	line = runnerCommand.ReplaceAllString(line, `##$1\x5b`)
	if rest := strings.TrimLeftFunc(line, func(r rune) bool { return unicode.IsSpace(r) || !show.Visible(r) }); strings.HasPrefix(rest, "::") {
		return line[:len(line)-len(rest)] + `\x3a` + rest[1:]
	}
	return line
}

// Writer makes every line that goes through it inert. Carriage returns count as ends of lines, as runners take them. Flush
// writes the last line if it has no end.
type Writer struct {
	W    io.Writer
	part []byte
}

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	w.part = append(w.part, p...)
	for {
		n := bytes.IndexAny(w.part, "\n\r")
		if n < 0 && len(w.part) < 1<<20 {
			return len(p), nil
		}
		if n < 0 {
			n = len(w.part) - 1
		}
		line := Inert(string(w.part[:n])) + string(w.part[n:n+1])
		w.part = append(w.part[:0], w.part[n+1:]...)
		if _, err := io.WriteString(w.W, line); err != nil {
			return len(p), err
		}
	}
}

// Flush writes what has no end of line yet.
func (w *Writer) Flush() error {
	line := Inert(string(w.part))
	w.part = nil
	_, err := io.WriteString(w.W, line)
	return err
}

// InertText is Inert for a text of several lines.
func InertText(s string) string {
	lines := strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' })
	for i, l := range lines {
		lines[i] = Inert(l)
	}
	return strings.Join(lines, "\n")
}
