// SPDX-License-Identifier: Apache-2.0

package service

import (
	"io"
	"os"
	"strings"
	"sync"
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

// written is the path of a file that holds something, "" for any other.
func written(path string) string {
	if fi, err := os.Lstat(path); err != nil || fi.Size() == 0 {
		return ""
	}
	return path
}

// early is what a daemon says on a pipe until it serves or ends.
type early struct {
	end chan struct{} // closed when nobody can say more

	mu   sync.Mutex
	said []byte // the end of it
}

// listen reads a pipe to its end, and closes it. It takes all, so that nobody waits to write, and keeps what is shown.
func listen(r *os.File) *early {
	e := &early{end: make(chan struct{})}
	go func() { // ends when the daemon has let go of the pipe, or with this process
		defer close(e.end)
		defer r.Close()
		b := make([]byte, 4096)
		for {
			n, err := r.Read(b)
			e.mu.Lock()
			e.said = append(e.said, b[:n]...)
			e.said = e.said[max(0, len(e.said)-maxTail):]
			e.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return e
}

func (e *early) text() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return string(e.said)
}
