// SPDX-License-Identifier: Apache-2.0

// Package redact takes secrets out of what is about to be stored, and cuts what is too long. It knows secrets by their own
// form (keys and tokens with a known prefix, JSON web tokens, private key blocks), by where they stand (the password of a
// URL, an Authorization header) and by the name that they are given (PASSWORD=..., --token ..., "api_key": ...). A secret
// becomes [redacted:KIND]; nothing in the text can prevent that.
//
// It errs towards the other side where a program could hide behind it: a shell substitution in place of a value, or text
// that merely follows the first line of a key, stays readable, and in what a shell runs a value ends where the shell's word
// ends. In other text, such as the content of a settings file, it may be the rest of its line.
package redact

// DefaultMax is the limit of a body in bytes when the caller names none.
const DefaultMax = 64 << 10

// minMax is the least limit that is honoured, so that the marks themselves fit.
const minMax = 128

// Result is a redacted text and what was done to it.
type Result struct {
	Data     []byte // the input itself if nothing was changed: neither may be written to
	Full     int    // length of the input in bytes
	Redacted int    // how many secrets were taken out
	Cut      bool   // Data was shortened to fit
}

// Redactor redacts. It is immutable and safe for concurrent use.
type Redactor struct {
	scanner scanner
}

// New returns a Redactor for all kinds of secrets.
func New() *Redactor { return &Redactor{scanner: newScanner()} }

// Text redacts plain text, which may hold commands, and cuts it to max bytes (<= 0: DefaultMax). The middle goes, a mark says how much of it. Bytes
// that are no UTF-8 are replaced by U+FFFD.
func (r *Redactor) Text(data []byte, max int) Result {
	res := Result{Data: data, Full: len(data)}
	res.Data, res.Redacted = r.scanner.redact(data, true)
	res.Data, res.Cut = cutText(toValid(res.Data), limit(max))
	return res
}

// String redacts a short text of ours, such as a path or an error's text. It is cut at DefaultMax.
func (r *Redactor) String(s string) string { return string(r.Text([]byte(s), 0).Data) }

func limit(max int) int {
	if max <= 0 {
		return DefaultMax
	}
	if max < minMax {
		return minMax
	}
	return max
}
