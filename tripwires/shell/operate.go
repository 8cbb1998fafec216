// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// operate applies ${x#p}, ${x%p}, ${x/p/r}, ${x:o:n}, ${x^} to a value. What cannot be computed becomes unknown.
func (in *interp) operate(c ctx, s *state, p *syntax.ParamExp, v val, elem bool) val {
	switch {
	case p.Slice != nil && !elem:
		return in.slice(c, s, p, v)
	case p.Repl != nil:
		orig := in.pattern(c, s, p.Repl.Orig)
		with := in.single(c, s, p.Repl.With)
		if !v.exact() || !orig.known() || !with.known() || len(v.s) > 256 {
			return spoiled(v)
		}
		r := v
		r.s = replacePattern(v.s, orig.s, with.s, p.Repl.All)
		return r.temp()
	case p.Exp != nil:
		return in.trim(c, s, p, v)
	}
	return v
}

// spoiled is v after an operation that could not be computed on it.
func spoiled(v val) val {
	if v = v.loose(); !v.known() && v.flat() {
		return val{s: unkFlat, f: v.f & (fHidden | fDownload | fUnset), name: v.name}
	}
	return v.lost()
}

// temp drops the temporary mark if the text no longer starts as such.
func (v val) temp() val {
	if v.f&fTemp != 0 && !strings.HasPrefix(v.s, TempPrefix) {
		v.f &^= fTemp
		return v.lost()
	}
	return v
}

func (in *interp) slice(c ctx, s *state, p *syntax.ParamExp, v val) val {
	off, ok := in.arith(c, s, p.Slice.Offset)
	n, okN := int64(len(v.s)), true
	if p.Slice.Length != nil {
		n, okN = in.arith(c, s, p.Slice.Length)
	}
	if !ok || !okN || !v.exact() {
		return spoiled(v)
	}
	r := []rune(v.s)
	size := int64(len(r))
	if off < 0 {
		off += size
	}
	if off < 0 || off > size {
		return val{}
	}
	end := off + n
	if n < 0 {
		end = size + n
	}
	end = min(end, size)
	if end < off {
		return spoiled(v)
	}
	v.s = string(r[off:end])
	return v.temp()
}

func (in *interp) trim(c ctx, s *state, p *syntax.ParamExp, v val) val {
	var pat val
	if p.Exp.Word != nil {
		pat = in.pattern(c, s, p.Exp.Word)
	}
	if !pat.known() {
		return spoiled(v)
	}
	// A suffix or prefix of a value that ends or starts with known text can be cut without knowing the rest.
	switch p.Exp.Op {
	case syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		if !v.exact() && isPlain(pat.s) && strings.HasSuffix(v.s, plain(pat.s)) {
			v.s = strings.TrimSuffix(v.s, plain(pat.s))
			return v.loose()
		}
	}
	if !v.exact() || len(v.s) > 512 {
		return spoiled(v)
	}
	switch p.Exp.Op {
	case syntax.RemSmallPrefix:
		for i := 0; i <= len(v.s); i++ {
			if matchPattern(pat.s, v.s[:i]) {
				v.s = v.s[i:]
				break
			}
		}
	case syntax.RemLargePrefix:
		for i := len(v.s); i >= 0; i-- {
			if matchPattern(pat.s, v.s[:i]) {
				v.s = v.s[i:]
				break
			}
		}
	case syntax.RemSmallSuffix:
		for i := len(v.s); i >= 0; i-- {
			if matchPattern(pat.s, v.s[i:]) {
				v.s = v.s[:i]
				break
			}
		}
	case syntax.RemLargeSuffix:
		for i := 0; i <= len(v.s); i++ {
			if matchPattern(pat.s, v.s[i:]) {
				v.s = v.s[:i]
				break
			}
		}
	case syntax.UpperAll, syntax.LowerAll, syntax.UpperFirst, syntax.LowerFirst:
		if pat.s != "" {
			return spoiled(v)
		}
		return changeCase(v, p.Exp.Op)
	default:
		return spoiled(v)
	}
	return v.temp()
}

func changeCase(v val, op syntax.ParExpOperator) val {
	first := op == syntax.UpperFirst || op == syntax.LowerFirst
	n := len(v.s)
	if first {
		_, n = utf8.DecodeRuneInString(v.s)
	}
	f := strings.ToUpper
	if op == syntax.LowerAll || op == syntax.LowerFirst {
		f = strings.ToLower
	}
	v.s = f(v.s[:n]) + v.s[n:]
	return v.temp()
}

// pattern expands a word that is used as a pattern: quoted characters are escaped.
func (in *interp) pattern(c ctx, s *state, w *syntax.Word) val {
	if w == nil {
		return val{}
	}
	b := builder{in: in, c: c, s: s, noSplit: true, ifs: " \t\n"}
	b.parts(w.Parts)
	v := b.v
	v.s = b.glob.String()
	return v
}

func isPlain(pat string) bool { return !strings.ContainsAny(strings.ReplaceAll(pat, `\`, ""), `*?[`) }

func plain(pat string) string { return strings.ReplaceAll(pat, `\`, "") }

// matchPattern tells whether a shell pattern matches the whole of s. It needs no more than len(pat)*len(s) steps.
func matchPattern(pat, s string) bool {
	p, i := 0, 0
	starP, starI := -1, 0
	for i < len(s) || p < len(pat) {
		if p < len(pat) {
			if pat[p] == '*' {
				starP, starI = p, i
				p++
				continue
			}
			if i < len(s) {
				if n, w, ok := matchOne(pat[p:], s[i:]); ok {
					p += n
					i += w
					continue
				}
			}
		}
		if starP < 0 || starI >= len(s) {
			return false
		}
		_, w := utf8.DecodeRuneInString(s[starI:])
		starI += w
		p, i = starP+1, starI
	}
	return true
}

// matchOne matches the first item of a pattern, which is no star, with the first character of s.
func matchOne(pat, s string) (patLen, width int, ok bool) {
	r, w := utf8.DecodeRuneInString(s)
	switch pat[0] {
	case '?':
		return 1, w, true
	case '\\':
		if len(pat) > 1 {
			pr, pw := utf8.DecodeRuneInString(pat[1:])
			return 1 + pw, w, pr == r
		}
	case '[':
		if n, in := matchSet(pat, r); n > 0 {
			return n, w, in
		}
	}
	pr, pw := utf8.DecodeRuneInString(pat)
	return pw, w, pr == r
}

// matchSet matches r with the bracket expression that pat starts with; n is its length, 0 if it is none.
func matchSet(pat string, r rune) (n int, ok bool) {
	i := 1
	negate := i < len(pat) && (pat[i] == '!' || pat[i] == '^')
	if negate {
		i++
	}
	for first := true; i < len(pat); first = false {
		if pat[i] == ']' && !first {
			return i + 1, ok != negate
		}
		if pat[i] == '[' && i+1 < len(pat) && pat[i+1] == ':' {
			end := strings.Index(pat[i:], ":]")
			if end > 0 {
				ok = ok || inClass(pat[i+2:i+end], r)
				i += end + 2
				continue
			}
		}
		if pat[i] == '\\' && i+1 < len(pat) {
			i++
		}
		lo, w := utf8.DecodeRuneInString(pat[i:])
		i += w
		hi := lo
		if i+1 < len(pat) && pat[i] == '-' && pat[i+1] != ']' {
			hi, w = utf8.DecodeRuneInString(pat[i+1:])
			i += 1 + w
		}
		ok = ok || lo <= r && r <= hi
	}
	return 0, false
}

func inClass(name string, r rune) bool {
	lower, upper, digit := r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9'
	switch name {
	case "alpha":
		return lower || upper
	case "digit":
		return digit
	case "alnum":
		return lower || upper || digit
	case "lower":
		return lower
	case "upper":
		return upper
	case "space":
		return r == ' ' || r >= '\t' && r <= '\r'
	case "blank":
		return r == ' ' || r == '\t'
	case "punct":
		return r > ' ' && r < 127 && !lower && !upper && !digit
	}
	return false
}

// replacePattern is ${s/pat/with}: the leftmost longest match, or all of them.
func replacePattern(s, pat, with string, all bool) string {
	switch {
	case pat == "":
		return s
	case !all && pat[0] == '#':
		for j := len(s); j >= 0; j-- {
			if matchPattern(pat[1:], s[:j]) {
				return with + s[j:]
			}
		}
		return s
	case !all && pat[0] == '%':
		for i := 0; i <= len(s); i++ {
			if matchPattern(pat[1:], s[i:]) {
				return s[:i] + with
			}
		}
		return s
	}
	var sb strings.Builder
	for i := 0; i < len(s); {
		end := longestMatch(pat, s[i:])
		if end == 0 {
			sb.WriteByte(s[i])
			i++
			continue
		}
		sb.WriteString(with)
		if i += end; !all {
			sb.WriteString(s[i:])
			break
		}
	}
	return sb.String()
}

// longestMatch is the length of the longest non-empty start of s that pat matches, 0 if there is none.
func longestMatch(pat, s string) int {
	for j := len(s); j > 0; j-- {
		if matchPattern(pat, s[:j]) {
			return j
		}
	}
	return 0
}
