// SPDX-License-Identifier: Apache-2.0

// Package control is the protocol of control.sock: HTTP/JSON requests and responses, and the client that auditctl uses.
// Event hooks never use this socket. Every call that changes something carries a Proof.
//
//	GET  /v1/status
//	GET  /v1/calls?...            JSON lines of record.Call (query keys: see CallsQuery)
//	GET  /v1/records?call=ID      JSON lines of RecordView: every record of one call (unique prefix of its id), bodies included
//	GET  /v1/sessions?from=&to=   JSON lines of record.Session
//	GET  /v1/events?from=&to=&kind=  JSON lines of RecordView: what is no tool call (sessions, settings, alarms, gaps ...)
//	POST /v1/verify               VerifyRequest -> record.Verification
//	GET  /v1/approvals?all=1      []Approval
//	GET  /v1/approvals/ID         Approval (unique prefix)
//	POST /v1/approvals/ID/decide  DecideRequest -> Approval
//	GET  /v1/rules                RulesResponse: the rules in force
//	POST /v1/rules/reload         ReloadRequest -> ReloadResponse
//	POST /v1/settings/announce    AnnounceRequest -> AnnounceResponse
//	POST /v1/canary               CanaryRequest -> CanaryResponse
//	GET  /v1/metrics              the tripline_ metrics in the Prometheus text format, for a textfile
//
// Errors are {"error": text, "hint": text} with a 4xx or 5xx status; 404 = nothing found, 409 = stale.
package control

import (
	"encoding/json"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
)

// Proof says how the caller shows that a person stands behind a call. In this version only level L0 exists: the same uid on
// this socket, labelled weak wherever it is shown.
type Proof struct {
	Level string `json:"level"`         // "L0"
	TTY   string `json:"tty,omitempty"` // claimed
}

// Status is what GET /v1/status returns.
type Status struct {
	Version       string    `json:"version"`
	PID           int       `json:"pid"`
	Started       time.Time `json:"started"`
	Mode          string    `json:"mode"`
	Profile       string    `json:"profile"`
	OnDown        string    `json:"on_down"`
	HookSocket    string    `json:"hook_socket"`
	ControlSocket string    `json:"control_socket"`
	MetricsAddr   string    `json:"metrics_addr"` // "" = off
	LogDir        string    `json:"log_dir"`
	Size          uint64    `json:"size"` // records in the log
	Root          string    `json:"root"`
	GenesisKey    string    `json:"genesis_key"` // note verifier key
	RuleSet       string    `json:"rule_set"`
	Rules         int       `json:"rules"`
	Loosening     []string  `json:"loosening"`             // differences on disk that wait for a person's reload
	RulesError    string    `json:"rules_error,omitempty"` // why the files on disk are not in force
	Pending       int       `json:"pending"`               // approvals waiting
	Alarms        []string  `json:"alarms"`

	StartedBy string        `json:"started_by"`         // systemd, launchd, hook or person: who keeps it running
	Verified  *Checked      `json:"verified,omitempty"` // the newest verification that ended in OK; nil = none is known
	Anchored  uint64        `json:"anchored"`           // highest sequence number that a denial has carried out of the log; 0 = none
	Disk      Disk          `json:"disk"`
	Agents    []AgentStatus `json:"agents"` // one for each agent that this version knows, by name
	Live      []LiveSession `json:"live"`   // sessions that have not ended and whose agent process is alive, oldest first
}

// Checked is a verification of the log.
type Checked struct {
	Size uint64    `json:"size"` // records that were checked
	At   time.Time `json:"at"`
}

// Disk is the state of the file system that the log is on.
type Disk struct {
	LogBytes   int64  `json:"log_bytes"`
	FreeBytes  int64  `json:"free_bytes"`  // for this user
	TotalBytes int64  `json:"total_bytes"` // 0 = could not tell
	FileSystem string `json:"file_system"` // ext4, xfs, nfs ...; a number in hexadecimal if it has no name that we know
}

// AgentStatus is what the daemon has seen of one agent.
type AgentStatus struct {
	Agent     string     `json:"agent"`
	LastEvent *time.Time `json:"last_event"`        // nil = never, as far as the log's tail tells
	Version   string     `json:"version,omitempty"` // the agent's own, if its events tell it
	Sessions  int        `json:"sessions"`          // active ones
}

// LiveSession is a session of an agent that runs now.
type LiveSession struct {
	Agent     string    `json:"agent"`
	Session   string    `json:"session"`
	PID       int       `json:"pid"` // the agent's process, as the hook's ancestry showed it; 0 = could not tell
	Cwd       string    `json:"cwd"`
	LastEvent time.Time `json:"last_event"`
	// LetGo is true once the session has told of a settings change (ConfigChange) that a person announced with action
	// uninstall: it has read the file and calls our hooks no more.
	LetGo bool `json:"let_go"`
}

// CanaryRequest asks for permission to send test calls through the hook.
type CanaryRequest struct {
	Proof Proof `json:"proof"`
}

// CanaryResponse names a session under which two PreToolUse events at most are taken as a canary until Expires: they are
// judged and recorded like any other, marked with source canary, and count in no metric of calls and raise no alarm.
type CanaryResponse struct {
	Session string    `json:"session"` // tripline-canary- and 128 random bits; works once
	Expires time.Time `json:"expires"`
}

// RecordView is a record with its bodies.
type RecordView struct {
	Record record.Record     `json:"record"`
	Bodies map[string]string `json:"bodies"` // name -> stored (redacted) text
}

// NewRecordView joins a record with its bodies, as text.
func NewRecordView(r *record.Record, bodies map[string][]byte) RecordView {
	v := RecordView{Record: *r, Bodies: make(map[string]string, len(bodies))}
	for name, data := range bodies {
		v.Bodies[name] = string(data)
	}
	return v
}

// Approval is a card as it is listed and shown. It is built from the log, not from the agent's words.
type Approval struct {
	ID        string          `json:"id"`
	State     string          `json:"state"` // pending, approved, denied, expired, cancelled, consumed, lapsed, revoked
	Tool      string          `json:"tool"`
	Input     json.RawMessage `json:"input"` // redacted
	Rule      string          `json:"rule"`
	Reason    string          `json:"reason"`
	Effects   []string        `json:"effects"` // in words
	Agent     string          `json:"agent"`
	Session   string          `json:"session"`
	Subagent  string          `json:"subagent,omitempty"`
	Cwd       string          `json:"cwd"`
	Project   string          `json:"project"`
	Requested time.Time       `json:"requested"`
	Expires   time.Time       `json:"expires"` // decide-by while pending, use-by when approved
	Waiting   bool            `json:"waiting"` // the agent still waits
	DecidedBy string          `json:"decided_by,omitempty"`
	DecidedAt *time.Time      `json:"decided_at,omitempty"`
	Comment   string          `json:"comment,omitempty"` // the reason the person gave
	Proof     string          `json:"proof,omitempty"`   // L0 (weak: same user)
	NotBound  []string        `json:"not_bound"`         // what the approval does not pin down
	Recent    []string        `json:"recent,omitempty"`  // what this session did just before, from the log
	Call      string          `json:"call,omitempty"`
}

// DecideRequest approves or denies a card.
type DecideRequest struct {
	Decision string `json:"decision"` // approve or deny
	Reason   string `json:"reason,omitempty"`
	Proof    Proof  `json:"proof"`
}

// ReloadRequest asks for the rules and config on disk to be put in force, loosening included.
type ReloadRequest struct {
	DryRun bool `json:"dry_run,omitempty"`
	// Expect lists the loosening that the person has seen, as a dry run names it. If anything else would be loosened, nothing
	// changes and the answer is 409. Empty = whatever is on disk.
	Expect []string `json:"expect,omitempty"`
	Proof  Proof    `json:"proof"`
}

// ReloadResponse says what changed.
type ReloadResponse struct {
	Changed   bool     `json:"changed"`
	RuleSet   string   `json:"rule_set"`
	Rules     int      `json:"rules"`
	Tightened []string `json:"tightened"`
	Loosened  []string `json:"loosened"`
	Restart   []string `json:"restart,omitempty"` // config keys that take effect at the next start only
}

// AnnounceRequest tells the daemon that a person is about to give a settings file, or the hook program, these bytes.
type AnnounceRequest struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"` // hex, of the coming bytes; "absent" for a removal
	Action string `json:"action"` // install or uninstall for a settings file, upgrade for the hook program
	Agent  string `json:"agent"`
	Proof  Proof  `json:"proof"`
}

// AnnounceResponse confirms that the announcement is on record.
type AnnounceResponse struct {
	Seq uint64 `json:"seq"`
}

// VerifyRequest asks for a check of the whole log.
type VerifyRequest struct {
	Key     string   `json:"key,omitempty"` // note verifier key that a person kept; "" = the log's own
	Anchors []Anchor `json:"anchors,omitempty"`
}

// Anchor is a position of the log that something outside it has seen: a sequence number and a prefix of the root, as they
// stand in the text of a denial.
type Anchor struct {
	Seq  uint64 `json:"seq"`
	Root string `json:"root"`
}

// ErrorBody is what every error response holds.
type ErrorBody struct {
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
}
