// SPDX-License-Identifier: Apache-2.0

// Package doctor finds what keeps an install from doing its work, and says what mends it. Gather looks at the machine once and
// changes nothing; a check is a function of the facts that it found. Nothing is run but the hook, by the canary, and only
// where the settings file holds byte for byte what an install would write.
package doctor

import (
	"context"
	"strings"

	"github.com/tripline-sh/tripline/cmd/auditctl/internal/words"
)

// Severity says how much a finding matters.
type Severity string

// The severities. Only a problem makes a command fail.
const (
	OK      Severity = "ok"
	Note    Severity = "note"    // worth knowing; nothing is wrong
	Warning Severity = "warning" // it works, with less than it could
	Problem Severity = "problem" // a person has to do something
)

// Rank orders severities, the worst first.
func (s Severity) Rank() int { return strings.Index("problem warning note ok", string(s)) }

// Finding is one thing that a check has to say. Its texts can hold what other programs wrote: show them through package show.
type Finding struct {
	ID       string   `json:"id"` // stable, CHECK.WHAT
	Severity Severity `json:"severity"`
	Text     string   `json:"text"`
	Command  string   `json:"command,omitempty"`  // mends it when pasted into a shell; "" if no command can
	Evidence string   `json:"evidence,omitempty"` // what was seen
}

// Check looks at one side of an install.
type Check struct {
	ID    string
	Title string // what holds if nothing is found
	Quick bool   // part of the status screen
	Run   func(ctx context.Context, f *Facts) []Finding
}

// Result is a check and what it found. No finding above OK means that it passed.
type Result struct {
	ID       string    `json:"id"`
	Title    string    `json:"title"`
	Findings []Finding `json:"findings"`
}

// Passed reports whether the check found nothing to say.
func (r Result) Passed() bool {
	for _, f := range r.Findings {
		if f.Severity != OK {
			return false
		}
	}
	return true
}

// Checks returns all checks in the order in which they are shown. The canary is not among them: see Canary.
func Checks() []Check {
	return []Check{
		{"dirs", "configuration, log and sockets can be written", true, checkDirs},
		{"daemon", "the daemon answers", true, checkDaemon},
		{"config", "the configuration loads", true, checkConfig},
		{"rules", "the rules in force are those on disk", true, checkRules},
		{"approvals", "no approval waits", true, checkApprovals},
		{"log", "the log is healthy and has room", true, checkLog},
		{"alarms", "no alarm stands", true, checkAlarms},
		{"metrics", "the metrics are where the configuration says", true, checkMetrics},
		{"wiring", "the agent's settings hold exactly what install writes", true, checkWiring},
		{"switches", "nothing switches the hooks off", true, checkSwitches},
		{"foreign", "nobody else's entry runs our hook", true, checkForeign},
		{"agent", "the agent is a release that obeys hooks", false, checkAgent},
		{"programs", "the three programs are ours and belong together", false, checkPrograms},
		{"entry", "the hook clears the environment before it starts", false, checkEntry},
		{"path", "PATH finds this program", false, checkPath},
		{"files", "files and directories are ours alone", false, checkFiles},
		{"sockets", "the sockets' paths fit", true, checkSockets},
		{"disk", "the file system suits the log", false, checkDisk},
		{"clock", "the clock runs forward", false, checkClock},
		{"spool", "no event waits in the spool", false, checkSpool},
		{"service", "the service manager starts this install's daemon", false, checkService},
		{"shell", "this is a person's shell", false, checkShell},
	}
}

// Run runs checks on facts.
func Run(ctx context.Context, checks []Check, f *Facts) []Result {
	out := make([]Result, len(checks))
	for i, c := range checks {
		out[i] = Result{ID: c.ID, Title: c.Title, Findings: c.Run(ctx, f)}
	}
	return out
}

// Findings returns what results hold above OK, the worst first, else in their order.
func Findings(results []Result) []Finding {
	out := []Finding{}
	for _, severity := range []Severity{Problem, Warning, Note} {
		for _, r := range results {
			for _, f := range r.Findings {
				if f.Severity == severity {
					out = append(out, f)
				}
			}
		}
	}
	return out
}

// edit is the command that opens a file for a person.
func edit(path string) string { return "${EDITOR:-vi} " + words.Shell(path) }
