// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"slices"

	"github.com/tripline-sh/tripline/audit/record"
)

// Decide approves or denies the card whose id begins with idPrefix and returns it as it is then. Deciding the same way
// again changes nothing and is no error; any other decision on a card that is not pending is a *StaleError.
func (g *Gate) Decide(ctx context.Context, idPrefix string, approve bool, d Decision) (Card, error) {
	kind, to := record.ApprovalDenied, Denied
	if approve {
		kind, to = record.ApprovalApproved, Approved
	}
	return g.person(ctx, idPrefix, Pending, kind, to, d, func(s *stored, d Decision, at instant) {
		s.DecidedAt, s.DecidedBy, s.Comment, s.Proof, s.Surface = at.wall, d.By, d.Reason, d.Proof, d.Surface
		if approve {
			s.Ends = at.in(g.o.UseBy)
			s.UseBy = s.Ends.Wall
			return
		}
		s.Until = earlier(s.Ends, at.in(deniedFor))
	})
}

// Revoke takes an approval back that was not used yet. Revoking again is no error.
func (g *Gate) Revoke(ctx context.Context, idPrefix string, d Decision) (Card, error) {
	return g.person(ctx, idPrefix, Approved, record.ApprovalRevoked, Revoked, d, nil)
}

// Cancel withdraws a pending card at a person's word. Cancelling again is no error.
func (g *Gate) Cancel(ctx context.Context, idPrefix string, d Decision) (Card, error) {
	return g.person(ctx, idPrefix, Pending, record.ApprovalCancelled, Cancelled, d, nil)
}

// person is an edge that a person takes.
func (g *Gate) person(ctx context.Context, idPrefix string, from State, kind record.Kind, to State, d Decision, change func(*stored, Decision, instant)) (Card, error) {
	d = Decision{By: clip(d.By, 256), Reason: clip(d.Reason, 1000), Proof: clip(d.Proof, 64), Surface: clip(d.Surface, 64)}
	if err := g.lock(ctx); err != nil {
		return Card{}, err
	}
	defer g.unlock()
	g.mu.Lock()
	e, err := g.find(idPrefix)
	g.mu.Unlock()
	if err != nil {
		return Card{}, err
	}
	at := g.now()
	if err := g.settle(ctx, e, at); err != nil {
		return Card{}, err
	}
	if state := e.State; state != from { // safe: only the holder of the edge lock changes it
		if state == to {
			return g.card(e), nil
		}
		return g.card(e), &StaleError{ID: e.ID, State: state}
	}
	s := step{kind: kind, to: to, detail: map[string]string{"by": d.By, "proof": d.Proof, "surface": d.Surface}}
	if change != nil {
		s.change = func(next *stored) { change(next, d, at) }
	}
	if err := g.take(ctx, e, at, s); err != nil {
		return Card{}, err
	}
	return g.card(e), nil
}

func (g *Gate) card(e *entry) Card {
	g.mu.Lock()
	defer g.mu.Unlock()
	return e.snapshot()
}

// CancelWaiting cancels the cards of one thread of a session that a hook still waits for, because the agent stopped, and
// returns how many. A card that nobody waits for stays: it is decided later, and used when the call is asked again.
func (g *Gate) CancelWaiting(ctx context.Context, session, subagent string) (n int) {
	session, subagent = clip(g.o.Clean(session), maxSession), clip(g.o.Clean(subagent), maxSession)
	g.mu.Lock()
	var ids []string
	for id, e := range g.cards {
		if e.State == Pending && e.waiters > 0 && e.Session == session && e.Subagent == subagent {
			ids = append(ids, id)
		}
	}
	g.mu.Unlock()
	slices.Sort(ids)
	for _, id := range ids {
		if g.cancelOne(ctx, id) {
			n++
		}
	}
	return n
}

func (g *Gate) cancelOne(ctx context.Context, id string) bool {
	if g.lock(ctx) != nil {
		return false
	}
	defer g.unlock()
	g.mu.Lock()
	e := g.cards[id]
	pending := e != nil && e.State == Pending
	g.mu.Unlock()
	if !pending {
		return false
	}
	return g.take(ctx, e, g.now(), step{kind: record.ApprovalCancelled, to: Cancelled, detail: map[string]string{"cause": "stop"}}) == nil
}
