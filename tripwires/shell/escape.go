// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// ansiC decodes the text of $'...'.
func ansiC(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var sb strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			sb.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 'c':
			if i+1 < len(s) {
				i++
				putByte(&sb, s[i]&0x1f)
			}
		case '\'', '"', '?':
			sb.WriteByte(c)
		case '0', '1', '2', '3', '4', '5', '6', '7':
			n, w := digits(s[i:], 8, 3)
			i += w - 1
			if n&0xff == 0 {
				return sb.String()
			}
			putByte(&sb, byte(n))
		case 'x':
			n, w := digits(s[i+1:], 16, 2)
			if w == 0 {
				sb.WriteString(`\x`)
				continue
			}
			i += w
			if n == 0 {
				return sb.String()
			}
			putByte(&sb, byte(n))
		default:
			i += commonEscape(&sb, s[i:])
		}
	}
	return sb.String()
}

// commonEscape decodes the escapes that $'...' and echo -e have in common, without their numbers. s begins behind the backslash;
// the result is how much of it was used beyond its first byte. What is no escape stays as it is.
func commonEscape(sb *strings.Builder, s string) int {
	c := s[0]
	if c == 'u' || c == 'U' {
		if w := unicodeEscape(sb, s); w > 0 {
			return w
		}
	} else if r, ok := simpleEscape(c); ok {
		sb.WriteByte(r)
		return 0
	}
	sb.WriteByte('\\')
	sb.WriteByte(c)
	return 0
}

func simpleEscape(c byte) (byte, bool) {
	switch c {
	case 'a':
		return 7, true
	case 'b':
		return 8, true
	case 'e', 'E':
		return 27, true
	case 'f':
		return 12, true
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	case 'v':
		return 11, true
	case '\\':
		return '\\', true
	}
	return 0, false
}

// unicodeEscape decodes uHHHH or UHHHHHHHH at the start of s and returns the number of digits.
func unicodeEscape(sb *strings.Builder, s string) int {
	most := 4
	if s[0] == 'U' {
		most = 8
	}
	n, w := digits(s[1:], 16, most)
	if w == 0 {
		return 0
	}
	if n < utf8.RuneSelf {
		putByte(sb, byte(n))
	} else {
		sb.WriteRune(rune(min(n, utf8.MaxRune+1)))
	}
	return w
}

// putByte writes a decoded byte; those that have a meaning in values become a stand-in.
func putByte(sb *strings.Builder, b byte) {
	switch b {
	case 0:
		sb.WriteString(dataNUL)
	case 1, 2, 3, 4, 5, 6:
		sb.WriteRune('\ufffd')
	default:
		sb.WriteByte(b)
	}
}

func digits(s string, base, most int) (n int64, width int) {
	for width < len(s) && width < most {
		if _, err := strconv.ParseInt(s[width:width+1], base, 64); err != nil || s[width] == '+' || s[width] == '-' {
			break
		}
		width++
	}
	if width == 0 {
		return 0, 0
	}
	n, _ = strconv.ParseInt(s[:width], base, 64)
	return n, width
}

// echoEscapes decodes what echo -e and printf %b take. stop tells that \c ended the output.
func echoEscapes(s string, octalZero bool) (out string, stop bool) {
	if !strings.Contains(s, `\`) {
		return s, false
	}
	var sb strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			sb.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; {
		case c == 'c':
			return sb.String(), true
		case c == '0' && octalZero:
			n, w := digits(s[i+1:], 8, 3)
			i += w
			putByte(&sb, byte(n))
		case c >= '0' && c <= '7':
			n, w := digits(s[i:], 8, 3)
			i += w - 1
			putByte(&sb, byte(n))
		case c == 'x':
			n, w := digits(s[i+1:], 16, 2)
			if w == 0 {
				sb.WriteString(`\x`)
				continue
			}
			i += w
			putByte(&sb, byte(n))
		default:
			i += commonEscape(&sb, s[i:])
		}
	}
	return sb.String(), false
}
