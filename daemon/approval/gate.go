// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
)

// Gate holds all cards. It is safe for concurrent use. It has no goroutine of its own: its owner calls Tick about once a
// second, and Close at the end.
type Gate struct {
	o      Options
	bootID string

	edge chan struct{} // held while one edge is made; the Recorder is only called under it
	done chan struct{} // closed by Close
	idle chan struct{} // closed when Close was called and the last waiter has left

	mu          sync.Mutex // guards what follows; never held while the Recorder works
	closed      bool       // no wait begins any more
	key         []byte
	keyStored   bool
	cards       map[string]*entry
	byToken     map[string]*entry // the card that counts for a token
	tombs       map[string]tomb
	tombByToken map[string]string
	waiting     int
}

// entry is a card in memory. Its stored part changes only under both edge and mu.
type entry struct {
	stored
	waiters int
	changed chan struct{} // closed and replaced when the card takes an edge
}

// New makes a Gate from the state of a former life. Nobody waits for its cards any more. Cards whose time is over take
// their edge now, and what cannot be understood is removed, all on record; an error of the Recorder is an error of New.
func New(ctx context.Context, o Options) (*Gate, error) {
	if o.Recorder == nil || o.Now == nil || o.Boot == nil || o.Recheck == nil {
		return nil, errors.New("approval gate: recorder, clocks and recheck are required")
	}
	if o.Clean == nil {
		o.Clean = func(s string) string { return s }
	}
	setDefault(&o.Hold, defaultHold)
	setDefault(&o.DecideBy, defaultDecideBy)
	setDefault(&o.UseBy, defaultUseBy)
	setDefault(&o.MaxWaiting, 64)
	setDefault(&o.MaxCards, 256)
	setDefault(&o.maxTombs, maxTombs)
	g := &Gate{
		o: o, bootID: o.BootID,
		edge: make(chan struct{}, 1), done: make(chan struct{}), idle: make(chan struct{}),
		cards: map[string]*entry{}, byToken: map[string]*entry{}, tombs: map[string]tomb{}, tombByToken: map[string]string{},
	}
	if g.bootID == "" {
		g.bootID = "life:" + newID() // unknown after a restart, and then the wall clock alone counts
	}
	bad := g.load(o.Load)
	g.o.Load = nil
	if !g.keyStored {
		g.key = newKey()
	}
	if len(bad) > 0 {
		ops := make([]StateOp, len(bad))
		for i, key := range bad {
			ops[i].Key = key
		}
		detail := map[string]string{"cause": "unreadable", "entries": strconv.Itoa(len(bad))}
		e := Event{Kind: record.ApprovalCancelled, At: g.now().wall, Detail: detail, State: ops}
		if _, err := o.Recorder.Record(ctx, e); err != nil {
			return nil, fmt.Errorf("approval gate: %w", err)
		}
	}
	if _, err := g.Tick(ctx); err != nil {
		return nil, fmt.Errorf("approval gate: %w", err)
	}
	return g, nil
}

func setDefault[T int | time.Duration](v *T, def T) {
	if *v <= 0 {
		*v = def
	}
}

// lock makes the caller the only one that takes edges.
func (g *Gate) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-g.done:
		return ErrClosed
	default:
	}
	select {
	case g.edge <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-g.done:
		return ErrClosed
	}
}

func (g *Gate) unlock() { <-g.edge }

// step describes one edge of a card.
type step struct {
	kind   record.Kind
	to     State
	call   string
	detail map[string]string
	change func(*stored)
	ops    []StateOp
	apply  func() // further changes in memory, made together with the edge
}

// take makes one edge durable and then visible. The caller holds the edge lock. A new card has no entry in g.cards yet.
func (g *Gate) take(ctx context.Context, e *entry, at instant, s step) error {
	g.mu.Lock()
	next := e.stored
	keyStored := g.keyStored
	g.mu.Unlock()
	next.State = s.to
	if s.to.final() {
		next.EndedAt = at.wall
		next.Input = shrink(next.Input, maxFinalInput)
	}
	if s.change != nil {
		s.change(&next)
	}
	op, err := next.op()
	if err != nil {
		return err
	}
	ops := append([]StateOp{op}, s.ops...)
	if !keyStored {
		ops = append(ops, StateOp{Key: keyKey, Value: slices.Clone(g.key)})
	}
	seq, err := g.o.Recorder.Record(ctx, Event{Kind: s.kind, At: at.wall, Card: next.Card, Call: s.call, Detail: s.detail, State: ops})
	if err != nil {
		return err
	}
	g.mu.Lock()
	next.Seq = seq
	e.stored = next
	g.keyStored = true
	if s.apply != nil {
		s.apply()
	}
	close(e.changed)
	e.changed = make(chan struct{})
	pending := g.pendingLocked()
	g.mu.Unlock()
	if g.o.OnChange != nil {
		g.o.OnChange(pending)
	}
	return nil
}

// settle gives a card whose time is over its edge. The caller holds the edge lock.
func (g *Gate) settle(ctx context.Context, e *entry, at instant) error {
	g.mu.Lock()
	state, over := e.State, e.Ends.passed(at)
	g.mu.Unlock()
	switch {
	case state == Pending && over:
		return g.take(ctx, e, at, step{kind: record.ApprovalExpired, to: Expired})
	case state == Approved && over:
		return g.take(ctx, e, at, step{kind: record.ApprovalLapsed, to: Lapsed})
	}
	return nil
}

// Tick gives every card whose time is over its edge and returns how many there were. It goes on after an error and returns
// all of them.
func (g *Gate) Tick(ctx context.Context) (n int, err error) {
	for _, id := range g.overdue() {
		done, e := g.settleID(ctx, id)
		if done {
			n++
		}
		err = errors.Join(err, e)
	}
	return n, err
}

func (g *Gate) overdue() (ids []string) {
	at := g.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, e := range g.cards {
		if !e.State.final() && e.Ends.passed(at) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (g *Gate) settleID(ctx context.Context, id string) (bool, error) {
	if err := g.lock(ctx); err != nil {
		return false, err
	}
	defer g.unlock()
	g.mu.Lock()
	e := g.cards[id]
	final := e == nil || e.State.final()
	g.mu.Unlock()
	if final {
		return false, nil
	}
	if err := g.settle(ctx, e, g.now()); err != nil {
		return false, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return e.State.final(), nil
}

// Close releases every waiter as detached, lets a step under way end, and refuses all further ones. Cards stay as they are.
func (g *Gate) Close(ctx context.Context) error {
	g.mu.Lock()
	if !g.closed {
		g.closed = true
		close(g.done)
		if g.waiting == 0 {
			close(g.idle)
		}
	}
	g.mu.Unlock()
	select {
	case <-g.idle:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case g.edge <- struct{}{}:
		<-g.edge
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
