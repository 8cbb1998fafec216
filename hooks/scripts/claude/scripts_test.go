// SPDX-License-Identifier: Apache-2.0

// Package claude_test runs the hook scripts for hand wiring: through the conformance suite, and beside the binary alone.
package claude_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/hooks/agents/agenttest"
	"github.com/tripline-sh/tripline/hooks/agents/claude"
	"github.com/tripline-sh/tripline/hooks/event"
)

const (
	captures = "../../agents/claude/testdata/captures"
	script   = "tripline.sh"
	home     = "/var/lib/tripline" // where the places of hooks.json are
)

// entry is a hook as hooks.json registers it.
type entry struct {
	Type, Command, OnFailure string
	Timeout                  int
	Args                     []string
}

func table(t *testing.T) map[string]entry {
	t.Helper()
	b, err := os.ReadFile("hooks.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Hooks map[string][]struct {
			Matcher string
			Hooks   []entry
		}
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&file); err != nil {
		t.Fatal(err)
	}
	all := map[string]entry{}
	for name, groups := range file.Hooks {
		if len(groups) != 1 || groups[0].Matcher != "*" || len(groups[0].Hooks) != 1 {
			t.Fatalf("%s: %+v", name, groups)
		}
		all[name] = groups[0].Hooks[0]
	}
	return all
}

func TestTheTableIsTheOneThatInstallWrites(t *testing.T) {
	t.Parallel()
	all := table(t)
	for _, r := range claude.Events() {
		e, ok := all[r.Event]
		if !ok {
			t.Errorf("%s is not registered", r.Event)
			continue
		}
		delete(all, r.Event)
		onFailure := map[bool]string{true: "block"}[r.Kind.Gates()]
		if e.Type != "command" || e.Command != "/usr/bin/env" || e.OnFailure != onFailure || e.Timeout != int(r.Timeout/time.Second) {
			t.Errorf("%s: %+v", r.Event, e)
		}
		want := []string{"-i", "/bin/sh", "/usr/local/lib/tripline/claude/tripline.sh", "-s", home + "/run/hook.sock", "-q", home + "/state/spool",
			"-t", strconv.FormatInt(r.Deadline.Milliseconds(), 10), "claude", r.Event,
			"--", "/usr/local/bin/triplined", "--config-dir=" + home + "/config", "--state-dir=" + home + "/state", "--run-dir=" + home + "/run"}
		if !slices.Equal(e.Args, want) {
			t.Errorf("%s:\n%q, want\n%q", r.Event, e.Args, want)
		}
	}
	for name := range all {
		t.Errorf("%s is registered and should not be", name)
	}
}

// TestConformance holds the script, wherever the binary gives no verdict, to what every hook has to answer then.
func TestConformance(t *testing.T) {
	bin := programs(t)
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		// a child that another test starts meanwhile must not hold the file open: it could not be run then
		syscall.ForkLock.RLock()
		err := os.WriteFile(path, []byte(text), mode)
		syscall.ForkLock.RUnlock()
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	elf := "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xff\xff\x01\x00\x00\x00" // of no processor
	broken := []string{
		filepath.Join(dir, "missing"),
		dir,
		file("empty", "", 0o755),
		file("not-executable", "#!/bin/sh\nexit 0\n", 0o644),
		file("fails", "#!/bin/sh\nexit 1\n", 0o755),
		file("odd-code", "#!/bin/sh\nexit 77\n", 0o755),
		file("killed", "#!/bin/sh\nkill -KILL $$\n", 0o755),
		file("crashes", "#!/bin/sh\nkill -SEGV $$\n", 0o755),
		// what the system does not run, a shell runs as a script
		file("newline", "\n", 0o755),
		file("blanks", " \t\n\n  ", 0o755),
		file("comment", "# nothing", 0o755),
		file("comments", "\n# a\n\n# b\n", 0o755),
		file("colon", ":\n", 0o755),
		file("passes", "exit 0\n", 0o755),
		file("denies", "exit 2\n", 0o755),
		file("syntax", "(\n", 0o755),
		file("zeros", strings.Repeat("\x00", 4096), 0o755),
		file("zeros-after-a-line", "\n"+strings.Repeat("\x00", 4096), 0o755),
		file("other-processor", elf+strings.Repeat("\x00", 200), 0o755),
		file("other-processor-with-lines", elf+"\n#\n:\n", 0o755),
		file("cut", string(start(t, filepath.Join(bin, "tripline-hook"), 40)), 0o755),
		file("lacks-the-rest", string(start(t, filepath.Join(bin, "tripline-hook"), 4096)), 0o755),
		// programs, but not ours
		file("no-interpreter", "#!"+filepath.Join(dir, "missing")+"\n", 0o755),
		file("says-yes", "#!/bin/sh\nexit 0\n", 0o755),
		file("says-no", "#!/bin/sh\nexit 2\n", 0o755),
		"/bin/true",
	}
	shells := shells(t)
	agenttest.Run(t, claude.Adapter{}, agenttest.Config{
		Captures: captures,
		Events:   claude.Events(),
		PreTool:  "PreToolUse",
		Call: func(tool, input string) []byte {
			name, _ := json.Marshal(tool)
			return []byte(`{"session_id":"s","cwd":"/p","hook_event_name":"PreToolUse","tool_name":` + string(name) + `,"tool_input":` + input + `,"tool_use_id":"t"}`)
		},
		Tool: "Bash", Key: "command", Commentary: "description",
		Keys:  []string{"session_id", "cwd", "hook_event_name", "tool_name", "tool_input", "tool_use_id"},
		Reads: reads,
		Fallbacks: func(name string) []event.Reply {
			all := []event.Reply{run(t, nil, nil, "/bin/sh", script, filepath.Join(bin, "tripline-hook"), "-s", filepath.Join(dir, "absent"), "claude", name)}
			for _, b := range broken {
				for _, sh := range shells {
					r := run(t, nil, nil, sh, script, b, "-s", "/run/hook.sock", "claude", name, "--", "/usr/local/bin/triplined")
					r.Stderr = ours.Find(r.Stderr) // a shell that cannot run a file has its say before
					all = append(all, r)
				}
			}
			return all
		},
	})
}

// ours is what the script itself writes to stderr: the last line.
var ours = regexp.MustCompile(`(?m)^tripline: .*\n\z`)

// reads is how the client takes a hook's reply if it knows nothing of onFailure: only exit code 2 blocks for certain.
func reads(name string, r event.Reply) event.Decision {
	kind, _ := claude.Adapter{}.Kind(name)
	switch {
	case r.Exit == 2 && kind.Gates():
		return event.Deny
	case r.Exit == 0 && len(r.Stdout) == 0 && len(r.Stderr) == 0:
		return event.Pass
	case r.Exit == 0 && bytes.Contains(r.Stdout, []byte(`"permissionDecision":"allow"`)):
		return event.Allow
	case r.Exit == 0 && bytes.Contains(r.Stdout, []byte(`"permissionDecision":"ask"`)):
		return event.Ask
	case r.Exit == 0 && bytes.Contains(r.Stdout, []byte(`"behavior":"deny"`)):
		return event.Deny
	case r.Exit == 0 && bytes.Contains(r.Stdout, []byte(`"behavior":"allow"`)):
		return event.Allow
	}
	return "none"
}

// anchor is the part of a denial that differs from one record of the log to the next.
var anchor = regexp.MustCompile(`\[log [0-9]+ [0-9a-f]+\]`)

func TestVerdictsAreThoseOfTheBinaryAlone(t *testing.T) {
	t.Parallel()
	bin := programs(t)
	socket := daemon(t, bin)
	hook := filepath.Join(bin, "tripline-hook")
	files, err := filepath.Glob(filepath.Join(captures, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no captures: %v", err)
	}
	payloads := map[string][]byte{
		"PreToolUse.rm": []byte(`{"session_id":"s","cwd":"/home/dev/shop","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"rm -rf /"},"tool_use_id":"t"}`),
		"PreToolUse.ask": []byte(`{"session_id":"s","cwd":"/home/dev/shop","hook_event_name":"PreToolUse","tool_name":"Bash",` +
			`"tool_input":{"command":"git push --force origin main"},"tool_use_id":"u"}`),
		"PreToolUse.broken":   []byte(`{"session_id":`),
		"ConfigChange.broken": nil,
		"Stop.broken":         []byte("x"),
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		payloads[filepath.Base(f)] = b
	}
	seen := map[event.Decision]int{}
	for name, payload := range payloads {
		ev, _, _ := strings.Cut(name, ".")
		args := []string{"-s", socket, "claude", ev}
		alone := run(t, payload, nil, hook, args...)
		wired := run(t, payload, nil, "/usr/bin/env", append([]string{"-i", "/bin/sh", script, hook}, args...)...)
		if alone.Exit != wired.Exit || text(alone.Stdout) != text(wired.Stdout) || text(alone.Stderr) != text(wired.Stderr) {
			t.Errorf("%s: the binary says %d %q %q, the script %d %q %q", name, alone.Exit, alone.Stdout, alone.Stderr, wired.Exit, wired.Stdout, wired.Stderr)
		}
		seen[reads(ev, wired)]++
	}
	if seen[event.Deny] == 0 || seen[event.Ask] == 0 || seen[event.Pass] == 0 {
		t.Errorf("verdicts seen: %v; each should be among them", seen)
	}
}

func text(b []byte) string { return anchor.ReplaceAllString(string(b), "[log N]") }

// The environment is the agent's, and a project's settings can add to it.
func TestTheEnvironmentDecidesNothing(t *testing.T) {
	t.Parallel()
	bin := programs(t)
	socket := daemon(t, bin)
	hook := filepath.Join(bin, "tripline-hook")
	evil := filepath.Join(t.TempDir(), "evil.sh")
	if err := os.WriteFile(evil, []byte("exit 0\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	payload := []byte(`{"session_id":"s","cwd":"/","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"rm -rf /"},"tool_use_id":"t"}`)
	args := []string{"-s", socket, "claude", "PreToolUse"}
	vars := []string{
		"PATH=" + filepath.Dir(evil), "ENV=" + evil, "BASH_ENV=" + evil, "SHELLOPTS=noexec", "BASHOPTS=extdebug", "IFS=/", "PS4=$(exit 0)", "HOME=/nowhere",
		"TRIPLINE_HOME=/nowhere", "TRIPLINE_SOCKET=/nowhere", "bin=" + evil, "event=Stop", "code=0", "GOMAXPROCS=99999999", "GOTRACEBACK=crash",
		"BASH_FUNC_printf%%=() { exit 0; }", "BASH_FUNC_[%%=() { exit 0; }", "BASH_FUNC_exec%%=() { exit 0; }", "BASH_FUNC_unset%%=() { exit 0; }",
	}
	for _, sh := range shells(t) {
		for _, b := range []string{hook, "/nowhere/tripline-hook"} {
			for _, v := range vars {
				r := run(t, payload, []string{v}, "/usr/bin/env", append([]string{"-i", sh, script, b}, args...)...)
				if r.Exit != 2 || !bytes.Contains(r.Stdout, []byte(`"deny"`)) {
					t.Errorf("%s, %s, %s: exit %d %q %q", sh, b, v, r.Exit, r.Stdout, r.Stderr)
				}
			}
		}
	}
}

// shells are the sh of this system, and bash as some others have it for sh.
func shells(t *testing.T) []string {
	t.Helper()
	all := []string{"/bin/sh"}
	if bash, err := exec.LookPath("bash"); err == nil {
		sh := filepath.Join(t.TempDir(), "sh")
		if err := os.Symlink(bash, sh); err != nil {
			t.Fatal(err)
		}
		all = append(all, sh)
	}
	return all
}

// start is how a file begins.
func start(t *testing.T, path string, n int) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}

// programs builds the hook and the daemon.
func programs(t *testing.T) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: there is no sh on this system")
	}
	bin := t.TempDir()
	if out, err := exec.Command("../../../contrib/dev/build.sh", bin, "tripline-hook", "triplined").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return bin
}

// daemon runs until the test ends; it returns the socket of hooks.
func daemon(t *testing.T, bin string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tl") // short, as a socket's path has to be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	cmd := exec.Command(filepath.Join(bin, "triplined"), "--metrics-listen", "off")
	cmd.Env = []string{"TRIPLINE_HOME=" + dir, "HOME=" + dir}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	socket := filepath.Join(dir, "run", "hook.sock")
	deadline := time.Now().Add(20 * time.Second)
	for {
		if _, err := os.Stat(socket); err == nil {
			return socket
		}
		if time.Now().After(deadline) {
			t.Fatal("the daemon does not come up")
		}
		select {
		case <-t.Context().Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// run gives a program this environment and this on stdin.
func run(t *testing.T, stdin []byte, env []string, name string, args ...string) event.Reply {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = append([]string{}, env...), bytes.NewReader(stdin), &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return event.Reply{Exit: cmd.ProcessState.ExitCode(), Stdout: out.Bytes(), Stderr: errs.Bytes()}
}
