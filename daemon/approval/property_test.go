// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// history collects what callers saw, over all lives of the gate.
type history struct {
	mu      sync.Mutex
	gate    *Gate
	runs    map[string]int  // calls that were told to run, by card
	decided map[string]bool // cards that a person tried to approve
}

func (h *history) current() *Gate {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.gate
}

func (h *history) ran(tk Ticket, err error) {
	if tk.State != Approved {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.runs[tk.Card]++
	if err != nil {
		h.runs[tk.Card] += 1000 // an error is a refusal
	}
}

// agent makes the same few calls over and over, as an agent does that wants them to run.
func (h *history) agent(ctx context.Context, r *rand.Rand) {
	for ctx.Err() == nil {
		c := call(fmt.Sprintf("command %d", r.IntN(3)))
		g := h.current()
		patience, cancel := context.WithTimeout(ctx, time.Duration(r.IntN(200))*time.Second)
		tk, err := g.Enter(patience, c)
		h.ran(tk, err)
		if tk.State == Waiting {
			if o, err := g.Wait(patience, tk.Card); err == nil && (o.State == Approved || r.IntN(4) == 0) {
				if r.IntN(8) == 0 {
					c.Cwd = "/elsewhere"
				}
				h.ran(g.Consume(patience, tk.Card, c))
			}
		}
		cancel()
		sleep(ctx, r, 10*time.Minute)
	}
}

// person decides something about some card.
func (h *history) person(ctx context.Context, r *rand.Rand) {
	for ctx.Err() == nil {
		g := h.current()
		if cards := g.List(r.IntN(3) == 0); len(cards) > 0 {
			id := cards[r.IntN(len(cards))].ID
			switch r.IntN(10) {
			case 0:
				_, _ = g.Revoke(ctx, id, Decision{})
			case 1:
				_, _ = g.Cancel(ctx, id, Decision{})
			case 2, 3:
				_, _ = g.Decide(ctx, id, false, Decision{})
			default:
				h.mu.Lock()
				h.decided[id] = true
				h.mu.Unlock()
				_, _ = g.Decide(ctx, id, true, Decision{})
			}
		}
		sleep(ctx, r, 3*time.Minute)
	}
}

// fate makes clocks jump, files change, the agent stop, the daemon and the machine start anew.
func (h *history) fate(ctx context.Context, t *testing.T, w *world, r *rand.Rand) {
	for ctx.Err() == nil {
		switch r.IntN(12) {
		case 0:
			w.jump(time.Duration(r.IntN(20)-10)*time.Hour, 0)
		case 1:
			w.jump(0, time.Duration(r.IntN(5))*time.Hour)
		case 2:
			w.setChanged("/home/dev/shop/clean.sh")
			sleep(ctx, r, 5*time.Minute)
			w.setChanged()
		case 3:
			h.current().CancelWaiting(ctx, "s1", "")
		case 4, 5:
			if err := h.current().Close(context.Background()); err != nil {
				t.Error(err)
			}
			if r.IntN(3) == 0 {
				w.reboot()
			}
			g := w.restart(t)
			h.mu.Lock()
			h.gate = g
			h.mu.Unlock()
		default:
			_, _ = h.current().Tick(ctx)
		}
		sleep(ctx, r, 10*time.Minute)
	}
}

// restart starts a gate on a disk that works for as long as that takes.
func (w *world) restart(t *testing.T) *Gate {
	w.disk.mu.Lock()
	fail := w.fail
	w.fail = nil
	w.disk.mu.Unlock()
	defer w.setFail(fail)
	return w.gate(t)
}

func sleep(ctx context.Context, r *rand.Rand, max time.Duration) {
	select {
	case <-time.After(time.Duration(r.Int64N(int64(max)))):
	case <-ctx.Done():
	}
}

// edges are all the steps that a card may take.
var edges = map[State]string{
	"":       " pending ",
	Pending:  " approved denied expired cancelled ",
	Approved: " consumed lapsed revoked ",
}

func TestNoInterleavingRunsACallTwice(t *testing.T) {
	t.Parallel()
	for seed := range uint64(15) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { interleave(t, seed) })
		})
	}
}

func interleave(t *testing.T, seed uint64) {
	lostAnswers := seed%3 == 2
	w := newWorld()
	w.options = func(o *Options) { o.MaxCards, o.MaxWaiting = 8, 3 }
	w.delay = 3 * time.Millisecond
	dice := rand.New(rand.NewPCG(seed, 99))
	w.fail = func(Event) (bool, bool) { // always called by the holder of the edge lock
		fails := dice.IntN(10) == 0
		return fails, fails && lostAnswers
	}
	h := &history{runs: map[string]int{}, decided: map[string]bool{}}
	h.gate = w.restart(t)
	ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
	defer cancel()
	var wg sync.WaitGroup
	for i := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, i))
		wg.Go(func() { h.agent(ctx, r) })
	}
	wg.Go(func() { h.person(ctx, rand.New(rand.NewPCG(seed, 10))) })
	wg.Go(func() { h.fate(ctx, t, w, rand.New(rand.NewPCG(seed, 11))) })
	wg.Wait()
	closeGate(t, h.gate)
	h.check(t, w, lostAnswers)
}

func (h *history) check(t *testing.T, w *world, lostAnswers bool) {
	t.Helper()
	runs := 0
	for id, n := range h.runs {
		runs += n
		if n != 1 {
			t.Errorf("%s ran %d times", id, n)
		}
		if !h.decided[id] {
			t.Errorf("%s ran and nobody approved it", id)
		}
	}
	state := map[string]State{}
	consumed := map[string]int{}
	for _, e := range w.events {
		if len(e.State) == 0 {
			continue // a refusal: no edge
		}
		id, from, to := e.Card.ID, state[e.Card.ID], e.Card.State
		if !lostAnswers && !strings.Contains(edges[from], " "+string(to)+" ") {
			t.Errorf("%s went from %q to %q", id, from, to)
		}
		if string(to) != strings.TrimPrefix(string(e.Kind), "approval.") && to != Pending {
			t.Errorf("%s is recorded as %s and is %s", id, e.Kind, to)
		}
		if to == Approved && !h.decided[id] {
			t.Errorf("%s is approved and nobody approved it", id)
		}
		if to == Consumed {
			consumed[id]++
		}
		state[id] = to
	}
	for id := range h.runs {
		if consumed[id] == 0 || consumed[id] > 1 && !lostAnswers {
			t.Errorf("%s ran and was recorded as used %d times", id, consumed[id])
		}
	}
	live := map[string]string{}
	for id, e := range h.gate.cards {
		if !lostAnswers && e.State != state[id] {
			t.Errorf("%s is %s in memory, %s on disk", id, e.State, state[id])
		}
		if !e.State.final() {
			// A request whose answer was lost comes back after a restart, beside the one that was made in its place.
			if other := live[e.Token]; other != "" && !lostAnswers {
				t.Errorf("%s and %s are live for one call", id, other)
			}
			live[e.Token] = id
		}
	}
	if !lostAnswers && len(h.gate.cards) > 8 || len(h.gate.byToken) > len(h.gate.cards) {
		t.Errorf("%d cards, %d by token", len(h.gate.cards), len(h.gate.byToken))
	}
	if runs == 0 || len(state) < 20 {
		t.Errorf("nothing was tried: %d cards, %d runs", len(state), runs)
	}
}
