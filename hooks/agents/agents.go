// SPDX-License-Identifier: Apache-2.0

// Package agents declares what Tripline needs from each coding agent. One sub-package per agent implements Adapter; the
// list of them is explicit, in All of package hooks/agents/all, so that nothing registers itself.
package agents

import (
	"errors"
	"time"

	"github.com/tripline-sh/tripline/hooks/event"
)

// ErrUndecodable is wrapped by every error of Decode: the payload is not what the agent is known to send. On a gate event
// it denies (rule input.undecodable); on another one it is recorded as such.
var ErrUndecodable = errors.New("undecodable")

// Adapter speaks one agent's hook protocol. Implementations are stateless and safe for concurrent use, and never do I/O.
type Adapter interface {
	// Name is the agent argument of tripline-hook, e.g. "claude".
	Name() string

	// Kind returns the meaning of the agent's event name; ok is false for a name that this adapter does not know
	// (such an event is recorded as event.KindOther and answered with a pass).
	Kind(name string) (k event.Kind, ok bool)

	// Decode reads one payload without loss. name is the event name from the hook's arguments; a payload that names another
	// event is undecodable. Exact keys only: a duplicate or a case variant of a known key is undecodable.
	Decode(name string, payload []byte) (*event.Event, error)

	// Encode renders a verdict as the agent's native reply to the event called name. It never fails: what the agent cannot
	// express is rendered as the next stricter thing that it can.
	Encode(name string, v event.Verdict) event.Reply

	// CanonicalInput returns the tool input as canonical JSON (sorted keys, no insignificant space, numbers as sent) without
	// the keys that are commentary for this tool (Claude Code: description). Two calls are the same call when these bytes,
	// the tool, the directory and the rest of the approval token are equal.
	CanonicalInput(tool string, input []byte) ([]byte, error)
}

// Registration is one event as an agent's settings register it. Times that lie too close would let the agent give up on the
// hook before the hook gives up on the daemon, so Deadline always lies well under Timeout.
type Registration struct {
	Event    string
	Kind     event.Kind
	Timeout  time.Duration // the agent's patience with the hook, whole seconds
	Deadline time.Duration // the hook's own, counted from the start of its main
}
