// SPDX-License-Identifier: Apache-2.0

// Package tripwires decides. It turns a tool call into effects (what would this do, to what, how surely) and effects plus
// rules plus mode into a verdict with its trace. It is pure but for the view.Reader that it is handed: no clock, no log, no
// counter, no other I/O. An Engine is immutable and safe for concurrent use.
package tripwires

import (
	"encoding/json"

	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/tripwires/view"
)

// EffectKind names what a call would do to something.
type EffectKind string

// The effect kinds. They are stable: rules and queries name them.
const (
	Read             EffectKind = "read"
	Write            EffectKind = "write"
	Append           EffectKind = "append"
	Delete           EffectKind = "delete"
	Empty            EffectKind = "empty"     // a file is emptied: >f, truncate -s 0
	Overwrite        EffectKind = "overwrite" // mv, cp, ln -f over something
	ExecuteDownload  EffectKind = "execute-download"
	NetworkSend      EffectKind = "network-send"
	SecretRead       EffectKind = "secret-read"
	VCSDiscard       EffectKind = "vcs-discard"
	VCSRewriteRemote EffectKind = "vcs-rewrite-remote"
	Privilege        EffectKind = "privilege"
	PermissionChange EffectKind = "permission-change"
	DeviceWrite      EffectKind = "device-write"
	ProcessKill      EffectKind = "process-kill"
	Persistence      EffectKind = "persistence"
	DatabaseDestroy  EffectKind = "database-destroy"
	InfraDestroy     EffectKind = "infra-destroy"
	HistoryWipe      EffectKind = "history-wipe"
	SelfTamper       EffectKind = "self-tamper"
	AgentUnguarded   EffectKind = "agent-unguarded"
	Execute          EffectKind = "execute"             // a program runs that no table knows: never dangerous by itself
	ResourceExhaust  EffectKind = "resource-exhaustion" // fork bomb
	Unknown          EffectKind = "unknown"             // something would run that could not be read
)

// Certainty says how far an effect's target is known.
type Certainty string

// The certainties.
const (
	Certain   Certainty = "certain"
	Uncertain Certainty = "uncertain" // the target or the program could not be told
)

// Effect is one thing that a call would do.
type Effect struct {
	Kind      EffectKind `json:"kind"`
	Target    string     `json:"target,omitempty"` // path, host, ref, table...; unknown parts are shown as "?"
	Recursive bool       `json:"recursive,omitempty"`
	Forced    bool       `json:"forced,omitempty"`
	Program   string     `json:"program,omitempty"`
	Via       []string   `json:"via,omitempty"`
	Place     string     `json:"place,omitempty"` // a place of tripwires/paths, "" if the target is no path
	Certainty Certainty  `json:"certainty"`
	Note      string     `json:"note,omitempty"` // in words, when the kind alone does not say it
}

// Call is one tool call to be judged.
type Call struct {
	Agent     string
	Session   string
	Subagent  string
	Tool      string          // the agent's tool name
	Input     json.RawMessage // the tool's input object; for shell tools {"command": ...}
	MCPServer string
	MCPSource string
	Cwd       string   // the agent's current directory; "" = unknown
	FirstCwd  string   // the session's first directory; used as the project root where no .git is found; "" = Cwd
	Project   string   // overrides the project root when not ""
	Homes     []string // known homes (design: the worst counts); the first one is what ~ means
	// Config is a change of an agent's settings that a person announced: hashes (hex SHA-256) that may be written.
	Announced []string
}

// Match is one rule that had an opinion.
type Match struct {
	Rule    string         `json:"rule"`
	Layer   string         `json:"layer"` // floor, builtin, system, user, project, mode
	Verdict event.Decision `json:"verdict"`
	Floor   bool           `json:"floor,omitempty"`
	Why     string         `json:"why,omitempty"`
	Token   string         `json:"matched,omitempty"` // the word or target that it matched
	Tuned   string         `json:"tuned,omitempty"`   // id of the tune entry that softened it
}

// Decision is the engine's answer.
type Decision struct {
	Verdict  event.Decision // what the rules say; in mode observe what would have been said
	Enforced bool           // false only in mode observe for a verdict that is not the floor: the answer is then a pass
	Rule     string         // the deciding rule's id, "" if none
	RuleHash string         // hex hash of that rule's own content, for approval tokens
	Floor    bool
	Reason   string // in words, one or two sentences, bounded and cleaned: what and why; never file content
	Instead  string // what to do instead, "" if the rule names nothing
	Gate     string // native or hold when Verdict is ask; "" = the configured default
	Session  bool   // an approval of this ask counts for its session only (the rule says scope: session)
	Effects  []Effect
	Matches  []Match // every rule that had an opinion, strictest first
	Mode     string
	Profile  string
	Project  string // the project root that was used
	RuleSet  string // hash of the rule set in force
	ReadSet  []view.Entry
	Trace    []string // what the other fields do not tell of how it was decided, a step a line (explain prints it)
}

// Modes and profiles.
const (
	ModeGuard   = "guard"
	ModeAsk     = "ask"
	ModePlan    = "plan"
	ModeAuto    = "auto"
	ModeObserve = "observe"

	ProfileStandard = "standard"
	ProfileStrict   = "strict"
	ProfileCI       = "ci"
)

// SettingsJudge says whether a file is an agent's settings file that can carry hooks, and whether a change of its bytes is
// harmless (changes no hooks, off-switches or blinding keys). It is provided by the adapters' side, since only they know
// the formats. old is nil when there is no file.
type SettingsJudge func(path string, old, new []byte) (harmless bool, why string)

// Options make an Engine.
type Options struct {
	Rules    *Set   // nil = only the built-in packs
	Mode     string // "" = guard
	Profile  string // "" = standard
	Unmapped event.Decision
	// OwnPaths are files and directories of this install that the floor protects beyond the well-known ones (binaries,
	// config, state, sockets, units), absolute.
	OwnPaths []string
	// Settings judges writes to agents' settings files; nil = every such write is on the floor.
	Settings SettingsJudge
}
