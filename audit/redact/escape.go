// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"unicode/utf16"
	"unicode/utf8"
)

// unescape appends what the inside of a valid JSON string literal stands for. A lone surrogate becomes the three bytes
// that UTF-8 would have for it, which appendString turns back: nothing is lost on the way.
func unescape(out, s []byte) []byte {
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 >= len(s) {
			out = append(out, s[i])
			continue
		}
		i++
		switch s[i] {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r := hex4(s[i+1:])
			i += 4
			if utf16.IsSurrogate(r) && i+6 < len(s) && s[i+1] == '\\' && s[i+2] == 'u' {
				if pair := utf16.DecodeRune(r, hex4(s[i+3:])); pair != utf8.RuneError {
					r = pair
					i += 6
				}
			}
			if utf16.IsSurrogate(r) {
				out = append(out, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
				continue
			}
			out = utf8.AppendRune(out, r)
		default: // " \ /
			out = append(out, s[i])
		}
	}
	return out
}

// hex4 reads four hexadecimal digits; less than that are U+FFFD.
func hex4(s []byte) rune {
	if len(s) < 4 {
		return utf8.RuneError
	}
	var r rune
	for _, c := range s[:4] {
		r <<= 4
		switch {
		case isDigit(c):
			r |= rune(c - '0')
		default:
			r |= rune(lower(c)-'a') + 10
		}
	}
	return r
}

// appendString appends text as a JSON string. Surrogates as unescape leaves them become escapes again, other bytes that
// are no UTF-8 become U+FFFD.
func appendString(out, text []byte) []byte {
	const hex = "0123456789abcdef"
	out = append(out, '"')
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
			i++
		case c == '\n':
			out = append(out, '\\', 'n')
			i++
		case c == '\t':
			out = append(out, '\\', 't')
			i++
		case c == '\r':
			out = append(out, '\\', 'r')
			i++
		case c < 0x20:
			out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			i++
		case c < utf8.RuneSelf:
			out = append(out, c)
			i++
		default:
			r, size := utf8.DecodeRune(text[i:])
			switch {
			case r == utf8.RuneError && size == 1 && surrogate(text[i:]):
				b := text[i+1] & 0x3f
				out = append(out, '\\', 'u', 'd', hex[b>>2], hex[b&3<<2|text[i+2]>>4&3], hex[text[i+2]&15])
				size = 3
			case r == utf8.RuneError && size == 1:
				out = append(out, "\ufffd"...)
			default:
				out = append(out, text[i:i+size]...)
			}
			i += size
		}
	}
	return append(out, '"')
}

// surrogate reports whether s begins with the three bytes of a surrogate.
func surrogate(s []byte) bool {
	return len(s) >= 3 && s[0] == 0xed && s[1] >= 0xa0 && s[1] <= 0xbf && s[2] >= 0x80 && s[2] <= 0xbf
}
