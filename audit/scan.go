// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/audit/segment"
)

// errStop ends a scan early and without an error.
var errStop = errors.New("stop")

// Scan calls fn for each record in r, in order. What cannot be read is left out, and said with ErrDamaged at the end. An
// error of fn ends the scan and is returned.
func (l *Log) Scan(ctx context.Context, r Range, fn func(*record.Record, BodiesFunc) error) error {
	return scan(ctx, l, r, fn)
}

// Tail returns the newest n records, oldest first.
func (l *Log) Tail(ctx context.Context, n int) ([]record.Record, error) {
	if n <= 0 {
		return nil, nil
	}
	var out []record.Record
	from := uint64(1)
	if size := l.Size(); size > uint64(n) {
		from = size - uint64(n) + 1
	}
	// Holes make it fewer; that is the price of reading forward only.
	err := l.Scan(ctx, Range{FromSeq: from}, func(r *record.Record, _ BodiesFunc) error {
		if len(out) < n {
			out = append(out, *r)
		}
		return nil
	})
	return out, err
}

func scan(ctx context.Context, src source, rg Range, fn func(*record.Record, BodiesFunc) error) (err error) {
	fs := &files{src: src}
	defer func() { err = errors.Join(err, fs.closeAll()) }()
	var bad error
	err = fs.rows(ctx, rg, func(f *file, row segment.Row) error {
		r, err := record.Unmarshal(row.Leaf)
		if err != nil {
			bad = fmt.Errorf("%w: record %d: %v", ErrDamaged, row.Seq, err)
			return nil
		}
		return fn(r, func() (map[string][]byte, error) { return f.bodies(row.Seq) })
	})
	return errors.Join(err, bad)
}

// rows calls fn for each row in the range. An unreadable segment is left out and reported at the end.
func (fs *files) rows(ctx context.Context, rg Range, fn func(*file, segment.Row) error) error {
	list, err := fs.list()
	if err != nil {
		return err
	}
	var bad []error
	for _, f := range list {
		if f.next.First != 0 && f.next.First <= rg.FromSeq {
			continue
		}
		err := f.rows(ctx, rg, fn)
		switch {
		case errors.Is(err, errStop):
			return errors.Join(bad...)
		case errors.Is(err, ErrDamaged) && !f.mayHold(rg):
		case errors.Is(err, ErrDamaged):
			bad = append(bad, err)
		case err != nil:
			return errors.Join(append(bad, err)...)
		}
	}
	return errors.Join(bad...)
}

func (f *file) rows(ctx context.Context, rg Range, fn func(*file, segment.Row) error) error {
	var head segment.Head
	err := f.do(func(s *segment.Segment) (err error) {
		head, err = s.Head()
		return err
	})
	if err != nil {
		return err
	}
	if !head.To.IsZero() && (!rg.From.IsZero() && head.To.Before(rg.From) || !rg.To.IsZero() && !head.From.Before(rg.To)) {
		return nil
	}
	for from := max(rg.FromSeq, f.name.First); ; {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		var page []segment.Row
		err := f.do(func(s *segment.Segment) (err error) {
			page, err = s.Page(from)
			return err
		})
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return nil
		}
		for _, row := range page {
			if !rg.holds(row.Leaf) {
				continue
			}
			if err := fn(f, row); err != nil {
				return err
			}
		}
		from = page[len(page)-1].Seq + 1
	}
}

// holds says whether the time of a leaf is in the range. A leaf without a readable time is: better to show it.
func (rg Range) holds(leaf []byte) bool {
	if rg.From.IsZero() && rg.To.IsZero() {
		return true
	}
	h, ok := record.Peek(leaf)
	if !ok {
		r, err := record.Unmarshal(leaf)
		if err != nil {
			return true
		}
		h = r.Head()
	}
	return inRange(h.Time, rg.From, rg.To)
}

// inRange says whether t is in [from, to); zero times do not restrict.
func inRange(t, from, to time.Time) bool {
	return !t.Before(from) && (to.IsZero() || t.Before(to))
}

// bodies loads the bodies of one record.
func (f *file) bodies(seq uint64) (map[string][]byte, error) {
	out := make(map[string][]byte)
	err := f.do(func(s *segment.Segment) error {
		all, err := s.Bodies(seq)
		for _, b := range all[seq] {
			out[b.Name] = b.Data
		}
		return err
	})
	return out, err
}
