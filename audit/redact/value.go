// SPDX-License-Identifier: Apache-2.0

package redact

import "bytes"

// value finds the value that begins at or after v. loose values stand in code or YAML, where a bare word may be an
// expression; the others in a shell or a connection string, where it is a literal.
func (p *pass) value(v int, kind string, loose bool) (found, bool) {
	v = p.skipSpace(v)
	if loose && v+1 < len(p.src) && (p.src[v] == '|' || p.src[v] == '>') { // a block of YAML: its first line
		k := v + 1
		if p.src[k] == '-' || p.src[k] == '+' {
			k++
		}
		if p.has(k, "\n") {
			return p.bare(p.skipSpace(k+1), kind, false)
		}
	}
	q := v
	if p.has(q, "$'") || q+1 < len(p.src) && bytes.IndexByte([]byte("bBrRfFuU"), p.src[q]) >= 0 && isQuote(p.src[q+1]) {
		q++ // $'...' of a shell, b"..." of a program
	}
	slashes := 0
	for q < len(p.src) && p.src[q] == '\\' && slashes < 16 {
		q, slashes = q+1, slashes+1
	}
	if q < len(p.src) && isQuote(p.src[q]) && (p.src[q] != '`' || loose) {
		return p.quoted(q, slashes, kind)
	}
	return p.bare(v, kind, loose)
}

// quoted finds the value in the quotes that open at q, after so many backslashes. It ends with the line at the latest, and
// before a substitution that a shell would run.
func (p *pass) quoted(q, slashes int, kind string) (found, bool) {
	quote := p.src[q]
	from := q + 1
	if slashes == 0 && p.has(from, string([]byte{quote, quote})) {
		from += 2
	}
	end := from
scan:
	for end < len(p.src) {
		c := p.src[end]
		switch {
		case c == quote:
			break scan
		case isBreak(c):
			break scan
		case c == '\\' && slashes > 0 && p.closes(end, quote, slashes):
			break scan
		case c == '\\' && quote == '"' && end+1 < len(p.src) && !isBreak(p.src[end+1]):
			end++
		case quote == '"' && runs(p.src[end:]):
			break scan
		}
		end++
	}
	end = min(end, len(p.src))
	if end == from || isReference(p.src[from:end], quote) {
		return found{}, false
	}
	return found{from, end, kind}, true
}

// closes reports whether at i stand no more backslashes than opened, and then the quote.
func (p *pass) closes(i int, quote byte, slashes int) bool {
	k := i
	for k < len(p.src) && p.src[k] == '\\' && k-i <= slashes {
		k++
	}
	return k-i <= slashes && k < len(p.src) && p.src[k] == quote
}

// bare finds a value without quotes.
func (p *pass) bare(v int, kind string, loose bool) (found, bool) {
	end := v
	if p.has(v, "${") {
		end = p.expansion(v)
	}
	for end < len(p.src) && !p.endsBare(end) {
		if p.src[end] == '\\' && end+1 < len(p.src) && isSpace(p.src[end+1]) { // a space of the word
			end++
		}
		end++
	}
	if end == v {
		return found{}, false
	}
	word := p.src[v:end]
	if isReference(word, 0) || len(word) < 2 && !isAlnum(word[0]) || allDigits(word) && len(word) < 4 && kind != "password" {
		return found{}, false
	}
	if loose && p.expression(word, end) {
		return found{}, false
	}
	return found{v, end, kind}, true
}

// count reports whether the word at v is a number of a few digits, as in pass=12 of a test's summary.
func (p *pass) count(v int) bool {
	v = p.skipSpace(v)
	end := v
	for end < len(p.src) && end-v < 6 && isDigit(p.src[end]) {
		end++
	}
	return end > v && (end == len(p.src) || p.endsBare(end))
}

// expansion returns the end of the ${...} at i, or i if it does not end soon or holds a command.
func (p *pass) expansion(i int) int {
	for k := i + 2; k < len(p.src) && k-i < 128 && !isBreak(p.src[k]) && !runs(p.src[k:]); k++ {
		if p.src[k] == '}' {
			return k + 1
		}
	}
	return i
}

// endsBare reports whether the character at i ends a bare value: what ends a word in a shell, a query or a connection
// string, a list's comma, and a substitution that a shell would run.
func (p *pass) endsBare(i int) bool {
	switch c := p.src[i]; c {
	case ' ', '\t', '\n', '\r', '"', '\'', '`', ';', '|', '&', '<', '>', '(', ')':
		return true
	case ',', '}', ']':
		return i+1 == len(p.src) || isSpace(p.src[i+1]) || isBreak(p.src[i+1]) || bytes.IndexByte([]byte("\"',;)}]"), p.src[i+1]) >= 0
	case '\\':
		return i+1 < len(p.src) && isQuote(p.src[i+1])
	default:
		return runs(p.src[i:])
	}
}

// runs reports whether s begins with a command substitution.
func runs(s []byte) bool {
	return s[0] == '`' || len(s) > 1 && s[0] == '$' && s[1] == '('
}

// expression reports whether a bare word in code is no literal: a type, a call, a field, a collection.
func (p *pass) expression(word []byte, end int) bool {
	switch word[0] {
	case '[', '{', '*', '&', '|', '(':
		return true
	}
	if end < len(p.src) && (p.src[end] == '(' || p.src[end] == '<') {
		return true
	}
	word = bytes.TrimRight(word, ",;")
	for _, w := range []string{
		"string", "String", "str", "bool", "boolean", "int", "number", "bytes", "any", "object", "null", "nil", "None", "none", "true",
		"false", "True", "False", "undefined", "required", "optional", "unknown", "new", "await", "self", "this", "your", "the", "a", "func", "error", "range", "make", "struct", "map", "not", "lambda",
	} {
		if string(word) == w {
			return true
		}
	}
	dot := false
	for i, c := range word {
		switch {
		case c == '.' && i > 0:
			dot = true
		case c == '[' && i > 0:
			return true // an index
		case c != '_' && !isAlpha(c):
			return false
		}
	}
	return dot
}

// isReference reports whether a value only names where the secret is, or is a stand-in. quote is the quote around it, 0 if
// none; in single quotes a dollar sign means itself.
func isReference(v []byte, quote byte) bool {
	switch {
	case len(v) == 0:
		return true
	case isMark(v):
		return true
	case v[0] == '$' && len(v) > 1:
		rest := v[1:]
		if rest[0] == '{' {
			return bytes.IndexByte(rest, '}') == len(rest)-1 && !bytes.ContainsAny(rest, "-=+") || bytes.HasPrefix(rest, []byte("{{"))
		}
		if quote == '\'' {
			return false
		}
		if rest[0] == '(' {
			return true
		}
		for _, c := range rest {
			if c != '_' && !isAlnum(c) {
				return false
			}
		}
		return true
	case v[0] == '%' && v[len(v)-1] == '%' && len(v) > 2:
		return nameOnly(v[1 : len(v)-1])
	case v[0] == '%' && len(v) <= 4 && isAlpha(v[len(v)-1]) && !bytes.ContainsAny(v[1:], "%$/"): // %v
		return true
	case string(v) == "[redacted]" || string(v) == "[REDACTED]":
		return true
	case v[0] == '<' && v[len(v)-1] == '>':
		return nameOnly(v[1 : len(v)-1])
	case bytes.HasPrefix(v, []byte("{{")):
		return bytes.HasSuffix(v, []byte("}}"))
	}
	for _, c := range v {
		if c != '*' && c != '.' && c != 'x' && c != 'X' {
			return false
		}
	}
	return true // *** or xxx
}

func nameOnly(v []byte) bool {
	for _, c := range v {
		if !isWord(c) && c != ' ' && c != '.' {
			return false
		}
	}
	return true
}

// isMark reports whether v is exactly one of our own marks.
func isMark(v []byte) bool {
	kind, ok := bytes.CutPrefix(v, []byte(markStart))
	if !ok || len(kind) < 2 || kind[len(kind)-1] != ']' || len(kind) > 40 {
		return false
	}
	for _, c := range kind[:len(kind)-1] {
		if c != '-' && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

func (p *pass) skipSpace(i int) int {
	for k := 0; k < 64 && i < len(p.src) && isSpace(p.src[i]); k++ {
		i++
	}
	return i
}
