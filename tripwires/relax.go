// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/tripwires/paths"
	"github.com/tripline-sh/tripline/tripwires/view"
)

// relaxedHeader begins a file that AddTune makes.
const relaxedHeader = `# What was relaxed with "auditctl rules relax", oldest first. Edit it as you like: entries that go away take effect at once,
# and what loosens waits for "auditctl rules reload".
version: 1
tune:
`

// ErrLayout says that a file is written in a way into which nothing can be inserted safely. It is to be edited by hand.
var ErrLayout = errors.New("the file is written in a way into which nothing can be inserted safely; add the entry by hand")

// ProjectRoots returns the root of the project that a directory belongs to, as calls in it are judged: as written and, where
// that differs, with links resolved. Nothing is returned for a directory that can be no project.
func ProjectRoots(dir string, r view.Reader) []string {
	return paths.New(paths.Options{Cwd: dir, FirstCwd: dir, Reader: r}).Roots()
}

// AddTune inserts a tune entry for a built-in rule at the end of the tune list of a user's rules file. data is the file, nil
// for none. Nothing else changes: every other byte stays as it is. If the file has an entry that says the same and counts, the
// file comes back as it was. Errors: *RuleError if the file cannot be read as rules, else one that wraps ErrLayout or says
// which argument is wrong.
func AddTune(file string, data []byte, id string, to event.Decision, projects []string) ([]byte, error) {
	entry, want, err := newTune(id, to, projects)
	if err != nil {
		return nil, err
	}
	if len(data) == 0 {
		data = []byte(relaxedHeader)
		return checkAdded(file, nil, nil, append(slices.Clip(data), entry.lines("  ", "\n")...), want)
	}
	rules, tunes, perr := parseRules(LayerUser, file, data)
	if perr != nil {
		return nil, ruleError(file, perr)
	}
	for i, t := range tunes {
		if t.hash == want && !slices.ContainsFunc(tunes[i+1:], func(o *tune) bool { return o.rule == id }) {
			return bytes.Clone(data), nil
		}
	}
	root, perr := parseYAML(data)
	if perr != nil {
		return nil, ruleError(file, perr)
	}
	eol := "\n"
	if bytes.Contains(data, []byte("\r\n")) {
		eol = "\r\n"
	}
	at, text, ok := place(data, root, entry, eol)
	if !ok {
		return nil, ErrLayout
	}
	return checkAdded(file, rules, tunes, slices.Concat(data[:at], []byte(text), data[at:]), want)
}

// newEntry is a tune entry as it is written.
type newEntry struct {
	rule     string
	to       event.Decision
	projects []string // quoted
}

func newTune(id string, to event.Decision, projects []string) (newEntry, string, error) {
	e := newEntry{rule: id, to: to}
	if !builtinID.MatchString(id) || len(id) > maxIDLen {
		return e, "", fmt.Errorf("%q is not the id of a built-in rule", shorten(id, 80))
	}
	if to != event.Pass && to != event.Ask && to != event.Deny {
		return e, "", fmt.Errorf("a rule is tuned to pass, ask or deny, not to %q", string(to))
	}
	for _, p := range projects {
		if !path.IsAbs(p) || path.Clean(p) != p || !utf8.ValidString(p) || strings.ContainsFunc(p, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }) {
			return e, "", fmt.Errorf("the project %q is not an absolute path of plain text", shorten(p, 200))
		}
		e.projects = append(e.projects, `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(p)+`"`)
	}
	b, _ := json.Marshal([]any{id, to, []string(nil), nilIfEmpty(projects), LayerUser}) // strings always marshal
	return e, contentHash(b), nil
}

func nilIfEmpty(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}

// lines renders the entry for a block list that is indented by indent.
func (e newEntry) lines(indent, eol string) string {
	var b strings.Builder
	b.WriteString(indent + "- rule: " + e.rule + eol)
	b.WriteString(indent + "  to: " + string(e.to) + eol)
	if len(e.projects) > 0 {
		b.WriteString(indent + "  when: {project: [" + strings.Join(e.projects, ", ") + "]}" + eol)
	}
	return b.String()
}

// place finds where the entry goes and how it is written there.
func place(data []byte, root *node, e newEntry, eol string) (at int, text string, ok bool) {
	if len(root.keys) == 0 || firstByte(lineOf(data, root.line)) == '{' {
		return 0, "", false
	}
	indent := strings.Repeat(" ", root.col-1)
	i := slices.IndexFunc(root.keys, func(k *node) bool { return k.text == "tune" })
	if i < 0 {
		at = endOfBlock(data, len(data))
		return at, lead(data, at, eol) + indent + "tune:" + eol + e.lines(indent+"  ", eol), true
	}
	first := root.list[i].list[0]
	line := lineOf(data, first.line)
	dash := bytes.IndexByte(line, '-')
	if dash < 0 || len(bytes.TrimLeft(line[:dash], " ")) > 0 || first.line <= root.keys[i].line {
		return 0, "", false // a list in one line, or one whose entries begin elsewhere
	}
	end := len(data)
	if i+1 < len(root.keys) {
		end = lineStart(data, root.keys[i+1].line)
	}
	at = endOfBlock(data, end)
	return at, lead(data, at, eol) + e.lines(string(line[:dash]), eol), true
}

// lead ends the line before at, if nothing does.
func lead(data []byte, at int, eol string) string {
	if at > 0 && data[at-1] != '\n' {
		return eol
	}
	return ""
}

// endOfBlock is the end of the last line before end that is neither blank nor a comment.
func endOfBlock(data []byte, end int) int {
	for end > 0 {
		start := bytes.LastIndexByte(data[:end-1], '\n') + 1
		if t := bytes.TrimSpace(data[start:end]); len(t) > 0 && t[0] != '#' {
			return end
		}
		end = start
	}
	return end
}

func lineStart(data []byte, line int) int {
	at := 0
	for range line - 1 {
		i := bytes.IndexByte(data[at:], '\n')
		if i < 0 {
			return len(data)
		}
		at += i + 1
	}
	return at
}

func lineOf(data []byte, line int) []byte {
	text := data[lineStart(data, line):]
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		text = text[:i]
	}
	return text
}

func firstByte(line []byte) byte {
	if t := bytes.TrimSpace(line); len(t) > 0 {
		return t[0]
	}
	return 0
}

// checkAdded reads the result back: it must say all that the file said before, and the new entry last.
func checkAdded(file string, rules []*rule, tunes []*tune, out []byte, want string) ([]byte, error) {
	nowRules, nowTunes, err := parseRules(LayerUser, file, out)
	if err != nil || len(nowRules) != len(rules) || len(nowTunes) != len(tunes)+1 || nowTunes[len(tunes)].hash != want {
		return nil, ErrLayout
	}
	for i, r := range rules {
		if nowRules[i].hash != r.hash {
			return nil, ErrLayout
		}
	}
	for i, t := range tunes {
		if nowTunes[i].hash != t.hash {
			return nil, ErrLayout
		}
	}
	return out, nil
}

// ruleError gives an error of the parser its file.
func ruleError(file string, err error) *RuleError {
	var pe *posError
	if errors.As(err, &pe) {
		return &RuleError{File: file, Line: pe.line, Col: pe.col, Msg: pe.msg}
	}
	return &RuleError{File: file, Line: 1, Col: 1, Msg: "the file cannot be read as rules"}
}
