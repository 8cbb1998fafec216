// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

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
			if r := g.Restored(); len(r) != 1 || r[0].ID != id {
				t.Errorf("restored %+v", r)
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
			if len(g.Restored()) != 0 || strings.Count(w.kinds(), "expired")+strings.Count(w.kinds(), "lapsed") != 2 {
				t.Errorf("restored %+v, recorded %s", g.Restored(), w.kinds())
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

func TestBounds(t *testing.T) {
	inBubble(t, map[string]func(*testing.T, *world){
		"waits": func(t *testing.T, w *world) {
			w.options = func(o *Options) { o.MaxWaiting = 2 }
			g := w.gate(t)
			a, b := enter(t, g, call("a"), Waiting, "").Card, enter(t, g, call("b"), Waiting, "").Card
			c := enter(t, g, call("c"), Waiting, "").Card
			waitFor(t.Context(), g, a)
			out := waitFor(t.Context(), g, b)
			synctest.Wait()
			if o, err := g.Wait(t.Context(), c); err != nil || o.State != Detached {
				t.Errorf("%+v, %v", o, err)
			}
			enter(t, g, call("d"), Refused, CodeBusy)
			enter(t, g, call("a"), Refused, CodeBusy)
			decide(t, g, b, true)
			<-out
			synctest.Wait()
			enter(t, g, call("d"), Waiting, "")
			closeGate(t, g)
		},
		"cards that are live": func(t *testing.T, w *world) {
			w.options = func(o *Options) { o.MaxCards = 2 }
			g := w.gate(t)
			a := enter(t, g, call("a"), Waiting, "").Card
			enter(t, g, call("b"), Waiting, "")
			enter(t, g, call("c"), Refused, CodeBusy)
			decide(t, g, a, true)
			enter(t, g, call("c"), Refused, CodeBusy)
			enter(t, g, call("a"), Approved, "")
			enter(t, g, call("c"), Waiting, "")
		},
		"cards that are final leave a tombstone that refuses a replay": func(t *testing.T, w *world) {
			w.options = func(o *Options) { o.MaxCards = 2 }
			g := w.gate(t)
			used := enter(t, g, call("used"), Waiting, "").Card
			decide(t, g, used, true)
			consume(t, g, used, call("used"), Approved, "")
			time.Sleep(time.Second)
			denied := enter(t, g, call("denied"), Waiting, "").Card
			decide(t, g, denied, false)
			for range 2 {
				enter(t, g, call("c"), Waiting, "")
				enter(t, g, call("d"), Waiting, "")
				for _, id := range []string{used, denied} {
					if _, ok := w.state[keyCard+id]; ok || w.state[keyTomb+id] == nil {
						t.Errorf("card %s is still whole", id)
					}
				}
				var stale *StaleError
				if _, err := g.Decide(t.Context(), used[:6], true, Decision{}); !errors.As(err, &stale) || stale.State != Consumed {
					t.Errorf("error %v", err)
				}
				enter(t, g, call("used"), Refused, CodeConsumed)
				enter(t, g, call("denied"), Refused, CodeDenied)
				consume(t, g, used, call("used"), Refused, CodeConsumed)
				if o, err := g.Wait(t.Context(), denied); err != nil || o.State != Denied {
					t.Errorf("%+v, %v", o, err)
				}
				g = w.gate(t)
			}
			time.Sleep(defaultUseBy)
			enter(t, g, call("used"), Refused, CodeBusy) // no longer refused as used
		},
		"tombstones": func(t *testing.T, w *world) {
			w.options = func(o *Options) { o.MaxCards, o.maxTombs = 1, 3 }
			g := w.gate(t)
			var ids []string
			for i := range 8 {
				id := enter(t, g, call(fmt.Sprint(i)), Waiting, "").Card
				decide(t, g, id, false)
				ids = append(ids, id)
				time.Sleep(time.Second)
			}
			for _, g := range []*Gate{g, w.gate(t)} {
				if len(g.tombs) != 3 || len(g.tombByToken) != 3 || len(w.state) != 5 {
					t.Errorf("%d tombstones, %d by token, %d keys", len(g.tombs), len(g.tombByToken), len(w.state))
				}
				for i, id := range ids {
					_, err := g.Show(id)
					if want := i < 4; errors.Is(err, ErrNotFound) != want {
						t.Errorf("card %d: %v", i, err)
					}
				}
			}
		},
		"what a card holds": func(t *testing.T, w *world) {
			g := w.gate(t)
			huge := strings.Repeat("漢", 1<<20)
			c := call("x")
			c.ID, c.Tool, c.Cwd, c.Project, c.Agent, c.Session, c.Subagent, c.ToolUseID, c.Rule, c.Reason = huge, huge, huge, huge, huge, huge, huge, huge, huge, huge
			for range 1000 {
				c.Effects, c.NotBound, c.Recent = append(c.Effects, huge), append(c.NotBound, huge), append(c.Recent, huge)
			}
			c.Input = json.RawMessage(`{"command":"` + huge + `"}`)
			id := enter(t, g, c, Waiting, "").Card
			card := state(t, g, id, Pending)
			if string(card.Input) != `{"truncated":true,"len":3145742}` || !strings.Contains(card.NotBound[len(card.NotBound)-1], "too long") {
				t.Errorf("input %.100s, not bound %q", card.Input, card.NotBound[len(card.NotBound)-1])
			}
			d := Decision{By: huge, Reason: huge, Proof: huge, Surface: huge}
			if _, err := g.Decide(t.Context(), id, false, d); err != nil {
				t.Fatal(err)
			}
			if w.sizes > 512<<10 {
				t.Errorf("a value of %d bytes", w.sizes)
			}
			if tk := enter(t, g, c, Refused, CodeDenied); len(tk.Text) > maxText || !utf8.ValidString(tk.Text) {
				t.Errorf("text of %d bytes", len(tk.Text))
			}
			state(t, w.gate(t), id, Denied)
		},
		"a final card keeps little": func(t *testing.T, w *world) {
			g := w.gate(t)
			id := enter(t, g, call(strings.Repeat("x", 60<<10)), Waiting, "").Card
			if c := state(t, g, id, Pending); len(c.Input) < 60<<10 {
				t.Errorf("input of %d bytes", len(c.Input))
			}
			decide(t, g, id, false)
			if n := len(w.state[keyCard+id]); n > 8<<10 {
				t.Errorf("%d bytes", n)
			}
		},
		"input that is no JSON": func(t *testing.T, w *world) {
			g := w.gate(t)
			c := call("x")
			c.Input = json.RawMessage("{oops")
			if got := state(t, g, enter(t, g, c, Waiting, "").Card, Pending).Input; !json.Valid(got) {
				t.Errorf("input %s", got)
			}
			c = call("y")
			c.Input = nil
			if got := state(t, g, enter(t, g, c, Waiting, "").Card, Pending).Input; string(got) != "null" {
				t.Errorf("input %s", got)
			}
		},
		"hostile words reach the model only as visible text": func(t *testing.T, w *world) {
			g := w.gate(t)
			c := call("x")
			c.Rule = "r\x1b[2J\u202e"
			id := enter(t, g, c, Waiting, "").Card
			if _, err := g.Decide(t.Context(), id, false, Decision{Reason: "no\x1b[31m\n\u2066\xff"}); err != nil {
				t.Fatal(err)
			}
			tk := enter(t, g, c, Refused, CodeDenied)
			if strings.ContainsAny(tk.Text, "\x1b\n\u202e\u2066") || !strings.Contains(tk.Text, `\x1b`) || !utf8.ValidString(tk.Text) {
				t.Errorf("text %q", tk.Text)
			}
		},
		"a card keeps no secret of the call's short texts": func(t *testing.T, w *world) {
			w.options = func(o *Options) {
				o.Clean = func(s string) string { return strings.ReplaceAll(s, "hunter2", "[redacted:password]") }
			}
			g := w.gate(t)
			a, b := call("x"), call("x")
			for _, f := range []*string{&a.Tool, &a.Cwd, &a.Project, &a.Agent, &a.Session, &a.Subagent, &a.ToolUseID} {
				*f = "a hunter2 b"
			}
			b.Cwd = "a hunter3 b"
			id := enter(t, g, a, Waiting, "").Card
			if again := enter(t, g, b, Waiting, ""); again.Card == id {
				t.Error("the token was made of the cleaned text")
			}
			for key, value := range w.state {
				if strings.Contains(string(value), "hunter2") {
					t.Errorf("%s holds it: %s", key, value)
				}
			}
			out := waitFor(t.Context(), g, id)
			synctest.Wait()
			if n := g.CancelWaiting(t.Context(), a.Session, a.Subagent); n != 1 {
				t.Errorf("%d cancelled", n)
			}
			<-out
		},
		"nothing of the token or the input is in the record's facts": func(t *testing.T, w *world) {
			g := w.gate(t)
			c := call("secret-word")
			id := enter(t, g, c, Waiting, "").Card
			decide(t, g, id, true)
			consume(t, g, id, c, Approved, "")
			for _, e := range w.events {
				for k, v := range e.Detail {
					if v == g.token(&c) || strings.Contains(v, "secret-word") {
						t.Errorf("%s: %s=%s", e.Kind, k, v)
					}
				}
			}
		},
	})
}

func TestMissingPartsAreAnError(t *testing.T) {
	t.Parallel()
	if _, err := New(t.Context(), Options{}); err == nil {
		t.Error("a gate without a recorder")
	}
}
