// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"fmt"
	"strings"
)

// A line of a diff that is longer than this, in bytes, is hard to judge.
const maxShownLine = 200

// entryDepth is how deep entries lie: in a list of an event, in hooks, in the file.
const entryDepth = 3

// Readable is Diff for people. Where a file is set on so few lines that its diff could hardly be read, the lines of both sides are
// broken so that each entry has its own; note then says so, and what is changed in the file as it lies. note is "" where the diff is the
// exact one.
func (c *Change) Readable() (diff, note string) {
	diff = c.Diff()
	long := longest(diff)
	if long <= maxShownLine {
		return diff, ""
	}
	shown := unified(c.Path, broken(c.Old), broken(c.New))
	if longest(shown) > long/2 {
		return diff, "" // no better
	}
	first := 0
	for first < min(len(c.Old), len(c.New)) && c.Old[first] == c.New[first] {
		first++
	}
	last := 0
	for last < min(len(c.Old), len(c.New))-first && c.Old[len(c.Old)-1-last] == c.New[len(c.New)-1-last] {
		last++
	}
	return shown, fmt.Sprintf("shown with one entry a line; the file keeps its own layout: from line %d on, %d bytes go and %d come",
		1+bytes.Count(c.New[:min(first, len(c.New))], []byte("\n")), len(c.Old)-first-last, len(c.New)-first-last)
}

// longest is the length of the longest line that a diff changes.
func longest(diff string) int {
	n := 0
	for line := range strings.Lines(diff) {
		if line[0] == '+' || line[0] == '-' {
			n = max(n, len(line))
		}
	}
	return n
}

// broken is a text of JSON, which may have comments, with a line for each member and element down to the entries. Nothing but blanks is
// put in or taken out, and never inside of strings and comments. nil stays nil.
func broken(text []byte) []byte {
	if text == nil {
		return nil
	}
	out := make([]byte, 0, 2*len(text))
	depth := 0
	for i := 0; i < len(text); {
		end := i + token(text[i:])
		switch c := text[i]; c {
		case '}', ']':
			head := bytes.TrimRight(out, " \t")
			if depth <= entryDepth && len(head) > 0 && !bytes.HasSuffix(head, []byte("\n")) && !strings.ContainsRune("{[", rune(head[len(head)-1])) {
				out = indent(head, depth-1)
			}
			depth--
			out = append(out, c)
		case '{', '[', ',':
			out = append(out, c)
			if c != ',' {
				depth++
			}
			next := end
			for next < len(text) && (text[next] == ' ' || text[next] == '\t') {
				next++
			}
			if depth <= entryDepth && next < len(text) && !strings.ContainsRune("\r\n}]/", rune(text[next])) {
				out, end = indent(out, depth), next
			}
		default:
			out = append(out, text[i:end]...)
		}
		i = end
	}
	return out
}

func indent(out []byte, depth int) []byte {
	out = append(out, '\n')
	for range depth {
		out = append(out, "  "...)
	}
	return out
}

// token is the length of what text begins with: a string, a comment, else one byte.
func token(text []byte) int {
	switch {
	case text[0] == '"':
		for i := 1; i < len(text); i++ {
			switch text[i] {
			case '\\':
				i++
			case '"':
				return i + 1
			}
		}
	case bytes.HasPrefix(text, []byte("//")):
		if n := bytes.IndexByte(text, '\n'); n >= 0 {
			return n
		}
	case bytes.HasPrefix(text, []byte("/*")):
		if n := bytes.Index(text[2:], []byte("*/")); n >= 0 {
			return n + 4
		}
	default:
		return 1
	}
	return len(text)
}
