// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/tripwires/view"
)

func TestOneApprovalIsForOneCall(t *testing.T) {
	inBubble(t, map[string]func(*testing.T, *world){
		"any difference makes another call": func(t *testing.T, w *world) {
			g := w.gate(t)
			seen := map[string]string{}
			for name, change := range map[string]func(*Call){
				"none":               func(*Call) {},
				"tool":               func(c *Call) { c.Tool = "Write" },
				"order of the words": func(c *Call) { c.Canonical = []byte(`{"command":"find . -delete -name a"}`) },
				"cwd":                func(c *Call) { c.Cwd = "/" },
				"project":            func(c *Call) { c.Project = "/" },
				"uid":                func(c *Call) { c.UID = 0 },
				"agent":              func(c *Call) { c.Agent = "codex" },
				"rule":               func(c *Call) { c.RuleHash = "abd" },
				"content":            func(c *Call) { c.ReadSet[0].Hash = "fe" },
				"inode":              func(c *Call) { c.ReadSet[0].Ino = 9 },
				"one more file":      func(c *Call) { c.ReadSet = append(c.ReadSet, view.Entry{Path: "/x", Hash: "absent", Code: true}) },
				"no file":            func(c *Call) { c.ReadSet = nil },
				"effects":            func(c *Call) { c.Effects = append(c.Effects, "overwrite /home (project)") },
				"session":            func(c *Call) { c.BindSession = true },
				"another session":    func(c *Call) { c.BindSession, c.Session = true, "s2" },
			} {
				c := call("find . -name a -delete")
				change(&c)
				token := g.token(&c)
				if before, ok := seen[token]; ok {
					t.Errorf("%s and %s are the same call", before, name)
				}
				seen[token] = name
			}
		},
		"what is no part of the token does not": func(t *testing.T, w *world) {
			g := w.gate(t)
			a, b := call("x"), call("x")
			b.ID, b.Session, b.Subagent, b.ToolUseID, b.Reason, b.Input = "call-2", "s2", "sub", "toolu_2", "other", json.RawMessage(`{}`)
			a.ReadSet = append(a.ReadSet, view.Entry{Path: "/a", Code: true})
			b.ReadSet = []view.Entry{{Path: "/a", Code: true}, b.ReadSet[0]}
			// what the call works on changes by the call itself
			a.ReadSet = append(a.ReadSet, view.Entry{Path: "/out.txt", Hash: "absent"})
			b.ReadSet = append(b.ReadSet, view.Entry{Path: "/out.txt", Hash: "file", Size: 9})
			if g.token(&a) != g.token(&b) {
				t.Error("two calls")
			}
		},
		"no field can pose as another": func(t *testing.T, w *world) {
			g := w.gate(t)
			a, b := call("x"), call("x")
			a.Cwd, a.Project = "/a\nproject /b", "/c"
			b.Cwd, b.Project = "/a", "/b\nproject /c"
			if g.token(&a) == g.token(&b) {
				t.Error("one call")
			}
		},
		"tokens of two installs differ": func(t *testing.T, w *world) {
			c := call("x")
			if w.gate(t).token(&c) == newWorld().gate(t).token(&c) {
				t.Error("the token can be guessed from the input")
			}
		},
		"another call cannot use it, and it is still there for the right one": func(t *testing.T, w *world) {
			g := w.gate(t)
			id := enter(t, g, call("npm test"), Waiting, "").Card
			decide(t, g, id, true)
			consume(t, g, id, call("npm test && rm -rf /"), Refused, CodeMismatch)
			if e := w.last(); e.Kind != record.ApprovalRefused || e.Detail["code"] != CodeMismatch || e.Call != "call-1" {
				t.Errorf("on record: %+v", e)
			}
			consume(t, g, id, call("npm test"), Approved, "")
		},
		"two waiters, one run": func(t *testing.T, w *world) {
			g := w.gate(t)
			id := enter(t, g, call("x"), Waiting, "").Card
			if again := enter(t, g, call("x"), Waiting, ""); again.Card != id {
				t.Fatalf("another card")
			}
			w.recorded(t, "requested")
			codes := make(chan string, 2)
			for range 2 {
				go func() {
					if o, _ := g.Wait(t.Context(), id); o.State != Approved && o.State != Consumed {
						codes <- "outcome " + string(o.State)
						return
					}
					tk, _ := g.Consume(t.Context(), id, call("x"))
					codes <- string(tk.State) + tk.Code
				}()
			}
			synctest.Wait()
			decide(t, g, id, true)
			a, b := <-codes, <-codes
			if a > b {
				a, b = b, a
			}
			if a != string(Approved) || b != string(Refused)+CodeConsumed {
				t.Errorf("%s and %s", a, b)
			}
		},
		"a file that changed while the card waited": func(t *testing.T, w *world) {
			g := w.gate(t)
			id := enter(t, g, call("sh clean.sh"), Waiting, "").Card
			decide(t, g, id, true)
			w.setChanged("/home/dev/shop/clean.sh")
			consume(t, g, id, call("sh clean.sh"), Refused, CodeStale)
			w.setChanged()
			consume(t, g, id, call("sh clean.sh"), Refused, CodeRevoked) // swapping it back does not help
			w.recorded(t, "requested approved revoked tamper.script-changed refused")
		},
		"an approval that lapses while files are read again": func(t *testing.T, w *world) {
			w.options = func(o *Options) {
				o.Recheck = func(context.Context, []view.Entry) []string {
					time.Sleep(defaultUseBy)
					return nil
				}
			}
			g := w.gate(t)
			id := enter(t, g, call("x"), Waiting, "").Card
			decide(t, g, id, true)
			consume(t, g, id, call("x"), Refused, CodeExpired)
		},
		"a caller that is gone uses nothing up": func(t *testing.T, w *world) {
			g := w.gate(t)
			id := enter(t, g, call("x"), Waiting, "").Card
			decide(t, g, id, true)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if tk, err := g.Consume(ctx, id, call("x")); err == nil || tk.State != Refused || tk.Code != CodeFailed {
				t.Errorf("%+v, %v", tk, err)
			}
			if tk, err := g.Enter(ctx, call("x")); err == nil || tk.State != Refused {
				t.Errorf("%+v, %v", tk, err)
			}
			consume(t, g, id, call("x"), Approved, "")
		},
		"a card that never was": func(t *testing.T, w *world) {
			g := w.gate(t)
			if tk, err := g.Consume(t.Context(), "nope", call("x")); !errors.Is(err, ErrNotFound) || tk.State != Refused {
				t.Errorf("%+v, %v", tk, err)
			}
			if o, err := g.Wait(t.Context(), "nope"); !errors.Is(err, ErrNotFound) || o.State != Detached || o.Text == "" {
				t.Errorf("%+v, %v", o, err)
			}
		},
	})
}
