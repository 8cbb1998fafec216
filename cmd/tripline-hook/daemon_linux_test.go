// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/daemon/control"
)

var buildDaemon = sync.OnceValues(func() (string, error) { return build(".", "triplined", "../triplined") })

// onDemand is a place for a daemon that hooks start.
type onDemand struct {
	config.Places
	t    *testing.T
	line []string // what stands behind --
}

// newOnDemand makes a place that nobody has been at. Its daemons end with the test.
func newOnDemand(t *testing.T) *onDemand {
	t.Helper()
	bin, err := buildDaemon()
	if err != nil {
		t.Fatal(err)
	}
	dir := shortDir(t)
	p, err := config.Dirs{Home: dir}.Places()
	if err != nil {
		t.Fatal(err)
	}
	d := &onDemand{Places: p, t: t, line: append([]string{bin, "--on-demand", "--metrics-listen=off"}, p.Dirs().Args()...)}
	t.Cleanup(func() {
		for _, pid := range d.daemons() {
			_ = syscall.Kill(pid, syscall.SIGTERM)
		}
		d.until("no daemon is left", func() bool { return len(d.daemons()) == 0 })
	})
	return d
}

// daemons are the processes that run the command line of d.
func (d *onDemand) daemons() (pids []int) {
	d.t.Helper()
	want := strings.Join(d.line, "\x00") + "\x00"
	procs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		d.t.Fatal(err)
	}
	for _, path := range procs {
		if b, err := os.ReadFile(path); err == nil && string(b) == want {
			pid, err := strconv.Atoi(strings.Split(path, "/")[2])
			if err != nil {
				d.t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

// until polls a condition.
func (d *onDemand) until(what string, ok func() bool) {
	d.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(20 * time.Second); !ok(); {
		select {
		case <-tick.C:
		case <-end:
			log, _ := os.ReadFile(d.DaemonLog)
			d.t.Fatalf("not within 20 s: %s; the daemon's log:\n%s", what, log)
		}
	}
}

// one waits until one daemon is left, and returns it.
func (d *onDemand) one() int {
	d.t.Helper()
	var left []int
	d.until("one daemon is left", func() bool { left = d.daemons(); return len(left) == 1 })
	if b, err := os.ReadFile(d.LockFile); err != nil || strings.TrimSpace(string(b)) != strconv.Itoa(left[0]) {
		d.t.Errorf("daemon %d lives, the lock names %q, %v", left[0], b, err)
	}
	return left[0]
}

// args is a hook's command line.
func (d *onDemand) args(event string, options ...string) []string {
	args := append([]string{"-s", d.HookSocket, "-q", d.SpoolDir}, options...)
	return append(append(args, "claude", event, "--"), d.line...)
}

func bash(id, command string) string {
	b, err := json.Marshal(map[string]any{
		"session_id": "s", "transcript_path": "", "cwd": "/", "hook_event_name": "PreToolUse", "tool_name": "Bash",
		"tool_input": map[string]string{"command": command}, "tool_use_id": id,
	})
	if err != nil {
		panic(err)
	}
	return string(b) + "\n"
}

// crowd is 20 hooks at once, half of them with a call that must be denied.
func (d *onDemand) crowd() (got [20]result) {
	d.t.Helper()
	begin := time.Now()
	defer func() { d.t.Logf("20 hooks took %v", time.Since(begin)) }()
	var wg sync.WaitGroup
	for i := range got {
		command := "ls"
		if i%2 == 1 {
			command = "rm -rf /"
		}
		_, wait := start(d.t, strings.NewReader(bash(strconv.Itoa(i), command)), d.args("PreToolUse")...)
		wg.Go(func() { got[i] = wait() })
	}
	wg.Wait()
	return got
}

// served checks that a crowd got the daemon's verdicts, from one daemon, with every call on record.
func (d *onDemand) served(got [20]result) {
	d.t.Helper()
	for i, r := range got {
		if i%2 == 0 {
			silent(d.t, r)
		} else if r.exit != 2 || !strings.Contains(r.stdout, `"permissionDecision":"deny"`) || strings.Contains(r.stdout, "daemon.") {
			d.t.Errorf("hook %d: exit %d, stdout %q, stderr %q; want the daemon's deny", i, r.exit, r.stdout, r.stderr)
		}
	}
	if d.t.Failed() {
		log, _ := os.ReadFile(d.DaemonLog)
		d.t.Fatalf("the daemon's log:\n%s", log)
	}
	d.one()
	seen := map[string]int{}
	client := &control.Client{Socket: d.ControlSocket}
	if err := client.Calls(d.t.Context(), record.Filter{}, func(c record.Call) error { seen[c.ToolUseID]++; return nil }); err != nil {
		d.t.Fatal(err)
	}
	for i := range got {
		if seen[strconv.Itoa(i)] != 1 {
			d.t.Errorf("call %d is on record %d times", i, seen[strconv.Itoa(i)])
		}
	}
	if left, _ := filepath.Glob(filepath.Join(d.SpoolDir, "*.evt")); len(left) != 0 {
		d.t.Errorf("%d calls were spooled", len(left))
	}
	if s, err := client.Status(d.t.Context()); err != nil || s.StartedBy != "hook" {
		d.t.Errorf("status %+v, %v; want one that a hook started", s, err)
	}
}

// The tests below are not parallel: each is a crowd of its own, and what they measure is a second.

func TestTwentyHooksStartOneDaemon(t *testing.T) {
	d := newOnDemand(t)
	d.served(d.crowd())
}

func TestTwentyHooksStartOneDaemonInPlaceOfADeadOne(t *testing.T) {
	d := newOnDemand(t)
	silent(t, run(t, bash("first", "ls"), d.args("PreToolUse")...))
	if err := syscall.Kill(d.one(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	d.until("the daemon is dead", func() bool {
		c, err := net.Dial("unix", d.HookSocket)
		if err == nil {
			c.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	})
	d.served(d.crowd())
}

// While one daemon is ending, hooks are served by the next one.
func TestTwentyHooksStartOneDaemonWhileAnotherEnds(t *testing.T) {
	d := newOnDemand(t)
	silent(t, run(t, bash("first", "ls"), d.args("PreToolUse")...))
	old := d.one()
	if err := syscall.Kill(old, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	d.until("its socket is gone", func() bool { _, err := os.Lstat(d.HookSocket); return err != nil })
	d.served(d.crowd())
}

func TestTwentyHooksStartNothingThatAPersonStopped(t *testing.T) {
	d := newOnDemand(t)
	if err := os.MkdirAll(d.RunDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.StoppedFile, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i, r := range d.crowd() {
		denied(t, r, "PreToolUse", "daemon.unreachable")
		if !strings.Contains(r.stdout, "the Tripline daemon is not running") {
			t.Errorf("hook %d: %s", i, r.stdout)
		}
	}
	d.until("no daemon is left", func() bool { return len(d.daemons()) == 0 })
	if left, _ := filepath.Glob(filepath.Join(d.SpoolDir, "*.evt")); len(left) != 20 {
		t.Errorf("%d calls were spooled, want 20", len(left))
	}
}

// An agent that is ended with its whole group, as by the end of a terminal, leaves the daemon.
func TestTheDaemonOutlivesTheGroupOfItsHook(t *testing.T) {
	t.Parallel()
	d := newOnDemand(t)
	// A shell with a group of its own, which goes on after its hook.
	cmd := exec.Command("/bin/sh", append([]string{"-c", `printf '%s' "$0" | "$@"; echo $?; sleep 60`, bash("a", "ls"), hookPath(t)}, d.args("PreToolUse")...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	code := make([]byte, 2)
	if _, err := out.Read(code); err != nil || code[0] != '0' {
		t.Errorf("the hook ended with %q, %v", code, err)
	}
	pid := d.one()
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		if err := syscall.Kill(-cmd.Process.Pid, sig); err != nil && sig != syscall.SIGKILL && err != syscall.ESRCH {
			t.Fatal(err)
		}
	}
	_ = cmd.Wait() // killed
	if sid, group := session(t, pid); sid != pid || group != pid {
		t.Errorf("daemon %d is in session %d and group %d", pid, sid, group)
	}
	silent(t, run(t, bash("b", "ls"), d.args("PreToolUse")...))
	if now := d.one(); now != pid {
		t.Errorf("the daemon was %d and is %d", pid, now)
	}
}

// session returns the session and the process group of a process.
func session(t *testing.T, pid int) (sid, group int) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	rest := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])) // state, parent, group, session
	group, err = strconv.Atoi(rest[2])
	if err != nil {
		t.Fatal(err)
	}
	sid, err = strconv.Atoi(rest[3])
	if err != nil {
		t.Fatal(err)
	}
	return sid, group
}
