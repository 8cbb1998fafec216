// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tripline-sh/tripline/contrib/e2e/model"
	"github.com/tripline-sh/tripline/hooks/transcript"
)

var updateFixtures = flag.Bool("update-fixtures", false, "write the transcripts of this run to hooks/transcript/testdata/real")

// TestTheTranscriptTellsTheCallsThatTheHooksSaw compares what the reader finds in the client's transcripts, forks and subagents
// included, with what a PreToolUse hook was told.
func TestTheTranscriptTellsTheCallsThatTheHooksSaw(t *testing.T) {
	day := steps(
		bash("ls"),
		model.Call{Tool: "Write", Input: map[string]any{"file_path": "PROJECT/notes.txt", "content": "a note\n"}},
		model.Call{Tool: "Read", Input: map[string]any{"file_path": "PROJECT/notes.txt"}},
		model.Call{Tool: "Edit", Input: map[string]any{"file_path": "PROJECT/notes.txt", "old_string": "a note", "new_string": "a longer note"}},
		bash("exit 3"),
		bash("rm -rf src"), // refused by Tripline
		model.Call{Tool: "WebFetch", Input: map[string]any{"url": "http://localhost:1/", "prompt": "what is it"}}, // refused by the client
		bash("cd src && printf 'x\u2028y\\000z'"),
	)
	day = append(day,
		model.Step{Text: "two at once", Calls: []model.Call{bash("echo one"), bash("echo two")}},
		model.Step{Calls: []model.Call{{Tool: "Agent", Input: map[string]any{"description": "a helper", "prompt": "SCENARIO=sub", "subagent_type": "general-purpose", "run_in_background": false}}}},
		model.Step{Calls: []model.Call{bash("head -c 9000 /dev/zero | tr '\\0' x")}},
	)
	w := newWorld(t, map[string][]model.Step{"day": day, "sub": steps(bash("echo from the subagent"), bash("exit 4")), "again": steps(bash("echo in the fork"))})
	for _, s := range day {
		for _, c := range s.Calls {
			if in := c.Input.(map[string]any); in["file_path"] != nil {
				in["file_path"] = strings.Replace(in["file_path"].(string), "PROJECT", w.project, 1)
			}
		}
	}
	w.write(".claude/settings.json", `{"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [{"type": "command", "command": "cat >> `+w.home+`/seen.jsonl"}]}]}}`)
	w.install()
	var first struct {
		Session string `json:"session_id"`
	}
	out := w.claude("day", allowed...)
	line, _, _ := strings.Cut(out, "\n")
	if err := json.Unmarshal([]byte(line), &first); err != nil || first.Session == "" {
		t.Fatalf("the client printed %q: %v", line, err)
	}
	w.claude("again", append([]string{"--resume", first.Session, "--fork-session"}, allowed...)...)
	w.claude("again", append([]string{"--resume", first.Session}, allowed...)...)

	dir := filepath.Join(w.home, ".claude")
	got, refused := readTranscripts(t, dir)
	hooks := hookCalls(t, w)
	for id, h := range hooks {
		c, ok := got[id]
		switch {
		case !ok:
			t.Errorf("the hook saw %s %s, the transcripts do not hold it", h.ToolName, id)
		case c.Tool != h.ToolName || c.Subagent != h.AgentID || c.Cwd != h.Cwd:
			t.Errorf("%s: transcript %+v, hook %+v", id, c, h)
		default:
			sameInput(t, c.Input, h.Input)
		}
	}
	for id := range got {
		if _, ok := hooks[id]; !ok {
			t.Errorf("the transcripts hold %+v, the hook did not see it", got[id])
		}
	}
	if len(got) < 15 {
		t.Errorf("only %d calls", len(got))
	}
	for id, why := range refused {
		if c := got[id]; c.Tool != "WebFetch" && !strings.Contains(string(c.Input), "rm -rf src") {
			t.Errorf("%s of %s is said to be refused: %s", id, c.Tool, why)
		}
	}
	if len(refused) != 2 {
		t.Errorf("refused: %v", refused)
	}
	var rep struct {
		Summary struct{ Calls, Sessions, Denied, Refused, Repeated int }
		Calls   []struct{ Rule, Refused string }
	}
	if err := json.Unmarshal([]byte(w.command(w.home, nil, "auditctl", "preview", "-o", "json")), &rep); err != nil {
		t.Fatal(err)
	}
	if s := rep.Summary; s.Calls != len(hooks) || s.Sessions != 2 || s.Denied != 1 || s.Refused != 1 || s.Repeated < 10 || len(rep.Calls) != 1 || rep.Calls[0].Rule != "delete.project" {
		t.Errorf("preview: %+v", rep)
	}
	if *updateFixtures && !t.Failed() {
		writeFixtures(t, w, dir)
	}
}

// readTranscripts returns the calls, each once, and those that were refused. What a fork copied is told apart.
func readTranscripts(t *testing.T, dir string) (calls map[string]transcript.Call, refused map[string]string) {
	t.Helper()
	tree, err := transcript.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	files, _, err := tree.Files(context.Background())
	if err != nil || len(files) != 3 {
		t.Fatalf("%d transcripts, %v", len(files), err)
	}
	calls, refused = map[string]transcript.Call{}, map[string]string{}
	copies := 0
	r := transcript.NewReader(transcript.Options{})
	for _, f := range files {
		_, s, err := r.ReadFile(context.Background(), tree, f, 0, &transcript.Visitor{
			Call: func(c *transcript.Call) error {
				k := *c
				k.Input = bytes.Clone(c.Input)
				if c.Origin == "" {
					calls[k.ToolUseID] = k
				} else {
					copies++
				}
				return nil
			},
			Result: func(r *transcript.Result) error {
				if r.Refused != "" {
					refused[r.ToolUseID] = r.Refused
				}
				return nil
			},
		})
		if err != nil || s.Broken+s.Unfinished+s.Oversized+s.Unreadable != 0 {
			t.Errorf("%s: %+v, %v", f.Path, s, err)
		}
	}
	if copies < 10 {
		t.Errorf("the fork holds %d copies", copies)
	}
	return calls, refused
}

type hookCall struct {
	ToolName  string          `json:"tool_name"`
	ToolUseID string          `json:"tool_use_id"`
	AgentID   string          `json:"agent_id"`
	Cwd       string          `json:"cwd"`
	Input     json.RawMessage `json:"tool_input"`
}

func hookCalls(t *testing.T, w *world) map[string]hookCall {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(w.home, "seen.jsonl"))
	if err != nil {
		t.Fatalf("the other hook did not run: %v", err)
	}
	out := map[string]hookCall{}
	for dec := json.NewDecoder(bytes.NewReader(data)); dec.More(); {
		var c hookCall
		if err := dec.Decode(&c); err != nil {
			t.Fatal(err)
		}
		out[c.ToolUseID] = c
	}
	return out
}

// sameInput asserts that the hook was shown what the model had asked for. The client adds defaults (Edit's replace_all).
func sameInput(t *testing.T, asked, shown json.RawMessage) {
	t.Helper()
	var a, b map[string]any
	if json.Unmarshal(asked, &a) != nil || json.Unmarshal(shown, &b) != nil {
		t.Fatalf("inputs %s and %s", asked, shown)
	}
	for k, v := range a {
		if fmt.Sprint(b[k]) != fmt.Sprint(v) {
			t.Errorf("key %s: the transcript says %v, the hook %v", k, v, b[k])
		}
	}
	for k := range b {
		if _, ok := a[k]; !ok && k != "replace_all" {
			t.Errorf("the hook saw the key %s, the transcript has none", k)
		}
	}
}

// writeFixtures keeps the transcripts of this run: paths made neutral, and without the lines that hold the client's own prompts.
func writeFixtures(t *testing.T, w *world, dir string) {
	t.Helper()
	to := filepath.Join(repo(), "hooks/transcript/testdata/real")
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	neutral := strings.NewReplacer(w.home, "/home/dev", strings.ReplaceAll(w.home, "/", "-"), "-home-dev")
	err := fs.WalkDir(os.DirFS(dir), "projects", func(p string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(p, ".jsonl") {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, p))
		if err != nil {
			return err
		}
		var kept strings.Builder
		for line := range strings.Lines(string(data)) {
			var e struct {
				Type string `json:"type"`
			}
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				return err
			}
			if e.Type != "attachment" && !strings.HasPrefix(e.Type, "api-request") {
				kept.WriteString(neutral.Replace(line))
			}
		}
		name := filepath.Join(to, neutral.Replace(p))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		return os.WriteFile(name, []byte(kept.String()), 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}
