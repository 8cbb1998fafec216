// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
)

// maxDepth is how deep arrays and objects may nest.
const maxDepth = 200

var errForm = errors.New("not the JSON of a transcript")

// A transcript is mostly other people's text in long strings, of which nothing is wanted. The scan jumps from quote to quote,
// checks how the text nests and leaves what stands in its strings, numbers and words alone: what is handed on is checked by
// its taker.

// object calls member for each member of the object at b[i], the key with its quotes, and returns the offset behind it.
// member may be nil.
func object(b []byte, i, depth int, member func(key, value []byte) error) (int, error) {
	if i >= len(b) || b[i] != '{' || depth >= maxDepth {
		return i, errForm
	}
	i = space(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1, nil
	}
	for {
		end, err := text(b, i)
		if err != nil {
			return i, err
		}
		key := b[i:end]
		if i = space(b, end); i >= len(b) || b[i] != ':' {
			return i, errForm
		}
		i = space(b, i+1)
		if end, err = value(b, i, depth+1); err != nil {
			return i, err
		}
		if member != nil {
			if err := member(key, b[i:end:end]); err != nil {
				return i, err
			}
		}
		if i = space(b, end); i >= len(b) {
			return i, errForm
		}
		switch b[i] {
		case '}':
			return i + 1, nil
		case ',':
			i = space(b, i+1)
		default:
			return i, errForm
		}
	}
}

// array is object for arrays.
func array(b []byte, i, depth int, element func(value []byte) error) (int, error) {
	if i >= len(b) || b[i] != '[' || depth >= maxDepth {
		return i, errForm
	}
	i = space(b, i+1)
	if i < len(b) && b[i] == ']' {
		return i + 1, nil
	}
	for {
		end, err := value(b, i, depth+1)
		if err != nil {
			return i, err
		}
		if element != nil {
			if err := element(b[i:end:end]); err != nil {
				return i, err
			}
		}
		if i = space(b, end); i >= len(b) {
			return i, errForm
		}
		switch b[i] {
		case ']':
			return i + 1, nil
		case ',':
			i = space(b, i+1)
		default:
			return i, errForm
		}
	}
}

func value(b []byte, i, depth int) (int, error) {
	if i >= len(b) {
		return i, errForm
	}
	switch c := b[i]; {
	case c == '"':
		return text(b, i)
	case c == '{':
		return object(b, i, depth, nil)
	case c == '[':
		return array(b, i, depth, nil)
	}
	from := i
	for i < len(b) && wordByte(b[i]) {
		i++
	}
	if i == from {
		return i, errForm
	}
	return i, nil
}

// text returns the end of the string at b[i].
func text(b []byte, i int) (int, error) {
	if i >= len(b) || b[i] != '"' {
		return i, errForm
	}
	from := i + 1
	for at := from; ; {
		n := bytes.IndexByte(b[at:], '"')
		if n < 0 {
			return i, errForm
		}
		at += n
		slashes := 0
		for at-slashes > from && b[at-slashes-1] == '\\' {
			slashes++
		}
		at++
		if slashes%2 == 0 {
			return at, nil
		}
		from = at // each backslash is counted once
	}
}

func wordByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c == '-' || c == '+' || c == '.' || c == 'E'
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

// content returns what a string literal stands for, as bytes that alias it where they can; nil if it is no string or is longer
// than max.
func content(lit []byte, max int) []byte {
	if len(lit) < 2 || lit[0] != '"' || len(lit) > 6*max+2 {
		return nil
	}
	in := lit[1 : len(lit)-1]
	if bytes.IndexByte(in, '\\') >= 0 {
		var s string
		if json.Unmarshal(lit, &s) != nil {
			return nil
		}
		in = []byte(s)
	}
	if len(in) > max {
		return nil
	}
	return in
}
