// SPDX-License-Identifier: Apache-2.0

package ci

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// Var is a value that a runner hands to later steps.
type Var struct{ Name, Value string }

// AppendVars adds NAME=VALUE lines to a file that a runner reads (GITHUB_ENV, GITHUB_OUTPUT). A value that could be read as
// more than one line, or as the opening of one of several lines, is refused, and then nothing is written.
func AppendVars(path string, vars ...Var) error {
	var text strings.Builder
	for _, v := range vars {
		if v.Name == "" || strings.ContainsAny(v.Name, "=<\r\n\x00 ") || strings.ContainsAny(v.Value, "\r\n\x00\u0085\u2028\u2029") {
			return fmt.Errorf("%s cannot be handed to later steps: %q holds what a line of that file cannot", v.Name, v.Value)
		}
		text.WriteString(v.Name + "=" + v.Value + "\n")
	}
	return appendTo(path, text.String())
}

// AppendText adds a text to a file that a runner reads (GITHUB_STEP_SUMMARY).
func AppendText(path string, text []byte) error { return appendTo(path, string(text)) }

// appendTo begins on a line of its own.
func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	if !fi.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", path)
	}
	if n := fi.Size(); n > 0 {
		last := []byte{0}
		if _, err := f.ReadAt(last, n-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			text = "\n" + text
		}
	}
	if _, err := f.WriteString(text); err != nil {
		return err
	}
	return f.Close()
}
