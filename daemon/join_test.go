// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/hooks/event"
)

// batchCall is one item of a PostToolBatch event.
func batchCall(command, id, response string) map[string]any {
	return map[string]any{"tool_name": "Bash", "tool_input": map[string]any{"command": command}, "tool_use_id": id, "tool_response": response}
}

func (b *bench) batch(calls ...map[string]any) {
	b.t.Helper()
	b.send("PostToolBatch", b.payload("PostToolBatch", map[string]any{"tool_calls": calls}))
}

func TestEndsJoinTheirRequests(t *testing.T) {
	t.Parallel()
	const mode = "bypassPermissions"
	b := running(t)
	b.send("PreToolUse", b.bash("ls a", "same"))
	b.send("PreToolUse", b.bash("ls b", "same"))
	b.send("PostToolUse", b.post("ls a", "same"))
	b.send("PostToolUse", b.post("ls b", "same"))
	req, fin := b.kinds(record.CallRequested), b.kinds(record.CallFinished)
	if fin[0].Call != req[0].ID || fin[1].Call != req[1].ID {
		t.Errorf("a repeated id joins out of order: %v %v, requests %v %v", fin[0].Call, fin[1].Call, req[0].ID, req[1].ID)
	}
	if n := len(b.kinds(record.TamperRewritten)); n != 0 {
		t.Errorf("%d false alarms", n)
	}
	// The join survives a restart.
	b.send("PreToolUse", b.bash("ls c", "3"))
	b.stop()
	b.start()
	p := b.payload("PostToolUse", map[string]any{"tool_name": "Bash", "tool_input": map[string]any{"command": "ls c"}, "tool_use_id": "3",
		"tool_response": map[string]any{"stdout": ""}, "permission_mode": mode})
	b.send("PostToolUse", p)
	req, fin = b.kinds(record.CallRequested), b.kinds(record.CallFinished)
	if last := fin[len(fin)-1]; last.Call != req[len(req)-1].ID || last.Who != "bypass" || last.WhoBasis != "inferred" {
		t.Errorf("after a restart: %+v", last)
	}
}

func TestRewrittenAndDeniedCallsThatRanAreAlarms(t *testing.T) {
	t.Parallel()
	b := running(t)
	b.send("PreToolUse", b.bash("ls", "1"))
	b.send("PostToolUse", b.post("rm x", "1"))
	if r := b.one(record.TamperRewritten); r.Call != b.one(record.CallRequested).ID {
		t.Errorf("record %+v", r)
	}
	b.send("PreToolUse", b.bash("rm -rf src", "2"))
	b.send("PostToolUse", b.post("rm -rf src", "2"))
	if r := b.one(record.TamperDeniedRan); r.Detail["ran"] != "" || r.ToolUseID != "2" {
		t.Errorf("record %+v", r)
	}
	if alarms := b.status().Alarms; len(alarms) != 1 || !strings.Contains(alarms[0], "tamper.denied-ran") {
		t.Errorf("alarms %q", alarms)
	}
	// The description is commentary: a changed one is the same call.
	b.send("PreToolUse", b.bash("ls", "3"))
	b.send("PostToolUse", b.payload("PostToolUse", map[string]any{"tool_name": "Bash", "tool_input": map[string]any{"command": "ls", "description": "another"},
		"tool_use_id": "3", "tool_response": map[string]any{"stdout": ""}}))
	b.one(record.TamperRewritten)
}

func TestBatchShowsWhatHasNoRecord(t *testing.T) {
	t.Parallel()
	b := running(t)
	b.send("PreToolUse", b.bash("ls", "ran"))
	b.send("PostToolUse", b.post("ls", "ran"))
	b.send("PreToolUse", b.bash("rm -rf src", "denied"))
	b.send("PreToolUse", b.bash("touch x", "refused"))
	b.batch(
		batchCall("ls", "ran", "ok"),
		batchCall("rm -rf src", "denied", "PreToolUse:Bash hook error: no"),
		batchCall("touch x", "refused", "Claude requested permissions to use Bash"),
		batchCall("x", "schema", "<tool_use_error>InputValidationError</tool_use_error>"),
		batchCall("curl x", "hidden", "done"),
	)
	if r := b.one(record.TamperUnrecorded); r.ToolUseID != "hidden" || r.Outcome != record.Ran {
		t.Errorf("record %+v", r)
	}
	rej := b.kinds(record.CallRejected)
	if len(rej) != 2 || rej[0].ToolUseID != "refused" || rej[0].Call == "" || rej[1].ToolUseID != "schema" || rej[1].Call != "" {
		t.Errorf("rejected %+v", rej)
	}
	if alarms := b.status().Alarms; len(alarms) != 1 || !strings.Contains(alarms[0], "tamper.unrecorded") {
		t.Errorf("alarms %q", alarms)
	}
}

func TestPromptOfTheAgentShowsInWho(t *testing.T) {
	t.Parallel()
	b := running(t)
	b.send("PreToolUse", b.bash("touch x", "1"))
	b.send("PermissionRequest", b.payload("PermissionRequest", map[string]any{"tool_name": "Bash", "tool_input": map[string]any{"command": "touch x", "description": "d"}}))
	b.send("PostToolUse", b.post("touch x", "1"))
	if fin := b.one(record.CallFinished); fin.Who != "agent-prompt" || fin.WhoBasis != "inferred" {
		t.Errorf("end %+v", fin)
	}
	if ask := b.one(record.SessionEvent); ask.Call != b.one(record.CallRequested).ID {
		t.Errorf("request of permission %+v", ask)
	}
}

func TestJoinTableIsBoundedAndForgetsTheOldest(t *testing.T) {
	t.Parallel()
	c := newCalls()
	for i := range 3 * maxCalls {
		c.add(&openCall{call: fmt.Sprint(i), key: sessionKey{"a", fmt.Sprint(i % 7)}, id: fmt.Sprint(i), answer: event.Pass})
	}
	n := 0
	for _, list := range c.open {
		n += len(list)
	}
	if n != maxCalls || c.n != maxCalls {
		t.Errorf("%d calls, counted %d", n, c.n)
	}
	last := 3*maxCalls - 1
	if o := c.finish(sessionKey{"a", fmt.Sprint(last % 7)}, "", fmt.Sprint(last), "", ""); o == nil || o.call != fmt.Sprint(last) {
		t.Errorf("the newest call is forgotten: %+v", o)
	}
	for i := range 7 {
		c.end(sessionKey{"a", fmt.Sprint(i)})
	}
	if c.n != 0 || len(c.open) != 0 || len(c.order) != 0 {
		t.Errorf("after all sessions ended: %d, %v, %v", c.n, c.open, c.order)
	}
}

func TestCallsWithoutIDsJoinByInput(t *testing.T) {
	t.Parallel()
	c := newCalls()
	k := sessionKey{"a", "s"}
	c.add(&openCall{call: "denied", key: k, tool: "Bash", mac: "m", answer: event.Deny})
	c.add(&openCall{call: "first", key: k, tool: "Bash", mac: "m", answer: event.Pass})
	c.add(&openCall{call: "second", key: k, tool: "Bash", mac: "m", answer: event.Pass})
	c.add(&openCall{call: "sub", key: k, subagent: "x", tool: "Bash", mac: "m", answer: event.Pass})
	for _, want := range []string{"first", "second", "denied"} {
		if o := c.finish(k, "", "", "Bash", "m"); o == nil || o.call != want {
			t.Errorf("got %+v, want %s", o, want)
		}
	}
	if o := c.finish(k, "", "", "Bash", "m"); o != nil {
		t.Errorf("a fourth end joins %+v", o)
	}
}

func TestSessionsAreBounded(t *testing.T) {
	t.Parallel()
	s := newSessions()
	for i := range 2 * maxSessions {
		s.seen(sessionKey{"a", fmt.Sprint(i)}, "/x")
	}
	if len(s.known) != maxSessions {
		t.Errorf("%d sessions", len(s.known))
	}
	if first, _ := s.seen(sessionKey{"a", fmt.Sprint(2*maxSessions - 1)}, "/y"); first != "/x" {
		t.Errorf("first directory %q", first)
	}
}

// The tail of a log is enough to join again; what is joined must not depend on how records are rendered.
func TestReplayEqualsMemory(t *testing.T) {
	t.Parallel()
	b := running(t)
	long := strings.Repeat("i", 3*maxName)
	for i, id := range []string{"1", `q"uo\te`, "../../x", long, "sk-ant-api03-" + strings.Repeat("a", 90) + "AA", ""} {
		b.send("PreToolUse", b.bash(fmt.Sprintf("ls %d", i), id))
	}
	fresh := newCalls()
	for _, r := range b.records() {
		raw, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var back record.Record
		if err := json.Unmarshal(raw, &back); err != nil {
			t.Fatal(err)
		}
		fresh.replay(&back)
	}
	for k, list := range b.d.calls.open {
		for i, o := range list {
			if got := fresh.open[k][i]; got.call != o.call || got.id != o.id || got.mac != o.mac || got.answer != o.answer {
				t.Errorf("replayed %+v, want %+v", got, o)
			}
		}
	}
}
