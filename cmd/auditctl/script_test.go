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
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs every behaviour that a person sees, daemon included, with the three real programs in fresh homes.
func TestScripts(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: there are no Unix sockets with peer credentials on this system")
	}
	bin := build(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			// short paths: a socket's path has about a hundred bytes
			home, err := os.MkdirTemp("", "tl")
			if err != nil {
				return err
			}
			env.Defer(func() { _ = os.RemoveAll(home) })
			project := filepath.Join(home, "shop")
			if err := os.MkdirAll(filepath.Join(project, "src"), 0o755); err != nil {
				return err
			}
			env.Setenv("HOME", home)
			env.Setenv("PROJECT", project)
			env.Setenv("SOCKET", filepath.Join(home, ".local/state/tripline/run/hook.sock"))
			env.Setenv("BIN", bin)
			env.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			env.Setenv("TZ", "UTC")
			env.Setenv("TRIPLINE_METRICS_LISTEN", "off")
			env.Defer(func() { endDaemons(home, bin) })
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"waitfor": waitFor,
			"call":    call,
			"exits":   exits,
			"approve": approve,
			"same":    same,

			"registered": registered,
		},
	})
}

// build compiles the programs once for all scripts.
func build(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	if out, err := exec.Command("../../contrib/dev/build.sh", bin).CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return bin
}

// waitFor polls a command until it succeeds: waitfor COMMAND ARG... With a first word "out:TEXT" its output must hold TEXT.
func waitFor(ts *testscript.TestScript, neg bool, args []string) {
	want := ""
	if len(args) > 0 {
		if w, ok := strings.CutPrefix(args[0], "out:"); ok {
			want, args = w, args[1:]
		}
	}
	if neg || len(args) == 0 {
		ts.Fatalf("usage: waitfor [out:TEXT] COMMAND ARG...")
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		out, err := command(ts, nil, args...)
		if err == nil && strings.Contains(out, want) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%v did not succeed: %v\n%s", args, err, out)
		}
		time.Sleep(20 * time.Millisecond) // a poll, bounded by the deadline above
	}
}

// call sends a PreToolUse event of the Bash tool through the real hook: call WANT COMMAND, where WANT is pass, allow, ask, deny
// or eventually-deny. What the hook printed is in the file "reply".
func call(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: call pass|allow|ask|deny|eventually-deny COMMAND")
	}
	want, patient := strings.CutPrefix(args[0], "eventually-")
	deadline := time.Now().Add(20 * time.Second)
	for {
		got, out := send(ts, args[1])
		if got == want {
			ts.Check(os.WriteFile(ts.MkAbs("reply"), []byte(out), 0o600))
			return
		}
		if !patient || time.Now().After(deadline) {
			ts.Fatalf("%q: got %s, want %s\n%s", args[1], got, want, out)
		}
		time.Sleep(20 * time.Millisecond) // a poll, bounded by the deadline above
	}
}

// send is one call through the hook; it returns what the agent would understand, and what was printed.
func send(ts *testscript.TestScript, text string) (got, out string) {
	payload := fmt.Sprintf(`{"session_id":"11111111-aaaa-bbbb-cccc-222222222222","transcript_path":"","cwd":%q,"hook_event_name":"PreToolUse",`+
		`"tool_name":"Bash","tool_input":{"command":%q},"tool_use_id":"toolu_script"}`, ts.Getenv("PROJECT"), text)
	out, err := command(ts, []byte(payload), "tripline-hook", "-s", ts.Getenv("SOCKET"), "claude", "PreToolUse")
	switch {
	case strings.Contains(out, `"permissionDecision":"deny"`) && err != nil:
		return "deny", out
	case strings.Contains(out, `"permissionDecision":"ask"`) && err == nil:
		return "ask", out
	case strings.Contains(out, `"permissionDecision":"allow"`) && err == nil:
		return "allow", out
	case err == nil && out == "":
		return "pass", out
	}
	return fmt.Sprintf("%v", err), out
}

// exits runs a command that must end with a certain code: exits CODE COMMAND ARG... Its output can be matched afterwards.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	got := 0
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("%v: exit code %d, want %d", args[1:], got, want)
	}
}

// approve reads a list of cards in JSON and approves the only one: approve FILE.
func approve(ts *testscript.TestScript, neg bool, args []string) {
	var cards []struct{ ID string }
	if neg || len(args) != 1 {
		ts.Fatalf("usage: approve FILE")
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &cards))
	if len(cards) != 1 {
		ts.Fatalf("%d cards", len(cards))
	}
	out, err := command(ts, nil, "auditctl", "approvals", "approve", cards[0].ID)
	if err != nil {
		ts.Fatalf("%v: %s", err, out)
	}
}

// same compares two files byte for byte.
func same(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: same FILE FILE")
	}
	a, b := ts.ReadFile(args[0]), ts.ReadFile(args[1])
	if (a == b) == neg {
		ts.Fatalf("%s and %s: same is %v\n%s----\n%s", args[0], args[1], a == b, a, b)
	}
}

func command(ts *testscript.TestScript, stdin []byte, args ...string) (string, error) {
	path := args[0]
	if !filepath.IsAbs(path) {
		path = filepath.Join(ts.Getenv("BIN"), path)
	}
	cmd := exec.Command(path, args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Stdin = bytes.NewReader(stdin)
	for _, name := range []string{"HOME", "PATH", "TZ", "TRIPLINE_HOME", "TRIPLINE_METRICS_LISTEN"} {
		if v := ts.Getenv(name); v != "" {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}
