// SPDX-License-Identifier: Apache-2.0

// Package preview answers "will it annoy me?" with a person's own past: it runs the tool calls of an agent's transcripts through
// the rules engine and reports what would have been stopped. It reads; it writes nothing, asks nobody and records nothing.
package preview

import (
	"encoding/json"
	"time"

	"github.com/tripline-sh/tripline/hooks/event"
)

// Report is the answer. Its JSON form is stable: keys may be added.
type Report struct {
	Summary Summary `json:"summary"`
	Rules   []Rule  `json:"rules"` // what stopped something; first what stopped most of the calls that ran then
	Calls   []Call  `json:"calls"` // what would have been stopped, oldest first
}

// Summary counts. Calls = AsBefore + Asked + Denied; calls that could not be judged are none of them.
type Summary struct {
	From     *time.Time `json:"from"` // null = from the beginning
	To       *time.Time `json:"to"`   // null = until now
	Calls    int        `json:"calls"`
	Sessions int        `json:"sessions"`
	Projects int        `json:"projects"`
	Days     int        `json:"days"`        // on which calls were made, by Options.Location
	Busiest  *Day       `json:"busiest_day"` // with most calls asked or denied, the first of equals; null = none was
	AsBefore int        `json:"as_before"`   // passed or allowed
	Asked    int        `json:"asked"`
	Denied   int        `json:"denied"`
	Floor    int        `json:"floor"`       // of those denied: by what no rule can soften
	Refused  int        `json:"refused"`     // of those asked or denied: calls that did not run then either
	Today    int        `json:"as_of_today"` // of those asked or denied: by files as they are now
	// PassedToday counts the calls that delete, empty or replace something and pass, with the files as they are now.
	PassedToday int     `json:"passed_as_of_today"`
	Stopped     float64 `json:"stopped_percent"` // asked and denied, of Calls
	TooLarge    int     `json:"too_large"`       // calls whose input was not read
	Repeated    int     `json:"repeated"`        // copies of calls, in forked sessions: not counted again
	LeftOut     int     `json:"left_out"`        // stopped calls that are counted and not listed
	Mode        string  `json:"mode"`
	Profile     string  `json:"profile"`
	RuleSet     string  `json:"rule_set"`
	Files       int     `json:"files"`
	Bytes       int64   `json:"bytes"`
	Unread      Unread  `json:"unread"`
	DurationMS  int64   `json:"duration_ms"`
}

// Day is what would have been stopped on one day.
type Day struct {
	Date   string `json:"date"` // 2006-01-02
	Asked  int    `json:"asked"`
	Denied int    `json:"denied"`
}

// Unread counts what could not be read.
type Unread struct {
	Broken     int64 `json:"broken_lines"`
	Oversized  int64 `json:"oversized_lines"`
	Unfinished int64 `json:"unfinished_lines"`
	Files      int64 `json:"files"` // not readable, or no regular files
	Links      int64 `json:"links"` // symbolic links are not followed
	Beyond     int64 `json:"beyond_bounds"`
}

// Rule is a rule that would have stopped calls.
type Rule struct {
	Rule   string `json:"rule"`
	Layer  string `json:"layer"`
	Why    string `json:"why"`
	Asked  int    `json:"asked"`
	Denied int    `json:"denied"`
	Floor  bool   `json:"floor"` // it cannot be softened
	Today  int    `json:"as_of_today"`
	// Refused counts the calls that did not run then either.
	Refused int `json:"refused"`
	// Projects are those of the calls, at most a few of them, with most calls first; AllProjects counts them all.
	Projects    []string `json:"projects"`
	AllProjects int      `json:"all_projects"`
	// Worst is the first of Projects that is still there, "" if none is.
	Worst string `json:"-"`
	// Relax is the command that softens the rule, "" if there is none.
	Relax string `json:"relax"`
}

// Call is a call that would have been asked about or denied.
type Call struct {
	Time      time.Time       `json:"time"`
	Session   string          `json:"session"`
	Subagent  string          `json:"subagent"`
	Project   string          `json:"project"`
	Cwd       string          `json:"cwd"`
	Tool      string          `json:"tool"`
	ToolUseID string          `json:"tool_use_id"`
	Input     json.RawMessage `json:"input"` // secrets taken out, shortened
	Verdict   event.Decision  `json:"verdict"`
	Rule      string          `json:"rule"`
	Floor     bool            `json:"floor"`
	Reason    string          `json:"reason"`
	Today     bool            `json:"as_of_today"` // the verdict depends on files, and was given with them as they are now
	Refused   string          `json:"refused"`     // the client's word for why the call did not run then, "" if it ran
	RefusedBy string          `json:"refused_by"`  // the client's word for what refused it then, "" if it does not tell
}
