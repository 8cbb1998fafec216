// SPDX-License-Identifier: Apache-2.0

// Package event holds the agent-neutral form of what an agent tells its hooks and of what it is answered. It is a leaf:
// it imports none of our packages, does no I/O and decides nothing. Adapters (hooks/agents/NAME) produce Events and
// render Verdicts; the daemon maps both to records.
package event

import "encoding/json"

// Kind is what an event means, whatever its agent calls it.
type Kind string

// The kinds. An event of a known agent that no kind fits is KindOther: it is recorded and never answered with a block.
const (
	KindPreTool           Kind = "pre-tool"           // a tool is about to run (gates)
	KindSkillShell        Kind = "skill-shell"        // a skill's preamble command is about to run (gates)
	KindConfigChange      Kind = "config-change"      // a settings file of the agent changed (gates)
	KindPermissionRequest Kind = "permission-request" // the agent is about to ask its person
	KindPostTool          Kind = "post-tool"          // a tool ran
	KindPostToolFailure   Kind = "post-tool-failure"  // a tool ran and failed
	KindToolBatch         Kind = "tool-batch"         // every call of one model turn
	KindPermissionDenied  Kind = "permission-denied"  // the agent itself refused a call
	KindSessionStart      Kind = "session-start"
	KindSessionEnd        Kind = "session-end"
	KindPrompt            Kind = "prompt" // a prompt was submitted (not always by a person)
	KindSubagentStart     Kind = "subagent-start"
	KindSubagentStop      Kind = "subagent-stop"
	KindStop              Kind = "stop" // the agent ended its turn
	KindCwdChanged        Kind = "cwd-changed"
	KindOther             Kind = "other"
)

// Gates reports whether an event of this kind waits for our verdict: any failure of ours on it must deny.
func (k Kind) Gates() bool {
	return k == KindPreTool || k == KindSkillShell || k == KindConfigChange
}

// Event is one decoded hook event. Strings are as the agent sent them (hostile until shown through audit/show); the raw
// JSON fields are sub-slices or copies of the payload, byte for byte.
type Event struct {
	Agent          string // adapter name, e.g. "claude"
	Name           string // the agent's own event name, e.g. "PreToolUse"
	Kind           Kind
	Session        string // the agent's session id, "" if it sent none
	Subagent       string // id of the subagent that acts, "" for the main thread
	SubagentType   string
	Prompt         string // id of the prompt that led here
	Cwd            string // the agent's current directory; may be ""
	Transcript     string // path of the agent's own transcript; may be ""
	PermissionMode string // the agent's permission mode as it named it

	Tool      string          // tool name as the agent sent it; "" for events without a tool
	ToolUseID string          // comes verbatim from the model: may repeat, may hold anything
	Input     json.RawMessage // tool_input as sent; nil if absent
	MCPServer string          // server name of an MCP tool
	MCPSource string          // where the agent says that server is configured

	Response    json.RawMessage // what the tool returned (post-tool)
	Error       string          // what failed (post-tool-failure)
	Interrupted bool            // a person interrupted the tool
	DurationMS  *int64          // run time as the agent measured it; nil if unknown
	Batch       []BatchCall     // tool-batch only

	Source     string // session start source, config change source
	Reason     string // session end reason, permission denied reason
	FilePath   string // config change: the file
	PromptText string // prompt: its text

	Raw json.RawMessage // the whole payload, untouched
}

// BatchCall is one call of a tool-batch event.
type BatchCall struct {
	Tool      string
	ToolUseID string
	Input     json.RawMessage
	Response  json.RawMessage
}

// Decision is a verdict's outcome. The zero value is no decision; use the constants.
type Decision string

// The decisions, from weakest to strictest. Pass is "no opinion": the agent's own permissions decide, as without us.
const (
	Pass  Decision = "pass"
	Allow Decision = "allow"
	Ask   Decision = "ask"
	Deny  Decision = "deny"
)

// Rank orders decisions: the higher one wins. An unknown decision ranks as Deny, so that a mistake can only tighten.
func (d Decision) Rank() int {
	switch d {
	case Pass:
		return 0
	case Allow:
		return 1
	case Ask:
		return 2
	}
	return 3
}

// Stricter returns the stricter of two decisions.
func Stricter(a, b Decision) Decision {
	if b.Rank() > a.Rank() {
		return b
	}
	return a
}

// Verdict is what an adapter renders for its agent.
type Verdict struct {
	Decision Decision
	Rule     string // id of the deciding rule, "" if none; shown on stderr of a deny
	Reason   string // the whole text for the model or the person: already bounded and cleaned
}

// Reply is what the hook process must do: these bytes on stdout and stderr, this exit code, and nothing else.
type Reply struct {
	Exit   int
	Stdout []byte
	Stderr []byte
}
