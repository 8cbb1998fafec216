// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tripline-sh/tripline/hooks/agents"
	"github.com/tripline-sh/tripline/hooks/agents/claude"
	"github.com/tripline-sh/tripline/hooks/event"
)

var update = flag.Bool("update", false, "write the golden files")

func captures(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/captures/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no captures: %v", err)
	}
	all := make(map[string][]byte)
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(f), ".json")] = b
	}
	return all
}

func TestCapturesDecodeAsGolden(t *testing.T) {
	t.Parallel()
	for name, payload := range captures(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eventName, _, _ := strings.Cut(name, ".")
			ev, err := claude.Adapter{}.Decode(eventName, payload)
			if err != nil {
				t.Fatal(err)
			}
			ev.Raw = nil // equal to the payload, which the conformance suite checks
			got, err := json.MarshalIndent(ev, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata/golden", name+".json")
			if *update {
				if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What encoding/json finds in a payload is what the event holds: sub-objects byte for byte, texts as they are.
func TestNothingOfACaptureIsLost(t *testing.T) {
	t.Parallel()
	for name, payload := range captures(t) {
		eventName, _, _ := strings.Cut(name, ".")
		ev, err := claude.Adapter{}.Decode(eventName, payload)
		if err != nil {
			t.Fatal(err)
		}
		var raw map[string]json.RawMessage
		if err := json.Unmarshal(ev.Raw, &raw); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(ev.Input, raw["tool_input"]) || !bytes.Equal(ev.Response, raw["tool_response"]) {
			t.Errorf("%s: input or response differ", name)
		}
		for key, got := range map[string]string{
			"session_id": ev.Session, "transcript_path": ev.Transcript, "cwd": ev.Cwd, "hook_event_name": ev.Name,
			"prompt_id": ev.Prompt, "permission_mode": ev.PermissionMode, "agent_id": ev.Subagent, "agent_type": ev.SubagentType,
			"tool_name": ev.Tool, "tool_use_id": ev.ToolUseID, "error": ev.Error, "source": ev.Source, "reason": ev.Reason,
			"file_path": ev.FilePath, "prompt": ev.PromptText,
		} {
			var want string
			if v, ok := raw[key]; ok && json.Unmarshal(v, &want) != nil {
				t.Errorf("%s: %s is %s", name, key, v)
			}
			if got != want {
				t.Errorf("%s: %s is %q, not %q", name, key, got, want)
			}
		}
		var calls []struct {
			Tool     string          `json:"tool_name"`
			ID       string          `json:"tool_use_id"`
			Input    json.RawMessage `json:"tool_input"`
			Response json.RawMessage `json:"tool_response"`
		}
		if v, ok := raw["tool_calls"]; ok && json.Unmarshal(v, &calls) != nil || len(calls) != len(ev.Batch) {
			t.Fatalf("%s: %d calls, want %d", name, len(ev.Batch), len(calls))
		}
		for i, c := range ev.Batch {
			if c.Tool != calls[i].Tool || c.ToolUseID != calls[i].ID ||
				!bytes.Equal(c.Input, calls[i].Input) || !bytes.Equal(c.Response, calls[i].Response) {
				t.Errorf("%s: call %d differs", name, i)
			}
		}
	}
}

func TestOddPayloadsOfTheClientDecode(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, event, payload string
		check                func(*event.Event) bool
	}{
		{"a lone surrogate in the command", "PreToolUse",
			`{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"echo \ud800"}}`,
			func(e *event.Event) bool { return string(e.Input) == `{"command":"echo \ud800"}` }},
		{"a lone surrogate in a text", "UserPromptSubmit", `{"hook_event_name":"UserPromptSubmit","prompt":"a\udfffb"}`,
			func(e *event.Event) bool { return e.PromptText == "a\ufffdb" }},
		{"NULs", "PostToolUse",
			`{"hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{"command":"x"},"tool_response":{"stdout":"\u0000"}}`,
			func(e *event.Event) bool { return string(e.Response) == `{"stdout":"\u0000"}` }},
		{"an empty cwd and transcript", "PreToolUse",
			`{"cwd":"","transcript_path":"","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{}}`,
			func(e *event.Event) bool { return e.Cwd == "" && e.Transcript == "" }},
		{"a hostile tool_use_id", "PreToolUse",
			`{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{},"tool_use_id":"../../\"\n\u0000'; rm"}`,
			func(e *event.Event) bool { return e.ToolUseID == "../../\"\n\x00'; rm" }},
		{"nothing but what is needed", "ConfigChange", `{"hook_event_name":"ConfigChange"}`,
			func(e *event.Event) bool { return e.Kind == event.KindConfigChange }},
		{"null for absent", "PreToolUse",
			`{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{},"agent_id":null,"mcp_server":null,"duration_ms":null}`,
			func(e *event.Event) bool { return e.Subagent == "" && e.DurationMS == nil }},
		{"an unknown event", "BrandNew", `{"hook_event_name":"BrandNew","session_id":"s","tool_name":"T","x":{"y":[1]}}`,
			func(e *event.Event) bool { return e.Kind == event.KindOther && e.Session == "s" && e.Tool == "T" }},
		{"an observer's field of an unknown shape", "StopFailure", `{"hook_event_name":"StopFailure","session_id":"s","error":{"code":1}}`,
			func(e *event.Event) bool { return e.Error == "" && e.Session == "s" }},
		{"a fractional duration", "PostToolUse", `{"hook_event_name":"PostToolUse","tool_name":"T","tool_input":{},"duration_ms":12.75}`,
			func(e *event.Event) bool { return *e.DurationMS == 12 }},
		{"a duration out of range", "PostToolUse", `{"hook_event_name":"PostToolUse","tool_name":"T","tool_input":{},"duration_ms":1e300}`,
			func(e *event.Event) bool { return e.DurationMS == nil }},
		{"an interrupt", "PostToolUseFailure", `{"hook_event_name":"PostToolUseFailure","tool_name":"T","tool_input":{},"is_interrupt":true}`,
			func(e *event.Event) bool { return e.Interrupted }},
		{"a batch with an input that the client refused", "PostToolBatch",
			`{"hook_event_name":"PostToolBatch","tool_calls":[{"tool_name":"Bash","tool_input":{"command":"a","Command":"b"}},{"tool_name":"X","tool_input":"text"},7]}`,
			func(e *event.Event) bool { return len(e.Batch) == 2 && string(e.Batch[1].Input) == `"text"` }},
		{"an MCP tool with argument names of its own", "PreToolUse",
			`{"hook_event_name":"PreToolUse","tool_name":"mcp__web__get","tool_input":{"URL":"http://x","A":1,"a":2},"mcp_server":{"name":"web","source":"user"}}`,
			func(e *event.Event) bool { return e.MCPServer == "web" && e.MCPSource == "user" }},
		{"a tool's own key called description", "PreToolUse",
			`{"hook_event_name":"PreToolUse","tool_name":"TaskCreate","tool_input":{"subject":"a","description":"b"}}`,
			func(e *event.Event) bool { return e.Tool == "TaskCreate" }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			ev, err := claude.Adapter{}.Decode(tc.event, []byte(tc.payload))
			if err != nil {
				t.Fatal(err)
			}
			if string(ev.Raw) != tc.payload || !tc.check(ev) {
				t.Errorf("decoded as %+v", ev)
			}
		})
	}
}

func TestPayloadsThatTheClientNeverSendsDoNotDecode(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, event, payload string }{
		{"no event name", "PreToolUse", `{"tool_name":"Bash","tool_input":{}}`},
		{"an event name that is no text", "PreToolUse", `{"hook_event_name":1,"tool_name":"Bash","tool_input":{}}`},
		{"a tool name that is no text", "PreToolUse", `{"hook_event_name":"PreToolUse","tool_name":["Bash"],"tool_input":{}}`},
		{"no input", "PreToolUse", `{"hook_event_name":"PreToolUse","tool_name":"Bash"}`},
		{"a working directory that is no text", "PreToolUse", `{"hook_event_name":"PreToolUse","cwd":{},"tool_name":"Bash","tool_input":{}}`},
		{"an MCP server that is no object", "PreToolUse", `{"hook_event_name":"PreToolUse","tool_name":"B","tool_input":{},"mcp_server":"x"}`},
		{"an MCP server with two names", "PreToolUse", `{"hook_event_name":"PreToolUse","tool_name":"B","tool_input":{},"mcp_server":{"name":"a","Name":"b"}}`},
		{"an MCP tool with two readings of one argument", "PreToolUse", `{"hook_event_name":"PreToolUse","tool_name":"mcp__a__b","tool_input":{"path":"/a","Path":"/"}}`},
		{"an MCP tool with an unknown argument twice", "PreToolUse", `{"hook_event_name":"PreToolUse","tool_name":"mcp__a__b","tool_input":{"zz":1,"z\u007a":2}}`},
		{"a file path in another case", "PreToolUse", `{"hook_event_name":"PreToolUse","tool_name":"Write","tool_input":{"File_Path":"/a","content":""}}`},
		{"a file path with a long s elsewhere", "PreToolUse", `{"hook_event_name":"PreToolUse","tool_name":"Edit","tool_input":{"file_path":"/a","old_\u017ftring":"","old_string":"x"}}`},
		{"a batch call with two tools", "PostToolBatch", `{"hook_event_name":"PostToolBatch","tool_calls":[{"tool_name":"a","tool_name":"b"}]}`},
		{"a skill's command twice", "PreSkillShellCommand", `{"hook_event_name":"PreSkillShellCommand","tool_name":"Bash","tool_input":{"command":"a","command":"b"}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if ev, err := (claude.Adapter{}).Decode(tc.event, []byte(tc.payload)); !errors.Is(err, agents.ErrUndecodable) {
				t.Errorf("decoded as %+v, %v", ev, err)
			}
		})
	}
}

func TestErrorsDoNotQuoteThePayload(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{`{"s3cret"`, `{"hook_event_name":"s3cret"}`, `{"hook_event_name":"PreToolUse","cwd":["s3cret"]}`,
		string(call("Bash", `{"s3cret":1,"s3cret":2}`))} {
		if _, err := (claude.Adapter{}).Decode("PreToolUse", []byte(payload)); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%v", err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for name, payload := range captures(f) {
		eventName, _, _ := strings.Cut(name, ".")
		f.Add(eventName, payload)
	}
	f.Add("PreToolUse", call("Bash", `{"command":"rm -rf ~","Command":"ls"}`))
	f.Add("PreToolUse", call("Bash", `{"command":"\ud800"}`))
	f.Fuzz(func(t *testing.T, name string, payload []byte) {
		before := bytes.Clone(payload)
		ev, err := claude.Adapter{}.Decode(name, payload)
		if !bytes.Equal(before, payload) {
			t.Fatal("the payload was changed")
		}
		if err != nil {
			if !errors.Is(err, agents.ErrUndecodable) || ev != nil {
				t.Fatalf("%v with %+v", err, ev)
			}
			return
		}
		var loose struct {
			Name  string          `json:"hook_event_name"`
			Tool  string          `json:"tool_name"`
			Input json.RawMessage `json:"tool_input"`
		}
		// What decodes has one reading: a decoder that folds case finds the same.
		if err := json.Unmarshal(payload, &loose); ev.Kind.Gates() && (err != nil || loose.Name != ev.Name || loose.Tool != ev.Tool ||
			!bytes.Equal(loose.Input, ev.Input)) {
			t.Fatalf("encoding/json reads %+v, %v; the adapter %+v", loose, err, ev)
		}
		if ev.Kind == event.KindPreTool {
			exact, folded := commands(ev.Input)
			if exact != folded && !strings.HasPrefix(ev.Tool, "mcp__") {
				t.Fatalf("two readings of %s: %q and %q", ev.Input, exact, folded)
			}
			_, _ = claude.Adapter{}.CanonicalInput(ev.Tool, ev.Input)
		}
	})
}

// commands reads an input's command with exact and with folded keys.
func commands(input []byte) (exact, folded string) {
	var m map[string]json.RawMessage
	_ = json.Unmarshal(input, &m)
	var s struct{ Command json.RawMessage }
	_ = json.Unmarshal(input, &s)
	return string(m["command"]), string(s.Command)
}

func BenchmarkDecode(b *testing.B) {
	const size = 32<<20 - 1024
	for _, tc := range []struct {
		name, tool, input string
	}{
		{"small", "Bash", `{"command":"ls -l","description":"lists"}`},
		{"write-6MB", "Write", `{"file_path":"/p/a","content":"` + strings.Repeat(`line of text\n`, 6<<20/14) + `"}`},
		{"bomb-brackets-32MB", "Bash", `{"command":` + strings.Repeat("[", size)},
		{"bomb-keys-32MB", "Bash", `{"x":{"a":0` + strings.Repeat(`,"a":0`, size/6) + `}}`},
		{"bomb-arrays-32MB", "Bash", `{"x":[[]` + strings.Repeat(`,[]`, size/3) + `]}`},
	} {
		payload := call(tc.tool, tc.input)
		b.Run(tc.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(payload)))
			for b.Loop() {
				_, _ = claude.Adapter{}.Decode("PreToolUse", payload)
			}
		})
	}
}
