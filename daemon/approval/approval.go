// SPDX-License-Identifier: Apache-2.0

// Package approval is the gate's durable state machine. A call that must be asked about becomes a card; a person decides
// the card; an approval lets exactly that call run, once.
//
//	pending  -> approved | denied | expired | cancelled
//	approved -> consumed | lapsed | revoked
//
// All others are final. Each edge is one call of the Recorder, which makes the audit record and the new state durable in
// one transaction; memory follows only when it returned nil, and an error means that nothing happened and nothing may run.
//
// A card belongs to a token, a keyed hash over everything that makes two calls the same call (see Call). Asking again for
// a pending call joins its card; asking again for an approved one uses the approval up.
//
// Three clocks run: the hold (how long a hook waits), decide-by (the card's life) and use-by (the approval's life). The last
// two end as soon as the wall clock or the boot clock says so, whichever is first. The end of a hold, of the agent or of the
// daemon only detaches the waiter: the card stays decidable, and its approval is used by the same call asked again.
package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/tripwires/view"
)

// State of a card, or of a ticket or outcome about one.
type State string

// The states of a card. All but Pending and Approved are final.
const (
	Pending   State = "pending"
	Approved  State = "approved"
	Denied    State = "denied"
	Expired   State = "expired"
	Cancelled State = "cancelled"
	Consumed  State = "consumed"
	Lapsed    State = "lapsed" // approved, and not used in time
	Revoked   State = "revoked"
)

// States of a Ticket (Waiting, Approved, Refused) and of an Outcome (a card's state, or Detached) beyond those of a card.
const (
	Waiting  State = "waiting"  // the card is pending: Wait for it
	Refused  State = "refused"  // the call must not run: see Code
	Detached State = "detached" // the wait ended, the card did not
)

// Codes of a refusal. They are stable, and are the rule id that the agent is shown.
const (
	CodeDenied    = "approval-denied"
	CodeConsumed  = "approval-consumed"
	CodeExpired   = "approval-expired"
	CodeMismatch  = "approval-mismatch"
	CodeStale     = "approval-stale"
	CodeBusy      = "approval-busy"
	CodePending   = "approval-pending" // detached, or consumed before it was decided
	CodeCancelled = "approval-cancelled"
	CodeRevoked   = "approval-revoked"
	CodeFailed    = "approval-failed" // the step could not be made durable, or the caller's time ended
)

// Errors that callers may test. See also StaleError.
var (
	ErrNotFound  = errors.New("no such approval")
	ErrAmbiguous = errors.New("several approvals begin so")
	ErrClosed    = errors.New("the gate is closed")
)

// StaleError says that a card cannot be decided (any more).
type StaleError struct {
	ID    string
	State State
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("approval %s is stale: it is %s", e.ID, e.State)
}

// Recorder makes an event durable. When Record returns nil, the audit record and all of e.State are on disk, in one
// transaction; when it returns an error, the gate assumes that none of it is.
type Recorder interface {
	Record(ctx context.Context, e Event) (seq uint64, err error)
}

// Event is one record that the gate asks for.
type Event struct {
	Kind   record.Kind
	At     time.Time         // the gate's wall clock, UTC
	Card   Card              // as it is after the event; zero if no card is concerned
	Call   string            // id of the call that caused it, "" if a person or a clock did
	Detail map[string]string // facts without free text: codes, counts, the surface; never a token
	State  []StateOp         // to be applied in the same transaction; may be empty
}

// StateOp is one change of the state bucket. A nil Value deletes the key.
type StateOp struct {
	Key   string
	Value []byte
}

// Prefix is what every state key of this package begins with.
const Prefix = "approval/"

// Options make a Gate. Recorder, Now, Boot and Recheck are required.
type Options struct {
	Recorder Recorder
	Load     map[string][]byte // the state keys under Prefix at start
	Now      func() time.Time
	Boot     func() time.Duration // time since boot, sleep included
	BootID   string               // of this boot of the machine; "" = unknown: the wall clock alone counts after a restart

	Hold     time.Duration // default 120 s
	DecideBy time.Duration // default 8 h
	UseBy    time.Duration // default 15 min

	// Recheck reads the entries again and returns the paths that are no longer as they were. It must fail closed: what it
	// cannot read has changed.
	Recheck func(ctx context.Context, set []view.Entry) []string

	// Clean takes secrets out of the short texts of a call (tool, directories, ids) before they are kept on its card; nil
	// keeps them. The token is made of what the call really holds.
	Clean func(string) string

	// OnChange is told the number of pending cards after each change, one call at a time. It must not call the Gate.
	OnChange func(pending int)

	MaxWaiting int // waits at a time; default 64
	MaxCards   int // cards kept, final ones included; default 256

	maxTombs int // tombstones kept beyond them
}

// Call is what the gate must know of a tool call. The fields of the first group make up its token: two calls with equal
// ones are the same call.
type Call struct {
	Tool        string
	Canonical   []byte // canonical JSON of the input, commentary left out; hashed, never stored
	Cwd         string
	Project     string
	UID         uint32
	Agent       string
	RuleHash    string // content hash of the rule that asks
	ReadSet     []view.Entry
	Session     string // part of the token only with BindSession
	BindSession bool

	ID        string // call id
	Subagent  string
	ToolUseID string
	Input     json.RawMessage // for the card: redacted by the caller
	Rule      string
	Reason    string   // redacted
	Effects   []string // in words
	NotBound  []string // what an approval does not pin down
	Recent    []string // what this session did just before, from the log, redacted
}

// Card is one request for approval as people see it. Strings come from the agent's side and are hostile until shown
// through audit/show.
type Card struct {
	ID        string          `json:"id"`
	State     State           `json:"state"`
	Call      string          `json:"call"` // id of the call that asked first
	Agent     string          `json:"agent"`
	Session   string          `json:"session"`
	Subagent  string          `json:"subagent,omitempty"`
	Tool      string          `json:"tool"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	UID       uint32          `json:"uid"`
	Cwd       string          `json:"cwd"`
	Project   string          `json:"project"`
	Input     json.RawMessage `json:"input"` // redacted, valid JSON, at most maxInput bytes
	Rule      string          `json:"rule"`
	Reason    string          `json:"reason"`
	Effects   []string        `json:"effects,omitempty"`
	NotBound  []string        `json:"not_bound,omitempty"`
	Recent    []string        `json:"recent,omitempty"`
	Requested time.Time       `json:"requested"`
	DecideBy  time.Time       `json:"decide_by"`
	UseBy     time.Time       `json:"use_by,omitzero"` // set when approved
	DecidedAt time.Time       `json:"decided_at,omitzero"`
	DecidedBy string          `json:"decided_by,omitempty"`
	Surface   string          `json:"surface,omitempty"`
	Comment   string          `json:"comment,omitempty"` // the reason that the person gave
	Proof     string          `json:"proof,omitempty"`
	EndedAt   time.Time       `json:"ended_at,omitzero"` // when it became final
	Seq       uint64          `json:"seq"`               // of its newest record; read back after a restart, of the one before (0: none)
	Waiting   bool            `json:"-"`                 // a hook waits for it now
}

// Expires is when the card ends if nothing happens: decide-by while pending, use-by when approved, else zero.
func (c Card) Expires() time.Time {
	switch c.State {
	case Pending:
		return c.DecideBy
	case Approved:
		return c.UseBy
	}
	return time.Time{}
}

// Ticket is the answer to a call.
type Ticket struct {
	Card  string
	State State  // Waiting, Approved (this call may run now: the approval is used up) or Refused
	Code  string // of a refusal
	Text  string // for the model, bounded and cleaned
	By    string // who approved, when Approved
	Proof string
}

// Outcome is how a wait ended.
type Outcome struct {
	Card    string
	State   State  // Approved (not consumed yet), Detached, or the final state of the card
	Code    string // "" when Approved
	Text    string // for the model, bounded and cleaned
	By      string
	Comment string
}

// Decision is a person's word on a card.
type Decision struct {
	By      string // who, as far as it is known
	Reason  string // comment for the model, redacted by the caller
	Proof   string // level, e.g. "L0"
	Surface string // where from, e.g. "control"
}
