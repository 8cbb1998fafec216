// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// builder makes fields out of the parts of one word.
type builder struct {
	in      *interp
	c       ctx
	s       *state
	pos     Pos
	words   bool // unquoted literals are split too: the word of ${x:-word}
	noSplit bool // one field, whatever it holds: assignments, redirections, case
	ifs     string

	out     []Word
	v       val // text of the field so far
	glob    strings.Builder
	pattern bool // an active pattern character was seen
	bracket bool
	quoted  bool
	split   bool
	started bool
}

// fields expands words to the arguments that they become.
func (in *interp) fields(c ctx, s *state, words []*syntax.Word) []Word {
	out := make([]Word, 0, len(words))
	for _, w := range words {
		out = in.expand(c, s, w, out)
		if in.words > MaxWords {
			in.an.Truncated = true
			break
		}
	}
	return out
}

func (in *interp) expand(c ctx, s *state, w *syntax.Word, out []Word) []Word {
	pos := in.pos(w.Pos())
	if len(w.Parts) == 1 {
		if lit, ok := w.Parts[0].(*syntax.Lit); ok && !strings.ContainsAny(lit.Value, "{~\\*?[=^#<(|"+srcUnknown+srcFlat) {
			in.words++
			return append(out, Word{Text: lit.Value, Known: true, Pos: pos})
		}
	}
	alts, all := braces(w)
	if !all {
		in.an.Truncated = true
		return append(out, Word{Text: unk, Pos: pos, Split: true})
	}
	for _, parts := range alts {
		b := builder{in: in, c: c, s: s, pos: pos, ifs: in.ifs(s), out: out}
		b.parts(parts)
		b.end()
		out = b.out
		if in.words > MaxWords {
			in.an.Truncated = true
			break
		}
	}
	return out
}

// single expands a word to one value, without splitting and patterns.
func (in *interp) single(c ctx, s *state, w *syntax.Word) val {
	if w == nil {
		return val{}
	}
	return in.one(c, s, w).val()
}

// one is single, as a word.
func (in *interp) one(c ctx, s *state, w *syntax.Word) Word {
	b := builder{in: in, c: c, s: s, pos: in.pos(w.Pos()), noSplit: true, ifs: " \t\n"}
	b.parts(w.Parts)
	b.started = true
	b.end()
	if len(b.out) == 0 {
		return Word{Known: true, Pos: b.pos}
	}
	return b.out[0]
}

// posOf is the position of a node of the top source.
func posOf(p syntax.Pos) Pos { return Pos{Line: p.Line(), Col: p.Col()} }

func (in *interp) ifs(s *state) string {
	if v, ok := s.vars["IFS"]; ok {
		if !v.set {
			return " \t\n"
		}
		if v.v.known() {
			return v.v.s
		}
		return " \t\n"
	}
	return " \t\n"
}

func (b *builder) parts(parts []syntax.WordPart) {
	if !b.in.enter() {
		b.add(unknown, false)
		return
	}
	defer b.in.leave()
	for i, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.lit(p.Value, i == 0, i == len(parts)-1)
		case *syntax.SglQuoted:
			s := p.Value
			if p.Dollar {
				s = ansiC(s)
			}
			b.add(fromSource(s), true)
		case *syntax.DblQuoted:
			b.double(p.Parts)
		case *syntax.ParamExp:
			b.param(p, false)
		case *syntax.CmdSubst:
			b.result(b.in.substitute(b.c, b.s, p), false)
		case *syntax.ArithmExp:
			b.result(b.in.arithWord(b.c, b.s, p.X), false)
		case *syntax.ProcSubst:
			b.add(b.in.procSubst(b.c, b.s, p), true)
		case *syntax.ExtGlob:
			b.started, b.pattern = true, true
			raw := p.Op.String() + p.Pattern.Value + ")"
			b.v = b.v.add(text(raw))
			b.glob.WriteString(raw)
			b.in.qualifier(b.c, b.s, raw)
		default:
			b.add(unknown, false)
		}
	}
}

// lit adds unquoted source text.
func (b *builder) lit(s string, first, last bool) {
	if s == "" {
		return
	}
	b.started = b.started || !b.words || strings.ContainsAny(s, "\\")
	if first {
		s = b.tilde(s, last)
	} else if b.noSplit {
		s = b.tildeAfterColon(s)
	}
	if b.in.zsh && first && !b.noSplit && len(s) > 1 && s[0] == '=' && isNameByte(s[1]) {
		s = s[1:] // zsh: =name is the path of name
	}
	for s != "" {
		i := strings.IndexAny(s, "\\*?[")
		if i < 0 {
			b.raw(s)
			return
		}
		b.raw(s[:i])
		switch s[i] {
		case '\\':
			if i+1 == len(s) {
				b.add(text(`\`), true)
				return
			}
			n := runeLen(s[i+1:])
			b.add(fromSource(s[i+1:i+1+n]), true)
			s = s[i+1+n:]
			continue
		case '[':
			b.bracket = true
		default:
			b.pattern = true
		}
		b.raw(s[i : i+1])
		s = s[i+1:]
	}
}

func runeLen(s string) int {
	for i := range s {
		if i > 0 {
			return i
		}
	}
	return len(s)
}

// raw adds unquoted text whose pattern characters are active.
func (b *builder) raw(s string) {
	if s == "" {
		return
	}
	if strings.Contains(s, "]") && b.bracket {
		b.pattern = true
	}
	v := fromSource(s)
	if b.words && !b.in.zsh {
		b.splitInto(v)
		return
	}
	if !v.known() {
		b.split = true
	}
	b.v = b.v.add(v)
	b.glob.WriteString(v.s)
}

// fromSource is text of the source; the stand-in for unknown text becomes unknown.
func fromSource(s string) val {
	if strings.Contains(s, srcUnknown) || strings.Contains(s, srcFlat) {
		s = strings.ReplaceAll(strings.ReplaceAll(s, srcUnknown, unk), srcFlat, unkFlat)
	}
	return text(s)
}

// add appends a value whose pattern characters are inert.
func (b *builder) add(v val, quoted bool) {
	b.started = true
	b.quoted = b.quoted || quoted
	if !quoted && !v.known() {
		b.split = true
	}
	if strings.ContainsAny(v.s, markBytes) {
		b.pattern = true
	}
	b.v = b.v.add(v)
	b.glob.WriteString(escapePattern(v.s))
}

func escapePattern(s string) string {
	if !strings.ContainsAny(s, `*?[]\`) {
		return s
	}
	var sb strings.Builder
	for i := range len(s) {
		if strings.IndexByte(`*?[]\`, s[i]) >= 0 {
			sb.WriteByte('\\')
		}
		sb.WriteByte(s[i])
	}
	return sb.String()
}

// result adds what an unquoted expansion gave: it is split and its pattern characters are active.
func (b *builder) result(v val, quoted bool) {
	if quoted || b.noSplit {
		b.add(v, quoted)
		return
	}
	if b.in.zsh {
		if v.s != "" {
			b.add(v, false)
		}
		return
	}
	b.splitInto(v)
}

func (b *builder) splitInto(v val) {
	s := v.s
	space := func(c byte) bool { return (c == ' ' || c == '\t' || c == '\n') && strings.IndexByte(b.ifs, c) >= 0 }
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case space(c):
			for i < len(s) && space(s[i]) {
				i++
			}
			b.endField()
			if i < len(s) && strings.IndexByte(b.ifs, s[i]) >= 0 {
				i++ // blanks around another separator belong to it
				for i < len(s) && space(s[i]) {
					i++
				}
			}
		case strings.IndexByte(b.ifs, c) >= 0:
			b.started = true
			b.endField()
			i++
			for i < len(s) && space(s[i]) {
				i++
			}
		default:
			j := i
			for j < len(s) && strings.IndexByte(b.ifs, s[j]) < 0 {
				switch s[j] {
				case '*', '?', markStar[0], markAny[0], markSet[0]:
					b.pattern = true
				case '[':
					b.bracket = true
				}
				j++
			}
			piece := v
			piece.s = s[i:j]
			if i > 0 {
				piece.f &^= fTemp
			}
			b.started = true
			if b.bracket && strings.Contains(piece.s, "]") {
				b.pattern = true
			}
			if !piece.known() {
				b.split = true
			}
			b.v = b.v.add(piece)
			b.glob.WriteString(piece.s)
			i = j
		}
	}
}

// endField ends the field if it was started.
func (b *builder) endField() {
	if b.started {
		b.end()
	}
}

// end closes the last field of the word. An unquoted expansion to nothing leaves no field.
func (b *builder) end() {
	if !b.started {
		return
	}
	b.in.words++
	b.in.bytes += len(b.v.s)
	if b.in.words > MaxWords || b.in.bytes > maxTotal {
		b.in.an.Truncated = true
		b.v = val{s: unk, f: b.v.f &^ fTemp}
		b.pattern = false
	}
	w := Word{Text: b.v.s, Known: b.v.known(), Pos: b.pos, Quoted: b.quoted, Temp: b.v.f&fTemp != 0, Split: b.split}
	if b.pattern && (!b.noSplit || strings.ContainsAny(b.v.s, markBytes)) {
		w.Glob, w.GlobText = true, b.glob.String()
	}
	w.finish(b.v)
	b.out = append(b.out, w)
	b.v = val{}
	b.glob.Reset()
	b.pattern, b.bracket, b.quoted, b.split, b.started = false, false, false, false, false
}
