// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"time"
)

// Wait waits until the card is decided or ends, but no longer than the hold. The end of ctx, of the hold or of the gate
// detaches the waiter and leaves the card as it is. Several callers may wait for one card. Approved means that Consume may
// be tried; the error is ErrNotFound or nil.
func (g *Gate) Wait(ctx context.Context, card string) (Outcome, error) {
	g.mu.Lock()
	e := g.cards[card]
	if e == nil {
		t, dead := g.tombs[card]
		g.mu.Unlock()
		if dead {
			return outcome(&Card{ID: t.ID, State: t.State}), nil
		}
		return Outcome{Card: card, State: Detached, Code: CodeFailed, Text: text(card, CodeFailed, "", "")}, ErrNotFound
	}
	if g.closed || g.waiting >= g.o.MaxWaiting {
		defer g.mu.Unlock()
		return g.leave(e), nil
	}
	g.waiting++
	e.waiters++
	due := time.NewTimer(e.Ends.Wall.Sub(g.now().wall))
	g.mu.Unlock()
	hold := time.NewTimer(g.o.Hold)

	defer func() {
		due.Stop()
		hold.Stop()
		g.mu.Lock()
		e.waiters--
		g.waiting--
		if g.closed && g.waiting == 0 {
			close(g.idle)
		}
		g.mu.Unlock()
	}()
	for {
		g.mu.Lock()
		state, changed := e.State, e.changed
		g.mu.Unlock()
		if state != Pending {
			break
		}
		select {
		case <-changed:
			continue
		case <-due.C:
			// An error leaves the card pending: the hold or the next Tick ends the wait.
			_, _ = g.settleID(ctx, card)
			continue
		case <-hold.C:
		case <-ctx.Done():
		case <-g.done:
		}
		break
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.leave(e), nil
}

// leave says what a waiter goes away with; the caller holds mu.
func (g *Gate) leave(e *entry) Outcome {
	c := e.Card
	if c.State == Pending {
		return Outcome{Card: c.ID, State: Detached, Code: CodePending, Text: text(c.ID, CodePending, c.Rule, "")}
	}
	return outcome(&c)
}

func outcome(c *Card) Outcome {
	o := Outcome{Card: c.ID, State: c.State, By: c.DecidedBy, Comment: c.Comment}
	if c.State != Approved {
		o.Code = codeOf(c.State)
		o.Text = text(c.ID, o.Code, c.Rule, c.Comment)
	}
	return o
}
