// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/tripline-sh/tripline/audit/record"
)

// Enter brings a call that must be asked about to the gate. The same call joins its pending card, uses up its approval, or
// is refused for as long as an earlier answer to it stands; any other call gets a new card, which is durable when Enter
// returns. With an error the ticket is a refusal too.
func (g *Gate) Enter(ctx context.Context, c Call) (Ticket, error) {
	token := g.token(&c)
	if err := g.lock(ctx); err != nil {
		return refuse("", CodeFailed, c.Rule, ""), err
	}
	defer g.unlock()
	at := g.now()

	g.mu.Lock()
	e := g.byToken[token]
	t, dead := g.tombs[g.tombByToken[token]]
	full := g.waiting >= g.o.MaxWaiting
	g.mu.Unlock()

	if e != nil {
		if err := g.settle(ctx, e, at); err != nil {
			return refuse(e.ID, CodeFailed, c.Rule, ""), err
		}
		switch e.State { // safe: only the holder of the edge lock changes it
		case Pending:
			if full {
				return refuse(e.ID, CodeBusy, c.Rule, ""), nil
			}
			return Ticket{Card: e.ID, State: Waiting}, nil
		case Approved:
			return g.consume(ctx, e, &c)
		case Denied, Consumed:
			if !e.Until.passed(at) {
				return g.refuseOnRecord(ctx, e, &c, codeOf(e.State))
			}
		}
	} else if dead && (t.State == Denied || t.State == Consumed) && !t.Until.passed(at) {
		gone := &entry{stored: stored{Card: Card{ID: t.ID, State: t.State, Seq: t.Seq, EndedAt: t.At}}}
		return g.refuseOnRecord(ctx, gone, &c, codeOf(t.State))
	}
	if full {
		return refuse("", CodeBusy, c.Rule, ""), nil
	}
	return g.request(ctx, &c, token, at)
}

// request makes a new card.
func (g *Gate) request(ctx context.Context, c *Call, token string, at instant) (Ticket, error) {
	g.mu.Lock()
	ops, makeRoom, ok := g.room()
	id := newID()
	for g.cards[id] != nil || g.tombs[id].Token != "" {
		id = newID()
	}
	g.mu.Unlock()
	if !ok {
		return refuse("", CodeBusy, c.Rule, ""), nil
	}
	ends := at.in(g.o.DecideBy)
	e := &entry{changed: make(chan struct{}), stored: stored{Token: token, Ends: ends, Card: g.newCard(id, c)}}
	e.Requested, e.DecideBy = at.wall, ends.Wall
	err := g.take(ctx, e, at, step{kind: record.ApprovalRequested, to: Pending, call: c.ID, ops: ops, apply: func() {
		makeRoom()
		g.cards[id] = e
		g.byToken[token] = e
	}})
	if err != nil {
		return refuse("", CodeFailed, c.Rule, ""), err
	}
	return Ticket{Card: id, State: Waiting}, nil
}

// Consume uses up the approval of a card for the call that waited for it: at most one call ever gets Approved for it. The
// call's token is compared again, and what its verdict was based on is read again. With an error the ticket is a refusal.
func (g *Gate) Consume(ctx context.Context, card string, c Call) (Ticket, error) {
	token := g.token(&c)
	if err := g.lock(ctx); err != nil {
		return refuse(card, CodeFailed, c.Rule, ""), err
	}
	defer g.unlock()
	g.mu.Lock()
	e := g.cards[card]
	t, dead := g.tombs[card]
	g.mu.Unlock()
	if e == nil {
		if dead {
			return refuse(card, codeOf(t.State), c.Rule, ""), nil
		}
		return refuse(card, CodeFailed, c.Rule, ""), ErrNotFound
	}
	if !sameToken(token, e.Token) {
		return g.refuseOnRecord(ctx, e, &c, CodeMismatch)
	}
	if err := g.settle(ctx, e, g.now()); err != nil {
		return refuse(card, CodeFailed, c.Rule, ""), err
	}
	if e.State != Approved {
		return g.refuseOnRecord(ctx, e, &c, codeOf(e.State))
	}
	return g.consume(ctx, e, &c)
}

// consume is the edge from approved to consumed. The caller holds the edge lock and has compared the token.
func (g *Gate) consume(ctx context.Context, e *entry, c *Call) (Ticket, error) {
	if changed := g.o.Recheck(ctx, c.ReadSet); len(changed) > 0 {
		detail := map[string]string{"code": CodeStale, "files": strconv.Itoa(len(changed))}
		err := g.take(ctx, e, g.now(), step{kind: record.ApprovalRevoked, to: Revoked, call: c.ID, detail: detail})
		if err == nil {
			_, err = g.o.Recorder.Record(ctx, Event{Kind: record.TamperScriptChanged, At: g.now().wall, Card: e.Card, Call: c.ID, Detail: detail})
		}
		return refuse(e.ID, CodeStale, c.Rule, ""), err
	}
	// Reading took time: the approval may have lapsed, and the caller may have gone.
	at := g.now()
	if err := g.settle(ctx, e, at); err != nil {
		return refuse(e.ID, CodeFailed, c.Rule, ""), err
	}
	if e.State != Approved {
		return g.refuseOnRecord(ctx, e, c, codeOf(e.State))
	}
	if err := ctx.Err(); err != nil {
		return refuse(e.ID, CodeFailed, c.Rule, ""), err
	}
	err := g.take(ctx, e, at, step{kind: record.ApprovalConsumed, to: Consumed, call: c.ID, change: func(s *stored) { s.Until = s.Ends }})
	if err != nil {
		return refuse(e.ID, CodeFailed, c.Rule, ""), err
	}
	return Ticket{Card: e.ID, State: Approved, By: e.DecidedBy, Proof: e.Proof}, nil
}

// refuseOnRecord refuses a use of an approval and says so in the log.
func (g *Gate) refuseOnRecord(ctx context.Context, e *entry, c *Call, code string) (Ticket, error) {
	ticket := refuse(e.ID, code, c.Rule, e.Comment)
	_, err := g.o.Recorder.Record(ctx, Event{
		Kind: record.ApprovalRefused, At: g.now().wall, Card: e.Card, Call: c.ID, Detail: map[string]string{"code": code},
	})
	return ticket, err
}

func codeOf(s State) string {
	switch s {
	case Denied:
		return CodeDenied
	case Consumed:
		return CodeConsumed
	case Expired, Lapsed:
		return CodeExpired
	case Cancelled:
		return CodeCancelled
	case Revoked:
		return CodeRevoked
	}
	return CodePending
}

// maxSession bounds session ids.
const maxSession = 256

// newCard copies what people see of a call, within bounds.
func (g *Gate) newCard(id string, c *Call) Card {
	clean := func(s string, max int) string { return clip(g.o.Clean(s), max) }
	card := Card{
		ID: id, Call: clip(c.ID, 128), Agent: clean(c.Agent, 64), Session: clean(c.Session, maxSession), Subagent: clean(c.Subagent, maxSession),
		Tool: clean(c.Tool, 256), ToolUseID: clean(c.ToolUseID, 256), UID: c.UID, Cwd: clean(c.Cwd, 4096), Project: clean(c.Project, 4096),
		Input: shrink(c.Input, maxInput), Rule: clip(c.Rule, 128), Reason: clip(c.Reason, 2000),
		Effects: clipAll(c.Effects, 64, 400), NotBound: clipAll(c.NotBound, 64, 400), Recent: clipAll(c.Recent, 20, 400),
	}
	if len(c.Input) > maxInput {
		card.NotBound = append(card.NotBound, "the input is too long for this card: "+strconv.Itoa(len(c.Input))+" bytes")
	}
	return card
}

// shrink returns a copy of input, or what stands for it if it is no JSON or longer than max.
func shrink(input json.RawMessage, max int) json.RawMessage {
	switch {
	case len(input) == 0:
		return json.RawMessage("null")
	case len(input) > max || !json.Valid(input):
		return json.RawMessage(`{"truncated":true,"len":` + strconv.Itoa(len(input)) + `}`)
	}
	return append(json.RawMessage(nil), input...)
}

func clip(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max]
}

func clipAll(list []string, n, max int) []string {
	out := make([]string, 0, min(len(list), n))
	for _, s := range list[:min(len(list), n)] {
		out = append(out, clip(s, max))
	}
	return out
}
