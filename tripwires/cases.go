// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"context"
	"fmt"

	"github.com/tripline-sh/tripline/tripwires/view"
)

// CaseFailure is one of a rule's own cases that came out differently.
type CaseFailure struct {
	Rule      string
	Case      string
	Want      string // "match" or "not match"
	File      string
	Line, Col int
}

func (f CaseFailure) String() string {
	return fmt.Sprintf("rule %s: %q should %s", f.Rule, shorten(f.Case, 200), f.Want)
}

// Where own cases are judged: a project of a user, on a machine where nothing else is.
const (
	caseHome = "/home/user"
	caseCwd  = "/home/user/project"
)

// Test runs the rules' own cases and returns those that fail. They are judged as text: no file exists.
func (s *Set) Test() []CaseFailure { return testCases(s.rules) }

// TestFiles runs the own cases of the rules in files, whatever else is wrong with them, and counts rules and cases. The error
// is a *RuleError about the first file that cannot be read as rules.
func TestFiles(files []File) (failures []CaseFailure, rules, cases int, err error) {
	for _, f := range files {
		list, _, perr := parseRules(f.Layer, f.Path, f.Data)
		if perr != nil {
			return failures, rules, cases, ruleError(f.Path, perr)
		}
		rules += len(list)
		for _, r := range list {
			cases += len(r.match) + len(r.noMatch)
		}
		failures = append(failures, testCases(list)...)
	}
	return failures, rules, cases, nil
}

func testCases(rules []*rule) []CaseFailure {
	var out []CaseFailure
	programs := programTable()
	for _, r := range rules {
		check := func(cases []ownCase, want bool, word string) {
			for _, c := range cases {
				if caseMatches(r, c, programs) != want {
					out = append(out, CaseFailure{Rule: r.id, Case: c.text, Want: word, File: r.file, Line: c.line, Col: c.col})
				}
			}
		}
		check(r.match, true, "match")
		check(r.noMatch, false, "not match")
	}
	return out
}

func caseMatches(r *rule, c ownCase, programs map[string]program) bool {
	one := *r
	one.scope = scope{}
	eng := &Engine{rules: &Set{rules: []*rule{&one}}, programs: programs, mode: ModeGuard, profile: ProfileStandard, unmapped: "pass"}
	call := Call{Agent: "claude", Tool: c.Tool, Input: c.Input, Cwd: caseCwd, FirstCwd: caseCwd, Homes: []string{caseHome}, MCPSource: "user"}
	d := eng.Evaluate(context.Background(), call, view.NewMemory().NewReader())
	for _, m := range d.Matches {
		if m.Rule == r.id {
			return true
		}
	}
	return false
}
