// SPDX-License-Identifier: Apache-2.0

// Package claude speaks the hook protocol of Claude Code and knows its settings files. What it says about the client was
// observed on version 2.1.332; the payloads in testdata/captures are real ones with their ids changed.
package claude

import (
	"time"

	"github.com/tripline-sh/tripline/hooks/agents"
	"github.com/tripline-sh/tripline/hooks/event"
)

// Name is the agent argument of tripline-hook for Claude Code.
const Name = "claude"

// Adapter implements agents.Adapter. The zero value is ready to use.
type Adapter struct{}

var _ agents.Adapter = Adapter{}

// Name returns "claude".
func (Adapter) Name() string { return Name }

// Kind returns what the client's event name means. Names that the client is known to send but that mean nothing to
// Tripline are event.KindOther.
func (Adapter) Kind(name string) (event.Kind, bool) {
	switch name {
	case "PreToolUse":
		return event.KindPreTool, true
	case "PreSkillShellCommand":
		return event.KindSkillShell, true
	case "ConfigChange":
		return event.KindConfigChange, true
	case "PermissionRequest":
		return event.KindPermissionRequest, true
	case "PostToolUse":
		return event.KindPostTool, true
	case "PostToolUseFailure":
		return event.KindPostToolFailure, true
	case "PostToolBatch":
		return event.KindToolBatch, true
	case "PermissionDenied":
		return event.KindPermissionDenied, true
	case "SessionStart":
		return event.KindSessionStart, true
	case "SessionEnd":
		return event.KindSessionEnd, true
	case "UserPromptSubmit", "UserPromptExpansion":
		return event.KindPrompt, true
	case "SubagentStart":
		return event.KindSubagentStart, true
	case "SubagentStop":
		return event.KindSubagentStop, true
	case "Stop", "StopFailure":
		return event.KindStop, true
	case "CwdChanged":
		return event.KindCwdChanged, true
	case "InstructionsLoaded", "PreCompact", "PostCompact", "Notification", // registered
		"DirectoryAdded", "Elicitation", "ElicitationResult", "FileChanged", "MessageDisplay", "PostModelSwitch", // not
		"PreModelSwitch", "Setup", "TaskCompleted", "TaskCreated", "TeammateIdle", "WorktreeCreate", "WorktreeRemove":
		return event.KindOther, true
	}
	return event.KindOther, false
}

// Events returns the events that an install registers, gate events first. WorktreeCreate and WorktreeRemove must never be
// among them: the client takes a hook there as the one that makes the work tree.
func Events() []agents.Registration {
	names := []string{
		"PreToolUse", "PreSkillShellCommand", "ConfigChange", "PermissionRequest",
		"PostToolUse", "PostToolUseFailure", "PostToolBatch", "PermissionDenied", "SessionStart", "SessionEnd",
		"UserPromptSubmit", "UserPromptExpansion", "InstructionsLoaded", "CwdChanged", "SubagentStart", "SubagentStop", "Stop",
		"StopFailure", "PreCompact", "PostCompact", "Notification",
	}
	all := make([]agents.Registration, len(names))
	for i, name := range names {
		kind, _ := Adapter{}.Kind(name)
		r := agents.Registration{Event: name, Kind: kind, Timeout: 10 * time.Second, Deadline: 5 * time.Second}
		switch kind {
		case event.KindPreTool, event.KindSkillShell: // a person may be asked
			r.Timeout, r.Deadline = 150*time.Second, 140*time.Second
		case event.KindConfigChange:
			r.Timeout, r.Deadline = 30*time.Second, 20*time.Second
		}
		all[i] = r
	}
	return all
}
