// SPDX-License-Identifier: Apache-2.0

package service

import (
	"io"
	"os"
	"strings"
	"syscall"
)

// maxTail bounds what is shown of a log.
const (
	maxTail      = 16 << 10
	maxTailLines = 20
)

// logTail reads what a log got since mark.
type logTail struct {
	path  string
	start int64
}

// mark remembers how long the log is now.
func (l *logTail) mark() {
	l.start = 0
	if fi, err := os.Stat(l.path); err == nil {
		l.start = fi.Size()
	}
}

// read returns the last lines since mark, or since the log was begun anew.
func (l *logTail) read() string {
	f, err := os.OpenFile(l.path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil || !fi.Mode().IsRegular() {
		return ""
	}
	start := l.start
	if start > fi.Size() {
		start = 0
	}
	start = max(start, fi.Size()-maxTail)
	b, err := io.ReadAll(io.NewSectionReader(f, start, maxTail))
	if err != nil {
		return ""
	}
	return tail(string(b))
}

// tail is the last lines of a text.
func tail(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-maxTailLines):], "\n")
}
