// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"sync"
	"time"

	"github.com/tripline-sh/tripline/daemon/control"
	"github.com/tripline-sh/tripline/hooks/event"
)

const (
	sourceHook   = "hook"
	sourceCanary = "canary" // Source of records

	canaryPrefix = "tripline-canary-"
	canaryLife   = 30 * time.Second
	canaryEvents = 2
	maxCanaries  = 8 // outstanding at a time

	ruleCanaryAsk = "canary.ask" // what a canary is told whose call would be asked about: it opens no card
)

// canaries are the sessions that were handed out and not used up. The zero value is ready. It is safe for concurrent use.
type canaries struct {
	mu   sync.Mutex
	open map[string]canary // by session
}

type canary struct {
	until time.Time
	left  int // events
}

// issue makes a new one; ok is false if there are too many.
func (c *canaries) issue(now time.Time) (session string, until time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s, o := range c.open {
		if !now.Before(o.until) {
			delete(c.open, s)
		}
	}
	if len(c.open) >= maxCanaries {
		return "", time.Time{}, false
	}
	if c.open == nil {
		c.open = make(map[string]canary)
	}
	var nonce [16]byte
	_, _ = rand.Read(nonce[:]) // never fails
	session, until = canaryPrefix+hex.EncodeToString(nonce[:]), now.Add(canaryLife)
	c.open[session] = canary{until: until, left: canaryEvents}
	return session, until, true
}

// take uses one event of a session up; false means that it is an ordinary event.
func (c *canaries) take(session string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	o, ok := c.open[session]
	if !ok {
		return false
	}
	if o.left--; o.left == 0 || !now.Before(o.until) {
		delete(c.open, session)
	} else {
		c.open[session] = o
	}
	return now.Before(o.until)
}

// postCanary hands out a canary. Nothing needs to be on record yet: its events will be.
func (d *Daemon) postCanary(w http.ResponseWriter, r *http.Request) error {
	var req control.CanaryRequest
	if err := readJSON(r, &req); err != nil {
		return err
	}
	if err := checkProof(req.Proof); err != nil {
		return err
	}
	session, until, ok := d.canaries.issue(d.now())
	if !ok {
		return &control.ResponseError{Status: http.StatusTooManyRequests, Message: "too many canaries are under way", Hint: "wait half a minute"}
	}
	return writeJSON(w, control.CanaryResponse{Session: session, Expires: until})
}

// isCanary reports whether an event is one of a canary that is under way, and uses that up.
func (d *Daemon) isCanary(x *exchange) bool {
	return !x.late && x.req.peer != nil && x.ev.Kind == event.KindPreTool && d.canaries.take(x.ev.Session, d.now())
}

// decideCanary gives a canary the verdict of the rules, but never a person's time: what would be asked about is denied.
func (x *exchange) decideCanary() {
	if x.verdict.Decision != event.Ask {
		return
	}
	x.gate = ""
	x.verdict = event.Verdict{Decision: event.Deny, Rule: ruleCanaryAsk,
		Reason: "Tripline would ask a person about this call (rule " + x.dec.Rule + "). It is a canary, so nobody is asked (rule " + ruleCanaryAsk + ")."}
	x.who, x.basis = "rule:"+x.dec.Rule, "proved"
}

// canaryDone tells the metrics of a canary that came the whole way, or of what failed on it: that is no fault of the test.
func (d *Daemon) canaryDone(x *exchange) {
	if x.fail != nil {
		d.m.FailClosed(x.fail.metric)
	}
	if x.recorded && x.fail == nil && x.token == "" {
		d.m.Canary(d.now())
	}
}
