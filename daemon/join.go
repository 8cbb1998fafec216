// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"slices"
	"sync"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/tripwires/view"
)

// maxCalls bounds the calls whose end has not been seen.
const maxCalls = 4096

// openCall is a call that was asked for and whose turn has not ended.
type openCall struct {
	call     string // id of its call.requested record
	key      sessionKey
	subagent string
	id       string // tool_use_id: comes from the model and may repeat
	tool     string
	mac      string         // keyed hash of its canonical input
	answer   event.Decision // what the agent was told
	who      string         // who let it run, "" if that is not known yet
	basis    string
	prompted bool         // the agent asked its person about it
	readSet  []view.Entry // what a call that a person approved was to run
	done     bool         // its end was recorded
}

// calls joins what agents tell after a call with what they asked before it. It is safe for concurrent use.
type calls struct {
	mu    sync.Mutex
	n     int
	open  map[sessionKey][]*openCall // in order of asking
	order []sessionKey               // sessions by their oldest call, for forgetting
}

func newCalls() *calls { return &calls{open: make(map[sessionKey][]*openCall)} }

// add remembers a call. Beyond the bound the oldest session's oldest call is forgotten: its end is then recorded unjoined.
func (c *calls) add(o *openCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.n >= maxCalls && len(c.order) > 0 {
		k := c.order[0]
		if list := c.open[k]; len(list) > 0 {
			c.open[k] = list[1:]
			c.n--
		}
		if len(c.open[k]) == 0 {
			c.drop(k)
		}
	}
	if len(c.open[o.key]) == 0 {
		c.order = append(c.order, o.key)
	}
	c.open[o.key] = append(c.open[o.key], o)
	c.n++
}

// finish finds the call that an end belongs to and marks it done: by id, in order of asking where the id repeats, and
// without an id by its input, oldest first. A call that we denied is only taken if no other fits. nil if there is none.
func (c *calls) finish(k sessionKey, subagent, id, tool, mac string) *openCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	var denied *openCall
	for _, o := range c.open[k] {
		if o.done || o.subagent != subagent || !o.is(id, tool, mac) {
			continue
		}
		if o.answer == event.Deny {
			if denied == nil {
				denied = o
			}
			continue
		}
		o.done = true
		return o
	}
	if denied != nil {
		denied.done = true
	}
	return denied
}

// asked marks the oldest open call with this input as one that the agent asks its person about, and returns its id.
func (c *calls) asked(k sessionKey, subagent, tool, mac string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.open[k] {
		if !o.done && !o.prompted && o.answer != event.Deny && o.subagent == subagent && o.is("", tool, mac) {
			o.prompted = true
			return o.call
		}
	}
	return ""
}

// take removes the call that one item of a finished turn belongs to and returns it; nil if none was asked for. Calls
// whose end was seen go first, so that a repeated id cannot hide one that has none.
func (c *calls) take(k sessionKey, subagent, id, tool, mac string) *openCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.open[k]
	find := func(done bool) int {
		return slices.IndexFunc(list, func(o *openCall) bool {
			return o.done == done && o.subagent == subagent && o.is(id, tool, mac)
		})
	}
	i := find(true)
	if i < 0 {
		i = find(false)
	}
	if i < 0 {
		return nil
	}
	o := list[i]
	c.open[k] = slices.Delete(list, i, i+1)
	c.n--
	if len(c.open[k]) == 0 {
		c.drop(k)
	}
	return o
}

// overruled marks a judged call as one that its hook denied all the same, since our answer came too late for it, and
// returns it; nil if there is none.
func (c *calls) overruled(k sessionKey, subagent, id, tool, mac string) *openCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.open[k] {
		if !o.done && o.subagent == subagent && o.is(id, tool, mac) {
			o.answer, o.done = event.Deny, true
			return o
		}
	}
	return nil
}

// deny marks a judged call as one that was denied after all: should it run, that is an alarm.
func (c *calls) deny(id string, k sessionKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.open[k] {
		if o.call == id {
			o.answer = event.Deny
		}
	}
}

// ended reports whether the end of such a call is on record already.
func (c *calls) ended(k sessionKey, subagent, id, tool, mac string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.open[k] {
		if o.subagent == subagent && o.is(id, tool, mac) {
			return o.done
		}
	}
	return false
}

// end forgets a session.
func (c *calls) end(k sessionKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n -= len(c.open[k])
	c.drop(k)
}

// drop forgets a session's list. The caller holds mu and keeps n.
func (c *calls) drop(k sessionKey) {
	delete(c.open, k)
	c.order = slices.DeleteFunc(c.order, func(o sessionKey) bool { return o == k })
}

func (o *openCall) is(id, tool, mac string) bool {
	if id != "" || o.id != "" && mac == "" {
		return o.id == id
	}
	return o.tool == tool && o.mac == mac
}

// Names of facts that joining needs again after a restart, in the Detail of records.
const (
	detailInputMAC = "input_mac"
	detailAsked    = "asked"

	detailSpooledAt = "spooled_at"
)

// replay rebuilds the memory from a record of the log's tail. Ends of sessions are the caller's to tell.
func (c *calls) replay(r *record.Record) {
	k := sessionKey{r.Agent, r.Session}
	switch r.Kind {
	case record.CallRequested:
		if r.Decision == nil {
			return
		}
		c.add(&openCall{
			call: r.ID, key: k, subagent: r.Subagent, id: r.ToolUseID, tool: r.Tool, mac: r.Detail[detailInputMAC],
			answer: event.Decision(r.Decision.Answer), who: r.Who, basis: r.WhoBasis,
		})
	case record.CallFinished, record.CallFailed, record.CallRejected:
		c.finish(k, r.Subagent, r.ToolUseID, r.Tool, r.Detail[detailInputMAC])
	case record.SessionEvent:
		if r.Detail[detailAsked] != "" {
			c.asked(k, r.Subagent, r.Tool, r.Detail[detailInputMAC])
		}
	}
}
