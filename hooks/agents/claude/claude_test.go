// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tripline-sh/tripline/hooks/agents/agenttest"
	"github.com/tripline-sh/tripline/hooks/agents/claude"
	"github.com/tripline-sh/tripline/hooks/event"
)

func TestConformance(t *testing.T) {
	agenttest.Run(t, claude.Adapter{}, agenttest.Config{
		Captures: "testdata/captures",
		Events:   claude.Events(),
		PreTool:  "PreToolUse",
		Call:     call,
		Tool:     "Bash",
		Key:      "command",
		Keys: []string{"session_id", "transcript_path", "cwd", "hook_event_name", "prompt_id", "permission_mode", "agent_id",
			"agent_type", "tool_name", "tool_input", "tool_use_id", "tool_response", "tool_calls", "mcp_server", "error",
			"is_interrupt", "duration_ms", "source", "reason", "file_path", "prompt"},
		Commentary: "description",
		Reads:      reads,
		Fallbacks:  fallbacks(t),
	})
}

// call is a PreToolUse payload as the client sends it.
func call(tool, input string) []byte {
	name, _ := json.Marshal(tool)
	return []byte(`{"session_id":"s","transcript_path":"/t.jsonl","cwd":"/p","permission_mode":"default",` +
		`"hook_event_name":"PreToolUse","tool_name":` + string(name) + `,"tool_input":` + input + `,"tool_use_id":"toolu_1"}` + "\n")
}

// reads is how client 2.1.332 was seen to take a hook's exit code and output, with onFailure "block" on the gate events.
func reads(name string, r event.Reply) event.Decision {
	kind, _ := claude.Adapter{}.Kind(name)
	out := strings.TrimSpace(string(r.Stdout))
	var reply struct {
		Decision string
		Continue *bool
		Specific struct {
			Event    string `json:"hookEventName"`
			Decision any    `json:"permissionDecision"`
			Reason   string `json:"permissionDecisionReason"`
		} `json:"hookSpecificOutput"`
	}
	looksJSON := strings.HasPrefix(out, "{") && strings.HasSuffix(out, "}")
	badJSON := looksJSON && json.Unmarshal([]byte(out), &reply) != nil
	switch {
	case kind == event.KindPermissionRequest && r.Exit == 2 && out == "":
		return event.Pass // seen to have no effect
	case r.Exit == 2:
		return event.Deny
	case r.Exit != 0 || badJSON: // a failure of the hook
		if kind.Gates() {
			return event.Deny
		}
		return event.Pass
	case !looksJSON: // taken for a log line, onFailure or not
		return event.Pass
	case reply.Decision == "block" || reply.Continue != nil && !*reply.Continue:
		return event.Deny
	case reply.Specific.Decision == nil && reply.Specific.Event == "":
		return event.Pass
	case reply.Specific.Event != name:
		return event.Deny // does not validate: a failure again
	}
	switch reply.Specific.Decision {
	case "allow":
		return event.Allow
	case "ask":
		if kind == event.KindSkillShell {
			return event.Deny
		}
		return event.Ask
	}
	return event.Deny
}

func TestRepliesAreExactlyThese(t *testing.T) {
	t.Parallel()
	const form = `{"hookSpecificOutput":{"hookEventName":"EVENT","permissionDecision":"WHAT","permissionDecisionReason":"no \"rm\""}}`
	specific := func(event, what string) string {
		return strings.NewReplacer("EVENT", event, "WHAT", what).Replace(form)
	}
	const stderr = "tripline: denied (delete.project)\n"
	for _, tc := range []struct {
		event          string
		decision       event.Decision
		exit           int
		stdout, stderr string
	}{
		{"PreToolUse", event.Pass, 0, "", ""},
		{"PreToolUse", event.Allow, 0, specific("PreToolUse", "allow"), ""},
		{"PreToolUse", event.Ask, 0, specific("PreToolUse", "ask"), ""},
		{"PreToolUse", event.Deny, 2, specific("PreToolUse", "deny"), stderr},
		{"PreSkillShellCommand", event.Pass, 0, "", ""},
		{"PreSkillShellCommand", event.Allow, 0, specific("PreSkillShellCommand", "allow"), ""},
		{"PreSkillShellCommand", event.Ask, 2, specific("PreSkillShellCommand", "deny"), stderr},
		{"PreSkillShellCommand", event.Deny, 2, specific("PreSkillShellCommand", "deny"), stderr},
		{"ConfigChange", event.Pass, 0, "", ""},
		{"ConfigChange", event.Allow, 0, "", ""},
		{"ConfigChange", event.Ask, 2, `{"decision":"block","reason":"no \"rm\""}`, stderr},
		{"ConfigChange", event.Deny, 2, `{"decision":"block","reason":"no \"rm\""}`, stderr},
		{"PermissionRequest", event.Deny, 0, "", ""},
		{"PermissionRequest", event.Allow, 0, "", ""},
		{"PostToolUse", event.Deny, 0, "", ""},
		{"Stop", event.Deny, 0, "", ""},
		{"WorktreeCreate", event.Deny, 0, "", ""},
	} {
		t.Run(tc.event+" "+string(tc.decision), func(t *testing.T) {
			t.Parallel()
			r := claude.Adapter{}.Encode(tc.event, event.Verdict{Decision: tc.decision, Rule: "delete.project", Reason: `no "rm"`})
			if r.Exit != tc.exit || string(r.Stdout) != tc.stdout || string(r.Stderr) != tc.stderr {
				t.Errorf("got exit %d\n%s\n%s", r.Exit, r.Stdout, r.Stderr)
			}
		})
	}
}

func TestALongReasonIsCutAtARune(t *testing.T) {
	t.Parallel()
	for pad := range 5 {
		reason := strings.Repeat("a", pad) + strings.Repeat("😀", 1000)
		r := claude.Adapter{}.Encode("ConfigChange", event.Verdict{Decision: event.Deny, Reason: reason})
		var got struct{ Reason string }
		if err := json.Unmarshal(r.Stdout, &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Reason) > 2000 || len(got.Reason) < 1996 || !strings.HasPrefix(reason, got.Reason) {
			t.Errorf("%d bytes are left, ending in %q", len(got.Reason), got.Reason[len(got.Reason)-8:])
		}
	}
}

func TestEventsAreTheTableOfTheDesign(t *testing.T) {
	t.Parallel()
	var gates []string
	for _, r := range claude.Events() {
		seconds, ms := int(r.Timeout.Seconds()), int(r.Deadline.Milliseconds())
		want := [2]int{10, 5000}
		switch r.Event {
		case "PreToolUse", "PreSkillShellCommand":
			want = [2]int{150, 140000}
		case "ConfigChange":
			want = [2]int{30, 20000}
		case "WorktreeCreate", "WorktreeRemove", "MessageDisplay", "FileChanged", "Elicitation", "ElicitationResult":
			t.Errorf("%s is registered", r.Event)
		}
		if seconds != want[0] || ms != want[1] {
			t.Errorf("%s: %d s, %d ms", r.Event, seconds, ms)
		}
		if r.Kind.Gates() {
			gates = append(gates, r.Event)
		}
	}
	if len(claude.Events()) != 21 || strings.Join(gates, " ") != "PreToolUse PreSkillShellCommand ConfigChange" {
		t.Errorf("%d events, gates %v", len(claude.Events()), gates)
	}
}
