// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/audit/segment"
)

// request is one Append on its way through the writer.
type request struct {
	rec    record.Record // Seq is 0
	leaf   []byte        // of rec
	bodies []record.Body
	ops    []StateOp
	size   int           // of leaf, bodies and state, to bound a group
	gone   atomic.Bool   // nobody waits any more
	answer chan response // one slot
}

type response struct {
	receipt Receipt
	err     error
}

// Append makes e durable and returns its receipt. Concurrent callers share a commit. Errors: ErrInvalid (nothing was
// written), ErrClosed (likewise), ErrUnavailable (it may or may not have been). When ctx ends first, the error is its cause
// joined with ErrUnavailable, and the record may still be written.
func (l *Log) Append(ctx context.Context, e *Entry) (Receipt, error) {
	r, err := l.request(e)
	if err != nil {
		return Receipt{}, err
	}
	if err := l.Err(); err != nil {
		return Receipt{}, err
	}
	select {
	case l.queue <- r:
	case <-l.stop:
		return Receipt{}, ErrClosed
	case <-ctx.Done():
		return Receipt{}, fmt.Errorf("%w: %w", ErrUnavailable, context.Cause(ctx))
	}
	select {
	case a := <-r.answer:
		return a.receipt, a.err
	case <-l.done:
		// The writer answers everything that it took before it ends.
		select {
		case a := <-r.answer:
			return a.receipt, a.err
		default:
			return Receipt{}, ErrClosed
		}
	case <-ctx.Done():
		r.gone.Store(true)
		return Receipt{}, fmt.Errorf("%w: %w", ErrUnavailable, context.Cause(ctx))
	}
}

// request checks e and does what needs no sequence number: ids, salts, commitments.
func (l *Log) request(e *Entry) (*request, error) {
	r := &request{rec: e.Record, ops: e.State, answer: make(chan response, 1)}
	if len(e.Bodies) > MaxBodies {
		return nil, fmt.Errorf("%w: %d bodies", ErrInvalid, len(e.Bodies))
	}
	r.rec.Bodies = nil
	for i, b := range e.Bodies {
		switch {
		case !record.ValidName(b.Name):
			return nil, fmt.Errorf("%w: body name %q", ErrInvalid, b.Name)
		case len(b.Data) > MaxBody:
			return nil, fmt.Errorf("%w: body %q of %d bytes", ErrInvalid, b.Name, len(b.Data))
		}
		for _, other := range e.Bodies[:i] {
			if other.Name == b.Name {
				return nil, fmt.Errorf("%w: two bodies %q", ErrInvalid, b.Name)
			}
		}
		salt := make([]byte, record.SaltSize)
		_, _ = rand.Read(salt) // crypto/rand.Read never fails
		r.bodies = append(r.bodies, record.Body{Name: b.Name, Salt: salt, Data: b.Data})
		r.rec.Bodies = append(r.rec.Bodies, record.Commitment{
			Name: b.Name, Len: len(b.Data), Full: b.Full, Redacted: b.Redacted, Cut: b.Cut,
			MAC: record.MAC(salt, b.Name, b.Data),
		})
		r.size += len(b.Data)
	}
	for _, op := range e.State {
		if len(op.Key) < 1 || len(op.Key) > MaxStateKey || len(op.Value) > MaxStateValue {
			return nil, fmt.Errorf("%w: state key of %d bytes, value of %d", ErrInvalid, len(op.Key), len(op.Value))
		}
		r.size += len(op.Key) + len(op.Value)
	}
	if r.rec.Kind == "" {
		return nil, fmt.Errorf("%w: no kind", ErrInvalid)
	}
	if r.rec.Time.IsZero() {
		r.rec.Time = l.o.Now()
	}
	r.rec.V, r.rec.Seq, r.rec.Time = record.Version, 0, r.rec.Time.UTC().Round(0)
	if y := r.rec.Time.Year(); y < 1970 || y > 2200 {
		return nil, fmt.Errorf("%w: impossible time", ErrInvalid)
	}
	if r.rec.ID == "" {
		r.rec.ID = record.NewID(r.rec.Time)
	}
	if r.rec.Kind == record.CallRequested && r.rec.Call == "" {
		r.rec.Call = r.rec.ID
	}
	leaf, err := record.Marshal(&r.rec)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrInvalid, err)
	}
	if len(leaf) > MaxRecord-20 {
		return nil, fmt.Errorf("%w: record of %d bytes", ErrInvalid, len(leaf))
	}
	r.leaf = leaf
	r.size += len(leaf)
	return r, nil
}

// leafHead is how the leaf of a record without a sequence number begins.
const leafHead = `{"v":1,"seq":0,`

// item gives the record its place in the log. The number is put into the finished leaf, so that the writer, which everybody
// waits for, need not encode.
func (r *request) item(seq uint64) segment.Item {
	leaf := make([]byte, 0, len(r.leaf)+20)
	leaf = append(leaf, leafHead[:len(leafHead)-len("0,")]...)
	leaf = strconv.AppendUint(leaf, seq, 10)
	leaf = append(leaf, r.leaf[len(leafHead)-len(","):]...)
	return segment.Item{Seq: seq, Leaf: leaf, Time: r.rec.Time, Bodies: r.bodies}
}
