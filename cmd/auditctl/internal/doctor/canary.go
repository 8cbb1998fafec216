// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/daemon/control"
	"github.com/tripline-sh/tripline/hooks/install"
)

// Canary is what sending two test calls through the hook showed.
type Canary struct {
	Ran      bool    `json:"ran"`
	Why      string  `json:"why,omitempty"` // why it did not run
	Wired    bool    `json:"wired"`         // through the entry of the agent's settings; else the hook was called as install would
	DenyMS   float64 `json:"deny_ms"`
	PassMS   float64 `json:"pass_ms"`
	Recorded int     `json:"recorded"` // of the two calls
}

// canaryCalls are the two calls. The first is on the floor, which holds in every mode; the second reads.
var canaryCalls = [...]struct {
	command string
	deny    bool
}{{"rm -rf /", true}, {"ls", false}}

// canaryTime bounds one call, the start of the hook included.
const canaryTime = 10 * time.Second

// RunCanary sends two calls through the hook as the agent would: with the arguments of its entry, but a clean environment. It
// runs nothing unless the daemon is up, the hook beside this program is ours alone, and the agent's settings hold byte for
// byte what install would write now, or nothing of ours. Nothing that is run was read from a settings file.
func RunCanary(ctx context.Context, f *Facts) (Canary, Result) {
	r := Result{ID: "canary", Title: "a test call is denied, another passes, and both are on record"}
	c, findings := runCanary(ctx, f)
	switch {
	case len(findings) > 0:
	case !c.Ran:
		findings = []Finding{{ID: "canary.skipped", Severity: Note, Text: "no test call was sent: " + c.Why}}
	default:
		findings = []Finding{{ID: "canary.ok", Severity: OK, Text: fmt.Sprintf("denied in %.1f ms, passed in %.1f ms, both recorded", c.DenyMS, c.PassMS)}}
	}
	r.Findings = findings
	return c, r
}

// canaryEntry is the hook entry that may be run; why says why none may.
func (f *Facts) canaryEntry() (e install.Entry, wired bool, why string) {
	u := &f.User
	hook := Program{Err: errors.New("not looked at")}
	if len(f.Programs) > 0 {
		hook = f.Programs[0]
	}
	switch {
	case f.Status == nil:
		return e, false, "the daemon does not answer"
	case hook.Err != nil || !hook.Ours || hook.Perm&0o111 == 0:
		return e, false, "the hook beside this program is not ours"
	case hook.Loose != "":
		return e, false, "others may change the hook beside this program"
	case revisions(f.Programs) > 1:
		return e, false, "the three programs were built from different sources"
	case u.Err != nil:
		return e, false, "the agent's settings cannot be read"
	case u.PlanErr != nil:
		return e, false, "install would not touch the agent's settings"
	case !u.Current && len(u.Installed) > 0:
		return e, false, "the entries in the agent's settings are not those that install writes"
	case f.ours(&u.Settings) != len(u.Installed):
		return e, false, "a handler in the agent's settings that install did not write names our hook"
	case f.Token == "" && len(u.Installed) > 0:
		return e, false, "the install token is not there"
	}
	for _, want := range u.Wanted {
		if want.Event == "PreToolUse" && want.Command == hook.Path && filepath.IsAbs(want.Command) {
			return want, len(u.Installed) > 0, ""
		}
	}
	return e, false, "install would register another hook"
}

// ours counts the handlers that name our hook, whoever wrote them.
func (f *Facts) ours(s *Settings) (n int) {
	for _, h := range s.Handlers {
		if h.Mentions("tripline-hook", f.Hook.Binary) {
			n++
		}
	}
	return n
}

func runCanary(ctx context.Context, f *Facts) (c Canary, findings []Finding) {
	entry, wired, why := f.canaryEntry()
	if why != "" {
		return Canary{Why: why}, nil
	}
	c.Wired = wired
	if f.Token == "" { // there is no token file, and the one that Plan made up would be a false alarm
		entry.Token = ""
	}
	issued, err := f.Client.Canary(ctx, control.CanaryRequest{Proof: control.Proof{Level: "L0"}})
	if err != nil {
		return Canary{Why: "the daemon issues no canary: " + err.Error()}, nil
	}
	c.Ran = true
	for i, call := range canaryCalls {
		id := fmt.Sprintf("%s-%d", issued.Session, i)
		payload, _ := json.Marshal(map[string]any{ // texts only: cannot fail
			"session_id": issued.Session, "transcript_path": "", "cwd": "/", "hook_event_name": entry.Event,
			"tool_name": "Bash", "tool_input": map[string]string{"command": call.command}, "tool_use_id": id,
		})
		out := runHook(ctx, entry.Command, canaryArgs(entry), payload)
		if call.deny {
			c.DenyMS = out.ms()
		} else {
			c.PassMS = out.ms()
		}
		if p, bad := judgeReply(f, call.command, call.deny, out); bad {
			return c, []Finding{p}
		}
	}
	// what the hook runs must be what was looked at
	if now := readProgram("tripline-hook", entry.Command, f.UID); now.SHA256 != f.Programs[0].SHA256 {
		return c, []Finding{{ID: "canary.swapped", Severity: Problem, Command: "make up", Evidence: entry.Command, Text: "the hook was replaced while this looked at it"}}
	}
	return c, f.recorded(ctx, issued.Session, &c)
}

// canaryArgs are the entry's arguments without a token, if there is none, and without the command that would start a daemon:
// one runs.
func canaryArgs(e install.Entry) []string {
	args := e.Args()
	for i, a := range args {
		if a == "--" {
			args = args[:i:i]
			break
		}
	}
	if e.Token != "" {
		return args
	}
	for i := 0; i+1 < len(args); i++ {
		if args[i] == "-n" {
			return append(args[:i:i], args[i+2:]...)
		}
	}
	return args
}

// judgeReply says what is wrong with an answer.
func judgeReply(f *Facts, command string, deny bool, out hookRun) (Finding, bool) {
	p := Finding{Severity: Problem, Command: f.Self + " restart",
		Evidence: fmt.Sprintf("exit code %d, stdout %q, stderr %q", out.code, clipText(out.stdout), clipText(out.stderr))}
	switch {
	case out.err != nil:
		p.ID, p.Text, p.Evidence = "canary.failed", "the hook could not be run: "+out.err.Error(), ""
		return p, true
	case deny && (out.code != 2 || decisionOf(out.stdout) != "deny"):
		p.ID, p.Text = "canary.not_denied", fmt.Sprintf("the test call %q was NOT denied", command)
		return p, true
	case !deny && (out.code != 0 || len(bytes.TrimSpace(out.stdout)) > 0 && decisionOf(out.stdout) != "allow"):
		p.ID, p.Text, p.Command = "canary.not_passed", fmt.Sprintf("the test call %q did not pass", command), f.Self+" explain -- "+command
		if reason := answerOf(out.stdout).Output.Reason; reason != "" {
			p.Text += ": " + clipText([]byte(reason))
		}
		return p, true
	}
	return Finding{}, false
}

// answer is what a hook says of a call.
type answer struct {
	Output struct {
		Event    string `json:"hookEventName"`
		Decision string `json:"permissionDecision"`
		Reason   string `json:"permissionDecisionReason"`
	} `json:"hookSpecificOutput"`
}

// answerOf reads a hook's answer; what is none is empty.
func answerOf(stdout []byte) answer {
	var reply answer
	if json.Unmarshal(stdout, &reply) != nil || reply.Output.Event != "PreToolUse" {
		return answer{}
	}
	return reply
}

// decisionOf is the permission decision in a hook's answer, "" if there is none.
func decisionOf(stdout []byte) string { return answerOf(stdout).Output.Decision }

// recorded looks for both calls in the log.
func (f *Facts) recorded(ctx context.Context, session string, c *Canary) []Finding {
	source := ""
	err := f.Client.Calls(ctx, record.Filter{Session: session}, func(call record.Call) error {
		if call.Session == session && call.Source == "canary" {
			c.Recorded++
		} else {
			source = call.Source
		}
		return nil
	})
	switch {
	case err != nil:
		return []Finding{{ID: "canary.unread", Severity: Problem, Text: "the log cannot be asked about the test calls: " + err.Error(), Command: f.Self + " verify"}}
	case c.Recorded != len(canaryCalls):
		return []Finding{{ID: "canary.unrecorded", Severity: Problem, Command: f.Self + " query --session " + session, Evidence: strings.TrimSpace("source " + source),
			Text: fmt.Sprintf("%d of %d test calls are on record as such", c.Recorded, len(canaryCalls))}}
	}
	return nil
}

func clipText(b []byte) string { return string(b[:min(len(b), 400)]) }
