// SPDX-License-Identifier: Apache-2.0

package client

import (
	"slices"
	"testing"

	"github.com/tripline-sh/tripline/hooks/agents/claude"
	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/hooks/spool"
)

// The hook cannot link an adapter, so it repeats the little that it needs of one. Here the two are held together.
func TestCannedDeniesAreWhatTheAdapterWouldWrite(t *testing.T) {
	t.Parallel()
	for _, name := range gates {
		for f := spool.Absent; f <= spool.Output; f++ {
			for _, start := range commands {
				c, _ := classify("claude", name)
				stdout, stderr := canned(c, name, f, start)
				want := claude.Adapter{}.Encode(name, event.Verdict{Decision: event.Deny, Rule: f.Rule(), Reason: reason(f, start)})
				if stdout != string(want.Stdout) || stderr != string(want.Stderr) || want.Exit != exitDeny {
					t.Errorf("%s, fault %d: canned\n%s%s, the adapter writes (exit %d)\n%s%s", name, f, stdout, stderr, want.Exit, want.Stdout, want.Stderr)
				}
			}
		}
	}
}

func TestEventsAreClassedAsTheAdapterKnowsThem(t *testing.T) {
	t.Parallel()
	known := []string{
		"PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch", "Notification", "UserPromptSubmit",
		"UserPromptExpansion", "SessionStart", "SessionEnd", "Stop", "StopFailure", "SubagentStart", "SubagentStop", "PreCompact",
		"PostCompact", "PreModelSwitch", "PostModelSwitch", "PermissionRequest", "PermissionDenied", "Setup", "TeammateIdle",
		"TaskCreated", "TaskCompleted", "Elicitation", "ElicitationResult", "ConfigChange", "WorktreeCreate", "WorktreeRemove",
		"InstructionsLoaded", "CwdChanged", "FileChanged", "DirectoryAdded", "MessageDisplay", "PreSkillShellCommand",
	}
	for _, r := range claude.Events() {
		if !slices.Contains(known, r.Event) {
			t.Errorf("%s is registered, but not known here", r.Event)
		}
		if c, _ := classify("claude", r.Event); c.patience() != r.Deadline {
			t.Errorf("%s waits for %v by itself, and for %v as installed", r.Event, c.patience(), r.Deadline)
		}
	}
	for _, name := range append(known, "AnEventOfNextYear", "pretooluse", "") {
		c, ok := classify("claude", name)
		kind, wantOK := claude.Adapter{}.Kind(name)
		if ok != wantOK || c.gates() != kind.Gates() || (c == permission) != (kind == event.KindPermissionRequest) {
			t.Errorf("%q: the hook has class %d (known: %v), the adapter kind %s (known: %v)", name, c, ok, kind, wantOK)
		}
		if harmless(name) != (wantOK && !kind.Gates()) {
			t.Errorf("%q: harmless is %v", name, harmless(name))
		}
	}
}
