// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
)

func TestHeavyInputIsAnsweredAndRecorded(t *testing.T) {
	t.Parallel()
	// A loaded machine under the race detector is not what the limits are made for.
	b := running(t, shrunk(func(l *limits) { l.answer, l.frame, l.progress = time.Minute, time.Minute, time.Minute }))
	fifo := filepath.Join(b.project, "fifo.sh")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name    string
		payload []byte
		want    string // "" = anything but pass
	}{
		{"a command of 10 MB", b.bash("ls "+strings.Repeat("a", 10<<20), "1"), ""},
		{"256 KiB of open parentheses", b.bash(strings.Repeat("(", 256<<10), "2"), ""},
		{"256 KiB of open substitutions", b.bash(strings.Repeat("$(", 128<<10), "3"), ""},
		{"JSON nested a million deep", []byte(`{"session_id":"s","cwd":"/","hook_event_name":"PreToolUse","tool_name":"Bash","tool_use_id":"4","tool_input":` + strings.Repeat("[", 1<<20)), "deny"},
		{"closed JSON nested a million deep", []byte(`{"session_id":"s","cwd":"/","hook_event_name":"PreToolUse","tool_name":"Bash","tool_use_id":"5","tool_input":` +
			strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20) + `}`), "deny"},
		{"a FIFO where a script should be", b.bash("bash "+fifo, "6"), ""},
		{"a write of 6 MB", b.payload("PreToolUse", map[string]any{"tool_name": "Write", "tool_use_id": "7",
			"tool_input": map[string]any{"file_path": filepath.Join(b.project, "big"), "content": strings.Repeat("x\n", 3<<20)}}), "pass"},
		{"hostile ids", b.payload("PreToolUse", map[string]any{"tool_name": "Bash\x00\u202e", "tool_input": map[string]any{"command": "ls"},
			"tool_use_id": strings.Repeat("../\n\x1b", 10000), "session_id": strings.Repeat("s", 1<<20), "cwd": "\x00/../.."}), "any"},
		{"an empty directory", b.payload("PreToolUse", map[string]any{"tool_name": "Bash", "tool_input": map[string]any{"command": "ls"}, "tool_use_id": "8", "cwd": ""}), "any"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := len(b.kinds(record.CallRequested))
			got, _ := reason(t, b.send("PreToolUse", tt.payload))
			if tt.want != "any" && got != tt.want && (tt.want != "" || got == "pass") {
				t.Errorf("answered %s", got)
			}
			if len(b.kinds(record.CallRequested)) != before+1 {
				t.Error("no record")
			}
		})
	}
	for _, r := range b.records() {
		if len(r.ToolUseID) > maxName || len(r.Session) > maxName || len(r.Tool) > maxName || len(r.Cwd) > maxPathText {
			t.Errorf("record %d has long names", r.Seq)
		}
	}
}

func TestParallelHooksBesideHalfOpenOnes(t *testing.T) {
	t.Parallel()
	b := running(t)
	for i := range 128 {
		c := b.dial()
		if i%2 == 0 {
			_, _ = c.Write([]byte("TRPL"))
		}
	}
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			command, want := "ls", "pass"
			if i%4 == 0 {
				command, want = "rm -rf src", "deny"
			}
			if got, _ := reason(t, b.send("PreToolUse", b.bash(command, fmt.Sprint(i)))); got != want {
				t.Errorf("%s: %s", command, got)
			}
		})
	}
	wg.Wait()
	if n := len(b.kinds(record.CallRequested)); n != 100 {
		t.Errorf("%d calls on record", n)
	}
}

func TestForeignFileWhereASegmentShouldBe(t *testing.T) {
	t.Parallel()
	b := running(t)
	b.send("PreToolUse", b.bash("ls", "1"))
	b.stop()
	segments, err := filepath.Glob(filepath.Join(b.places.LogDir, "*.db"))
	if err != nil || len(segments) != 1 {
		t.Fatal(segments, err)
	}
	if err := os.WriteFile(segments[0], []byte("this is no segment"), 0o600); err != nil {
		t.Fatal(err)
	}
	// Either a clear refusal, or a start that declares what is lost. Never a start that says nothing.
	if err := b.tryStart(); err != nil {
		if !strings.Contains(err.Error(), "log") {
			t.Errorf("error %v", err)
		}
		return
	}
	if r := b.send("PreToolUse", b.bash("ls", "2")); !isPass(r) {
		t.Errorf("reply %+v", r)
	}
	if len(b.kinds(record.Gap)) == 0 {
		t.Errorf("nothing is declared: %s", b.list())
	}
}
