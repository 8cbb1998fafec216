// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"bytes"
	"context"
	"errors"
	"io"
)

// Reader reads transcripts, one after the other. It keeps its buffer between them and is not safe for concurrent use.
type Reader struct {
	lines lines
	names names
	stats Stats
}

// NewReader makes a Reader.
func NewReader(o Options) *Reader {
	if o.MaxLine <= 0 {
		o.MaxLine = DefaultMaxLine
	}
	return &Reader{lines: lines{max: max(o.MaxLine, 64)}}
}

// Read reads lines from src, whose first byte stands at offset from in its file, at the begin of a line. It returns the offset
// at which a later reading goes on: behind the last line that is complete. The error is one of the visitor, of src, or of
// ctx; the offset is then that of the line under way, and all before it was handed out.
func (r *Reader) Read(ctx context.Context, src io.Reader, from int64, v *Visitor) (next int64, s Stats, err error) {
	r.lines.reset(&patient{ctx, src}, from)
	r.stats = Stats{Files: 1}
	next = from
	for {
		l, err := r.lines.next()
		if errors.Is(err, io.EOF) {
			return next, r.stats, nil
		}
		if err != nil {
			return next, r.stats, err
		}
		whole, err := r.line(&l, v)
		if err != nil {
			return next, r.stats, err
		}
		if v.Advance != nil {
			v.Advance(l.size)
		}
		if !l.ended && !whole {
			r.stats.Unfinished++
			return next, r.stats, nil
		}
		next = l.offset + l.size
	}
}

// patient ends with its context: one line may be as long as a disk.
type patient struct {
	ctx context.Context
	src io.Reader
}

func (p *patient) Read(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	return p.src.Read(b)
}

// line deals with one line and reports whether it was a whole one: a last line without an end may be half of one.
func (r *Reader) line(l *line, v *Visitor) (whole bool, err error) {
	if len(l.data) == 0 && !l.long {
		return true, nil
	}
	marked := wanted(l.data, v.Result != nil)
	if l.ended {
		r.stats.Lines++
		if l.long {
			r.stats.Oversized++
		} else if !marked {
			if !looksWhole(l.data) {
				r.stats.Broken++
			}
			return true, nil
		}
	}
	if l.lost {
		return false, nil
	}
	e, ferr := readEntry(l.data)
	if ferr != nil {
		if l.ended && !l.long {
			r.stats.Broken++
		}
		return false, nil
	}
	if !l.ended {
		r.stats.Lines++
		if l.long {
			r.stats.Oversized++
		}
	}
	switch string(e.kind) {
	case "assistant":
		ok, err := r.calls(&e, l, v)
		if !ok {
			r.stats.Broken++
		}
		return true, err
	case "user":
		if v.Result != nil {
			return true, r.results(&e, l, v)
		}
	}
	return true, nil
}

// wanted reports whether a line may hold a call, or a result if those are asked for.
func wanted(data []byte, results bool) bool {
	for {
		i := bytes.Index(data, mark)
		if i < 0 {
			return false
		}
		data = data[i+len(mark):]
		if bytes.HasPrefix(data, callRest) || results && bytes.HasPrefix(data, resultRest) {
			return true
		}
	}
}

// looksWhole is what is asked of a line that holds nothing of interest: it would cost too much to read it all.
func looksWhole(data []byte) bool {
	data = bytes.TrimSpace(data)
	return len(data) >= 2 && data[0] == '{' && data[len(data)-1] == '}' && bytes.IndexByte(data, 0) < 0
}

// headLines and headBytes bound the search for a session's first directory.
const (
	headLines = 200
	headBytes = 1 << 20
)

// firstCwd returns the first directory that the lines of src name, "" if none does soon.
func (r *Reader) firstCwd(src io.Reader) string {
	r.lines.reset(io.LimitReader(src, headBytes), 0)
	for range headLines {
		l, err := r.lines.next()
		if err != nil {
			return ""
		}
		if !bytes.Contains(l.data, cwdMark) {
			continue
		}
		if e, err := readEntry(l.data); err == nil && len(e.cwd) > 0 {
			return string(e.cwd)
		}
	}
	return ""
}
