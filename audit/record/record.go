// SPDX-License-Identifier: Apache-2.0

// Package record defines one entry of the audit log: its fields, their order and the exact bytes that become a leaf of the
// tree. The stored bytes are the leaf: JSON in the field order of Record, no indentation, no trailing newline. It is a leaf
// package and is imported by whoever reads or writes records.
package record

import "time"

// Version is the format version written into every record.
const Version = 1

// Kind says what a record tells.
type Kind string

// The kinds of section "log" of the design. Families end in a dot there: approval.*, session.*, config.*, tamper.*, daemon.*.
const (
	CallRequested Kind = "call.requested" // a call was asked for; carries the decision
	CallFinished  Kind = "call.finished"
	CallFailed    Kind = "call.failed"
	CallRejected  Kind = "call.rejected" // the agent itself refused it (unknown tool, bad input, its own permission)

	ApprovalRequested Kind = "approval.requested"
	ApprovalApproved  Kind = "approval.approved"
	ApprovalDenied    Kind = "approval.denied"
	ApprovalExpired   Kind = "approval.expired"
	ApprovalCancelled Kind = "approval.cancelled"
	ApprovalConsumed  Kind = "approval.consumed"
	ApprovalLapsed    Kind = "approval.lapsed"
	ApprovalRevoked   Kind = "approval.revoked"
	ApprovalRefused   Kind = "approval.refused" // a use that was not granted: replayed, mismatched, stale

	SessionStart    Kind = "session.start"
	SessionEnd      Kind = "session.end"
	SessionStop     Kind = "session.stop" // the agent ended a turn
	SessionSubagent Kind = "session.subagent"
	SessionEvent    Kind = "session.event" // any other event of a known agent
	Prompt          Kind = "prompt"

	ConfigRules    Kind = "config.rules"    // a rule set was loaded, tightened or reloaded by a person
	ConfigSettings Kind = "config.settings" // an agent's settings file changed or was announced

	TamperToken         Kind = "tamper.token"     // an event came with an unknown or missing install token
	TamperRewritten     Kind = "tamper.rewritten" // input run differs from input judged
	TamperSettings      Kind = "tamper.settings"  // a settings change was blocked
	TamperPolicy        Kind = "tamper.policy"    // a managed settings change, which cannot be blocked
	TamperScriptChanged Kind = "tamper.script-changed"
	TamperDeniedRan     Kind = "tamper.denied-ran"    // a call that we denied ran all the same
	TamperUnrecorded    Kind = "tamper.unrecorded"    // a call that ran has no request record
	TamperUndecodable   Kind = "tamper.undecodable"   // an event that its adapter could not read
	TamperHooksRemoved  Kind = "tamper.hooks-removed" // our entries are gone from a settings file, or switched off, without a person's word
	TamperBinary        Kind = "tamper.binary"        // the hook program that our entries name is gone or is another one
	Gap                 Kind = "gap"                  // something could not be recorded; says what and how many
	DaemonStart         Kind = "daemon.start"
	DaemonStop          Kind = "daemon.stop"
	DaemonAlarm         Kind = "daemon.alarm"
	DaemonVerify        Kind = "daemon.verify"         // the log was verified by the daemon; says how that ended
	CommitUnknown       Kind = "daemon.commit-unknown" // a commit failed, was read back, and this is what was found
)

// Record is one entry. Field order is the byte order and never changes within a Version; new fields are added at the end
// of their struct with omitempty. Nothing in it may hold a secret in clear: free text goes into bodies.
type Record struct {
	V    int       `json:"v"`
	Seq  uint64    `json:"seq"`  // position in the whole log, from 1, without holes
	Time time.Time `json:"time"` // the daemon's wall clock, UTC
	Kind Kind      `json:"kind"`
	ID   string    `json:"id"`             // of this record
	Call string    `json:"call,omitempty"` // joins all records of one call: the ID of its call.requested record

	Agent        string `json:"agent,omitempty"`
	Session      string `json:"session,omitempty"`
	Subagent     string `json:"subagent,omitempty"`
	SubagentType string `json:"subagent_type,omitempty"`
	Prompt       string `json:"prompt,omitempty"`
	Event        string `json:"event,omitempty"` // the agent's own event name
	Tool         string `json:"tool,omitempty"`
	ToolUseID    string `json:"tool_use_id,omitempty"`
	MCPServer    string `json:"mcp_server,omitempty"`
	MCPSource    string `json:"mcp_source,omitempty"`
	Cwd          string `json:"cwd,omitempty"`
	Project      string `json:"project,omitempty"`
	AgentMode    string `json:"agent_mode,omitempty"` // the agent's permission mode

	Decision *Decision `json:"decision,omitempty"`
	Outcome  string    `json:"outcome,omitempty"`   // of call.finished and the like: ran, failed, blocked, rejected, unknown
	Who      string    `json:"who,omitempty"`       // rule:ID, person, grant:ID, agent-prompt, agent-auto, bypass, unknown
	WhoBasis string    `json:"who_basis,omitempty"` // proved, claimed or inferred

	DurationMS *int64 `json:"duration_ms,omitempty"`

	Source string `json:"source,omitempty"` // hook, spool, transcript, canary, control
	Late   bool   `json:"late,omitempty"`   // came through the spool: unauthenticated
	Peer   *Peer  `json:"peer,omitempty"`

	Bodies []Commitment      `json:"bodies,omitempty"`
	Detail map[string]string `json:"detail,omitempty"` // kind-specific facts; keys sorted by encoding/json
}

// Decision is the verdict part of a call.requested record. Targets and reasons may be sensitive and are in the body
// named "analysis"; only ids and classes stand here.
type Decision struct {
	Verdict  string   `json:"verdict"`        // deny, ask, allow, pass: what the rules said
	Answer   string   `json:"answer"`         // what the agent was told, after the gate and mode observe
	Rule     string   `json:"rule,omitempty"` // deciding rule
	Floor    bool     `json:"floor,omitempty"`
	Enforced bool     `json:"enforced"`
	Mode     string   `json:"mode,omitempty"`
	Profile  string   `json:"profile,omitempty"`
	Gate     string   `json:"gate,omitempty"`     // native, hold, webhook
	Card     string   `json:"card,omitempty"`     // approval id
	Effects  []string `json:"effects,omitempty"`  // effect kinds, in order of first appearance
	Matches  []string `json:"matches,omitempty"`  // ids of all rules that had an opinion
	RuleSet  string   `json:"rule_set,omitempty"` // hash of the rule set
	Failure  string   `json:"failure,omitempty"`  // why we failed closed, if we did (undecodable, panic, deadline, log ...)
}

// Peer is who connected, as far as the kernel tells, and what is claimed beyond that.
type Peer struct {
	UID      uint32 `json:"uid"`
	GID      uint32 `json:"gid"`
	PID      int32  `json:"pid"`
	Exe      string `json:"exe,omitempty"`
	AgentPID int32  `json:"agent_pid,omitempty"` // first ancestor that is no shell: a claim, never a proof
	AgentExe string `json:"agent_exe,omitempty"`
}

// Commitment stands in the leaf for a body that is stored beside it: HMAC-SHA256 of the stored (redacted, cut) bytes under
// a random salt that is stored with them. Without body and salt it reveals nothing but the length.
type Commitment struct {
	Name     string `json:"name"`               // input, response, error, prompt, analysis, payload, comment, diff
	Len      int    `json:"len"`                // length of the stored bytes
	Full     int    `json:"full"`               // length before redaction and cutting
	Redacted int    `json:"redacted,omitempty"` // how many secrets were taken out
	Cut      bool   `json:"cut,omitempty"`
	MAC      string `json:"mac"` // base64 (raw, URL) of the HMAC
}

// Body is a body as it is stored.
type Body struct {
	Name string
	Salt []byte
	Data []byte
}
