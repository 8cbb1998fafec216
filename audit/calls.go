// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/audit/segment"
)

const (
	// lead is how far before the range records are read, so that a call that began before it is known as such.
	lead = 10 * time.Minute
	// trail is how far behind the range the ends of its calls are looked for.
	trail = 24 * time.Hour
	// window is how many calls wait for their end at most. Beyond it the oldest are delivered as they are.
	window = 1 << 15
)

// Calls calls fn for each call that f selects, in the order of their requests. With a limit it delivers the newest so many,
// still oldest first. Denied, Asked and Failed select calls to which at least one of those that are set applies. What cannot
// be read is left out, and said with ErrDamaged at the end. An error of fn ends the query and is returned.
func (l *Log) Calls(ctx context.Context, f record.Filter, fn func(record.Call) error) error {
	return calls(ctx, l, f, l.o.Now(), fn)
}

// query is one run of Calls.
type query struct {
	ctx   context.Context
	f     record.Filter
	now   time.Time
	fn    func(record.Call) error
	byID  map[string]*joined
	order []*joined
	held  []record.Call // with a limit: the newest selected calls that left the window
	open  int           // calls in the window without an end
	seen  map[string]*activity
	bad   error // the last record that could not be read
}

// activity is what the scan saw of a session.
type activity struct {
	last  time.Time
	ended uint64 // sequence number of its end, 0 if none
}

func calls(ctx context.Context, src source, f record.Filter, now time.Time, fn func(record.Call) error) (err error) {
	fs := &files{src: src}
	defer func() { err = errors.Join(err, fs.closeAll()) }()
	q := &query{ctx: ctx, f: f, now: now, fn: fn, byID: make(map[string]*joined), seen: make(map[string]*activity)}
	rg := Range{}
	if !f.From.IsZero() {
		rg.From = f.From.Add(-lead)
	}
	if !f.To.IsZero() {
		rg.To = f.To.Add(trail)
	}
	err = fs.rows(ctx, rg, func(file *file, row segment.Row) error {
		h, ok := record.Peek(row.Leaf)
		if !ok {
			r, err := record.Unmarshal(row.Leaf)
			if err != nil {
				q.bad = fmt.Errorf("%w: record %d: %v", ErrDamaged, row.Seq, err)
				return nil
			}
			h = r.Head()
		}
		return q.record(file, h, row.Leaf)
	})
	if err != nil && !errors.Is(err, ErrDamaged) {
		return err
	}
	return errors.Join(q.finish(), err, q.bad)
}

// record takes in one record.
func (q *query) record(f *file, h record.Head, leaf []byte) error {
	if h.Session != "" {
		a := q.seen[h.Session]
		if a == nil {
			a = new(activity)
			q.seen[h.Session] = a
		}
		if h.Time.After(a.last) {
			a.last = h.Time
		}
		if h.Kind == record.SessionEnd {
			a.ended = h.Seq
		}
	}
	id := callID(h)
	if id == "" {
		return nil
	}
	past := !q.f.To.IsZero() && !h.Time.Before(q.f.To)
	j := q.byID[id]
	if j == nil {
		if past && q.open == 0 {
			return errStop
		}
		// What no later record changes is tested at once.
		if past || !begins(h) || !hasPrefix(h.Session, q.f.Session) || !hasPrefix(id, q.f.ID) || !equal(h.Agent, q.f.Agent) {
			return nil
		}
		j = &joined{id: id, session: h.Session, early: h.Time.Before(q.f.From)}
		q.byID[id] = j
		q.order = append(q.order, j)
		q.open++
	}
	was := j.ended
	j.take(f, h, leaf)
	if !was && j.ended {
		q.open--
	}
	if len(q.order) > window {
		return q.evict()
	}
	return nil
}

// evict delivers the oldest quarter of the window.
func (q *query) evict() error {
	out := q.order[:window/4]
	q.order = slices.Clone(q.order[window/4:])
	for _, j := range out {
		delete(q.byID, j.id)
		if !j.ended {
			q.open--
		}
		c, ok, err := q.complete(j)
		if err != nil {
			return err
		}
		if ok && q.f.Limit > 0 {
			q.held = append(q.held, c)
			if len(q.held) >= 2*q.f.Limit {
				q.held = slices.Clone(q.held[len(q.held)-q.f.Limit:])
			}
		} else if ok {
			if err := q.fn(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// finish delivers what is left.
func (q *query) finish() error {
	if q.f.Limit <= 0 {
		for i, j := range q.order {
			q.order[i] = nil // it was put together, and is needed no more
			c, ok, err := q.complete(j)
			if err != nil {
				return err
			}
			if ok {
				if err := q.fn(c); err != nil {
					return err
				}
			}
		}
		return nil
	}
	var newest []record.Call // newest first
	for i := len(q.order) - 1; i >= 0 && len(newest) < q.f.Limit; i-- {
		c, ok, err := q.complete(q.order[i])
		if err != nil {
			return err
		}
		if ok {
			newest = append(newest, c)
		}
	}
	for i := len(q.held) - 1; i >= 0 && len(newest) < q.f.Limit; i-- {
		newest = append(newest, q.held[i])
	}
	for _, c := range slices.Backward(newest) {
		if err := q.fn(c); err != nil {
			return err
		}
	}
	return nil
}

// complete puts a call together and says whether the filter selects it.
func (q *query) complete(j *joined) (c record.Call, ok bool, err error) {
	if err := q.ctx.Err(); err != nil {
		return c, false, context.Cause(q.ctx)
	}
	if j.early {
		return c, false, nil
	}
	if err := j.decode(); err != nil {
		q.bad = err
		return c, false, nil
	}
	if !matchRequest(q.f, j.req, j.decision()) {
		return c, false, nil
	}
	req, err := j.reqFile.bodies(j.req.Seq)
	if err != nil {
		return c, false, err
	}
	end := req
	if j.end != nil && j.end != j.req {
		if end, err = j.endFile.bodies(j.end.Seq); err != nil {
			return c, false, err
		}
	}
	c = j.build(q.alive(j), req, end)
	return c, matchCall(q.f, c), nil
}

// alive says whether the end of a call can still come.
func (q *query) alive(j *joined) bool {
	last := j.req.Time
	if a := q.seen[j.session]; a != nil {
		if a.ended > j.req.Seq {
			return false
		}
		last = a.last
	}
	return q.now.Sub(last) < patience
}
