// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/hooks/wire"
)

// failure is one way in which the daemon can fail to judge an event. On a gate event each of them is a deny that the
// model can read.
type failure struct {
	rule    string // stands where a rule's id would
	metric  string // reason of the fail-closed counter
	reason  string
	instead string
}

// The failures. They are never changed.
var (
	failUndecodable = failure{"input.undecodable", "undecodable", "the event could not be read as what this agent is known to send",
		"Make the call again with plain, well-formed arguments."}
	failUnknownAgent = failure{"input.unknown-agent", "undecodable", "the hook names an agent that this daemon does not know",
		"Tell the person: the hooks of this agent must be installed again."}
	failTooLarge = failure{"input.too-large", "too-large", "the call is larger than 32 MiB and cannot be judged",
		"Split it into smaller calls."}
	failPanic = failure{"internal.panic", "panic", "Tripline failed while judging this call",
		"Do it another way, or tell the person: the daemon's log names the stage."}
	failDeadline = failure{"internal.deadline", "deadline", "Tripline could not judge this call in time",
		"Make a smaller call, or wait a moment before going on."}
	failLog = failure{"log.unavailable", "log", "the audit log cannot be written, and nothing may run unrecorded",
		"Stop and tell the person: the disk may be full; the daemon says more on its stderr."}
	failBusy = failure{"internal.busy", "busy", "too many calls are being judged at the same time",
		"Wait a moment before going on."}
	failSlow = failure{"internal.slow", "deadline", "the hook did not deliver the call in time",
		"Wait a moment before going on."}
	failStopping = failure{"internal.stopping", "stopping", "the daemon is stopping",
		"Wait until the person has started it again."}
)

// text is what the model reads.
func (f failure) text() string {
	return "Tripline denied this call: " + f.reason + " (rule " + f.rule + "). " + f.instead + " Do not retry the same call."
}

// failClosed says whether a failure on this event must deny: a gate event of the agent, or an agent that nothing is known
// of, unless its event is one that no agent gates on.
func (d *Daemon) failClosed(agent, name string) bool {
	if a := d.adapters[agent]; a != nil {
		k, ok := a.Kind(name)
		return ok && k.Gates()
	}
	known := false
	for _, a := range d.adapters {
		k, ok := a.Kind(name)
		if ok && k.Gates() {
			return true
		}
		known = known || ok
	}
	return !known
}

// canned renders a failure for an agent, and counts it where it denies. Where it need not deny it is silent.
func (d *Daemon) canned(agent, name string, f failure) wire.Reply {
	if !d.failClosed(agent, name) {
		return wire.Reply{Kind: wire.KindFinal}
	}
	d.m.FailClosed(f.metric)
	return d.encode(agent, name, event.Verdict{Decision: event.Deny, Rule: f.rule, Reason: ending(f.text(), "", f.rule)})
}

// encode renders a verdict as the wire's reply. An agent without an adapter gets what every agent takes for a refusal.
func (d *Daemon) encode(agent, name string, v event.Verdict) wire.Reply {
	a := d.adapters[agent]
	if a == nil {
		if v.Decision != event.Deny {
			return wire.Reply{Kind: wire.KindFinal}
		}
		return wire.Reply{Kind: wire.KindFinal, Exit: 2, Stderr: []byte("tripline: denied (" + v.Rule + ")\n")}
	}
	r := a.Encode(name, v)
	if r.Exit < 0 || r.Exit > 255 || len(r.Stdout)+len(r.Stderr) > wire.MaxOutput {
		return wire.Reply{Kind: wire.KindFinal, Exit: 2, Stderr: []byte("tripline: denied (internal.reply)\n")}
	}
	return wire.Reply{Kind: wire.KindFinal, Exit: uint8(r.Exit), Stdout: r.Stdout, Stderr: r.Stderr}
}
