// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// hook sends one call of the Bash tool through the real hook and returns what it printed and its exit code.
func (w *world) hook(command, id string) (out string, code int) {
	w.t.Helper()
	socket := strings.TrimSpace(w.command(w.home, nil, "auditctl", "paths", "hook-socket"))
	payload := `{"session_id":"disk","transcript_path":"","cwd":"` + w.project + `","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"` + command + `"},"tool_use_id":"` + id + `"}`
	out, _, code = w.try(w.project, []byte(payload), "tripline-hook", "-s", socket, "claude", "PreToolUse")
	return out, code
}

func TestAFullDiskDeniesAndRecovers(t *testing.T) {
	w := newWorld(t, nil)
	state := filepath.Join(w.home, ".local/state")
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", state, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0700,size=24m"); err != nil {
		t.Fatal(err)
	}
	w.start()
	if out, code := w.hook("ls", "before"); code != 0 || out != "" {
		t.Fatalf("before: exit %d %s", code, out)
	}
	filler := filepath.Join(state, "filler")
	f, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(f, zeros{})
	_ = f.Close()
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk did not fill: %v", err)
	}
	// The log's file has some room of its own, so the first calls may still be recorded; what is not recorded is not allowed.
	allowed, denied := []string{}, 0
	for i := 0; denied < 3 && i < 5000; i++ {
		id := "full-" + strings.Repeat("x", i%200) + "-" + string(rune('a'+i%26))
		out, code := w.hook("echo "+strings.Repeat("padding ", 2000), id)
		switch {
		case code == 0 && out == "":
			allowed = append(allowed, id)
		case code == 2 && strings.Contains(out, "log.unavailable"):
			denied++
		default:
			t.Fatalf("on a full disk the hook answered exit %d %s", code, out)
		}
	}
	if denied < 3 {
		t.Fatal("calls were never denied for want of space")
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	w.eventually("calls run again", func() bool {
		out, code := w.hook("ls", "after")
		return code == 0 && out == ""
	})
	recorded := map[string]int{}
	for _, c := range w.calls("--limit", "0") {
		recorded[c.ToolUseID]++
	}
	for _, id := range allowed {
		if recorded[id] == 0 {
			t.Errorf("call %.20s was allowed and is not on record", id)
		}
	}
	w.eventually("the loss is declared", func() bool {
		out, _, _ := w.try(w.home, nil, "auditctl", "events", "--kind", "gap", "-o", "jsonl", "today")
		return strings.Contains(out, `"gap"`)
	})
	w.verify()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestAnUnwritableStateDirectoryIsAClearError(t *testing.T) {
	w := newWorld(t, nil)
	cmd := exec.Command(filepath.Join(os.Getenv(binVar), "triplined"), "--metrics-listen", "off")
	cmd.Env, cmd.Dir = w.env(), "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if err := os.Chmod(w.home, 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("exit %v: %s", err, out)
	}
	if !strings.Contains(string(out), "permission denied") || !strings.Contains(string(out), w.home) || strings.Contains(string(out), "goroutine") {
		t.Errorf("it said: %s", out)
	}
}
