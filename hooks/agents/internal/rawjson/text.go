// SPDX-License-Identifier: Apache-2.0

package rawjson

import (
	"bytes"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns the string that a checked JSON string stands for; ok is false if v is another kind of value. A lone
// surrogate, which no Go string can hold, becomes U+FFFD: who needs the difference has the raw bytes.
func Text(v []byte) (s string, ok bool) {
	if len(v) < 2 || v[0] != '"' {
		return "", false
	}
	body := v[1 : len(v)-1]
	if bytes.IndexByte(body, '\\') < 0 {
		return string(body), true
	}
	return string(appendText(make([]byte, 0, len(body)), body)), true
}

// appendText decodes the body of a checked string.
func appendText(dst, body []byte) []byte {
	for i := 0; i < len(body); {
		j := bytes.IndexByte(body[i:], '\\')
		if j < 0 {
			return append(dst, body[i:]...)
		}
		dst = append(dst, body[i:i+j]...)
		r, n := escape(body[i+j:])
		i += j + n
		dst = utf8.AppendRune(dst, r) // a surrogate becomes U+FFFD here
	}
	return dst
}

// escape decodes the checked escape that b starts with and returns its length. A surrogate pair is one rune; a lone
// surrogate is returned as itself.
func escape(b []byte) (r rune, n int) {
	switch b[1] {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		r, _ := hex4(b[2:])
		if len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
			low, _ := hex4(b[8:])
			if pair := utf16.DecodeRune(r, low); pair != unicode.ReplacementChar {
				return pair, 12
			}
		}
		return r, 6
	}
	return rune(b[1]), 2
}

func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// Keys is a set of key names that a reader knows. Other spellings that some decoder would take for one of them can be told.
type Keys struct {
	exact   map[string]int
	folded  map[string]int
	longest int
}

// NewKeys makes a set; the position of a name in the list is its number.
func NewKeys(names ...string) *Keys {
	k := &Keys{exact: make(map[string]int, len(names)), folded: make(map[string]int, len(names))}
	for n, name := range names {
		k.exact[name] = n
		k.folded[string(fold(nil, []byte(name)))] = n
		k.longest = max(k.longest, len(name))
	}
	return k
}

// Len is the number of names.
func (k *Keys) Len() int { return len(k.exact) }

// Find returns the number of the known name that the key (as Object hands it out) is or is a variant of, else -1. A variant
// differs in case only, where case is Unicode's: the Kelvin sign is a k, the long s an s.
func (k *Keys) Find(key []byte) (n int, exact bool) {
	body := key[1 : len(key)-1]
	if len(body) > 6*k.longest { // every character escaped: no name is longer than that
		return -1, false
	}
	var room, least [256]byte
	if bytes.IndexByte(body, '\\') >= 0 {
		body = appendText(room[:0], body)
	}
	if n, ok := k.exact[string(body)]; ok {
		return n, true
	}
	if n, ok := k.folded[string(fold(least[:0], body))]; ok {
		return n, false
	}
	return -1, false
}

// fold appends b with every rune replaced by the smallest rune that differs from it in case only.
func fold(dst, b []byte) []byte {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		i += n
		least := r
		for o := unicode.SimpleFold(r); o != r; o = unicode.SimpleFold(o) {
			least = min(least, o)
		}
		dst = utf8.AppendRune(dst, least)
	}
	return dst
}
