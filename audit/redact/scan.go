// SPDX-License-Identifier: Apache-2.0

package redact

import "bytes"

// scanner finds secrets in plain text in one pass. A table of the first two bytes is the prefilter: only at those is
// anything tried, and every try looks at a bounded stretch, so that the pass is linear in the input, whatever it holds.
type scanner struct {
	triggers [256]bool
	pairs    [256][4]uint64   // by first byte: the second bytes after which something may begin
	tokens   [256][]tokenRule // by first byte
}

func newScanner() scanner {
	var s scanner
	trigger := func(first, second byte) {
		s.triggers[first] = true
		s.pairs[first][second>>6] |= 1 << (second & 63)
	}
	for _, r := range tokenRules() {
		s.tokens[r.prefix[0]] = append(s.tokens[r.prefix[0]], r)
		trigger(r.prefix[0], r.prefix[1])
	}
	for _, pair := range []string{"ey", "Be", "BE", "be", "bE", "Pa", "PA", "pa", "pA", "Id", "ID", "id", "iD"} {
		trigger(pair[0], pair[1])
	}
	for _, c := range []byte("=:>-") {
		s.triggers[c] = true
		s.pairs[c] = [4]uint64{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}
	}
	return s
}

// found is one secret: src[start:end], to be replaced.
type found struct {
	start, end int
	kind       string
}

// pass is one run of a scanner over src.
type pass struct {
	*scanner
	src   []byte
	shell bool // src is what a shell runs: nothing may be taken out with a value that a shell would not read as part of it
	done  int  // what lies before it is settled: copied or replaced
	// The last long run of token characters that was measured, so that text made of half tokens is not measured again
	// from each of them.
	runFrom, runTo int
}

// redact returns src without its secrets and how many there were. Without any it returns src itself.
func (s *scanner) redact(src []byte, shell bool) ([]byte, int) {
	p := pass{scanner: s, src: src, shell: shell}
	var out []byte
	n := 0
	for i := 0; i+1 < len(src); { // no secret begins with the last byte
		if !s.triggers[src[i]] || s.pairs[src[i]][src[i+1]>>6]>>(src[i+1]&63)&1 == 0 {
			i++
			continue
		}
		f, ok := p.at(i)
		if !ok || f.start < p.done || f.end <= i {
			i++
			continue
		}
		if out == nil {
			out = make([]byte, 0, len(src)+64)
		}
		for ok {
			out = append(out, src[p.done:f.start]...)
			out = appendMark(out, f.kind)
			p.done, i = f.end, f.end
			n++
			f, ok = p.follows(f)
		}
	}
	if n == 0 {
		return src, 0
	}
	return append(out, src[p.done:]...), n
}

const markStart = "[redacted:"

func appendMark(out []byte, kind string) []byte {
	out = append(out, markStart...)
	out = append(out, kind...)
	return append(out, ']')
}

// at tries everything that can begin, or hinge, at the trigger src[i].
func (p *pass) at(i int) (found, bool) {
	rules := p.tokens[p.src[i]]
	for k := range rules {
		if end, ok := p.token(i, &rules[k]); ok {
			return found{i, end, rules[k].kind}, true
		}
	}
	switch p.src[i] {
	case '=', ':', '>':
		return p.assigned(i)
	case '-':
		if f, ok := p.pem(i); ok {
			return f, true
		}
		return p.flag(i)
	case 'e':
		return p.jwt(i)
	case 'B', 'b':
		return p.bearer(i)
	case 'P', 'p', 'I', 'i':
		return p.spoken(i)
	}
	return found{}, false
}

// has reports whether src goes on with s at i.
func (p *pass) has(i int, s string) bool {
	return i >= 0 && len(p.src)-i >= len(s) && string(p.src[i:i+len(s)]) == s
}

// hasFold is has without regard to the case of ASCII letters; s is lower-case.
func (p *pass) hasFold(i int, s string) bool {
	if i < 0 || len(p.src)-i < len(s) {
		return false
	}
	for k := 0; k < len(s); k++ {
		if lower(p.src[i+k]) != s[k] {
			return false
		}
	}
	return true
}

// border reports whether a word may begin at i: after no letter or digit, or after what is only the end of an escape such
// as \n or %3D.
func (p *pass) border(i int) bool {
	if i == 0 || !isAlnum(p.src[i-1]) {
		return true
	}
	if i >= 2 && p.src[i-2] == '\\' && bytes.IndexByte([]byte("nrtbf"), p.src[i-1]) >= 0 {
		return true
	}
	return i >= 3 && p.src[i-3] == '%' && isHex(p.src[i-2]) && isHex(p.src[i-1])
}

// before returns what stands before i on the same line and in the same simple command, at most n bytes of it.
func (p *pass) before(i, n int) []byte {
	from := i
	for from > 0 && i-from < n {
		if c := p.src[from-1]; c == '\n' || c == ';' || c == '|' || c == '&' {
			break
		}
		from--
	}
	return p.src[from:i]
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
func isAlpha(c byte) bool { return c >= 'a' && c <= 'z' || isUpper(c) }
func isAlnum(c byte) bool { return isAlpha(c) || isDigit(c) }
func isHex(c byte) bool   { return isDigit(c) || lower(c) >= 'a' && lower(c) <= 'f' }
func isSpace(c byte) bool { return c == ' ' || c == '\t' }
func isBreak(c byte) bool { return c == '\n' || c == '\r' }
func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }

// isWord: letters, digits, underscore and hyphen, the characters of most tokens.
func isWord(c byte) bool { return isAlnum(c) || c == '_' || c == '-' }

// isBase64: both alphabets and the padding.
func isBase64(c byte) bool { return isWord(c) || c == '+' || c == '/' || c == '=' }
