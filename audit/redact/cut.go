// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// cutMark says how much is missing, and nothing else.
func cutMark(n int) string { return "…[" + strconv.Itoa(n) + " bytes cut]…" }

// maxMark is more than the longest cutMark.
const maxMark = 48

// cutText shortens data to max bytes: three quarters of what stays are its beginning, the rest its end. max is at least
// minMax.
func cutText(data []byte, max int) ([]byte, bool) {
	if len(data) <= max {
		return data, false
	}
	head, tail := cutAt(data, max-maxMark)
	out := make([]byte, 0, max)
	out = append(out, data[:head]...)
	out = append(out, cutMark(tail-head)...)
	return append(out, data[tail:]...), true
}

// cutAt returns the borders of the middle of data that goes, so that at most keep bytes stay; no character is split.
func cutAt(data []byte, keep int) (head, tail int) {
	head = keep - keep/4
	tail = len(data) - keep/4
	for head > 0 && !utf8.RuneStart(data[head]) {
		head--
	}
	for tail < len(data) && !utf8.RuneStart(data[tail]) {
		tail++
	}
	return head, tail
}

// toValid replaces what is no UTF-8.
func toValid(data []byte) []byte {
	if utf8.Valid(data) {
		return data
	}
	return bytes.ToValidUTF8(data, []byte("\ufffd"))
}
