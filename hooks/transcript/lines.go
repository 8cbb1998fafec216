// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"bytes"
	"errors"
	"io"
)

const (
	chunk   = 256 << 10 // first size of the buffer, and what is read at a time
	maxKept = 1 << 20   // what is kept of a line that is too long, and of the buffer between two files
)

// lines cuts a stream into lines in bounded memory.
type lines struct {
	src        io.Reader
	buf        []byte
	start, end int   // what was read and not yet given out
	offset     int64 // of buf[start] in the stream
	max        int
	eof        bool
	short      shortener
}

// line is one line without its end. It is valid until the next one is read.
type line struct {
	data   []byte
	offset int64
	size   int64 // with its end
	ended  bool  // it ends in a newline
	long   bool  // data is not the line but what was kept of it
	lost   bool  // nothing useful could be kept
}

// reset begins a new stream whose first byte has this offset.
func (l *lines) reset(src io.Reader, offset int64) {
	if cap(l.buf) > maxKept || l.buf == nil {
		l.buf = make([]byte, min(chunk, l.max))
	}
	l.src, l.start, l.end, l.offset, l.eof = src, 0, 0, offset, false
}

// next returns the next line; io.EOF after the last one, or the error of the source.
func (l *lines) next() (line, error) {
	seen := 0
	for {
		if i := bytes.IndexByte(l.buf[l.start+seen:l.end], '\n'); i >= 0 {
			return l.take(seen+i+1, true), nil
		}
		seen = l.end - l.start
		if l.eof {
			if seen == 0 {
				return line{}, io.EOF
			}
			return l.take(seen, false), nil
		}
		if !l.room() {
			return l.skip()
		}
		if err := l.fill(); err != nil {
			return line{}, err
		}
	}
}

// take gives out n bytes.
func (l *lines) take(n int, ended bool) line {
	out := line{data: l.buf[l.start : l.start+n], offset: l.offset, size: int64(n), ended: ended}
	out.data = bytes.TrimRight(out.data, "\r\n")
	l.start += n
	l.offset += int64(n)
	return out
}

// room makes place for more of the line under way; false if it is as long as a line may be.
func (l *lines) room() bool {
	if l.end < len(l.buf) {
		return true
	}
	if l.start > 0 {
		l.end = copy(l.buf, l.buf[l.start:l.end])
		l.start = 0
		return true
	}
	if len(l.buf) >= l.max {
		return false
	}
	bigger := make([]byte, min(2*len(l.buf), l.max))
	copy(bigger, l.buf[:l.end])
	l.buf = bigger
	return true
}

func (l *lines) fill() error {
	for range 100 {
		n, err := l.src.Read(l.buf[l.end:])
		l.end += n
		switch {
		case errors.Is(err, io.EOF):
			l.eof = true
			return nil
		case err != nil:
			return err
		case n > 0:
			return nil
		}
	}
	return io.ErrNoProgress
}

// skip reads to the end of a line that is too long and keeps it with its strings shortened.
func (l *lines) skip() (line, error) {
	out := line{offset: l.offset, long: true}
	l.short.reset()
	for {
		part := l.buf[l.start:l.end]
		i := bytes.IndexByte(part, '\n')
		if i >= 0 {
			part = part[:i+1]
			out.ended = true
		}
		l.short.write(part)
		l.start += len(part)
		l.offset += int64(len(part))
		out.size += int64(len(part))
		if out.ended || l.eof {
			out.data, out.lost = bytes.TrimRight(l.short.out, "\r\n"), l.short.lost
			return out, nil
		}
		l.start, l.end = 0, 0
		if err := l.fill(); err != nil {
			return line{}, err
		}
	}
}

// shortener copies JSON text and leaves out the rest of long strings, so that the text keeps its form.
type shortener struct {
	out    []byte
	lost   bool // the text is too long even so
	inside bool // in a string
	escape bool // behind a backslash
	hex    int  // digits of a \u escape still to come
	length int  // of the string so far
	drop   bool // the rest of the string is left out
}

// keepString is what is kept of each string: more than any id, name or path that is taken over.
const keepString = maxPath + 16

func (s *shortener) reset() { *s = shortener{out: s.out[:0]} }

func (s *shortener) write(p []byte) {
	for _, c := range p {
		if s.lost || s.inside && s.within(c) {
			continue
		}
		if !s.inside && c == '"' {
			s.inside, s.length = true, 0
		} else if s.inside && s.length < 0 {
			s.inside = false
		}
		if len(s.out) >= maxKept {
			s.lost = true
			continue
		}
		s.out = append(s.out, c)
	}
}

// within takes one byte of a string and reports whether it is left out. After the closing quote, length is negative. Only
// between two characters it begins to leave out, so that no escape is cut.
func (s *shortener) within(c byte) bool {
	switch {
	case s.escape:
		s.escape = false
		if c == 'u' {
			s.hex = 4
		}
	case s.hex > 0 && c != '"':
		s.hex--
	case c == '"':
		s.length, s.hex, s.drop = -1, 0, false
		return false
	default:
		s.drop = s.drop || s.length >= keepString
		s.escape = c == '\\'
	}
	s.length++
	return s.drop
}
