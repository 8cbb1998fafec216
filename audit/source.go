// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/tripline-sh/tripline/audit/segment"
)

// source is where queries find segments: a Log, which has the live one open, or a Reader.
type source interface {
	// place returns the directory and how to open segments in it.
	place() (dir string, o segment.Options)
	// open returns the live segment and a function that lets go of it, or nil if n is not live. The segment must be let go
	// of soon: a change of segments waits for it.
	borrow(n segment.Name) (*segment.Segment, func())
}

func (l *Log) place() (string, segment.Options) {
	o := l.segmentOptions(false)
	o.Timeout = readerPatience
	return l.o.Dir, o
}

func (l *Log) borrow(n segment.Name) (*segment.Segment, func()) {
	l.mu.RLock()
	if l.live != nil && l.live.Name() == n {
		return l.live, l.mu.RUnlock
	}
	l.mu.RUnlock()
	return nil, nil
}

// maxOpen is how many segment files one query holds open.
const maxOpen = 4

// files are the segments that one query reads. They belong to one goroutine.
type files struct {
	src  source
	open []*file // that hold an open file, least recently opened first
	lent *file   // the live segment, if it was read
}

// file is one segment of a query. Whether it is live can change between two uses.
type file struct {
	set  *files
	name segment.Name
	next segment.Name // the following segment; zero for the last
	own  *segment.Segment
}

// list returns the segments in order.
func (fs *files) list() ([]*file, error) {
	dir, _ := fs.src.place()
	names, err := segment.List(dir)
	if err != nil {
		return nil, err
	}
	out := make([]*file, len(names))
	for i, n := range names {
		out[i] = &file{set: fs, name: n}
		if i > 0 {
			out[i-1].next = n
		}
	}
	return out, nil
}

// do calls fn with the open segment. fn must not call out: the writer may be waiting for it.
func (f *file) do(fn func(*segment.Segment) error) error {
	if f.own == nil {
		if live, release := f.set.src.borrow(f.name); live != nil {
			defer release()
			f.set.lent = f
			return fn(live)
		}
		dir, o := f.set.src.place()
		s, err := segment.Open(filepath.Join(dir, f.name.File()), o)
		if err != nil {
			return translate(err)
		}
		f.own = s
		f.set.open = append(f.set.open, f)
		if len(f.set.open) > maxOpen {
			if err := f.set.open[0].close(); err != nil {
				return err
			}
		}
	}
	return translate(fn(f.own))
}

// close closes the file; do opens it again.
func (f *file) close() error {
	for i, o := range f.set.open {
		if o == f {
			f.set.open = append(f.set.open[:i], f.set.open[i+1:]...)
			break
		}
	}
	s := f.own
	f.own = nil
	return s.Close()
}

// closeAll closes what is open and gives back the memory that reading the live segment took.
func (fs *files) closeAll() error {
	var err error
	if fs.lent != nil {
		if live, release := fs.src.borrow(fs.lent.name); live != nil {
			live.Trim()
			release()
		}
	}
	for len(fs.open) > 0 {
		err = errors.Join(err, fs.open[0].close())
	}
	return err
}

// translate puts a segment's error into the terms of this package.
func translate(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, segment.ErrLocked):
		return fmt.Errorf("%w: %v", ErrLocked, err)
	case errors.Is(err, segment.ErrDamaged), errors.Is(err, segment.ErrForeign):
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// mayHold says whether a segment that cannot be opened may hold records of the range, going by names alone. Clocks are
// trusted to two days here.
func (f *file) mayHold(rg Range) bool {
	const slack = 48 * time.Hour
	if !rg.To.IsZero() && f.name.Day > segment.Day(rg.To.Add(slack)) {
		return false
	}
	return f.next.First == 0 || rg.From.IsZero() || f.next.Day >= segment.Day(rg.From.Add(-slack))
}
