// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// How long a caller waits for a slot, and for one read. A local disk answers within microseconds; what needs longer than
// this is a file system that hangs.
const (
	slotPatience = time.Second
	readPatience = 2 * time.Second
)

// Pool bounds how many reads of the machine are under way in the process. A read that hangs (a dead network or FUSE mount)
// keeps its slot until the kernel lets go of it, but never its caller. A Pool is safe for concurrent use.
type Pool struct {
	slots        chan struct{}
	tree         tree
	slotPatience time.Duration
	readPatience time.Duration

	mu     sync.Mutex
	closed bool
	hung   map[string]int // where reads stand that their caller gave up on, and how many of them
}

// NewPool makes a pool of that many slots (at least one) on this machine's file system.
func NewPool(slots int) *Pool {
	return newPool(slots, osTree{})
}

func newPool(slots int, t tree) *Pool {
	return &Pool{
		slots:        make(chan struct{}, max(slots, 1)),
		tree:         t,
		slotPatience: slotPatience,
		readPatience: readPatience,
		hung:         make(map[string]int),
	}
}

// Reader returns the Reader of one decision. Its reads end with ctx.
func (p *Pool) Reader(ctx context.Context) Reader {
	return &reader{tree: p.tree, pool: p, ctx: ctx, set: newReadSet(), stuck: new(bool),
		seen: make(map[string]Info)}
}

// Close refuses new reads and waits until those under way have ended, or ctx has: then some file system hangs, and its
// reads end with the process.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	for range cap(p.slots) {
		select {
		case p.slots <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("reads still under way: %w", ctx.Err())
		}
	}
	return nil
}

// do runs f, which may hang, in a slot; f keeps where up to date with the path that it looks at. After an error f may
// still be running: its caller must not touch what f writes.
func (p *Pool) do(ctx context.Context, where *atomic.Pointer[string], f func()) error {
	if err := p.acquire(ctx); err != nil {
		return err
	}
	done := make(chan struct{})
	r := &run{pool: p, where: where}
	go func() { // owned by the pool: it ends with its slot, which Close waits for
		defer r.end()
		defer close(done)
		f()
	}()
	t := time.NewTimer(p.readPatience)
	defer t.Stop()
	select {
	case <-done:
		return nil
	case <-t.C:
		r.abandon()
		return ErrBusy
	case <-ctx.Done():
		r.abandon()
		return fmt.Errorf("%w: %w", ErrBusy, ctx.Err())
	}
}

func (p *Pool) acquire(ctx context.Context) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ErrBusy, ctx.Err())
	}
	select {
	case p.slots <- struct{}{}:
		return nil
	default:
	}
	t := time.NewTimer(p.slotPatience)
	defer t.Stop()
	select {
	case p.slots <- struct{}{}:
		return nil
	case <-t.C:
		return ErrBusy
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrBusy, ctx.Err())
	}
}

// refuses reports whether a read of name would hang as well, since another one hangs now at name or above it. Without this,
// each decision about a dead mount would cost one more slot.
func (p *Pool) refuses(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return true
	}
	for h := range p.hung {
		if name == h || strings.HasPrefix(name, h+"/") {
			return true
		}
	}
	return false
}

// run is one read under way.
type run struct {
	pool  *Pool
	where *atomic.Pointer[string]

	ended bool   // guarded by pool.mu
	hung  string // guarded by pool.mu: its key in pool.hung, "" if nobody gave it up
}

func (r *run) abandon() {
	r.pool.mu.Lock()
	defer r.pool.mu.Unlock()
	if at := r.where.Load(); !r.ended && at != nil {
		r.hung = *at
		r.pool.hung[r.hung]++
	}
}

func (r *run) end() {
	r.pool.mu.Lock()
	r.ended = true
	if r.hung != "" {
		if r.pool.hung[r.hung]--; r.pool.hung[r.hung] <= 0 {
			delete(r.pool.hung, r.hung)
		}
	}
	r.pool.mu.Unlock()
	<-r.pool.slots
}
