// SPDX-License-Identifier: Apache-2.0

package client

import (
	"time"

	"github.com/tripline-sh/tripline/hooks/spool"
)

// class is what an event does when we fail: the only knowledge about agents that the hook has.
type class uint8

const (
	observe    class = iota // say nothing; so too every event that is not known
	permission              // say nothing: the agent asks its person, as without us
	gateTool                // deny a tool call
	gateConfig              // deny a change of settings
)

func (c class) gates() bool { return c == gateTool || c == gateConfig }

// patience is the default of -t: well below the time that install gives the agent's entry for such an event.
func (c class) patience() time.Duration {
	switch c {
	case gateTool:
		return 140 * time.Second
	case gateConfig:
		return 20 * time.Second
	}
	return 5 * time.Second
}

func knownAgent(agent string) bool { return agent == "claude" }

// classify returns the class of an agent's event, and whether the event is known at all.
func classify(agent, event string) (c class, known bool) {
	if agent == "claude" {
		return classifyClaude(event)
	}
	return observe, false
}

// harmless reports whether event, of whichever agent, is known and waits for no verdict. A broken command line with such an event
// at its end must not block anything.
func harmless(event string) bool {
	c, known := classifyClaude(event)
	return known && !c.gates()
}

func classifyClaude(event string) (c class, known bool) {
	switch event {
	case "PreToolUse", "PreSkillShellCommand":
		return gateTool, true
	case "ConfigChange":
		return gateConfig, true
	case "PermissionRequest":
		return permission, true
	case "PostToolUse", "PostToolUseFailure", "PostToolBatch", "Notification", "UserPromptSubmit", "UserPromptExpansion",
		"SessionStart", "SessionEnd", "Stop", "StopFailure", "SubagentStart", "SubagentStop", "PreCompact", "PostCompact",
		"PreModelSwitch", "PostModelSwitch", "PermissionDenied", "Setup", "TeammateIdle", "TaskCreated", "TaskCompleted",
		"Elicitation", "ElicitationResult", "WorktreeCreate", "WorktreeRemove", "InstructionsLoaded", "CwdChanged",
		"FileChanged", "DirectoryAdded", "MessageDisplay":
		return observe, true
	}
	return observe, false
}

// canned returns what the agent is told when a gate event fails for f: what the adapter writes for a deny, with one text a fault.
// Event is a known gate event and the texts are plain ASCII without quotes or backslashes, so that nothing needs escaping.
func canned(c class, event string, f spool.Fault, start string) (stdout, stderr string) {
	reason := reason(f, start)
	if c == gateConfig {
		stdout = `{"decision":"block","reason":"` + reason + `"}`
	} else {
		stdout = `{"hookSpecificOutput":{"hookEventName":"` + event +
			`","permissionDecision":"deny","permissionDecisionReason":"` + reason + `"}}`
	}
	return stdout, "tripline: denied (" + f.Rule() + ")\n"
}

// reason is the text of a canned deny. start is the command by which a person starts the daemon, "" if it is not known.
func reason(f spool.Fault, start string) string {
	const (
		head = "Tripline refused this without judging it: "
		tail = " This is a fault of the guard, not of what you asked for. Do not retry it and do not look for a way around: tell your user. "
		look = "The user should look at the daemon's messages (triplined); once the cause is gone, the same call can be made again."
	)
	var what, advice string
	switch f {
	case spool.Absent:
		what, advice = "the Tripline daemon is not running.", startAdvice(start)
	case spool.Unreachable:
		what, advice = "the socket of the Tripline daemon cannot be used.", startAdvice(start)
	case spool.Impostor:
		what, advice = "a process of another user answers on the socket of the Tripline daemon.",
			"The user should find out which process that is before anything else runs."
	case spool.Timeout:
		what, advice = "the Tripline daemon did not answer in time.", look
	case spool.Garbled:
		what, advice = "the answer of the Tripline daemon was broken off or malformed.", look
	case spool.Input:
		what, advice = "the hook could not read the whole event from the agent.",
			"The user can repeat the call once; if it fails again, the agent and Tripline need a look."
	case spool.Interrupted:
		what, advice = "the hook was ended by a signal before there was a verdict.",
			"The user decides whether the call should be made again."
	case spool.Output:
		what, advice = "the hook could not hand over the verdict.", "The user should look at how the agent runs its hooks."
	default:
		what, advice = "the hook itself failed.", "The user should report this; until it is fixed, calls stay refused."
	}
	return head + what + tail + advice + " [rule " + f.Rule() + "]"
}
