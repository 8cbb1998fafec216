// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/tripline-sh/tripline/audit/internal/checkpoint"
	"github.com/tripline-sh/tripline/audit/record"
)

// walk goes through one segment.
type walk struct {
	run    *run
	s      Segment
	name   Name
	meta   *record.SegmentMeta
	wanted map[uint64]bool // sizes at which the root is needed
	tree   tree
	kept   []checkpoint.Checkpoint // older checkpoints, smallest first
	good   uint64                  // the largest size at which a kept checkpoint agreed
	roots  map[uint64]tlog.Hash
}

// check walks through the segment and returns what it holds, and as an error the first *finding.
func (w *walk) check(ctx context.Context) (*part, error) {
	w.roots = make(map[uint64]tlog.Hash)
	size, signed, err := w.s.Head()
	if err != nil {
		return w.part(), err
	}
	older, err := w.s.Checkpoints()
	if err != nil {
		return w.part(), err
	}
	var keptFinding *finding
	for _, msg := range older {
		if c, f := w.open(msg); f != nil {
			keptFinding = f
		} else {
			w.kept = append(w.kept, c)
		}
	}
	if err := w.records(ctx, size); err != nil {
		return w.part(), err
	}
	cp, f := w.open(signed)
	switch {
	case f != nil:
		return w.part(), f
	case cp.Size > size:
		return w.part(), found(Truncated, w.name.First+size, "segment %s holds %d records, its checkpoint says %d", w.name.File, size, cp.Size)
	case cp.Size < size:
		return w.part(), found(Edited, w.name.First+cp.Size, "segment %s holds %d records, its checkpoint covers only %d", w.name.File, size, cp.Size)
	case size == 0 || cp.Root != w.tree.root():
		return w.part(), found(Edited, w.name.First+w.good, "records from %d on do not add up to the signed root of segment %s", w.name.First+w.good, w.name.File)
	case keptFinding != nil:
		return w.part(), keptFinding
	}
	return w.part(), nil
}

// part describes what was walked through.
func (w *walk) part() *part {
	p := &part{name: w.name, size: w.tree.n, roots: maps.Clone(w.roots)}
	if w.tree.n > 0 {
		p.root = w.tree.root()
	}
	return p
}

// open checks the signature of a checkpoint and that it speaks of this segment.
func (w *walk) open(msg []byte) (checkpoint.Checkpoint, *finding) {
	if w.run.verifier == nil {
		return checkpoint.Checkpoint{}, found(Key, 0, "no key is known to check signatures with")
	}
	c, err := checkpoint.Open(msg, w.run.verifier)
	switch {
	case errors.Is(err, checkpoint.ErrKey):
		return c, found(Key, 0, "a checkpoint of segment %s is not signed by %s", w.name.File, w.run.verifier.Name())
	case err != nil:
		return c, found(Edited, w.name.First, "a checkpoint of segment %s was changed: %v", w.name.File, err)
	case c.LogID != w.run.log || c.Segment+".db" != w.name.File:
		return c, found(Edited, w.name.First, "segment %s carries a checkpoint of %s", w.name.File, c.Segment)
	}
	return c, nil
}

// records walks through size records.
func (w *walk) records(ctx context.Context, size uint64) error {
	for w.tree.n < size {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		rows, err := w.s.Page(w.name.First + w.tree.n)
		if err != nil {
			return err
		}
		if left := size - w.tree.n; uint64(len(rows)) > left {
			rows = rows[:left] // written since
		}
		if len(rows) == 0 {
			return w.hole(size)
		}
		stored, err := w.hashes(uint64(len(rows)))
		if err != nil {
			return err
		}
		for _, row := range rows {
			if row.Seq != w.name.First+w.tree.n {
				return w.hole(row.Seq - w.name.First)
			}
			var f *finding
			if f, stored = w.record(row, stored); f != nil {
				return f
			}
		}
	}
	return nil
}

func (w *walk) hole(until uint64) *finding {
	seq := w.name.First + w.tree.n
	return found(Gap, seq, "records %d to %d are missing and nothing declares it", seq, w.name.First+until-1)
}

// hashes reads the stored hashes of the next n records.
func (w *walk) hashes(n uint64) ([]tlog.Hash, error) {
	from, to := tlog.StoredHashIndex(0, int64(w.tree.n)), tlog.StoredHashIndex(0, int64(w.tree.n+n))
	indexes := make([]int64, 0, to-from)
	for i := from; i < to; i++ {
		indexes = append(indexes, i)
	}
	return w.s.ReadHashes(indexes)
}

// leaf is what has to be read of a record to check it.
type leaf struct {
	V      int                 `json:"v"`
	Seq    uint64              `json:"seq"`
	Kind   record.Kind         `json:"kind"`
	Bodies []record.Commitment `json:"bodies"`
	Detail map[string]string   `json:"detail"`
}

// record checks one record and adds it to the tree. It returns the stored hashes behind its own.
func (w *walk) record(row Row, stored []tlog.Hash) (*finding, []tlog.Hash) {
	hashes := w.tree.add(tlog.RecordHash(row.Leaf))
	if len(stored) < len(hashes) {
		return found(Corrupt, row.Seq, "the tree hashes of record %d are missing", row.Seq), nil
	}
	for i, h := range hashes {
		if h == stored[i] {
			continue
		}
		if i == 0 {
			return found(Edited, row.Seq, "record %d is not what it was when it was hashed", row.Seq), nil
		}
		return found(Edited, row.Seq, "a tree hash above record %d was changed", row.Seq), nil
	}
	var l leaf
	if err := json.Unmarshal(row.Leaf, &l); err != nil {
		return found(Edited, row.Seq, "record %d is not JSON", row.Seq), nil
	}
	if l.Seq != row.Seq || l.V < 1 {
		return found(Edited, row.Seq, "record %d says that it is number %d", row.Seq, l.Seq), nil
	}
	if f := w.bodies(row, l); f != nil {
		return f, nil
	}
	if row.Seq == w.name.First {
		if f := w.begin(l); f != nil {
			return f, nil
		}
	}
	if l.Kind == record.Gap {
		w.run.gaps++
	}
	return w.sizes(), stored[len(hashes):]
}

// bodies checks the stored bodies of one record. That some are missing is no finding: they may be taken away.
func (w *walk) bodies(row Row, l leaf) *finding {
	left := len(l.Bodies)
	for _, b := range row.Bodies {
		ok := false
		for _, c := range l.Bodies {
			ok = ok || c.Matches(b)
		}
		if !ok {
			return found(Edited, row.Seq, "body %q of record %d is not what it was", b.Name, row.Seq)
		}
		left--
	}
	w.run.missing += max(left, 0)
	return nil
}

// begin checks that the first record repeats the segment's description.
func (w *walk) begin(l leaf) *finding {
	bad := found(Edited, w.name.First, "segment %s does not begin as its description says", w.name.File)
	if l.Kind != record.SegmentBegin {
		return bad
	}
	for k, v := range w.meta.Detail() {
		if l.Detail[k] != v {
			return bad
		}
	}
	for k := range l.Detail {
		if _, ok := w.meta.Detail()[k]; !ok && (strings.HasPrefix(k, "prev_") || strings.HasPrefix(k, "lost_")) {
			return bad
		}
	}
	return nil
}

// sizes remembers the root if somebody needs it at this size, and compares it with a kept checkpoint.
func (w *walk) sizes() *finding {
	n := w.tree.n
	if w.wanted[n] {
		w.roots[n] = w.tree.root()
	}
	for len(w.kept) > 0 && w.kept[0].Size <= n {
		c := w.kept[0]
		w.kept = w.kept[1:]
		if c.Size < n {
			continue // a copy of an older one under another number; the order of the rest still holds
		}
		if c.Root != w.tree.root() {
			return found(Edited, w.name.First+w.good, "records %d to %d are not those of a checkpoint kept in segment %s", w.name.First+w.good, w.name.First+n-1, w.name.File)
		}
		w.good = n
	}
	return nil
}
