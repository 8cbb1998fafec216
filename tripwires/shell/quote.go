// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// double adds the parts of a double-quoted string.
func (b *builder) double(parts []syntax.WordPart) {
	if len(parts) == 1 {
		if p, ok := parts[0].(*syntax.ParamExp); ok {
			b.param(p, true) // "$@" may be no field at all
			return
		}
	}
	b.started, b.quoted = true, true
	b.doubleParts(parts)
}

func (b *builder) doubleParts(parts []syntax.WordPart) {
	if !b.in.enter() {
		b.add(unknown, true)
		return
	}
	defer b.in.leave()
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.add(fromSource(unescapeDouble(p.Value)), true)
		case *syntax.ParamExp:
			b.param(p, true)
		case *syntax.CmdSubst:
			b.add(b.in.substitute(b.c, b.s, p), true)
		case *syntax.ArithmExp:
			b.add(b.in.arithWord(b.c, b.s, p.X), true)
		case *syntax.DblQuoted:
			b.doubleParts(p.Parts)
		case *syntax.SglQuoted:
			b.add(fromSource(p.Value), true)
		default:
			b.add(unknown, true)
		}
	}
}

// document expands the body of an unquoted here-document.
func (in *interp) document(c ctx, s *state, w *syntax.Word) val {
	b := builder{in: in, c: c, s: s, noSplit: true, ifs: " \t\n"}
	for _, part := range w.Parts {
		if lit, ok := part.(*syntax.Lit); ok {
			b.add(fromSource(unescapeDocument(lit.Value)), true)
			continue
		}
		b.doubleParts([]syntax.WordPart{part})
	}
	return b.v
}

func unescapeDouble(s string) string   { return unescape(s, "$`\"\\") }
func unescapeDocument(s string) string { return unescape(s, "$`\\") }

func unescape(s, special string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var sb strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			if s[i+1] == '\n' {
				i++
				continue
			}
			if strings.IndexByte(special, s[i+1]) >= 0 {
				i++
			}
		}
		sb.WriteByte(s[i])
	}
	return sb.String()
}

func isNameByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
