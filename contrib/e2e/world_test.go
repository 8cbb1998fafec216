// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/contrib/e2e/model"
)

// world is one person's machine: a home, a project under git, Tripline installed and running, and a model that follows a script.
type world struct {
	t       testing.TB
	home    string
	project string
	model   *model.Server
	daemon  *exec.Cmd
	log     *bytes.Buffer
}

// newWorld makes a home with a project in which src/ is tracked. Tripline is not there yet.
func newWorld(t testing.TB, scenarios map[string][]model.Step) *world {
	t.Helper()
	home, err := os.MkdirTemp("/home", "dev")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, home: home, project: filepath.Join(home, "shop")}
	w.write("shop/src/main.go", "package main\n\nfunc main() {}\n")
	w.write("shop/README.md", "a shop\n")
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=dev", "-c", "user.email=dev@localhost", "commit", "-qm", "start"}} {
		w.command(w.project, nil, "git", args...)
	}
	if w.model, err = model.New(scenarios); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.model.Close)
	t.Cleanup(func() { w.stop(syscall.SIGTERM) })
	return w
}

func (w *world) write(rel, text string) {
	w.t.Helper()
	path := filepath.Join(w.home, rel)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) exists(rel string) bool {
	_, err := os.Stat(filepath.Join(w.home, rel))
	return err == nil
}

func (w *world) env(extra ...string) []string {
	return append([]string{"PATH=" + os.Getenv(binVar) + ":/usr/local/bin:/usr/bin:/bin", "HOME=" + w.home, "TERM=xterm-256color", "LANG=C.UTF-8"}, extra...)
}

// command runs a program that must succeed and returns its standard output.
func (w *world) command(dir string, stdin []byte, name string, args ...string) string {
	w.t.Helper()
	out, errText, code := w.try(dir, stdin, name, args...)
	if code != 0 {
		w.t.Fatalf("%s %s: exit %d\n%s%s", name, strings.Join(args, " "), code, out, errText)
	}
	return out
}

func (w *world) try(dir string, stdin []byte, name string, args ...string) (stdout, stderr string, code int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if !strings.Contains(name, "/") && name != "git" {
		name = filepath.Join(os.Getenv(binVar), name)
	}
	cmd := exec.CommandContext(ctx, name, args...)
	var out, errb bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, w.env(), bytes.NewReader(stdin), &out, &errb
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatalf("%s: %v", name, err)
	}
	return out.String(), errb.String(), cmd.ProcessState.ExitCode()
}

// start runs a daemon and waits until it answers.
func (w *world) start() {
	w.t.Helper()
	w.log = &bytes.Buffer{}
	w.daemon = exec.Command(filepath.Join(os.Getenv(binVar), "triplined"), "--metrics-listen", "127.0.0.1:0")
	w.daemon.Env, w.daemon.Stderr, w.daemon.Dir = w.env(), w.log, "/"
	if err := w.daemon.Start(); err != nil {
		w.daemon = nil
		w.t.Fatal(err)
	}
	w.eventually("the daemon answers", func() bool {
		_, _, code := w.try("/", nil, "auditctl", "approvals", "list", "-o", "json")
		return code == 0
	})
}

// stop ends the daemon with a signal and waits for it.
func (w *world) stop(sig syscall.Signal) {
	if w.daemon == nil {
		return
	}
	_ = w.daemon.Process.Signal(sig)
	_ = w.daemon.Wait()
	w.daemon = nil
	if w.t.Failed() {
		w.t.Logf("daemon log:\n%s", w.log)
	}
}

// install starts the daemon and wires the client, as a person would.
func (w *world) install() {
	w.t.Helper()
	w.start()
	w.command(w.home, nil, "auditctl", "install", "claude", "--yes")
}

// eventually polls a condition.
func (w *world) eventually(what string, ok func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			w.t.Fatalf("not within 30 s: %s", what)
		}
		select {
		case <-w.t.Context().Done():
			w.t.Fatalf("the test ended before: %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// claude runs one headless session of a scenario and returns everything that the client printed.
func (w *world) claude(scenario string, args ...string) string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	all := append([]string{"-p", "go on SCENARIO=" + scenario, "--output-format", "stream-json", "--verbose"}, args...)
	cmd := exec.CommandContext(ctx, os.Getenv(clientVar), all...)
	cmd.Dir = w.project
	cmd.Env = w.env("ANTHROPIC_API_KEY=sk-ant-api03-dummy", "ANTHROPIC_BASE_URL="+w.model.URL(), "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1",
		"DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "IS_SANDBOX=1")
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		w.t.Fatalf("the client did not end:\n%s", tail(out))
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	return string(out)
}

func tail(b []byte) string {
	if len(b) > 8000 {
		b = b[len(b)-8000:]
	}
	return string(b)
}

// allowed is what a person would allow so that nothing but Tripline stands in the way.
var allowed = []string{"--allowedTools", "Bash,Write,Edit,Read,Agent,Skill"}

// calls asks the log.
func (w *world) calls(args ...string) []record.Call {
	w.t.Helper()
	out, errText, code := w.try(w.home, nil, "auditctl", append([]string{"query", "today", "-o", "jsonl"}, args...)...)
	if code != 0 && code != 3 {
		w.t.Fatalf("query: exit %d: %s", code, errText)
	}
	var calls []record.Call
	for line := range strings.Lines(out) {
		var c record.Call
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			w.t.Fatalf("query printed %q: %v", line, err)
		}
		calls = append(calls, c)
	}
	return calls
}

// verify asserts that the log is whole.
func (w *world) verify() {
	w.t.Helper()
	if out, errText, code := w.try(w.home, nil, "auditctl", "verify"); code != 0 {
		w.t.Errorf("verify: exit %d\n%s%s", code, out, errText)
	}
}

// command of a recorded Bash call.
func commandOf(c record.Call) string {
	var in struct {
		Command string `json:"command"`
	}
	_ = json.Unmarshal(c.Input, &in)
	return in.Command
}

func find(calls []record.Call, command string) []record.Call {
	var out []record.Call
	for _, c := range calls {
		if commandOf(c) == command {
			out = append(out, c)
		}
	}
	return out
}

func bash(command string) model.Call {
	return model.Call{Tool: "Bash", Input: map[string]any{"command": command, "description": "a step"}}
}

func steps(calls ...model.Call) []model.Step {
	out := make([]model.Step, len(calls))
	for i, c := range calls {
		out[i] = model.Step{Text: fmt.Sprintf("step %d", i+1), Calls: []model.Call{c}}
	}
	return out
}
