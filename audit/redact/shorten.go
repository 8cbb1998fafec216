// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"unicode/utf8"
)

// span is the inside of a string literal that is a value.
type span struct{ from, to int }

// shorten takes the middle out of the longest string values of a valid JSON text until it has at most max bytes. ok is
// false if even without them it would be longer.
func shorten(src []byte, max int) (out []byte, ok bool) {
	spans := longStrings(src)
	need := len(src) - max
	saved := func(keep int) (n int) {
		for _, s := range spans {
			if over := s.to - s.from - keep - maxMark; over > 0 {
				n += over
			}
		}
		return n
	}
	if saved(0) < need {
		return nil, false
	}
	keep, tooMuch := 0, max+1
	for tooMuch-keep > 1 {
		if mid := (keep + tooMuch) / 2; saved(mid) >= need {
			keep = mid
		} else {
			tooMuch = mid
		}
	}
	out = make([]byte, 0, max)
	done := 0
	for _, s := range spans {
		if s.to-s.from <= keep+maxMark {
			continue
		}
		inside := src[s.from:s.to]
		head, tail := literalBorders(inside, keep-keep/4, len(inside)-keep/4)
		out = append(out, src[done:s.from+head]...)
		out = append(out, cutMark(tail-head)...)
		done = s.from + tail
	}
	return append(out, src[done:]...), true
}

// longStrings finds the string values that a mark would make shorter.
func longStrings(src []byte) (spans []span) {
	for i := 0; i < len(src); {
		if src[i] != '"' {
			i++
			continue
		}
		end := stringEnd(src, i)
		next := end
		for next < len(src) && (isSpace(src[next]) || isBreak(src[next])) {
			next++
		}
		key := next < len(src) && src[next] == ':'
		if !key && end-i-2 > maxMark {
			spans = append(spans, span{i + 1, end - 1})
		}
		i = end
	}
	return spans
}

// literalBorders moves the borders of a cut outwards until they split neither a character nor an escape of the literal.
func literalBorders(s []byte, head, tail int) (int, int) {
	if from, _, in := escapeAround(s, head); in {
		head = from
	}
	for head > 0 && head < len(s) && !utf8.RuneStart(s[head]) {
		head--
	}
	if _, to, in := escapeAround(s, tail); in {
		tail = to
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	if bytes.HasPrefix(s[tail:], []byte(`\ud`)) || bytes.HasPrefix(s[tail:], []byte(`\uD`)) { // half a pair
		if c := lower(s[tail+3]); c >= 'c' && c <= 'f' {
			tail += 6
		}
	}
	return head, max(head, tail)
}

// escapeAround reports whether k lies inside an escape of the literal, and where that begins and ends.
func escapeAround(s []byte, k int) (from, to int, in bool) {
	for j := k - 1; j >= 0 && k-j < 6; j-- {
		if s[j] != '\\' {
			continue
		}
		run := j
		for run > 0 && s[run-1] == '\\' {
			run--
		}
		if (j-run)%2 != 0 {
			continue // the second of a pair: what follows is no escape
		}
		to := j + 2
		if j+1 < len(s) && s[j+1] == 'u' {
			to = j + 6
		}
		return j, to, to > k
	}
	return 0, 0, false
}
