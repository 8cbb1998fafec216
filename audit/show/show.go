// SPDX-License-Identifier: Apache-2.0

// Package show makes hostile text visible. Everything that an agent, a model, a file or another process wrote goes through
// it before it reaches a terminal, a page, a prompt or a log line, whatever the surface: escape sequences, C0 and C1
// controls, bidirectional overrides, zero-width and other invisible characters, line separators and bytes that are no UTF-8
// come out as escapes such as \x1b or \u202e.
//
// A backslash of the text itself is left alone, so that commands stay readable: an escape may stand for the character or
// for its spelling, and both are harmless. Markup of the surface (HTML, CSV formulas, Markdown) is the business of that
// surface's own encoder.
package show

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ellipsis ends a text that was cut.
const ellipsis = "…"

// maxMarks is how many combining marks in a row are shown as they are: more of them would paint over other lines.
const maxMarks = 4

// Line returns s on a single line: newlines and tabs are escaped too. The result is valid UTF-8 without invisible
// characters and is at most max bytes long; what does not fit is cut at a border of characters and escapes, and ends in
// "…" when max leaves room for it. max <= 0 means no limit.
func Line(s string, max int) string { return visible(s, max, false) }

// Text is Line for text of several lines: \n and \t stay as they are.
func Text(s string, max int) string { return visible(s, max, true) }

func visible(s string, max int, multiline bool) string {
	if max <= 0 {
		max = int(^uint(0) >> 1)
	}
	plain := plainPrefix(s, multiline)
	if plain == len(s) && len(s) <= max {
		return s
	}
	if plain > max {
		plain = max
	}
	var b strings.Builder
	b.Grow(min(len(s)+16, max))
	b.WriteString(s[:plain])
	border := plain // where a cut leaves room for the ellipsis
	if plain > max-len(ellipsis) {
		border = max - len(ellipsis)
	}
	marks := 0
	for i := plain; i < len(s); {
		piece, size := next(s[i:], &marks, multiline)
		if b.Len()+len(piece) > max {
			return cut(b.String(), border, max)
		}
		b.WriteString(piece)
		if b.Len() <= max-len(ellipsis) {
			border = b.Len()
		}
		i += size
	}
	return b.String()
}

// cut ends out, which may not grow any more, with the ellipsis if there is room for one.
func cut(out string, border, max int) string {
	if max < len(ellipsis) {
		return out
	}
	return out[:border] + ellipsis
}

// plainPrefix returns how many leading bytes of s are printable ASCII, or line breaks and tabs where those stay.
func plainPrefix(s string, multiline bool) int {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c < 0x7f || multiline && (c == '\n' || c == '\t') {
			continue
		}
		return i
	}
	return len(s)
}

// next returns the visible form of the first character of s and how many bytes of s it covers.
func next(s string, marks *int, multiline bool) (string, int) {
	r, size := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && size == 1 {
		*marks = 0
		return escapeByte(s[0]), 1
	}
	switch {
	case r == '\n' || r == '\t':
		*marks = 0
		if multiline {
			return s[:1], 1
		}
		if r == '\n' {
			return `\n`, 1
		}
		return `\t`, 1
	case r == '\r':
		*marks = 0
		return `\r`, 1
	case !Visible(r):
		*marks = 0
		return escapeRune(r), size
	case unicode.Is(unicode.M, r):
		*marks++
		if *marks > maxMarks {
			*marks = 0
			return escapeRune(r), size
		}
	default:
		*marks = 0
	}
	return s[:size], size
}

// Visible reports whether r is shown as it is: it has a form of its own on the screen and moves nothing else. The space is
// visible; every other space is not, because it looks like one and is none.
func Visible(r rune) bool {
	return strconv.IsPrint(r) && !unicode.Is(blank, r)
}

// blank holds the code points that count as letters, marks or symbols and yet show nothing: fillers, variation selectors,
// invisible vowels, the empty braille pattern.
var blank = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x00ad, Hi: 0x00ad, Stride: 1},
		{Lo: 0x034f, Hi: 0x034f, Stride: 1},
		{Lo: 0x115f, Hi: 0x1160, Stride: 1},
		{Lo: 0x17b4, Hi: 0x17b5, Stride: 1},
		{Lo: 0x180b, Hi: 0x180f, Stride: 1},
		{Lo: 0x2800, Hi: 0x2800, Stride: 1},
		{Lo: 0x3164, Hi: 0x3164, Stride: 1},
		{Lo: 0xfe00, Hi: 0xfe0f, Stride: 1},
		{Lo: 0xffa0, Hi: 0xffa0, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x13440, Hi: 0x13455, Stride: 1},
		{Lo: 0x16fe4, Hi: 0x16fe4, Stride: 1},
		{Lo: 0x1bca0, Hi: 0x1bca3, Stride: 1},
		{Lo: 0x1d159, Hi: 0x1d159, Stride: 1},
		{Lo: 0x1d173, Hi: 0x1d17a, Stride: 1},
		{Lo: 0xe0000, Hi: 0xe0fff, Stride: 1},
	},
	LatinOffset: 1,
}

func escapeByte(c byte) string {
	const hex = "0123456789abcdef"
	return string([]byte{'\\', 'x', hex[c>>4], hex[c&15]})
}

func escapeRune(r rune) string {
	if r < 0x80 {
		return escapeByte(byte(r))
	}
	h := strconv.FormatInt(int64(r), 16)
	if r <= 0xffff {
		return `\u` + "0000"[len(h):] + h
	}
	return `\U` + "00000000"[len(h):] + h
}
