// SPDX-License-Identifier: Apache-2.0

// Package verify checks a log: every record against its leaf hash, the hashes against the signed checkpoints, bodies against
// their commitments, segments against each other, and the whole against anchors, which are positions that something outside
// the log has seen.
//
// It trusts nothing but the verifier key and the anchors that it is given. What it finds, from the worst news to the best:
//
//	CORRUPT    a segment, or a part of one, cannot be read
//	KEY        a checkpoint is signed by another key, or no key is known
//	FORKED     the tree differs from what an anchor, or the next segment, saw of it
//	TRUNCATED  there is less than a checkpoint, an anchor or the next segment says
//	EDITED     a record, a body, a hash or a checkpoint is not what it was
//	GAP        records are missing that nothing declares
//	OK
//
// The outcome is the first finding in the order of sequence numbers. Without an anchor, OK says little against whoever can
// read the signing key; that is the warning "unanchored".
package verify

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/tripline-sh/tripline/audit/internal/checkpoint"
	"github.com/tripline-sh/tripline/audit/record"
)

// Outcomes.
const (
	OK        = "OK"
	Edited    = "EDITED"
	Forked    = "FORKED"
	Truncated = "TRUNCATED"
	Corrupt   = "CORRUPT"
	Key       = "KEY"
	Gap       = "GAP"
)

// Source is a log to check. Segments are numbered in the order of their first records.
type Source interface {
	// Names returns the file names of all segments and their first sequence numbers.
	Names() ([]Name, error)
	// Open opens one of them.
	Open(Name) (Segment, error)
}

// Errors that a Source and its segments may return for what is a finding; any other error ends the verification.
var (
	ErrDamaged = errors.New("damaged")
	ErrForeign = errors.New("no segment of this log")
)

// Name is a segment's file name and the sequence number in it.
type Name struct {
	File  string
	First uint64
}

// Segment is an open segment.
type Segment interface {
	Meta() *record.SegmentMeta
	// Head returns the number of records and the newest checkpoint, both of the same moment.
	Head() (size uint64, checkpoint []byte, err error)
	// Page returns some records from a sequence number on, bodies included; none at the end.
	Page(from uint64) ([]Row, error)
	// Checkpoints returns the older checkpoints that were kept, smallest first.
	Checkpoints() ([][]byte, error)
	tlog.HashReader
	Close() error
}

// Row is one stored record.
type Row struct {
	Seq    uint64
	Leaf   []byte
	Bodies []record.Body
}

// Anchor is a position that something outside the segments has seen. Root is a prefix of the root in hex, at least 16
// characters, or the whole root in base64; empty, only the size is checked.
type Anchor struct {
	Seq  uint64
	Root string
	Weak bool // seen by the log's own user on the same machine: checked, but no witness
}

// Options of Run.
type Options struct {
	Verifier string // note verifier key; without it every signature is unknown
	Anchors  []Anchor
}

// finding is something that is wrong.
type finding struct {
	outcome string
	seq     uint64 // first bad record, 0 if no single one
	detail  string
}

func (f *finding) Error() string { return f.detail }

func found(outcome string, seq uint64, format string, args ...any) *finding {
	return &finding{outcome, seq, fmt.Sprintf(format, args...)}
}

// run is one verification under way.
type run struct {
	o        Options
	verifier note.Verifier // nil: unknown
	log      string        // log id
	result   record.Verification
	first    *finding
	missing  int // bodies that are stored no more
	gaps     int // gap records
	prev     *part
	anchors  []*anchorState
}

// anchorState is an anchor and what became of it.
type anchorState struct {
	Anchor
	met bool
}

// part is a checked segment.
type part struct {
	name  Name
	size  uint64
	roots map[uint64]tlog.Hash // root at each size that somebody asked for
	root  tlog.Hash            // at size
	sound bool
}

func (p *part) end() uint64 { return p.name.First + p.size - 1 }

// Run checks everything. The error says that it could not be done, never that something is wrong with the log.
func Run(ctx context.Context, src Source, o Options) (record.Verification, error) {
	r := &run{o: o}
	for _, a := range o.Anchors {
		if err := CheckRoot(a.Root); err != nil {
			return r.result, fmt.Errorf("anchor at %d: %w", a.Seq, err)
		}
		r.anchors = append(r.anchors, &anchorState{Anchor: a})
	}
	if o.Verifier != "" {
		v, id, err := checkpoint.ParseVerifier(o.Verifier)
		if err != nil {
			return r.result, err
		}
		r.verifier, r.log = v, id
	}
	names, err := src.Names()
	if err != nil {
		return r.result, err
	}
	metas, err := r.metas(src, names)
	if err != nil {
		return r.result, err
	}
	for i, n := range names {
		if err := r.segment(ctx, src, n, metas[i], next(metas[i+1:])); err != nil {
			return r.result, err
		}
	}
	r.finish()
	return r.result, nil
}

// metas reads the descriptions of all segments, nil where there is none to read.
func (r *run) metas(src Source, names []Name) ([]*record.SegmentMeta, error) {
	metas := make([]*record.SegmentMeta, len(names))
	for i, n := range names {
		s, err := src.Open(n)
		if err != nil {
			continue // told when its turn comes
		}
		metas[i] = s.Meta()
		if err := s.Close(); err != nil {
			return nil, err
		}
	}
	return metas, nil
}

// next returns the first description that there is.
func next(metas []*record.SegmentMeta) *record.SegmentMeta {
	for _, m := range metas {
		if m != nil {
			return m
		}
	}
	return nil
}

// segment checks one segment and its place behind the one before.
func (r *run) segment(ctx context.Context, src Source, n Name, meta, following *record.SegmentMeta) error {
	check := record.SegmentCheck{File: n.File, First: n.First, Outcome: OK}
	s, err := src.Open(n)
	switch {
	case errors.Is(err, ErrForeign):
		r.warn("skipped: %v", err)
		return nil
	case errors.Is(err, ErrDamaged):
		r.note(&check, found(Corrupt, n.First, "segment %s cannot be read: %v", n.File, err))
		r.result.Segments = append(r.result.Segments, check)
		return nil
	case err != nil:
		return err
	}
	w := &walk{run: r, s: s, name: n, meta: s.Meta(), wanted: map[uint64]bool{}}
	if following != nil && following.Prev != nil && following.Prev.Name == n.File {
		w.wanted[following.Prev.Size] = true
	}
	for _, a := range r.anchors {
		if a.Seq >= n.First {
			w.wanted[a.Seq-n.First+1] = true
		}
	}
	r.note(&check, r.follows(w.meta))
	p, err := w.check(ctx)
	var f *finding
	if errors.As(err, &f) {
		err = nil
	} else if errors.Is(err, ErrDamaged) {
		f, err = found(Corrupt, n.First+w.tree.n, "segment %s cannot be read: %v", n.File, err), nil
	}
	if cerr := s.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	r.note(&check, f)
	r.note(&check, r.meet(p))
	p.sound = check.Outcome == OK
	check.Size, check.Root = p.size, p.root.String()
	r.result.Segments = append(r.result.Segments, check)
	r.result.Size += p.size
	r.result.Root = p.root.String()
	r.prev = p
	return nil
}

// note enters a finding; the first one is the outcome.
func (r *run) note(c *record.SegmentCheck, f *finding) {
	if f == nil {
		return
	}
	if c.Outcome == OK {
		c.Outcome, c.Detail = f.outcome, f.detail
	}
	if r.first == nil {
		r.first = f
	}
}

func (r *run) warn(format string, args ...any) {
	r.result.Warnings = append(r.result.Warnings, fmt.Sprintf(format, args...))
}

// finish turns what was found into the result.
func (r *run) finish() {
	last := uint64(0)
	if r.prev != nil {
		last = r.prev.end()
	}
	external := false
	for _, a := range r.anchors {
		external = external || !a.Weak
		switch {
		case a.met && !a.Weak:
			r.result.Anchored = max(r.result.Anchored, a.Seq)
		case a.met:
		case r.first == nil && a.Seq > last:
			r.first = found(Truncated, last+1, "record %d was seen outside the log, which ends at %d", a.Seq, last)
		case r.first == nil:
			r.first = found(Truncated, a.Seq, "record %d was seen outside the log and is not in it", a.Seq)
		}
	}
	if !external {
		r.warn("unanchored: nothing outside this user's reach vouches for the log")
	}
	if r.gaps > 0 {
		r.warn("gap: %d gap records declare what could not be recorded or kept", r.gaps)
	}
	if r.missing > 0 {
		r.warn("bodies: %d bodies are no longer stored", r.missing)
	}
	r.result.Outcome = OK
	if r.first != nil {
		r.result.Outcome, r.result.FirstBad, r.result.Detail = r.first.outcome, r.first.seq, r.first.detail
		return
	}
	r.result.Detail = fmt.Sprintf("%d records in %d segments are as they were written", r.result.Size, len(r.result.Segments))
	if len(r.result.Segments) == 1 {
		r.result.Detail = fmt.Sprintf("%d records in one segment are as they were written", r.result.Size)
	}
	if len(r.result.Segments) == 0 {
		r.result.Detail = "there are no records"
	}
	if strings.Contains(strings.Join(r.result.Warnings, "\n"), "unanchored") {
		r.result.Detail += ", as far as the log itself can tell"
	}
}
