// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// answer is what a hook said: whether the call may run, and the words for the model.
type answer struct {
	denied bool
	words  string
}

// send gives an event to the hook that is registered for it, as the agent would. shape is the capture of a real event, of which
// the fields in set are replaced.
func (w *world) send(ctx context.Context, shape string, set map[string]any) (answer, error) {
	data, err := os.ReadFile(filepath.Join(w.source, "hooks/agents/claude/testdata/captures", shape+".json"))
	if err != nil {
		return answer{}, err
	}
	var payload map[string]any
	if err := json.Unmarshal(data, &payload); err != nil {
		return answer{}, err
	}
	maps.Copy(payload, map[string]any{
		"session_id": w.id, "cwd": w.project, "transcript_path": filepath.Join(w.home, ".claude/projects/shop", w.id+".jsonl"),
	})
	maps.Copy(payload, set)
	if data, err = json.Marshal(payload); err != nil {
		return answer{}, err
	}
	event, _, _ := strings.Cut(shape, ".")
	line := w.handlers[event]
	if len(line) == 0 {
		return answer{}, fmt.Errorf("no hook is registered for %s", event)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = w.env(), w.project, bytes.NewReader(data), &stdout, &stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return answer{}, err
	}
	var reply struct {
		HookSpecificOutput struct{ PermissionDecision, PermissionDecisionReason string }
	}
	if stdout.Len() > 0 {
		if err := json.Unmarshal(stdout.Bytes(), &reply); err != nil {
			return answer{}, fmt.Errorf("the hook printed %q: %w", stdout.String(), err)
		}
	}
	o := reply.HookSpecificOutput
	switch code := cmd.ProcessState.ExitCode(); {
	case code == 2 && o.PermissionDecision == "deny":
		return answer{denied: true, words: o.PermissionDecisionReason}, nil
	case code == 0 && (o.PermissionDecision == "" || o.PermissionDecision == "allow"):
		return answer{words: o.PermissionDecisionReason}, nil
	}
	return answer{}, fmt.Errorf("%s: exit code %d, %s%s", shape, cmd.ProcessState.ExitCode(), stdout.String(), stderr.String())
}

// call is one tool call of the agent.
type call struct {
	tool  string
	input map[string]any
	id    string
}

func (w *world) newCall(tool string, input map[string]any) call {
	w.calls++
	return call{tool, input, fmt.Sprintf("toolu_01demo%08d", w.calls)}
}

// ask is the event before the call.
func (w *world) ask(ctx context.Context, c call) (answer, error) {
	return w.send(ctx, "PreToolUse."+c.tool, map[string]any{"tool_input": c.input, "tool_use_id": c.id, "permission_mode": "acceptEdits"})
}

// do is the agent's work: it does what the call says and sends the event after it.
func (w *world) do(ctx context.Context, c call) (failed bool, err error) {
	text := func(key string) string { s, _ := c.input[key].(string); return s }
	set := map[string]any{"tool_input": c.input, "tool_use_id": c.id, "permission_mode": "acceptEdits", "duration_ms": 20}
	switch c.tool {
	case "Bash":
		out, code, err := w.run(ctx, "/bin/sh", "-c", text("command"))
		if err != nil {
			return false, err
		}
		if code != 0 {
			set["error"] = fmt.Sprintf("Exit code %d\n%s", code, out)
			_, err := w.send(ctx, "PostToolUseFailure.Bash", set)
			return true, err
		}
		set["tool_response"] = map[string]any{"stdout": out, "stderr": "", "interrupted": false, "isImage": false, "noOutputExpected": false}
	case "Read":
		data, err := os.ReadFile(text("file_path"))
		if err != nil {
			return false, err
		}
		set["tool_response"] = map[string]any{"type": "text", "file": map[string]any{"filePath": text("file_path"), "content": string(data)}}
	case "Edit":
		data, err := os.ReadFile(text("file_path"))
		if err != nil {
			return false, err
		}
		next := strings.Replace(string(data), text("old_string"), text("new_string"), 1)
		if next == string(data) {
			return false, fmt.Errorf("the edit of %s changes nothing", text("file_path"))
		}
		if err := os.WriteFile(text("file_path"), []byte(next), 0o644); err != nil {
			return false, err
		}
		set["tool_response"] = map[string]any{"filePath": text("file_path"), "oldString": text("old_string"), "newString": text("new_string")}
	}
	_, err = w.send(ctx, "PostToolUse."+c.tool, set)
	return false, err
}
