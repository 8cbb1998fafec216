// SPDX-License-Identifier: Apache-2.0

// Package words puts the small things that auditctl says to people the same way everywhere.
package words

import (
	"fmt"
	"strings"
)

// Count is a number of things: 1 session, 2 sessions.
func Count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// Prefixed is text behind a prefix, "" if there is none.
func Prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// Shell quotes a word for a POSIX shell where that is needed.
func Shell(w string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:=@,", r)
	}
	if w != "" && strings.IndexFunc(w, func(r rune) bool { return !plain(r) }) < 0 {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}
