// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/tripwires/view"
)

func TestNothingHappensThatIsNotDurable(t *testing.T) {
	fails := func(Event) (bool, bool) { return true, false }
	inBubble(t, map[string]func(*testing.T, *world){
		"a request": func(t *testing.T, w *world) {
			g := w.gate(t)
			w.setFail(fails)
			if tk, err := g.Enter(t.Context(), call("x")); !errors.Is(err, errDisk) || tk.State != Refused || tk.Code != CodeFailed {
				t.Errorf("%+v, %v", tk, err)
			}
			if len(g.List(true)) != 0 {
				t.Error("a card")
			}
			w.setFail(nil)
			enter(t, g, call("x"), Waiting, "")
		},
		"a decision": func(t *testing.T, w *world) {
			g := w.gate(t)
			id := enter(t, g, call("x"), Waiting, "").Card
			out := waitFor(t.Context(), g, id)
			w.setFail(fails)
			if _, err := g.Decide(t.Context(), id, true, Decision{}); !errors.Is(err, errDisk) {
				t.Errorf("error %v", err)
			}
			state(t, g, id, Pending)
			consume(t, g, id, call("x"), Refused, CodePending, errDisk)
			if o := <-out; o.State != Detached {
				t.Errorf("outcome %+v", o)
			}
		},
		"a use": func(t *testing.T, w *world) {
			g := w.gate(t)
			id := enter(t, g, call("x"), Waiting, "").Card
			decide(t, g, id, true)
			w.setFail(fails)
			consume(t, g, id, call("x"), Refused, CodeFailed, errDisk)
			state(t, g, id, Approved)
			w.setFail(nil)
			consume(t, g, id, call("x"), Approved, "")
		},
		"an end": func(t *testing.T, w *world) {
			g := w.gate(t)
			id := enter(t, g, call("x"), Waiting, "").Card
			time.Sleep(defaultDecideBy)
			w.setFail(fails)
			if n, err := g.Tick(t.Context()); n != 0 || !errors.Is(err, errDisk) {
				t.Errorf("%d, %v", n, err)
			}
			// Not recorded, and all the same too late.
			if _, err := g.Decide(t.Context(), id, true, Decision{}); !errors.Is(err, errDisk) {
				t.Errorf("error %v", err)
			}
			if n := g.CancelWaiting(t.Context(), "s1", ""); n != 0 {
				t.Errorf("%d cancelled", n)
			}
			w.setFail(nil)
			tick(t, g, 1)
			state(t, g, id, Expired)
		},
		"a use whose answer was lost runs nothing, now or after a restart": func(t *testing.T, w *world) {
			g := w.gate(t)
			id := enter(t, g, call("x"), Waiting, "").Card
			decide(t, g, id, true)
			w.setFail(func(Event) (bool, bool) { return true, true })
			consume(t, g, id, call("x"), Refused, CodeFailed, errDisk)
			w.setFail(nil)
			g = w.gate(t)
			enter(t, g, call("x"), Refused, CodeConsumed)
		},
		"a panic of the recorder does not lock the gate": func(t *testing.T, w *world) {
			g := w.gate(t)
			w.setFail(func(Event) (bool, bool) { panic("log") })
			func() {
				defer func() {
					if recover() == nil {
						t.Error("no panic")
					}
				}()
				_, _ = g.Enter(t.Context(), call("x"))
			}()
			w.setFail(nil)
			enter(t, g, call("x"), Waiting, "")
		},
		"a slow disk holds up no reader, no waiter and no caller beyond its time": func(t *testing.T, w *world) {
			g := w.gate(t)
			id := enter(t, g, call("x"), Waiting, "").Card
			w.disk.mu.Lock()
			w.delay = time.Hour
			w.disk.mu.Unlock()
			go func() { _, _ = g.Decide(t.Context(), id, true, Decision{}) }()
			synctest.Wait()
			begin := time.Now()
			if len(g.List(true)) != 1 || g.Pending() != 1 {
				t.Error("readers see something else")
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if o, _ := g.Wait(ctx, id); o.State != Detached {
				t.Errorf("outcome %+v", o)
			}
			if tk, err := g.Enter(ctx, call("y")); !errors.Is(err, context.DeadlineExceeded) || tk.State != Refused {
				t.Errorf("%+v, %v", tk, err)
			}
			if time.Since(begin) != time.Minute {
				t.Errorf("took %v", time.Since(begin))
			}
			if err := g.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("close: %v", err)
			}
			closeGate(t, g) // waits for the decision under way
			state(t, g, id, Approved)
		},
	})
}

func TestRestart(t *testing.T) {
	inBubble(t, map[string]func(*testing.T, *world){
		"a pending card stays decidable, and its waiter was told so": func(t *testing.T, w *world) {
			g := w.gate(t)
			id := enter(t, g, call("x"), Waiting, "").Card
			want := state(t, g, id, Pending)
			out := waitFor(t.Context(), g, id)
			synctest.Wait()
			closeGate(t, g)
			if o := <-out; o.State != Detached || !strings.Contains(o.Text, id) {
				t.Errorf("outcome %+v", o)
			}
			if tk, err := g.Enter(t.Context(), call("y")); !errors.Is(err, ErrClosed) || tk.State != Refused {
				t.Errorf("%+v, %v", tk, err)
			}
			if o, err := g.Wait(t.Context(), id); err != nil || o.State != Detached {
				t.Errorf("%+v, %v", o, err)
			}
			closeGate(t, g)

			time.Sleep(time.Hour)
			g = w.gate(t)
			got := state(t, g, id, Pending)
			want.Seq = got.Seq
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("\n got %+v\nwant %+v", got, want)
			}
			if w.pending != 1 {
				t.Errorf("told of %d pending cards", w.pending)
			}
			decide(t, g, id, true)
			enter(t, g, call("x"), Approved, "")
		},
		"an overdue card ends at start, on record": func(t *testing.T, w *world) {
			g := w.gate(t)
			id := enter(t, g, call("x"), Waiting, "").Card
			used := enter(t, g, call("y"), Waiting, "").Card
			time.Sleep(defaultDecideBy - time.Minute)
			decide(t, g, used, true)
			time.Sleep(time.Hour)
			g = w.gate(t)
			state(t, g, id, Expired)
			state(t, g, used, Lapsed)
			if g.Pending() != 0 || strings.Count(w.kinds(), "expired")+strings.Count(w.kinds(), "lapsed") != 2 {
				t.Errorf("%d pending, recorded %s", g.Pending(), w.kinds())
			}
		},
		"what cannot be recorded at start is an error": func(t *testing.T, w *world) {
			enter(t, w.gate(t), call("x"), Waiting, "")
			time.Sleep(defaultDecideBy)
			w.setFail(func(Event) (bool, bool) { return true, false })
			if _, err := New(t.Context(), Options{Recorder: w, Load: w.state, Now: time.Now, Boot: func() time.Duration { return 0 }, Recheck: noChange}); !errors.Is(err, errDisk) {
				t.Errorf("error %v", err)
			}
		},
		"an approval and a use outlive it": func(t *testing.T, w *world) {
			g := w.gate(t)
			id := enter(t, g, call("x"), Waiting, "").Card
			decide(t, g, id, true)
			g = w.gate(t)
			enter(t, g, call("x"), Approved, "")
			g = w.gate(t)
			enter(t, g, call("x"), Refused, CodeConsumed)
		},
		"what cannot be read is taken out, on record, and approves nothing": func(t *testing.T, w *world) {
			g := w.gate(t)
			id := enter(t, g, call("x"), Waiting, "").Card
			decide(t, g, id, true)
			good := w.state[keyCard+id]
			w.state[keyCard+"garbage"] = []byte("{")
			w.state[keyCard+"0000000000"] = good // under another id
			w.state[keyCard+"1111111111"] = []byte(`{"id":"1111111111","state":"superapproved","token":"t"}`)
			w.state[keyTomb+"2222222222"] = []byte(`{"state":"approved"}`)
			w.state[Prefix+"what"] = nil
			g = w.gate(t)
			if l := g.List(true); len(l) != 1 {
				t.Errorf("%d cards", len(l))
			}
			if e := w.last(); e.Kind != record.ApprovalCancelled || e.Detail["entries"] != "5" || len(w.state) != 2 {
				t.Errorf("on record %+v, %d keys left", e, len(w.state))
			}
			enter(t, g, call("x"), Approved, "")
		},
		"without the key no old approval fits": func(t *testing.T, w *world) {
			g := w.gate(t)
			id := enter(t, g, call("x"), Waiting, "").Card
			decide(t, g, id, true)
			delete(w.state, keyKey)
			g = w.gate(t)
			enter(t, g, call("x"), Waiting, "")
			consume(t, g, id, call("x"), Refused, CodeMismatch)
		},
	})
}

func noChange(context.Context, []view.Entry) []string { return nil }

func TestClocks(t *testing.T) {
	ends := func(jump func(*world), restart bool, over bool) func(*testing.T, *world) {
		return func(t *testing.T, w *world) {
			g := w.gate(t)
			time.Sleep(time.Hour) // so that no clock is at its beginning
			pending := enter(t, g, call("pending"), Waiting, "").Card
			approved := enter(t, g, call("approved"), Waiting, "").Card
			decide(t, g, approved, true)
			jump(w)
			if restart {
				g = w.gate(t)
			}
			want, code, st := Approved, "", Pending
			if over {
				want, code, st = Refused, CodeExpired, Expired
			}
			_, _ = g.Tick(t.Context())
			consume(t, g, approved, call("approved"), want, code)
			state(t, g, pending, st)
		}
	}
	inBubble(t, map[string]func(*testing.T, *world){
		"the wall clock jumps ahead":                       ends(func(w *world) { w.jump(9*time.Hour, 0) }, false, true),
		"the wall clock is set back and time goes on":      ends(func(w *world) { w.jump(-24*time.Hour, 9*time.Hour) }, false, true),
		"the wall clock is set back a little":              ends(func(w *world) { w.jump(-time.Hour, 0) }, false, false),
		"time goes on during a restart, clock set back":    ends(func(w *world) { w.jump(-24*time.Hour, 9*time.Hour) }, true, true),
		"a reboot in time":                                 ends(func(w *world) { w.reboot(); w.jump(time.Minute, 0) }, true, false),
		"a reboot, too late by the wall clock":             ends(func(w *world) { w.reboot(); w.jump(9*time.Hour, 0) }, true, true),
		"a reboot, and the clock shows the past":           ends(func(w *world) { w.reboot(); w.jump(-24*time.Hour, 0) }, true, true),
		"a restart without a boot id counts the wall only": ends(func(w *world) { w.bootID = ""; w.jump(0, 9*time.Hour) }, true, false),
	})
}

func TestMissingPartsAreAnError(t *testing.T) {
	t.Parallel()
	if _, err := New(t.Context(), Options{}); err == nil {
		t.Error("a gate without a recorder")
	}
}
