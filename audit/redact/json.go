// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"
)

// JSON redacts and shortens one JSON value of at most max bytes (<= 0: DefaultMax) and keeps its form: an object stays an
// object. Every string is redacted as text, after its escapes are resolved, and whole if its key names a secret. If the
// result is too long, the longest strings lose their middle until it fits, each with a mark that tells how much; if that
// is not enough, the result is an object with "truncated", "len" and "redacted". Strings without secrets keep their bytes.
//
// Data is always valid JSON and valid UTF-8: what is no JSON becomes a JSON string with the redacted text, and nothing at
// all becomes null.
func (r *Redactor) JSON(raw []byte, max int) Result {
	res := Result{Full: len(raw)}
	switch {
	case len(raw) == 0:
		res.Data = []byte("null")
		return res
	case json.Valid(raw):
		w := walker{scanner: &r.scanner, src: raw}
		res.Data, res.Redacted = w.walk()
	default:
		var text []byte
		text, res.Redacted = r.scanner.redact(raw, true)
		res.Data = appendString(make([]byte, 0, len(text)+2), text)
	}
	max = limit(max)
	if len(res.Data) <= max {
		return res
	}
	res.Cut = true
	if data, ok := shorten(res.Data, max); ok {
		res.Data = data
		return res
	}
	res.Data = []byte(`{"truncated":true,"len":` + strconv.Itoa(len(raw)) + `,"redacted":` + strconv.Itoa(res.Redacted) + `}`)
	return res
}

// walker goes once through a valid JSON text and writes it anew where it must change.
type walker struct {
	*scanner
	src, out []byte
	done     int // src up to here is in out
	n        int
	scratch  []byte
	stack    []frame
}

// frame is one open object or array.
type frame struct {
	object bool
	key    bool   // an object that waits for a key
	kind   string // kind of secret that the next value is, "" if none
	all    string // kind of secret that every string in here is
	named  string // kind of secret that "name" says "value" is
	role   byte   // of the current key: 'n' name, 'v' value
	shell  bool   // the value, or every string in here, is what a shell runs
}

func (w *walker) walk() ([]byte, int) {
	for i := 0; i < len(w.src); {
		switch c := w.src[i]; {
		case c == '"':
			end := stringEnd(w.src, i)
			w.str(i, end)
			i = end
		case c == '{' || c == '[':
			w.open(c == '{')
			i++
		case c == '}' || c == ']':
			w.stack = w.stack[:len(w.stack)-1]
			i++
		case c == ',':
			top := &w.stack[len(w.stack)-1]
			if top.object {
				top.key, top.kind = true, ""
			}
			i++
		case c == '-' || isDigit(c):
			end := i + 1
			for end < len(w.src) && (isAlnum(w.src[end]) || w.src[end] == '.' || w.src[end] == '-' || w.src[end] == '+') {
				end++
			}
			w.number(i, end)
			i = end
		default:
			i++
		}
	}
	if w.n == 0 && w.done == 0 {
		return w.src, 0
	}
	return append(w.out, w.src[w.done:]...), w.n
}

// open enters an object or array. The items of a list under a secret name are secret, and so is everything in an object
// whose name promises nothing else.
func (w *walker) open(object bool) {
	f := frame{object: object, key: object}
	if len(w.stack) > 0 {
		top := &w.stack[len(w.stack)-1]
		f.all, f.shell = top.all, top.shell
		if f.all == "" && (!object || top.kind == "credential" || top.kind == "secrets") {
			f.all = top.kind
		}
		top.kind = ""
	}
	w.stack = append(w.stack, f)
}

// str handles the string literal src[i:end].
func (w *walker) str(i, end int) {
	content, exact := w.content(i+1, end-1)
	if len(w.stack) == 0 {
		w.text(i, end, content, exact)
		return
	}
	top := &w.stack[len(w.stack)-1]
	if top.object && top.key {
		top.key = false
		top.kind, top.role = keyKind(content)
		top.shell = runnable(content)
		if top.role == 'v' {
			top.kind = top.named
		}
		w.text(i, end, content, exact)
		return
	}
	kind := top.kind
	if kind == "" {
		kind = top.all
	}
	if top.object && top.role == 'n' {
		top.named = secretName(content)
	}
	if !top.object {
		top.kind = ""
		if len(content) > 2 && content[0] == '-' {
			top.kind = secretName(content) // the next item is the value of this flag
		}
	}
	if kind != "" && !isReference(content, 0) {
		w.replace(i, end, appendMark(nil, kind))
		w.n++
		return
	}
	w.text(i, end, content, exact)
}

// number hides a number under a secret name; small ones are counts.
func (w *walker) number(i, end int) {
	if len(w.stack) == 0 {
		return
	}
	top := &w.stack[len(w.stack)-1]
	if top.kind != "" && end-i >= 4 {
		w.replace(i, end, appendMark(nil, top.kind))
		w.n++
	}
}

func (w *walker) text(i, end int, content []byte, exact bool) {
	shell := len(w.stack) == 0 || w.stack[len(w.stack)-1].shell
	out, n := w.redact(content, shell)
	if n > 0 || !exact {
		w.replace(i, end, out)
		w.n += n
	}
}

// replace puts the JSON string of text in the place of src[i:end].
func (w *walker) replace(i, end int, text []byte) {
	if w.out == nil {
		w.out = make([]byte, 0, len(w.src)+64)
	}
	w.out = append(w.out, w.src[w.done:i]...)
	w.out = appendString(w.out, text)
	w.done = end
}

// content returns what the literal's inside src[from:to] stands for, valid until the next call. exact tells that the
// literal may stay as it is if nothing is redacted.
func (w *walker) content(from, to int) (text []byte, exact bool) {
	text = w.src[from:to]
	exact = utf8.Valid(text)
	if bytes.IndexByte(text, '\\') < 0 {
		return text, exact
	}
	w.scratch = unescape(slices.Grow(w.scratch[:0], len(text)), text)
	return w.scratch, exact
}

// keyKind returns the kind of secret under a key, and the key's role in a list of named values.
func keyKind(key []byte) (kind string, role byte) {
	switch string(key) {
	case "name", "Name", "key", "Key":
		return "", 'n'
	case "value", "Value":
		return "", 'v'
	case "secrets", "passwords":
		return "secrets", 0
	}
	if authorization(key) {
		return "authorization", 0
	}
	return secretName(key), 0
}

// runnable reports whether a key's value is what a shell runs. Anything else is text, such as the content of a file.
func runnable(key []byte) bool {
	switch string(key) {
	case "command", "commands", "cmd", "script", "args", "arguments", "argv", "input", "code":
		return true
	}
	return false
}

// stringEnd returns the end of the literal that begins at src[i], its closing quote included.
func stringEnd(src []byte, i int) int {
	for i++; i < len(src); i++ {
		switch src[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(src)
}
