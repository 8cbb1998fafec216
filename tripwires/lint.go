// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/tripline-sh/tripline/hooks/event"
)

// The severities of a LintFinding. An error is what Load refuses; a warning does not do what its author thinks; a note could
// be said better.
const (
	LintError   = "error"
	LintWarning = "warning"
	LintNote    = "note"
)

// LintFinding is something that is wrong with rules files. It prints as file:line:col: severity: text.
type LintFinding struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Col      int    `json:"col"`
	Severity string `json:"severity"`
	Rule     string `json:"rule,omitempty"`
	Text     string `json:"text"`
}

func (f LintFinding) String() string {
	return fmt.Sprintf("%s:%d:%d: %s: %s", f.File, f.Line, f.Col, f.Severity, f.Text)
}

// linter collects findings over all files.
type linter struct {
	base     *Set
	engine   *Engine // the built-in rules alone
	programs map[string]program
	rules    []*rule
	tunes    []*tune
	found    []LintFinding
}

// Lint looks for what is wrong with rules files, all of them together, and says only what it can prove. The findings stand in
// the order of the files and lines. There is one of severity error if, and only if, Load refuses the files. Generations are
// not looked at: files are meant as they stand on disk. ctx bounds the work; its error is returned.
func Lint(ctx context.Context, files []File) ([]LintFinding, error) {
	base, err := Load(nil)
	if err != nil {
		return nil, err
	}
	eng, err := New(Options{Rules: base})
	if err != nil {
		return nil, err
	}
	l := &linter{base: base, engine: eng, programs: programTable()}
	if len(files) > maxRulesFiles {
		l.add(files[0].Path, 1, 1, LintError, "", "more than %d rules files", maxRulesFiles)
	}
	for _, f := range files {
		l.file(f)
	}
	for _, t := range l.tunes {
		l.tune(t)
	}
	for _, r := range l.rules {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		l.rule(r)
	}
	if set, err := Load(files); err != nil { // whatever it is that was not looked at
		var re *RuleError
		if errors.As(err, &re) && !slices.ContainsFunc(l.found, func(f LintFinding) bool { return f.Severity == LintError }) {
			l.add(re.File, re.Line, re.Col, LintError, "", "%s", re.Msg)
		}
	} else {
		l.tunesThatChangeNothing(set)
	}
	order := func(f LintFinding) int {
		return slices.IndexFunc(files, func(o File) bool { return o.Path == f.File })
	}
	slices.SortStableFunc(l.found, func(a, b LintFinding) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	return l.found, nil
}

func (l *linter) add(file string, line, col int, severity, id, format string, args ...any) {
	l.found = append(l.found, LintFinding{File: file, Line: line, Col: col, Severity: severity, Rule: id, Text: fmt.Sprintf(format, args...)})
}

func (l *linter) of(r *rule, severity, format string, args ...any) {
	l.add(r.file, r.line, r.col, severity, r.id, "rule "+r.id+": "+format, args...)
}

func (l *linter) file(f File) {
	if f.Mode.IsRegular() && f.Mode.Perm()&0o022 != 0 {
		l.add(f.Path, 1, 1, LintWarning, "", "other users may write this file (mode %#o): chmod 600", f.Mode.Perm()&fs.ModePerm)
	}
	if f.Layer != LayerSystem && f.Layer != LayerUser && f.Layer != LayerProject {
		l.add(f.Path, 1, 1, LintError, "", "unknown layer %q", f.Layer)
		return
	}
	rules, tunes, err := parseRules(f.Layer, f.Path, f.Data)
	if err != nil {
		e := ruleError(f.Path, err)
		l.add(e.File, e.Line, e.Col, LintError, "", "%s", e.Msg)
		return
	}
	for _, r := range rules {
		if old := l.base.find(r.id); old != nil {
			l.of(r, LintError, "this is a built-in rule and cannot be redefined; use tune")
			continue
		}
		if i := slices.IndexFunc(l.rules, func(o *rule) bool { return o.id == r.id }); i >= 0 {
			l.of(r, LintError, "the id is already used in %s:%d", l.rules[i].file, l.rules[i].line)
			continue
		}
		l.rules = append(l.rules, r)
	}
	for _, bad := range testCases(rules) {
		l.add(f.Path, bad.Line, bad.Col, LintError, bad.Rule, "%s", bad.String())
	}
	l.tunes = append(l.tunes, tunes...)
}

func (l *linter) tune(t *tune) {
	switch r := l.base.find(t.rule); {
	case r == nil && slices.ContainsFunc(l.rules, func(o *rule) bool { return o.id == t.rule }):
		l.add(t.file, t.line, t.col, LintError, t.rule, "tune: %q is a rule of your own: change it where it stands", t.rule)
	case r == nil:
		l.add(t.file, t.line, t.col, LintError, t.rule, "tune: there is no built-in rule %q%s", t.rule, didYouMean(t.rule, l.base.RuleIDs()))
	case r.floor:
		l.add(t.file, t.line, t.col, LintError, t.rule, "tune: rule %q is on the floor and cannot be tuned", t.rule)
	}
}

// tunesThatChangeNothing finds entries without which every call is judged as with them.
func (l *linter) tunesThatChangeNothing(set *Set) {
	for i, t := range set.tunes {
		r := set.find(t.rule)
		if r == nil {
			continue
		}
		later := slices.IndexFunc(set.tunes[i+1:], func(o *tune) bool { return o.rule == t.rule && covers(&o.when, &t.when) })
		if later >= 0 {
			o := set.tunes[i+1+later]
			l.add(t.file, t.line, t.col, LintWarning, t.rule, "tune %s: it changes nothing, since the entry in %s:%d comes later and always counts instead", t.rule, o.file, o.line)
			continue
		}
		same := t.to == r.verdict && len(r.profiles) == 0
		for _, o := range set.tunes[:i] {
			same = same && (o.rule != t.rule || o.to == t.to)
		}
		if same {
			l.add(t.file, t.line, t.col, LintWarning, t.rule, "tune %s: it changes nothing, since the rule says %s anyway", t.rule, t.to)
		}
	}
}

// covers reports whether every call that b covers is covered by a. Only what the texts show counts: a "~" is compared as it is
// written.
func covers(a, b *scope) bool {
	within1 := func(limits, list []string, in func(limit, s string) bool) bool {
		if len(limits) == 0 {
			return true
		}
		if len(list) == 0 {
			return false
		}
		return !slices.ContainsFunc(list, func(s string) bool {
			return !slices.ContainsFunc(limits, func(limit string) bool { return in(limit, s) })
		})
	}
	return within1(a.agents, b.agents, func(x, y string) bool { return x == y }) && within1(a.projects, b.projects, within)
}

func (l *linter) rule(r *rule) {
	l.patterns(r)
	if s := l.shadow(r); s != nil {
		if r.verdict == event.Allow {
			l.of(r, LintWarning, "it never allows anything: all of it is covered by rule %s (%s), %s:%d", s.id, s.verdict, s.file, s.line)
		} else {
			l.of(r, LintWarning, "it never counts: all of it is covered by the stricter rule %s (%s), %s:%d", s.id, s.verdict, s.file, s.line)
		}
	}
	if r.layer == LayerProject {
		return // its texts are not shown, and its cases are its project's
	}
	if r.why == "" && r.verdict != event.Allow {
		l.of(r, LintNote, "it has no why: the agent and the person are not told the reason")
	}
	if len(r.match) == 0 {
		l.of(r, LintNote, "it has no own cases (match, no_match): nothing tells you when it stops matching what you mean")
	}
}
