// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"strings"
	"unicode/utf8"

	"github.com/tripline-sh/tripline/hooks/agents/internal/rawjson"
	"github.com/tripline-sh/tripline/hooks/event"
)

const (
	// maxReason is the last resort against a reason that nobody bounded, in bytes. The client hands on what it gets.
	maxReason = 2000
	// exitBlock makes the client block even if it cannot read our standard output.
	exitBlock = 2
)

// Encode renders a verdict. Only the events that gate are ever answered: a block on another one would end turns, eat prompts
// or loop, and on PermissionRequest silence leaves the client's own prompt standing. A deny also exits with 2, so that it
// holds when the JSON is lost; with both, the model sees only the reason.
func (a Adapter) Encode(name string, v event.Verdict) event.Reply {
	kind, _ := a.Kind(name)
	decision := v.Decision
	switch kind {
	case event.KindPreTool:
	case event.KindSkillShell: // the client stops the command on ask as on deny, but only a deny says so
		if decision == event.Ask {
			decision = event.Deny
		}
	case event.KindConfigChange: // knows block and nothing else
		switch decision {
		case event.Pass, event.Allow:
			return event.Reply{}
		}
		out := append([]byte(`{"decision":"block","reason":`), quoted(v.Reason)...)
		return deny(append(out, '}'), v.Rule)
	default:
		return event.Reply{}
	}
	switch decision {
	case event.Pass:
		return event.Reply{}
	case event.Allow, event.Ask:
		return event.Reply{Stdout: specific(name, string(decision), v.Reason)}
	}
	return deny(specific(name, "deny", v.Reason), v.Rule)
}

func specific(name, decision, reason string) []byte {
	out := append([]byte(`{"hookSpecificOutput":{"hookEventName":"`), name...)
	out = append(append(out, `","permissionDecision":"`...), decision...)
	out = append(append(out, `","permissionDecisionReason":`...), quoted(reason)...)
	return append(out, "}}"...)
}

func deny(stdout []byte, rule string) event.Reply {
	return event.Reply{Exit: exitBlock, Stdout: stdout, Stderr: []byte("tripline: denied (" + ruleID(rule) + ")\n")}
}

// quoted returns a reason as a JSON string, cut at a rune's border.
func quoted(reason string) []byte {
	if len(reason) > maxReason {
		n := maxReason
		for n > maxReason-utf8.UTFMax && !utf8.RuneStart(reason[n]) {
			n--
		}
		reason = reason[:n]
	}
	if reason == "" {
		reason = "decided by Tripline"
	}
	return rawjson.AppendQuoted(nil, reason)
}

// ruleID keeps the one line of a deny one short line, whatever a rule is called.
func ruleID(rule string) string {
	if rule == "" {
		return "no rule"
	}
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '?'
		}
		return r
	}, rule[:min(len(rule), 128)])
}
