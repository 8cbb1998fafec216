// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/audit/segment"
)

// maxHits bounds how many records of one id are collected.
const maxHits = 10_000

// Records calls fn for each record, with its bodies, of the one call whose id has the prefix, in order. A record that
// belongs to no call is found by its own id. ErrNotFound, or ErrAmbiguous when several calls match; a complete id is never
// ambiguous.
func (l *Log) Records(ctx context.Context, prefix string, fn func(record.Record, map[string][]byte) error) error {
	return records(ctx, l, prefix, fn)
}

// hit is a record that matched.
type hit struct {
	f *file
	r *record.Record
}

func records(ctx context.Context, src source, prefix string, fn func(record.Record, map[string][]byte) error) (err error) {
	if prefix == "" {
		return fmt.Errorf("%w: empty id", ErrNotFound)
	}
	fs := &files{src: src}
	defer func() { err = errors.Join(err, fs.closeAll()) }()
	hits, bad := fs.find(ctx, prefix)
	if bad != nil && !errors.Is(bad, ErrDamaged) {
		return bad
	}
	id := prefix
	if len(hits[prefix]) == 0 {
		if len(hits) == 0 {
			return errors.Join(fmt.Errorf("%w: id %q", ErrNotFound, prefix), bad)
		}
		if len(hits) > 1 {
			return fmt.Errorf("%w: %q begins the ids of %d calls", ErrAmbiguous, prefix, len(hits))
		}
		for id = range hits {
		}
	}
	for _, h := range hits[id] {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		bodies, err := h.f.bodies(h.r.Seq)
		if err != nil {
			return err
		}
		if err := fn(*h.r, bodies); err != nil {
			return err
		}
	}
	return bad
}

// find returns all records whose id of call, or else of record, has the prefix, by that id.
func (fs *files) find(ctx context.Context, prefix string) (map[string][]hit, error) {
	quoted, err := json.Marshal(prefix)
	if err != nil {
		return nil, err
	}
	// A cheap look at the bytes before decoding them.
	needles := [][]byte{
		append([]byte(`"call":`), quoted[:len(quoted)-1]...),
		append([]byte(`"id":`), quoted[:len(quoted)-1]...),
	}
	hits, n := make(map[string][]hit), 0
	err = fs.rows(ctx, Range{}, func(f *file, row segment.Row) error {
		if !bytes.Contains(row.Leaf, needles[0]) && !bytes.Contains(row.Leaf, needles[1]) {
			return nil
		}
		r, err := record.Unmarshal(row.Leaf)
		if err != nil {
			return nil // Verify tells
		}
		id := r.Call
		if id == "" {
			id = r.ID
		}
		if n++; strings.HasPrefix(id, prefix) && n <= maxHits {
			hits[id] = append(hits[id], hit{f, r})
		}
		return nil
	})
	return hits, err
}
