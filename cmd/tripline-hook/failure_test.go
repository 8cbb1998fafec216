// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tripline-sh/tripline/hooks/spool"
	"github.com/tripline-sh/tripline/hooks/wire"
)

const (
	gate    = "denies"
	observe = "stays silent"
)

// events is what each event of Claude Code does when the daemon cannot be asked.
var events = map[string]string{
	"PreToolUse": gate, "PreSkillShellCommand": gate, "ConfigChange": gate,

	"PermissionRequest": observe, "PostToolUse": observe, "PostToolUseFailure": observe, "PostToolBatch": observe,
	"Notification": observe, "UserPromptSubmit": observe, "UserPromptExpansion": observe, "SessionStart": observe,
	"SessionEnd": observe, "Stop": observe, "StopFailure": observe, "SubagentStart": observe, "SubagentStop": observe,
	"PreCompact": observe, "PostCompact": observe, "PreModelSwitch": observe, "PostModelSwitch": observe,
	"PermissionDenied": observe, "Setup": observe, "TeammateIdle": observe, "TaskCreated": observe,
	"TaskCompleted": observe, "Elicitation": observe, "ElicitationResult": observe, "WorktreeCreate": observe,
	"WorktreeRemove": observe, "InstructionsLoaded": observe, "CwdChanged": observe, "FileChanged": observe,
	"DirectoryAdded": observe, "MessageDisplay": observe,

	"AnEventOfNextYear": observe, "pretooluse": observe, "PreToolUse ": observe, "\x1b]0;x\a": observe,
}

func TestEveryEventWithoutADaemon(t *testing.T) {
	t.Parallel()
	for event, want := range events {
		t.Run(fmt.Sprintf("%q %s", event, want), func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "spool")
			const payload = `{"hook_event_name":"x"}` + "\n"
			got := run(t, payload, "-s", "/nonexistent/hook.sock", "-q", dir, "-n", "tok", "claude", event)
			answer := spool.Silent
			if want == gate {
				denied(t, got, event, "daemon.unreachable")
				answer = spool.Denied
			} else {
				silent(t, got)
			}
			e := spooled(t, dir)
			if string(e.Payload) != payload || e.Header.Event != event || e.Header.Agent != "claude" || e.Header.Token != "tok" ||
				e.Meta != (spool.Meta{Answer: answer, Fault: spool.Absent, Read: uint64(len(payload))}) {
				t.Errorf("spooled %+v", e)
			}
		})
	}
}

func TestCannedDeniesAreJSONThatTheAgentReads(t *testing.T) {
	t.Parallel()
	for _, event := range []string{"PreToolUse", "PreSkillShellCommand", "ConfigChange"} {
		got := run(t, "{}", "-s", "/nonexistent/hook.sock", "claude", event)
		var v struct {
			Decision           string `json:"decision"`
			Reason             string `json:"reason"`
			HookSpecificOutput struct {
				HookEventName            string `json:"hookEventName"`
				PermissionDecision       string `json:"permissionDecision"`
				PermissionDecisionReason string `json:"permissionDecisionReason"`
			} `json:"hookSpecificOutput"`
		}
		if err := json.Unmarshal([]byte(got.stdout), &v); err != nil {
			t.Fatalf("%s: %v", event, err)
		}
		reason := v.Reason + v.HookSpecificOutput.PermissionDecisionReason
		for _, part := range []string{"Only the user may start the daemon", "auditctl start", "not of what you asked for", "Do not retry"} {
			if !strings.Contains(reason, part) {
				t.Errorf("%s: the reason %q does not say %q", event, reason, part)
			}
		}
		if event == "ConfigChange" && v.Decision != "block" ||
			event != "ConfigChange" && (v.HookSpecificOutput.HookEventName != event || v.HookSpecificOutput.PermissionDecision != "deny") {
			t.Errorf("%s: got %+v", event, v)
		}
	}
}

// The agent that runs the hook by its path is told the path of the command beside it, which is tried here.
func TestADenyTellsTheCommandBesideTheHook(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	b, err := os.ReadFile(hookPath(t))
	if err != nil {
		t.Fatal(err)
	}
	hook := filepath.Join(dir, "tripline-hook")
	// a child that another test starts meanwhile must not hold the file open: it could not be run then
	syscall.ForkLock.RLock()
	err = os.WriteFile(hook, b, 0o700)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "auditctl"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	shell := func(line string) result {
		_, wait := startProgram(t, strings.NewReader("{}"), nil, "/bin/sh", "-c", line, hook, "-s", "/nonexistent/hook.sock", "claude", "PreToolUse")
		return wait()
	}
	want := "with the command " + dir + "/auditctl start in a terminal, or by typing ! " + dir + "/auditctl start at the prompt here"
	got := shell(`"$0" "$@"`)
	denied(t, got, "PreToolUse", "daemon.unreachable")
	if !strings.Contains(got.stdout, want) {
		t.Errorf("stdout %s does not say %q", got.stdout, want)
	}
	got = shell(`PATH=${0%/*} && tripline-hook "$@"`) // argv[0] is a bare name
	denied(t, got, "PreToolUse", "daemon.unreachable")
	if !strings.Contains(got.stdout, "with the command auditctl start in a terminal.") {
		t.Errorf("stdout %s", got.stdout)
	}
}

func TestBadCommandLines(t *testing.T) {
	t.Parallel()
	sock := serve(t, answer(frame(wire.KindFinal, 0, "", "")))
	for name, args := range map[string][]string{
		"nothing":                         nil,
		"no socket":                       {"claude", "PreToolUse"},
		"an empty socket":                 {"-s", "", "claude", "PreToolUse"},
		"a relative socket":               {"-s", "hook.sock", "claude", "PreToolUse"},
		"an abstract socket":              {"-s", "@hook", "claude", "PreToolUse"},
		"no event":                        {"-s", sock, "claude"},
		"an empty event":                  {"-s", sock, "claude", ""},
		"an unknown agent":                {"-s", sock, "cloud", "PreToolUse"},
		"an agent in capitals":            {"-s", sock, "Claude", "PreToolUse"},
		"an unknown option":               {"-s", sock, "-z", "1", "claude", "PreToolUse"},
		"a long option":                   {"--socket", sock, "claude", "PreToolUse"},
		"an option glued to its value":    {"-s" + sock, "claude", "PreToolUse"},
		"a lone dash":                     {"-s", sock, "-", "claude", "PreToolUse"},
		"a daemon by its name":            {"-s", sock, "claude", "PreToolUse", "--", "triplined"},
		"nothing behind the dashes":       {"-s", sock, "claude", "PreToolUse", "--"},
		"two dashes before the agent":     {"-s", sock, "--", "claude", "PreToolUse"},
		"an option without a value":       {"-s"},
		"an option twice":                 {"-s", sock, "-s", sock, "claude", "PreToolUse"},
		"a word too many":                 {"-s", sock, "claude", "PreToolUse", "PreToolUse"},
		"a uid that is no number":         {"-s", sock, "-u", "root", "claude", "PreToolUse"},
		"a negative uid":                  {"-s", sock, "-u", "-1", "claude", "PreToolUse"},
		"a uid beyond 32 bits":            {"-s", sock, "-u", "4294967296", "claude", "PreToolUse"},
		"a time of 0":                     {"-s", sock, "-t", "0", "claude", "PreToolUse"},
		"a time that is no number":        {"-s", sock, "-t", "5s", "claude", "PreToolUse"},
		"a time beyond a day":             {"-s", sock, "-t", "86400001", "claude", "PreToolUse"},
		"another policy than allow":       {"-s", sock, "-o", "deny", "claude", "PreToolUse"},
		"a relative spool":                {"-s", sock, "-q", "spool", "claude", "PreToolUse"},
		"a token that is too long":        {"-s", sock, "-n", strings.Repeat("t", 65), "claude", "PreToolUse"},
		"a shift to the code of a deny":   {"-x", "2", "-s", sock, "claude", "PreToolUse"},
		"a shift to codes of a shell":     {"-x", "124", "-s", sock, "claude", "PreToolUse"},
		"a shift that is no number":       {"-x", "+64", "-s", sock, "claude", "PreToolUse"},
		"an event that is too long":       {"-s", sock, "claude", strings.Repeat("e", 65)},
		"a gate event of an unknown one":  {"-s", sock, "cloud", "ConfigChange"},
		"an unknown event of an unknown":  {"-s", sock, "cloud", "AnEventOfNextYear"},
		"options after the agent's event": {"claude", "PreToolUse", "-s", sock},
	} {
		t.Run(name+" is refused with exit 2", func(t *testing.T) {
			t.Parallel()
			got := run(t, "{}", args...)
			if got.exit != 2 || got.stdout != "" || !strings.HasPrefix(got.stderr, "tripline-hook: ") || strings.Contains(got.stderr, sock) {
				t.Errorf("got exit %d, stdout %q, stderr %q", got.exit, got.stdout, got.stderr)
			}
		})
	}
	for name, args := range map[string][]string{
		"an unknown agent":        {"-s", sock, "cloud", "Stop"},
		"no socket":               {"claude", "UserPromptSubmit"},
		"an unknown option":       {"-z", "claude", "PermissionRequest"},
		"an event and no more":    {"PostToolBatch"},
		"a time that is no time":  {"-s", sock, "-t", "x", "claude", "SessionEnd"},
		"two agents before event": {"-s", sock, "claude", "claude", "Stop"},
	} {
		t.Run(name+" blocks nothing that does not gate", func(t *testing.T) {
			t.Parallel()
			silent(t, run(t, "{}", args...))
		})
	}
}

func TestSocketsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	live := serve(t, answer(frame(wire.KindFinal, 0, "", "")))
	plain := filepath.Join(shortDir(t), "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	deep := "/" + strings.Repeat("d", 107)
	other := strconv.Itoa(os.Geteuid() + 1)
	for name, tc := range map[string]struct {
		args    []string
		rule    string
		onAllow string // what -o allow makes of a gate event
	}{
		"a socket that is not there":                {[]string{"-s", filepath.Join(shortDir(t), "no.sock")}, "daemon.unreachable", observe},
		"a directory that is not there":             {[]string{"-s", "/nonexistent/x/hook.sock"}, "daemon.unreachable", observe},
		"a socket that nobody listens on":           {[]string{"-s", stale(t)}, "daemon.unreachable", observe},
		"a file that is not a socket":               {[]string{"-s", plain}, "daemon.unreachable", observe},
		"a directory instead of a socket":           {[]string{"-s", shortDir(t)}, "daemon.unreachable", observe},
		"a path through a file":                     {[]string{"-s", plain + "/hook.sock"}, "daemon.unreachable", gate},
		"a path longer than a socket may have":      {[]string{"-s", deep}, "daemon.unreachable", gate},
		"a socket of which another user was wanted": {[]string{"-s", live, "-u", other}, "daemon.impostor", gate},
	} {
		for _, event := range []string{"PreToolUse", "ConfigChange", "Stop"} {
			t.Run(name+", "+event, func(t *testing.T) {
				t.Parallel()
				strict := run(t, "{}", append(tc.args, "claude", event)...)
				dir := filepath.Join(t.TempDir(), "spool")
				lax := run(t, "{}", append(tc.args, "-o", "allow", "-q", dir, "claude", event)...)
				if event == "Stop" {
					silent(t, strict)
					silent(t, lax)
					return
				}
				denied(t, strict, event, tc.rule)
				want := spool.Passed
				if tc.onAllow == gate {
					denied(t, lax, event, tc.rule)
					want = spool.Denied
				} else {
					silent(t, lax)
				}
				if e := spooled(t, dir); e.Meta.Answer != want {
					t.Errorf("the spool says %v, want %v", e.Meta.Answer, want)
				}
			})
		}
	}
}

func TestTheRightUserMayAnswer(t *testing.T) {
	t.Parallel()
	sock := serve(t, answer(frame(wire.KindFinal, 0, "", "")))
	silent(t, run(t, "{}", "-s", sock, "-u", strconv.Itoa(os.Geteuid()), "claude", "PreToolUse"))
}
