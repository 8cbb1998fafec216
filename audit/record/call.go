// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"time"
)

// Outcomes of a call.
const (
	Ran            = "ran"
	Failed         = "failed"
	Blocked        = "blocked"  // we denied it, or it was asked and refused
	Rejected       = "rejected" // the agent itself refused it
	Pending        = "pending"  // asked for, no end seen yet, session alive
	OutcomeUnknown = "unknown"  // no end seen and none to come
)

// Call is one tool call as people ask for it: its request joined with whatever became of it. It is the object of
// `auditctl query -o jsonl`; its field names are a promise.
type Call struct {
	ID         string          `json:"id"`
	Seq        uint64          `json:"seq"`
	Time       time.Time       `json:"time"` // RFC 3339 with offset
	Session    string          `json:"session"`
	Subagent   string          `json:"subagent,omitempty"`
	Agent      string          `json:"agent"`
	Event      string          `json:"event"`
	Tool       string          `json:"tool"`
	ToolUseID  string          `json:"tool_use_id"`
	Cwd        string          `json:"cwd"`
	Project    string          `json:"project,omitempty"`
	Verdict    string          `json:"verdict"` // deny, ask, allow, pass
	Answer     string          `json:"answer,omitempty"`
	Enforced   bool            `json:"enforced"`
	Floor      bool            `json:"floor,omitempty"`
	Rule       string          `json:"rule"`
	Reason     string          `json:"reason,omitempty"`
	Effects    json.RawMessage `json:"effects,omitempty"`
	Who        string          `json:"who"`
	WhoBasis   string          `json:"who_basis,omitempty"`
	Card       string          `json:"card,omitempty"`
	Failure    string          `json:"failure,omitempty"`
	Outcome    string          `json:"outcome"` // ran, failed, blocked, rejected, pending, unknown
	DurationMS *int64          `json:"duration_ms"`
	Input      json.RawMessage `json:"input"` // the tool_input object, redacted; null if it was not an object
	Error      string          `json:"error,omitempty"`
	Source     string          `json:"source,omitempty"`
	Late       bool            `json:"late,omitempty"`
	Records    []uint64        `json:"records"` // sequence numbers of all its records
}

// Filter selects calls. Zero fields do not restrict. From is inclusive, To exclusive.
type Filter struct {
	From, To time.Time
	Session  string // unique or ambiguous prefix
	Agent    string
	Tool     string
	Verdict  string
	Rule     string // exact id, or a family such as "delete" or "delete."
	Project  string // the project root, or any directory above it
	Grep     string // case-insensitive text in the input, reason, tool or error
	Denied   bool
	Asked    bool
	Failed   bool
	Canary   bool   // also the test calls of auditctl doctor, which are left out unless a session or a call is named
	ID       string // prefix of the call id
	Limit    int    // the newest so many; 0 = all
}

// Session is one line of `auditctl sessions`.
type Session struct {
	ID       string    `json:"id"`
	Agent    string    `json:"agent"`
	Project  string    `json:"project"`
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
	Calls    int       `json:"calls"`
	Denied   int       `json:"denied"`
	Asked    int       `json:"asked"`
	Failed   int       `json:"failed"`
	Ended    bool      `json:"ended"`
	Subagent int       `json:"subagents"`
	Prompt   string    `json:"prompt,omitempty"` // the first prompt, redacted, shortened
}

// Verification is the result of `auditctl verify`.
type Verification struct {
	Outcome  string         `json:"outcome"`            // OK, EDITED, FORKED, TRUNCATED, CORRUPT, KEY, GAP
	Size     uint64         `json:"size"`               // records that were checked
	FirstBad uint64         `json:"first_bad"`          // sequence number of the first bad record, 0 if none
	Root     string         `json:"root"`               // root hash of the live segment, base64
	Anchored uint64         `json:"anchored"`           // highest size that something outside the log has seen and that was checked, 0 if none
	Warnings []string       `json:"warnings,omitempty"` // unanchored, gap declared ...
	Detail   string         `json:"detail,omitempty"`   // one sentence for people
	Segments []SegmentCheck `json:"segments,omitempty"`
}

// SegmentCheck is one segment's part of a Verification.
type SegmentCheck struct {
	File    string `json:"file"`
	First   uint64 `json:"first"`
	Size    uint64 `json:"size"`
	Root    string `json:"root"`
	Outcome string `json:"outcome"`
	Detail  string `json:"detail,omitempty"`
}
