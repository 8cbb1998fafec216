// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/hooks/spool"
)

// script is a command line that runs commands of sh in the daemon's place.
func script(commands string, args ...string) []string {
	return append([]string{"/bin/sh", "-c", commands, "triplined"}, args...)
}

// A daemon that cannot be started is one that is away: the same answers, at most a second later.
func TestADaemonThatDoesNotComeUpIsAway(t *testing.T) {
	t.Parallel()
	const none = "/nonexistent/hook.sock"
	tests := []struct {
		name     string
		sock     string
		daemon   []string
		min, max time.Duration // for the answer; the upper bound has room for a busy machine
	}{
		{"no such program", none, []string{"/nonexistent/triplined"}, 0, 900 * time.Millisecond},
		{"no program", stale(t), []string{"/etc/passwd", "--on-demand"}, 0, 900 * time.Millisecond},
		{"a directory", none, []string{"/"}, 0, 900 * time.Millisecond},
		{"one that a person stopped", stale(t), script("exit 0"), 0, 900 * time.Millisecond},
		{"one that fails at once", none, script("exit 1"), 900 * time.Millisecond, 10 * time.Second},
		{"one that kills itself", stale(t), script("kill -9 $$"), 900 * time.Millisecond, 10 * time.Second},
		{"one that never listens", stale(t), script("exec sleep 5", "x\x01y"), 900 * time.Millisecond, 4 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			args := func(event string, options ...string) []string {
				line := append([]string{"-s", tt.sock, "-q", dir}, options...)
				return append(append(line, "claude", event, "--"), tt.daemon...)
			}
			begin := time.Now()
			got := run(t, "{}", args("PreToolUse")...)
			took := time.Since(begin)
			denied(t, got, "PreToolUse", "daemon.unreachable")
			if !strings.Contains(got.stdout, "the Tripline daemon is not running") {
				t.Errorf("stdout %s", got.stdout)
			}
			if took < tt.min || took > tt.max {
				t.Errorf("the answer took %v, want %v to %v", took, tt.min, tt.max)
			}
			if m := spooled(t, dir).Meta; m.Fault != spool.Absent || m.Answer != spool.Denied {
				t.Errorf("spooled %+v", m)
			}
			silent(t, run(t, "{}", args("SessionStart", "-t", "100")...))
			silent(t, run(t, "{}", args("PreToolUse", "-t", "100", "-o", "allow")...))
			begin = time.Now()
			denied(t, run(t, "{}", args("PreToolUse", "-t", "100")...), "PreToolUse", "daemon.unreachable")
			if took := time.Since(begin); took > 900*time.Millisecond {
				t.Errorf("with a deadline of 100 ms, the answer took %v", took)
			}
		})
	}
}

// A hook starts the daemon once, whatever becomes of it.
func TestTheDaemonIsStartedOnce(t *testing.T) {
	t.Parallel()
	count := filepath.Join(t.TempDir(), "count")
	denied(t, run(t, "{}", "-s", stale(t), "claude", "PreToolUse", "--", "/bin/sh", "-c",
		`echo "$@" >>`+count+"; exit 1", "triplined", "a b", "c"), "PreToolUse", "daemon.unreachable")
	if b, err := os.ReadFile(count); err != nil || string(b) != "a b c\n" {
		t.Errorf("it ran with %q, %v", b, err)
	}
}

// What answers needs no help.
func TestADaemonThatAnswersIsNotStarted(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "mark")
	silent(t, run(t, "{}", append([]string{"-s", passing(t), "claude", "PreToolUse", "--"}, script("touch "+mark)...)...))
	if _, err := os.Stat(mark); err == nil {
		t.Error("it was started beside one that runs")
	}
}

// A hook that is asked to end while the daemon starts answers for itself, and the daemon goes on.
func TestAHookThatIsEndedWhileTheDaemonStarts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pidFile, release := filepath.Join(dir, "pid"), filepath.Join(dir, "release")
	if err := syscall.Mkfifo(release, 0o600); err != nil {
		t.Fatal(err)
	}
	daemon := script("echo $$ >" + dir + "/new; mv " + dir + "/new " + pidFile + "; read x <" + release + "; echo done >" + dir + "/done")
	cmd, wait := start(t, strings.NewReader("{}"), append([]string{"-s", stale(t), "claude", "PreToolUse", "--"}, daemon...)...)
	poll := func(what string, ok func() bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); !ok(); {
			select {
			case <-time.After(5 * time.Millisecond):
			case <-time.After(time.Until(deadline)):
				t.Fatalf("not within 20 s: %s", what)
			}
		}
	}
	exists := func(path string) func() bool {
		return func() bool { _, err := os.Stat(path); return err == nil }
	}
	poll("the daemon starts", exists(pidFile))
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	got := wait()
	if got.exit != 2 || !strings.Contains(got.stdout, "[rule hook.interrupted]") && !strings.Contains(got.stdout, "[rule daemon.unreachable]") {
		t.Errorf("got %+v", got)
	}
	f, err := os.OpenFile(release, os.O_WRONLY, 0) // waits for the daemon to read it
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("x\n"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	poll("the daemon goes on", exists(filepath.Join(dir, "done")))
}
