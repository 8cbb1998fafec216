// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// endDaemons ends the detached daemons that a test left in a home of its own, as one that failed does.
func endDaemons(home, bin string) {
	for _, pattern := range []string{"/.local/state/tripline/run", "/*/.local/state/tripline/run", "/*/run"} {
		runs, _ := filepath.Glob(home + pattern)
		for _, run := range runs {
			cmd := exec.Command(filepath.Join(bin, "auditctl"), "stop")
			cmd.Env = []string{"HOME=" + strings.TrimSuffix(run, "/.local/state/tripline/run")}
			if pattern == "/*/run" {
				cmd.Env = []string{"TRIPLINE_HOME=" + filepath.Dir(run), "HOME=" + home}
			}
			_ = cmd.Run()
		}
	}
}

// registered runs the handler of PreToolUse that install wrote into the user's settings, as the client does: registered pass|deny COMMAND.
// What it printed is in the file "reply".
func registered(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: registered pass|deny COMMAND")
	}
	var settings struct {
		Hooks map[string][]struct {
			Hooks []struct {
				Command string
				Args    []string
			}
		}
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(ts.Getenv("HOME")+"/.claude/settings.json")), &settings))
	handler := settings.Hooks["PreToolUse"][0].Hooks[0]
	payload := fmt.Sprintf(`{"session_id":"s","transcript_path":"","cwd":"/","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":%q},"tool_use_id":"t"}`, args[1])
	out, err := command(ts, []byte(payload), append([]string{handler.Command}, handler.Args...)...)
	ts.Check(os.WriteFile(ts.MkAbs("reply"), []byte(out), 0o600))
	switch args[0] {
	case "pass":
		if err != nil || out != "" {
			ts.Fatalf("it did not pass: %v\n%s", err, out)
		}
	case "deny":
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(out, `"permissionDecision":"deny"`) {
			ts.Fatalf("it was not denied: %v\n%s", err, out)
		}
	default:
		ts.Fatalf("usage: registered pass|deny COMMAND")
	}
}

// Whoever ran auditctl start may go, with all its processes: a shell, a terminal, a make, an agent's session.
func TestTheDaemonOutlivesTheProcessGroupThatStartedIt(t *testing.T) {
	t.Parallel()
	bin := build(t)
	home, err := os.MkdirTemp("", "tl") // short, for the socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	t.Cleanup(func() { endDaemons(home, bin) })
	env := []string{"HOME=" + home, "PATH=" + bin + ":/usr/bin:/bin", "TRIPLINE_METRICS_LISTEN=off", "SECRET=of-the-starter"}

	starter := exec.Command("/bin/sh", "-c", "auditctl start >start.out 2>&1; echo begun; sleep 120")
	starter.Env, starter.Dir = env, home
	starter.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := starter.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := starter.Start(); err != nil {
		t.Fatal(err)
	}
	if line := make([]byte, 6); !readAll(out, line) || string(line) != "begun\n" {
		t.Fatalf("the starter said %q", line)
	}
	said, _ := os.ReadFile(filepath.Join(home, "start.out"))
	if err := syscall.Kill(-starter.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = starter.Wait()

	run := func(args ...string) (string, error) {
		cmd := exec.Command(filepath.Join(bin, "auditctl"), args...)
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("approvals", "list"); err != nil {
		t.Fatalf("the daemon is gone: %v\n%s\n%s", err, out, said)
	}
	pid, err := os.ReadFile(filepath.Join(home, ".local/state/tripline/run/triplined.lock"))
	if err != nil {
		t.Fatal(err)
	}
	if proc := "/proc/" + strings.TrimSpace(string(pid)); exists("/proc/self/stat") {
		stat, err := os.ReadFile(proc + "/stat")
		if err != nil {
			t.Fatal(err)
		}
		// behind the name in parentheses: state, parent, group, session, terminal
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		self := strings.TrimSpace(string(pid))
		if fields[2] != self || fields[3] != self || fields[4] != "0" {
			t.Errorf("process %s: group %s, session %s, terminal %s", self, fields[2], fields[3], fields[4])
		}
		// what told its starter why it does not come up is a file by now; only root can look at that
		if to, err := os.Readlink(proc + "/fd/2"); err == nil && to != filepath.Join(home, ".local/state/tripline/triplined.log") {
			t.Errorf("standard error is %s", to)
		}
		// the daemon keeps its memory from others; only root sees these
		if environ, err := os.ReadFile(proc + "/environ"); err == nil && len(environ) != 0 {
			t.Errorf("it has an environment: %q", environ)
		}
	}
	if out, err := run("stop"); err != nil || !strings.Contains(out, "has stopped") {
		t.Errorf("stop: %v\n%s", err, out)
	}
}

// Everybody who starts it at the same time gets the same daemon.
func TestManyStartsAtOnceMakeOneDaemon(t *testing.T) {
	t.Parallel()
	const starters = 12
	bin := build(t)
	home, err := os.MkdirTemp("", "tl") // short, for the socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	t.Cleanup(func() { endDaemons(home, bin) })
	outs := make([]string, starters)
	var wg sync.WaitGroup
	for i := range starters {
		wg.Go(func() {
			cmd := exec.Command(filepath.Join(bin, "auditctl"), "start")
			cmd.Env = []string{"HOME=" + home, "PATH=/usr/bin:/bin", "TRIPLINE_METRICS_LISTEN=off"}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("start: %v\n%s", err, out)
			}
			outs[i] = string(out)
		})
	}
	wg.Wait()
	pid, err := os.ReadFile(filepath.Join(home, ".local/state/tripline/run/triplined.lock"))
	if err != nil {
		t.Fatal(err)
	}
	for _, out := range outs {
		if !strings.Contains(out, "triplined runs (pid "+strings.TrimSpace(string(pid))+",") {
			t.Errorf("not the daemon that runs, %s: %s", pid, out)
		}
	}
}

// A restart succeeds among hooks that start the daemon as soon as it is away, and no call goes unjudged.
func TestARestartSucceedsInACrowdOfHooks(t *testing.T) {
	t.Parallel()
	bin := build(t)
	home, err := os.MkdirTemp("", "tl") // short, for the socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	t.Cleanup(func() { endDaemons(home, bin) })
	env := []string{"HOME=" + home, "PATH=/usr/bin:/bin", "TRIPLINE_METRICS_LISTEN=off"}
	ctl := func(args ...string) string {
		cmd := exec.Command(filepath.Join(bin, "auditctl"), args...)
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
		return string(out)
	}
	ctl("start")
	state := home + "/.local/state/tripline"
	for round := range 4 {
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				cmd := exec.Command(filepath.Join(bin, "tripline-hook"), "-s", state+"/run/hook.sock", "claude", "PreToolUse", "--",
					filepath.Join(bin, "triplined"), "--on-demand", "--home="+home, "--metrics-listen=off")
				cmd.Stdin = strings.NewReader(fmt.Sprintf(`{"session_id":"s","transcript_path":"","cwd":"/","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"rm -rf /"},"tool_use_id":"t%d-%d"}`, round, i))
				out, err := cmd.Output()
				var exit *exec.ExitError
				if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(string(out), `"deny"`) {
					t.Errorf("the hook answered %v, %s", err, out)
				}
			})
		}
		ctl("restart")
		wg.Wait()
	}
	ctl("verify")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func readAll(r interface{ Read([]byte) (int, error) }, b []byte) bool {
	deadline := time.Now().Add(60 * time.Second)
	for n := 0; n < len(b); {
		m, err := r.Read(b[n:])
		if n += m; err != nil && n < len(b) || time.Now().After(deadline) {
			return false
		}
	}
	return true
}
