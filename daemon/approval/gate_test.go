// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// inBubble runs each case in a bubble with a clock of its own.
func inBubble(t *testing.T, cases map[string]func(t *testing.T, w *world)) {
	t.Parallel()
	for name, f := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { f(t, newWorld()) })
		})
	}
}

func TestLifeOfACard(t *testing.T) {
	inBubble(t, map[string]func(*testing.T, *world){
		"held, approved, run once, replay refused, later asked anew": func(t *testing.T, w *world) {
			g := w.gate(t)
			tk := enter(t, g, call("rm -r src"), Waiting, "")
			w.recorded(t, "requested")
			out := waitFor(t.Context(), g, tk.Card)
			synctest.Wait()
			if c := state(t, g, tk.Card, Pending); !c.Waiting || c.Expires() != c.Requested.Add(defaultDecideBy) {
				t.Errorf("card %+v", c)
			}
			if c := decide(t, g, tk.Card, true); c.State != Approved || c.UseBy != c.DecidedAt.Add(defaultUseBy) || c.DecidedBy != "uid 1000" || c.Proof != "L0" || c.Comment != "because" {
				t.Errorf("card %+v", c)
			}
			if o := <-out; o.State != Approved || o.Code != "" || o.By != "uid 1000" {
				t.Errorf("outcome %+v", o)
			}
			consume(t, g, tk.Card, call("rm -r src"), Approved, "")
			consume(t, g, tk.Card, call("rm -r src"), Refused, CodeConsumed)
			enter(t, g, call("rm -r src"), Refused, CodeConsumed)
			w.recorded(t, "requested approved consumed refused refused")
			time.Sleep(defaultUseBy)
			if again := enter(t, g, call("rm -r src"), Waiting, ""); again.Card == tk.Card {
				t.Error("the old card")
			}
			state(t, g, tk.Card, Consumed)
		},
		"a hold that ends leaves the card, and its approval is used by the retry": func(t *testing.T, w *world) {
			g := w.gate(t)
			tk := enter(t, g, call("x"), Waiting, "")
			begin := time.Now()
			o, err := g.Wait(t.Context(), tk.Card)
			if err != nil || o.State != Detached || o.Code != CodePending || time.Since(begin) != defaultHold {
				t.Fatalf("outcome %+v, %v after %v", o, err, time.Since(begin))
			}
			if !strings.Contains(o.Text, tk.Card) {
				t.Errorf("the text does not name the card: %s", o.Text)
			}
			consume(t, g, tk.Card, call("x"), Refused, CodePending)
			time.Sleep(7 * time.Hour)
			decide(t, g, tk.Card, true)
			if again := enter(t, g, call("x"), Approved, ""); again.Card != tk.Card || again.By != "uid 1000" || again.Proof != "L0" {
				t.Errorf("ticket %+v", again)
			}
			enter(t, g, call("x"), Refused, CodeConsumed)
			w.recorded(t, "requested refused approved consumed refused")
		},
		"a waiter that goes away detaches": func(t *testing.T, w *world) {
			g := w.gate(t)
			tk := enter(t, g, call("x"), Waiting, "")
			ctx, cancel := context.WithCancel(t.Context())
			out := waitFor(ctx, g, tk.Card)
			synctest.Wait()
			cancel()
			if o := <-out; o.State != Detached {
				t.Errorf("outcome %+v", o)
			}
			if c := state(t, g, tk.Card, Pending); c.Waiting {
				t.Error("still waiting")
			}
			w.recorded(t, "requested")
		},
		"denied, refused for a while, later asked anew": func(t *testing.T, w *world) {
			g := w.gate(t)
			tk := enter(t, g, call("x"), Waiting, "")
			out := waitFor(t.Context(), g, tk.Card)
			decide(t, g, tk.Card, false)
			if o := <-out; o.State != Denied || o.Code != CodeDenied || !strings.Contains(o.Text, "because") || o.Comment != "because" {
				t.Errorf("outcome %+v", o)
			}
			consume(t, g, tk.Card, call("x"), Refused, CodeDenied)
			time.Sleep(deniedFor - time.Second)
			if again := enter(t, g, call("x"), Refused, CodeDenied); !strings.Contains(again.Text, "because") {
				t.Errorf("text %q", again.Text)
			}
			time.Sleep(time.Second)
			enter(t, g, call("x"), Waiting, "")
			w.recorded(t, "requested denied refused refused requested")
		},
		"a denial near the end of decide-by does not outlive it": func(t *testing.T, w *world) {
			g := w.gate(t)
			tk := enter(t, g, call("x"), Waiting, "")
			time.Sleep(defaultDecideBy - time.Minute)
			decide(t, g, tk.Card, false)
			time.Sleep(time.Minute)
			enter(t, g, call("x"), Waiting, "")
		},
		"not decided in time": func(t *testing.T, w *world) {
			g := w.gate(t)
			tk := enter(t, g, call("x"), Waiting, "")
			time.Sleep(defaultDecideBy - time.Nanosecond)
			tick(t, g, 0)
			time.Sleep(time.Nanosecond)
			tick(t, g, 1)
			state(t, g, tk.Card, Expired)
			var stale *StaleError
			if _, err := g.Decide(t.Context(), tk.Card, true, Decision{}); !errors.As(err, &stale) || stale.State != Expired {
				t.Errorf("a late decision: %v", err)
			}
			consume(t, g, tk.Card, call("x"), Refused, CodeExpired)
			enter(t, g, call("x"), Waiting, "")
		},
		"a late decision finds out without a tick": func(t *testing.T, w *world) {
			g := w.gate(t)
			tk := enter(t, g, call("x"), Waiting, "")
			time.Sleep(defaultDecideBy)
			var stale *StaleError
			if _, err := g.Decide(t.Context(), tk.Card, true, Decision{}); !errors.As(err, &stale) || stale.State != Expired {
				t.Errorf("a late decision: %v", err)
			}
			w.recorded(t, "requested expired")
		},
		"approved and not used in time": func(t *testing.T, w *world) {
			g := w.gate(t)
			tk := enter(t, g, call("x"), Waiting, "")
			decide(t, g, tk.Card, true)
			time.Sleep(defaultUseBy)
			consume(t, g, tk.Card, call("x"), Refused, CodeExpired)
			state(t, g, tk.Card, Lapsed)
			enter(t, g, call("x"), Waiting, "")
			w.recorded(t, "requested approved lapsed refused requested")
		},
		"a wait ends with its card": func(t *testing.T, w *world) {
			w.options = func(o *Options) { o.DecideBy = time.Minute }
			g := w.gate(t)
			tk := enter(t, g, call("x"), Waiting, "")
			if o, _ := g.Wait(t.Context(), tk.Card); o.State != Expired || o.Code != CodeExpired {
				t.Errorf("outcome %+v", o)
			}
		},
		"revoked before use": func(t *testing.T, w *world) {
			g := w.gate(t)
			tk := enter(t, g, call("x"), Waiting, "")
			var stale *StaleError
			if _, err := g.Revoke(t.Context(), tk.Card, Decision{}); !errors.As(err, &stale) || stale.State != Pending {
				t.Errorf("revoking a pending card: %v", err)
			}
			decide(t, g, tk.Card, true)
			for range 2 {
				if c, err := g.Revoke(t.Context(), tk.Card, Decision{}); err != nil || c.State != Revoked {
					t.Errorf("%+v, %v", c, err)
				}
			}
			consume(t, g, tk.Card, call("x"), Refused, CodeRevoked)
			w.recorded(t, "requested approved revoked refused")
		},
		"cancelled by a person": func(t *testing.T, w *world) {
			g := w.gate(t)
			tk := enter(t, g, call("x"), Waiting, "")
			out := waitFor(t.Context(), g, tk.Card)
			synctest.Wait()
			if _, err := g.Cancel(t.Context(), tk.Card, Decision{}); err != nil {
				t.Fatal(err)
			}
			if o := <-out; o.State != Cancelled || o.Code != CodeCancelled {
				t.Errorf("outcome %+v", o)
			}
			enter(t, g, call("x"), Waiting, "")
		},
		"the agent's stop cancels what still waits in that thread, and nothing else": func(t *testing.T, w *world) {
			g := w.gate(t)
			sub, other := call("b"), call("c")
			sub.Subagent, other.Session = "agent-7", "s2"
			waiting := enter(t, g, call("a"), Waiting, "").Card
			inSub := enter(t, g, sub, Waiting, "").Card
			elsewhere := enter(t, g, other, Waiting, "").Card
			left := enter(t, g, call("d"), Waiting, "").Card
			out := waitFor(t.Context(), g, waiting)
			waitFor(t.Context(), g, inSub)
			waitFor(t.Context(), g, elsewhere)
			synctest.Wait()
			if n := g.CancelWaiting(t.Context(), "s1", ""); n != 1 {
				t.Errorf("%d cancelled", n)
			}
			if o := <-out; o.State != Cancelled {
				t.Errorf("outcome %+v", o)
			}
			for _, id := range []string{inSub, elsewhere, left} {
				state(t, g, id, Pending)
			}
			if g.Pending() != 3 || w.pending != 3 {
				t.Errorf("pending %d, told %d", g.Pending(), w.pending)
			}
			closeGate(t, g)
		},
	})
}

func closeGate(t *testing.T, g *Gate) {
	t.Helper()
	if err := g.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestDeciding(t *testing.T) {
	inBubble(t, map[string]func(*testing.T, *world){
		"the same decision twice is one decision": func(t *testing.T, w *world) {
			g := w.gate(t)
			a, b := enter(t, g, call("a"), Waiting, "").Card, enter(t, g, call("b"), Waiting, "").Card
			for range 2 {
				decide(t, g, a, true)
				decide(t, g, b, false)
			}
			w.recorded(t, "requested requested approved denied")
		},
		"another decision is told that the card is stale": func(t *testing.T, w *world) {
			g := w.gate(t)
			a := enter(t, g, call("a"), Waiting, "").Card
			decide(t, g, a, true)
			var stale *StaleError
			if _, err := g.Decide(t.Context(), a, false, Decision{}); !errors.As(err, &stale) || stale.State != Approved || stale.ID != a {
				t.Errorf("error %v", err)
			}
			consume(t, g, a, call("a"), Approved, "")
			if _, err := g.Decide(t.Context(), a, true, Decision{}); !errors.As(err, &stale) || stale.State != Consumed {
				t.Errorf("error %v", err)
			}
			w.recorded(t, "requested approved consumed")
		},
		"a unique prefix is enough, in any case": func(t *testing.T, w *world) {
			g := w.gate(t)
			id := enter(t, g, call("a"), Waiting, "").Card
			if c, err := g.Show(strings.ToUpper(id[:4])); err != nil || c.ID != id {
				t.Errorf("%+v, %v", c, err)
			}
			for _, p := range []string{"", id + "0", "!", strings.Repeat("0", 1000)} {
				if _, err := g.Show(p); !errors.Is(err, ErrNotFound) {
					t.Errorf("%q: %v", p, err)
				}
			}
		},
		"an ambiguous prefix decides nothing": func(t *testing.T, w *world) {
			g := w.gate(t)
			seen := map[byte]bool{}
			for i := 0; ; i++ {
				id := enter(t, g, call(string(rune('a'+i))), Waiting, "").Card
				if seen[id[0]] {
					if _, err := g.Decide(t.Context(), id[:1], true, Decision{}); !errors.Is(err, ErrAmbiguous) {
						t.Errorf("error %v", err)
					}
					return
				}
				seen[id[0]] = true
			}
		},
		"lists are ordered, and show what is pending unless asked for all": func(t *testing.T, w *world) {
			g := w.gate(t)
			var ids []string
			for _, c := range []string{"a", "b", "c"} {
				ids = append(ids, enter(t, g, call(c), Waiting, "").Card)
				time.Sleep(time.Second)
			}
			decide(t, g, ids[1], false)
			if l := g.List(false); len(l) != 2 || l[0].ID != ids[0] || l[1].ID != ids[2] {
				t.Errorf("pending: %+v", l)
			}
			if l := g.List(true); len(l) != 3 || l[1].ID != ids[1] || l[1].State != Denied || l[1].Seq != 4 {
				t.Errorf("all: %+v", l)
			}
		},
	})
}
