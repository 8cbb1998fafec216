// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/tripline-sh/tripline/audit/internal/durable"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/audit/segment"
)

// margin is added to the highest known sequence number when a segment is lost and what it held is only known from a
// checkpoint that may be a second old.
const margin = 100_000

// found is what is on disk before anything is repaired.
type found struct {
	live    *segment.Segment // the newest segment, open for writing; nil if there is none that may be written to
	prev    *record.Link     // the newest readable segment when live is nil
	end     uint64           // last readable sequence number
	state   map[string][]byte
	damaged string // where the unreadable newest file lies now
	salvage uint64 // the last sequence number that could be read from it
	seen    bool   // there was some segment of ours
}

// resume makes l.live the segment to write to. Records up to must are known to have been on disk; memory is the state as
// this process knows it, nil when it starts. Called by Open before the writer starts, then only by the writer.
func (l *Log) resume(must uint64, memory map[string][]byte) error {
	f, err := l.look()
	if err != nil {
		return err
	}
	starting := memory == nil
	if starting {
		memory = map[string][]byte{}
		l.report.FirstRun = !f.seen && must == 0
	}
	if f.live != nil && f.end >= must {
		return l.adopt(f.live, nil)
	}
	if f.live != nil { // it is an older copy: leave it as it is
		f.prev, f.state = link(f.live.Name(), f.live.Tip()), nil
		if f.state, err = f.live.State(); err != nil {
			return errors.Join(err, f.live.Close())
		}
		if err := f.live.Close(); err != nil {
			return err
		}
	}
	if !starting {
		f.state = memory
	} else if f.seen && f.damaged == "" && f.state != nil {
		l.addReport(func(r *Report) { r.StateStale = true })
	}
	if f.state == nil {
		f.state = map[string][]byte{}
		l.addReport(func(r *Report) { r.StateLost = f.damaged != "" })
	}
	return l.restart(f, must, starting)
}

// restart begins a new segment after f, declaring what is lost.
func (l *Log) restart(f found, must uint64, starting bool) error {
	last := max(f.end, must, f.salvage)
	if l.attempted > last {
		last = l.attempted
	}
	if starting && f.damaged != "" && f.salvage == 0 {
		last += margin
	}
	var lost *record.Lost
	if last > f.end {
		lost = &record.Lost{First: f.end + 1, Last: last, Cause: "missing", File: f.damaged}
		if f.damaged != "" {
			lost.Cause = "damaged"
		}
		l.addReport(func(r *Report) { r.Lost += last - f.end })
	}
	s, err := l.create(f.prev, lost, last+1, f.state)
	if err != nil {
		return err
	}
	return l.adopt(s, f.state)
}

// look finds the newest segment and sets aside what cannot be read.
func (l *Log) look() (f found, err error) {
	names, err := segment.List(l.o.Dir)
	if err != nil {
		return f, err
	}
	for i := len(names) - 1; i >= 0; i-- {
		newest := !f.seen
		s, err := segment.Open(l.path(names[i]), l.segmentOptions(newest))
		switch {
		case err == nil:
			f.seen = true
			return f, l.take(&f, s, newest)
		case errors.Is(err, segment.ErrForeign):
			l.addReport(func(r *Report) { r.Skipped = addOnce(r.Skipped, names[i].File()) })
		case errors.Is(err, segment.ErrDamaged) && newest:
			f.seen = true
			if err := l.quarantine(&f, names[i]); err != nil {
				return f, err
			}
		case errors.Is(err, segment.ErrDamaged): // an old one: Verify will say so
		case errors.Is(err, segment.ErrLocked):
			return f, fmt.Errorf("%w: %v", ErrLocked, err)
		case errors.Is(err, fs.ErrNotExist): // gone since it was listed
		default:
			return f, err
		}
	}
	return f, nil
}

// take fills f from the newest readable segment. One that contradicts its own checkpoint stays as it is, as evidence.
func (l *Log) take(f *found, s *segment.Segment, newest bool) error {
	tip := s.Tip()
	if !newest {
		root, err := s.RootAt(tip.Size)
		if err != nil {
			return errors.Join(err, s.Close())
		}
		tip.Root = root
	}
	f.end = tip.Last(s.Name().First)
	c, err := l.key.Open(tip.Checkpoint)
	sound := err == nil && c.Segment == s.Name().Origin() && c.Size == tip.Size && c.Root == tip.Root
	if newest && sound {
		f.live = s
		return nil
	}
	if newest {
		l.addReport(func(r *Report) { r.Tampered = addOnce(r.Tampered, s.Name().File()) })
		if err == nil && c.Segment == s.Name().Origin() && c.Size > tip.Size {
			// The checkpoint says how much there was.
			f.salvage = max(f.salvage, s.Name().First+c.Size-1)
		}
		if f.state, err = s.State(); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	f.prev = link(s.Name(), tip)
	return s.Close()
}

// quarantine renames the unreadable newest segment, after reading from it what can be read.
func (l *Log) quarantine(f *found, n segment.Name) error {
	o := l.segmentOptions(false)
	if s, err := segment.Open(l.path(n), o); err == nil {
		if h, err := s.Head(); err == nil && h.Size > 0 {
			f.salvage = h.Last(n.First)
		}
		if state, err := s.State(); err == nil {
			f.state = state
		}
		if err := s.Close(); err != nil {
			return err
		}
	}
	file, err := l.setAside(n)
	f.damaged = file
	return err
}

// setAside gives a damaged file a name under which nothing looks for a segment.
func (l *Log) setAside(n segment.Name) (string, error) {
	file := n.File() + "~corrupt-" + l.o.Now().UTC().Format("20060102T150405.000000000Z")
	if err := durable.Rename(l.path(n), filepath.Join(l.o.Dir, file)); err != nil {
		return "", err
	}
	l.addReport(func(r *Report) { r.Quarantined = append(r.Quarantined, file) })
	return file, nil
}

// create makes a segment that begins with the record first and opens it.
func (l *Log) create(prev *record.Link, lost *record.Lost, first uint64, state map[string][]byte) (*segment.Segment, error) {
	now := l.o.Now().UTC().Round(0)
	name := segment.Name{Day: segment.Day(now), First: first}
	meta := &record.SegmentMeta{
		V: record.Version, Log: l.key.LogID(), Name: name.File(), First: first, Created: now, Prev: prev, Lost: lost,
	}
	records := []*record.Record{{Kind: record.SegmentBegin, Detail: meta.Detail()}}
	if prev == nil {
		records[0].Detail["verifier_key"] = l.key.Verifier()
	}
	if lost != nil {
		records = append(records, gapRecord(lost))
	}
	items, err := ownItems(records, first, now)
	if err != nil {
		return nil, err
	}
	err = segment.Create(l.o.Dir, meta, state, items, l.sign, l.segmentOptions(true))
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("a new segment needs the name %q in %q, and something else has it: move that away: %w", name.File(), l.o.Dir, fs.ErrExist)
	}
	if err != nil {
		return nil, err
	}
	return segment.Open(l.path(name), l.segmentOptions(true))
}

// adopt makes s the live segment. state is its state if the caller knows it.
func (l *Log) adopt(s *segment.Segment, state map[string][]byte) error {
	if state == nil {
		var err error
		if state, err = s.State(); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	l.mu.Lock()
	l.live, l.tip, l.state = s, s.Tip(), state
	l.seq = l.tip.Last(s.Name().First)
	l.mu.Unlock()
	l.attempted = l.seq
	l.moved()
	return nil
}

// moved tells the anchor keeper that there is a new checkpoint.
func (l *Log) moved() {
	select {
	case l.dirty <- struct{}{}:
	default:
	}
}

func (l *Log) addReport(fn func(*Report)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fn(&l.report)
}

func addOnce(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// link describes a segment that is written to no more.
func link(n segment.Name, h segment.Head) *record.Link {
	return &record.Link{Name: n.File(), First: n.First, Size: h.Size, Root: h.Root.String(), Checkpoint: string(h.Checkpoint)}
}

// gapRecord declares a loss.
func gapRecord(lost *record.Lost) *record.Record {
	return &record.Record{Kind: record.Gap, Detail: map[string]string{
		"what":  "records",
		"cause": lost.Cause,
		"first": strconv.FormatUint(lost.First, 10),
		"last":  strconv.FormatUint(lost.Last, 10),
		"count": strconv.FormatUint(lost.Last-lost.First+1, 10),
		"file":  lost.File,
	}}
}

// ownItems completes records of the log itself.
func ownItems(records []*record.Record, first uint64, now time.Time) ([]segment.Item, error) {
	items := make([]segment.Item, 0, len(records))
	for i, r := range records {
		r.V, r.Seq, r.Time, r.ID = record.Version, first+uint64(i), now, record.NewID(now)
		leaf, err := record.Marshal(r)
		if err != nil {
			return nil, err
		}
		items = append(items, segment.Item{Seq: r.Seq, Leaf: leaf, Time: now})
	}
	return items, nil
}
