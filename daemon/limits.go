// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"sync"
	"time"

	"github.com/tripline-sh/tripline/hooks/wire"
)

// limits bound what hooks can make the daemon hold. Tests shrink them.
type limits struct {
	conns    int           // connections being read or answered
	waiting  int           // accepted connections that wait for one of those, unread
	holds    int           // calls that wait for a person
	budget   int64         // bytes of all payloads in memory
	holdSize int           // largest payload of a call that is kept in memory while a person decides
	patience time.Duration // how long a connection waits for its turn
	header   time.Duration // from connect to the whole header
	progress time.Duration // between two pieces of a payload
	frame    time.Duration // for a whole payload, however long its own deadline
	answer   time.Duration // until a first answer: the hook's own patience, less a margin
	write    time.Duration // for a reply to be taken
	stop     time.Duration // for Stop
}

func defaultLimits() limits {
	return limits{
		conns:    256,
		waiting:  128,
		holds:    64,
		budget:   2 * wire.MaxPayload,
		holdSize: 512 << 10,
		patience: 10 * time.Second,
		header:   2 * time.Second,
		progress: 5 * time.Second,
		frame:    60 * time.Second,
		answer:   9 * time.Second,
		write:    5 * time.Second,
		stop:     5 * time.Second,
	}
}

// budget is a pool of bytes that is handed out in order of asking, so that a large frame is not starved by small ones.
type budget struct {
	mu   sync.Mutex
	free int64
	line []*claim // waiting, oldest first
}

type claim struct {
	n  int64
	ok chan struct{}
}

func newBudget(n int64) *budget { return &budget{free: n} }

// take waits for n bytes; they must be given back. It fails only with ctx.
func (b *budget) take(ctx context.Context, n int64) error {
	b.mu.Lock()
	if len(b.line) == 0 && n <= b.free {
		b.free -= n
		b.mu.Unlock()
		return nil
	}
	c := &claim{n: n, ok: make(chan struct{})}
	b.line = append(b.line, c)
	b.mu.Unlock()
	select {
	case <-c.ok:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-c.ok: // granted in the meantime
		b.free += n
	default:
		for i, o := range b.line {
			if o == c {
				b.line = append(b.line[:i], b.line[i+1:]...)
				break
			}
		}
	}
	b.grant()
	return ctx.Err()
}

// give returns n bytes.
func (b *budget) give(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += n
	b.grant()
}

// grant serves the line as far as it goes. The caller holds mu.
func (b *budget) grant() {
	for len(b.line) > 0 && b.line[0].n <= b.free {
		b.free -= b.line[0].n
		close(b.line[0].ok)
		b.line = b.line[1:]
	}
}
