// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/hooks/agents/claude"
	"github.com/tripline-sh/tripline/hooks/install"
)

// CanarySession is how the sessions begin under which canaries are sent.
const CanarySession = "tripline-canary-"

// WantedEvents is how many events an install registers.
func WantedEvents() int { return len(claude.Events()) }

// Registered counts the wanted events for which the settings hold an entry of ours.
func (f *Facts) Registered() int { return WantedEvents() - len(f.unregistered()) }

func (f *Facts) unregistered() []string {
	var out []string
	for _, r := range claude.Events() {
		if !slices.ContainsFunc(f.User.Settings.Handlers, func(h install.Handler) bool { return h.Ours && h.Event == r.Event }) {
			out = append(out, r.Event)
		}
	}
	return out
}

// BlindSpots says in words what no hook of Claude Code shows us on this machine.
func (f *Facts) BlindSpots() []string {
	out := []string{
		"commands that the user types behind ! in the client: they fire no hook",
		"sessions with --bare, --safe-mode, --restricted, --setting-sources without user, CLAUDE_CODE_SIMPLE or CLAUDE_CODE_SAFE_MODE",
		"projects whose settings switch hooks off (disableAllHooks), and what their own hooks, MCP servers and helpers run",
		"anything before the trust dialog of a new folder is answered: hooks run only after it",
		"what a command does once it runs: a verdict is about the call, not about the program that it starts",
		"events that are not registered on purpose: WorktreeCreate and WorktreeRemove (a hook there breaks them), MessageDisplay, FileChanged, Elicitation",
	}
	if v, ok := f.Agent.Version(); ok && v.Compare(claude.FirstOnFailure) < 0 {
		out = append(out, fmt.Sprintf("calls whose hook cannot run or is too slow: claude %v lets them run (fixed in %v)", v, claude.FirstOnFailure))
	}
	if missing := f.unregistered(); f.User.Wired() && len(missing) > 0 {
		out = append(out, "events that the settings lack: "+strings.Join(missing, ", "))
	}
	return out
}
