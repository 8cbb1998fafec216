// SPDX-License-Identifier: Apache-2.0

// Package rawjson reads hostile JSON without building it: one strict pass that checks the text and hands out sub-slices.
// It allocates nothing for what its caller does not ask for, so that memory stays at the size of the payload whatever the
// payload holds. It is stricter than encoding/json where agents' protocols need it: valid UTF-8 only, a depth limit, and
// keys that are never folded.
package rawjson

import (
	"errors"
	"unicode/utf8"
)

// MaxDepth is how deep arrays and objects may nest.
const MaxDepth = 200

// Errors of the scanner. They never hold input.
var (
	ErrSyntax   = errors.New("not one JSON value")
	ErrUTF8     = errors.New("not UTF-8")
	ErrDepth    = errors.New("nested too deeply")
	ErrNoObject = errors.New("not a JSON object")
)

// Object checks that b is one JSON object, with nothing but white space around it, and calls member for each of its members
// in order: the key as it stands in the text, quotes included, and the value without the space around it. Both alias b.
// An error of member ends the scan and is returned as it is.
func Object(b []byte, member func(key, value []byte) error) error {
	if !utf8.Valid(b) {
		return ErrUTF8
	}
	i := space(b, 0)
	if i == len(b) || b[i] != '{' {
		if _, err := value(b, i, 0); err != nil {
			return err
		}
		return ErrNoObject
	}
	i, err := object(b, i, 0, member)
	if err != nil {
		return err
	}
	if space(b, i) != len(b) {
		return ErrSyntax
	}
	return nil
}

// Array is Object for arrays; element is called for each element.
func Array(b []byte, element func(value []byte) error) error {
	if !utf8.Valid(b) {
		return ErrUTF8
	}
	i := space(b, 0)
	if i == len(b) || b[i] != '[' {
		return ErrSyntax
	}
	i, err := array(b, i, 0, element)
	if err != nil {
		return err
	}
	if space(b, i) != len(b) {
		return ErrSyntax
	}
	return nil
}

// value checks the value that starts at b[i] and returns the offset behind it.
func value(b []byte, i, depth int) (int, error) {
	if i >= len(b) {
		return i, ErrSyntax
	}
	switch c := b[i]; {
	case c == '"':
		return text(b, i)
	case c == '{':
		return object(b, i, depth, nil)
	case c == '[':
		return array(b, i, depth, nil)
	case c == '-' || c >= '0' && c <= '9':
		return number(b, i)
	case c == 't':
		return word(b, i, "true")
	case c == 'f':
		return word(b, i, "false")
	case c == 'n':
		return word(b, i, "null")
	}
	return i, ErrSyntax
}

func object(b []byte, i, depth int, member func(key, value []byte) error) (int, error) {
	if depth == MaxDepth {
		return i, ErrDepth
	}
	i = space(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1, nil
	}
	for {
		if i >= len(b) || b[i] != '"' {
			return i, ErrSyntax
		}
		end, err := text(b, i)
		if err != nil {
			return end, err
		}
		key := b[i:end:end]
		i = space(b, end)
		if i >= len(b) || b[i] != ':' {
			return i, ErrSyntax
		}
		i = space(b, i+1)
		if end, err = value(b, i, depth+1); err != nil {
			return end, err
		}
		if member != nil {
			if err := member(key, b[i:end:end]); err != nil {
				return end, err
			}
		}
		if i = space(b, end); i >= len(b) {
			return i, ErrSyntax
		}
		switch b[i] {
		case '}':
			return i + 1, nil
		case ',':
			i = space(b, i+1)
		default:
			return i, ErrSyntax
		}
	}
}

func array(b []byte, i, depth int, element func(value []byte) error) (int, error) {
	if depth == MaxDepth {
		return i, ErrDepth
	}
	i = space(b, i+1)
	if i < len(b) && b[i] == ']' {
		return i + 1, nil
	}
	for {
		end, err := value(b, i, depth+1)
		if err != nil {
			return end, err
		}
		if element != nil {
			if err := element(b[i:end:end]); err != nil {
				return end, err
			}
		}
		if i = space(b, end); i >= len(b) {
			return i, ErrSyntax
		}
		switch b[i] {
		case ']':
			return i + 1, nil
		case ',':
			i = space(b, i+1)
		default:
			return i, ErrSyntax
		}
	}
}

// text checks the string that starts at b[i]: no bare control characters, only known escapes. A lone surrogate escape is a
// legal string of the format and passes.
func text(b []byte, i int) (int, error) {
	for i++; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return i + 1, nil
		case c < ' ':
			return i, ErrSyntax
		case c == '\\':
			if i++; i >= len(b) {
				return i, ErrSyntax
			}
			switch b[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				if _, ok := hex4(b[i+1:]); !ok {
					return i, ErrSyntax
				}
				i += 4
			default:
				return i, ErrSyntax
			}
		}
	}
	return i, ErrSyntax
}

func number(b []byte, i int) (int, error) {
	if b[i] == '-' {
		i++
	}
	switch {
	case i >= len(b):
		return i, ErrSyntax
	case b[i] == '0':
		i++
	case b[i] >= '1' && b[i] <= '9':
		i = digits(b, i)
	default:
		return i, ErrSyntax
	}
	if i < len(b) && b[i] == '.' {
		from := i + 1
		if i = digits(b, from); i == from {
			return i, ErrSyntax
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		from := i
		if i = digits(b, from); i == from {
			return i, ErrSyntax
		}
	}
	return i, nil
}

func digits(b []byte, i int) int {
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i
}

func word(b []byte, i int, w string) (int, error) {
	if len(b)-i < len(w) || string(b[i:i+len(w)]) != w {
		return i, ErrSyntax
	}
	return i + len(w), nil
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}
