// SPDX-License-Identifier: Apache-2.0

package rawjson

import (
	"bytes"
	"errors"
	"slices"
	"unicode/utf8"
)

// Bounds of Canonical.
const (
	maxMembers = 100_000 // of all objects together
	maxMoved   = 16      // bytes moved by sorting, as a multiple of the input's size
)

// Errors of Canonical.
var (
	ErrDuplicate = errors.New("an object has the same key twice")
	ErrTangled   = errors.New("too many members or too many of them out of order")
)

// Canonical returns the JSON object b in its one canonical form: keys sorted by their bytes, no space, numbers as written,
// strings with the fewest escapes. Members of the outermost object for which drop returns true are left out. Texts that
// differ in meaning never share a form; an object with a key twice has no meaning. What would take far more work than
// reading the text is refused with ErrTangled.
func Canonical(b []byte, drop func(key string, value []byte) bool) ([]byte, error) {
	if err := Object(b, func(_, _ []byte) error { return nil }); err != nil {
		return nil, err
	}
	c := canon{src: b, dst: make([]byte, 0, len(b)), members: maxMembers, moves: maxMoved*len(b) + 1<<16}
	if _, err := c.object(space(b, 0), drop); err != nil {
		return nil, err
	}
	return c.dst, nil
}

// canon writes the canonical form of a checked text in one pass. Each object is written in the order of the text and then
// sorted in place.
type canon struct {
	src, dst, spare []byte
	members, moves  int // what may still be spent
}

// written is one member of an object in dst.
type written struct{ from, key, to int }

func (c *canon) value(i int) (int, error) {
	switch c.src[i] {
	case '{':
		return c.object(i, nil)
	case '[':
		return c.array(i)
	}
	end, err := value(c.src, i, 0)
	if err != nil {
		return end, err
	}
	if c.src[i] == '"' {
		c.dst = appendString(c.dst, c.src[i:end])
	} else {
		c.dst = append(c.dst, c.src[i:end]...)
	}
	return end, nil
}

func (c *canon) array(i int) (int, error) {
	c.dst = append(c.dst, '[')
	i = space(c.src, i+1)
	for c.src[i] != ']' {
		end, err := c.value(i)
		if err != nil {
			return end, err
		}
		if i = space(c.src, end); c.src[i] == ',' {
			c.dst = append(c.dst, ',')
			i = space(c.src, i+1)
		}
	}
	c.dst = append(c.dst, ']')
	return i + 1, nil
}

func (c *canon) object(i int, drop func(key string, value []byte) bool) (int, error) {
	c.dst = append(c.dst, '{')
	start := len(c.dst)
	var all []written
	i = space(c.src, i+1)
	for c.src[i] != '}' {
		if c.members--; c.members < 0 {
			return i, ErrTangled
		}
		end, err := text(c.src, i)
		if err != nil {
			return end, err
		}
		w := written{from: len(c.dst)}
		c.dst = appendString(c.dst, c.src[i:end])
		w.key = len(c.dst)
		c.dst = append(c.dst, ':')
		i = space(c.src, space(c.src, end)+1)
		if end, err = c.value(i); err != nil {
			return end, err
		}
		c.dst = append(c.dst, ',')
		w.to = len(c.dst)
		all = append(all, w)
		if i = space(c.src, end); c.src[i] == ',' {
			i = space(c.src, i+1)
		}
	}
	if err := c.sort(start, all, drop); err != nil {
		return i, err
	}
	if len(c.dst) > start {
		c.dst = c.dst[:len(c.dst)-1] // the last comma
	}
	c.dst = append(c.dst, '}')
	return i + 1, nil
}

// sort brings the members that were written from start on in order, without those to be dropped.
func (c *canon) sort(start int, all []written, drop func(key string, value []byte) bool) error {
	byKey := func(a, b written) int { return bytes.Compare(c.dst[a.from:a.key], c.dst[b.from:b.key]) }
	sorted := slices.IsSortedFunc(all, byKey)
	if !sorted {
		slices.SortFunc(all, byKey)
	}
	for n := 1; n < len(all); n++ {
		if byKey(all[n-1], all[n]) == 0 {
			return ErrDuplicate
		}
	}
	if sorted && drop == nil {
		return nil
	}
	if c.moves -= len(c.dst) - start; c.moves < 0 {
		return ErrTangled
	}
	c.spare = c.spare[:0]
	for _, w := range all {
		if drop != nil {
			if name, _ := Text(c.dst[w.from:w.key]); drop(name, c.dst[w.key+1:w.to-1]) {
				continue
			}
		}
		c.spare = append(c.spare, c.dst[w.from:w.to]...)
	}
	c.dst = append(c.dst[:start], c.spare...)
	return nil
}

// appendString appends a checked JSON string in canonical spelling: what can stand for itself does.
func appendString(dst, v []byte) []byte {
	body := v[1 : len(v)-1]
	if bytes.IndexByte(body, '\\') < 0 && bytes.IndexByte(body, 0x7f) < 0 {
		return append(dst, v...)
	}
	dst = append(dst, '"')
	for i := 0; i < len(body); {
		var r rune
		var n int
		if body[i] == '\\' {
			r, n = escape(body[i:])
		} else {
			r, n = utf8.DecodeRune(body[i:])
		}
		i += n
		dst = appendRune(dst, r)
	}
	return append(dst, '"')
}

// AppendQuoted appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD.
func AppendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s {
		dst = appendRune(dst, r)
	}
	return append(dst, '"')
}

func appendRune(dst []byte, r rune) []byte {
	const digit = "0123456789abcdef"
	switch {
	case r == '"' || r == '\\':
		return append(dst, '\\', byte(r))
	case r == '\n':
		return append(dst, '\\', 'n')
	case r == '\t':
		return append(dst, '\\', 't')
	case r == '\r':
		return append(dst, '\\', 'r')
	case r < ' ' || r == 0x7f || r >= 0xd800 && r <= 0xdfff:
		return append(dst, '\\', 'u', digit[r>>12&15], digit[r>>8&15], digit[r>>4&15], digit[r&15])
	}
	return utf8.AppendRune(dst, r)
}
