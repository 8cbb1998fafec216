// SPDX-License-Identifier: Apache-2.0

package redact

import "bytes"

// assigned finds the value of a name that says that it is secret, around the separator at i: NAME=value, name: value,
// "name": "value", name := value, 'name' => 'value', <name>value<. A colon may also be that of a URL.
func (p *pass) assigned(i int) (found, bool) {
	c := p.src[i]
	if c == ':' && p.has(i, "://") {
		return p.urlPassword(i)
	}
	from, to, loose := p.nameBefore(i)
	if to-from < 2 || to-from > maxName {
		return found{}, false
	}
	name := p.src[from:to]
	if authorization(name) && c != '>' {
		return p.header(i + 1)
	}
	kind := secretName(name)
	if kind == "" && c == '=' && p.signature(from, name) {
		kind = "signature"
	}
	if kind == "" {
		return found{}, false
	}
	v := i + 1
	switch c {
	case '=':
		if p.has(v, "=") || p.has(v, "~") { // a comparison
			return found{}, false
		}
		if p.has(v, ">") {
			v, loose = v+1, true
		}
	case ':':
		if p.has(v, ":") || p.has(i-1, ":") { // a path of types
			return found{}, false
		}
		if string(name) == "PASS" || from > 0 && p.src[from-1] == '/' { // of a test; of a file
			return found{}, false
		}
		if p.has(v, "=") {
			v++
		}
		loose = true
	case '>':
		return p.element(i, name, kind)
	}
	if kind == "cookie" {
		return p.cookies(v)
	}
	if bytes.EqualFold(name, []byte("pass")) && p.count(v) {
		return found{}, false
	}
	if loose && (kind != "password" || len(name) == 4) && p.prose(v) {
		return found{}, false
	}
	if !p.shell {
		if f, ok := p.line(from, v, kind, loose); ok {
			return f, true
		}
	}
	return p.value(v, kind, loose)
}

// signature reports whether name, which begins at from, is the parameter of a URL that lets whoever has it act.
func (p *pass) signature(from int, name []byte) bool {
	if from < 1 || p.src[from-1] != '?' && p.src[from-1] != '&' {
		return false
	}
	return bytes.EqualFold(name, []byte("sig")) || len(name) >= 9 && bytes.EqualFold(name[len(name)-9:], []byte("signature"))
}

// line finds a value that is the rest of its line, as a file of settings has it: the name begins the line and no space
// follows. There the characters that would end a word in a shell belong to the value.
func (p *pass) line(from, v int, kind string, loose bool) (found, bool) {
	for from > 0 && (isSpace(p.src[from-1]) || p.src[from-1] == '-') {
		from--
	}
	if at := from - len("export"); at >= 0 && p.has(at, "export") {
		from = at
	}
	if from > 0 && !isBreak(p.src[from-1]) {
		return found{}, false
	}
	v = p.skipSpace(v)
	if v < len(p.src) && (isQuote(p.src[v]) || p.src[v] == '\\') {
		return found{}, false
	}
	end := v
	for end < len(p.src) && !isBreak(p.src[end]) {
		if isSpace(p.src[end]) || end-v > 512 || runs(p.src[end:]) || loose && p.src[end] == '(' {
			return found{}, false
		}
		end++
	}
	if !bytes.ContainsAny(p.src[v:end], ";|&<>()'\"") || isReference(p.src[v:end], 0) {
		return found{}, false // an ordinary word
	}
	return found{v, end, kind}, true
}

// prose reports whether at v a sentence goes on, as after "unexpected token: expected a comma": a word of letters and then
// another word, which is no name of a value itself.
func (p *pass) prose(v int) bool {
	v = p.skipSpace(v)
	end := v
	for end < len(p.src) && end-v < 16 && isAlpha(p.src[end]) {
		end++
	}
	next := p.skipSpace(end)
	if end == v || next == end {
		return false
	}
	end = next
	for end < len(p.src) && end-next < 24 && isAlpha(p.src[end]) {
		end++
	}
	return end > next && (end == len(p.src) || bytes.IndexByte([]byte(" ,.)\n"), p.src[end]) >= 0)
}

// nameBefore returns where the name stands that ends before the separator at i. loose tells that there was space between the two, as
// code has it and a shell does not.
func (p *pass) nameBefore(i int) (from, to int, loose bool) {
	j := i
	for j > p.done && isSpace(p.src[j-1]) && i-j < 8 {
		j--
	}
	loose = j < i
	if j > p.done && (p.src[j-1] == '+' || p.src[j-1] == '?') && p.src[i] != '>' { // += and ?=
		j--
		for j > p.done && isSpace(p.src[j-1]) && i-j < 10 {
			j--
		}
	}
	if j > p.done && p.src[j-1] == ']' {
		j--
	}
	if j > p.done && isQuote(p.src[j-1]) {
		j--
		for j > p.done && p.src[j-1] == '\\' && i-j < 24 {
			j--
		}
	}
	end := j
	for j > p.done && end-j <= maxName && (isWord(p.src[j-1]) || p.src[j-1] == '.') {
		j--
	}
	if p.src[max(j, 1)-1] == '\\' && end-j > 1 && j > p.done { // the n of \n is no part of the name
		j++
	}
	return j, end, loose
}
