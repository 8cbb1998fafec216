// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

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
		"cards whose requests lost their answer make room once they end": func(t *testing.T, w *world) {
			w.options = func(o *Options) { o.MaxCards = 2 }
			w.setFail(func(Event) (bool, bool) { return true, true })
			g := w.gate(t)
			for i := range 9 {
				if tk, err := g.Enter(t.Context(), call(fmt.Sprint(i))); !errors.Is(err, errDisk) || tk.State != Refused {
					t.Errorf("%+v, %v", tk, err)
				}
			}
			w.setFail(nil)
			g = w.gate(t)
			if n := len(g.List(false)); n != 9 {
				t.Errorf("%d cards", n)
			}
			enter(t, g, call("x"), Refused, CodeBusy)
			time.Sleep(defaultDecideBy)
			tick(t, g, 9)
			enter(t, g, call("x"), Waiting, "")
			for _, g := range []*Gate{g, w.gate(t)} {
				if len(g.cards) != 2 || len(g.tombs) != 8 {
					t.Errorf("%d cards, %d tombstones", len(g.cards), len(g.tombs))
				}
			}
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
