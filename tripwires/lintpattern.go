// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/tripwires/view"
)

// patterns looks for patterns that do not match what they spell.
func (l *linter) patterns(r *rule) {
	for i := range r.patterns {
		p := &r.patterns[i]
		switch {
		case len(p.words) > 0:
			l.command(r, p)
		case p.tool != "":
			l.toolName(r, p)
		case p.domain != "" && strings.ContainsAny(p.domain, "*?[]()@:#&=,;'\" "):
			l.of(r, LintWarning, "%s never matches: no host is called %q (a host stands for all names below it)", p.text, p.domain)
		}
	}
	for i := range r.except {
		if p := &r.except[i]; p.tool != "" {
			l.toolName(r, p)
		}
	}
}

// PatternProblem says what is wrong with a pattern of a deny or ask rule: that it cannot be read, or that it would never
// match. It is "" for a good one.
func PatternProblem(text string) string {
	p, msg := parsePattern(text)
	if msg != "" {
		return msg
	}
	if strings.ContainsFunc(text, func(r rune) bool { return !show.Visible(r) && r != ' ' }) {
		return "it holds invisible or control characters"
	}
	l := &linter{programs: programTable()}
	l.patterns(&rule{id: "lint", verdict: event.Deny, patterns: []pattern{p}})
	if len(l.found) == 0 {
		return ""
	}
	return strings.TrimPrefix(l.found[0].Text, "rule lint: ")
}

// command runs the pattern on the command line that it spells.
func (l *linter) command(r *rule, p *pattern) {
	text := strings.TrimSuffix(strings.TrimPrefix(p.text, "Bash("), ")")
	for _, suffix := range []string{":*", " *"} {
		if rest, ok := strings.CutSuffix(text, suffix); ok && p.prefix {
			text = rest
			break
		}
	}
	one := &rule{id: "lint", layer: LayerUser, verdict: event.Deny, patterns: []pattern{*p}}
	try := func(words string) bool {
		in, _ := json.Marshal(map[string]string{"command": words}) // a string always marshals
		return caseMatches(one, ownCase{Tool: "Bash", Input: in}, l.programs)
	}
	if !try(text) && !(p.prefix && try(text+" x")) {
		l.of(r, LintWarning, "%s does not match the command that it spells: %s", p.text, whyNoMatch(p.words))
		return
	}
	if r.verdict != event.Allow || p.prefix {
		return
	}
	// A command that is spelled out whole and names no place relative to anything is judged alike everywhere.
	var by *Decision
	for _, world := range [][3]string{{"/home/user/project", "/home/user/project", "/home/user"}, {"/home/user/project/a/b", "/home/user/project", "/home/user"},
		{"/srv/www/a/b", "/srv/www/a/b", "/root"}, {"/tmp/x/y", "/home/other/p", "/home/other"}} {
		in, _ := json.Marshal(map[string]string{"command": text}) // a string always marshals
		d := l.engine.Evaluate(context.Background(), Call{Agent: "claude", Tool: "Bash", Input: in, Cwd: world[0], FirstCwd: world[1], Homes: []string{world[2]}},
			view.NewMemory().NewReader())
		if d.Verdict != event.Deny || by != nil && by.Rule != d.Rule {
			return
		}
		by = &d
	}
	what := "the built-in rule " + by.Rule
	if by.Floor {
		what += " (floor)"
	}
	if t := slices.ContainsFunc(l.tunes, func(t *tune) bool { return t.rule == by.Rule }); !t {
		l.of(r, LintWarning, "%s is never allowed: %s denies this command, and the stricter rule wins", p.text, what)
	}
}

// whyNoMatch guesses at the reason.
func whyNoMatch(words []string) string {
	for _, w := range words {
		switch {
		case strings.Trim(w, "&|;") == "" || strings.HasSuffix(w, ";"):
			return "each command of a compound is judged by itself; write one pattern for each"
		case strings.ContainsAny(w, "'\"`"):
			return "quotes are no part of a command's words"
		case strings.ContainsAny(w, "<>"):
			return "redirections are no part of a command's words; use Write(PATH) or an effect"
		case strings.HasPrefix(w, "~"):
			return "~ is replaced before patterns are compared; write the whole path"
		case strings.ContainsAny(w, "$"):
			return "variables are replaced before patterns are compared"
		}
	}
	if i := strings.IndexByte(words[0], '='); i > 0 {
		return "assignments in front of a command are no part of its words"
	}
	return "programs that only start another one (sudo, env, timeout, sh -c) are taken off; write the command itself"
}

// toolName warns of names that only differ from a known tool's in a way that people do not mean.
func (l *linter) toolName(r *rule, p *pattern) {
	name := strings.TrimSuffix(p.tool, "*")
	if strings.HasPrefix(name, "mcp") || name == "" {
		return
	}
	known := knownTools()
	matches := func(k string) bool {
		return k == p.tool || strings.HasSuffix(p.tool, "*") && strings.HasPrefix(k, name)
	}
	if slices.ContainsFunc(known, matches) {
		return
	}
	for _, k := range known {
		if strings.EqualFold(k, name) || len(k) > 3 && distance(strings.ToLower(k), strings.ToLower(name)) == 1 {
			l.of(r, LintWarning, "%s: no agent has a tool of this name; did you mean %s?", p.text, k)
			return
		}
	}
}

// knownTools are the names of tools that some agent is known to have.
func knownTools() []string {
	out := []string{"Monitor", "PowerShell"}
	for name := range shellTools {
		out = append(out, name)
	}
	for name := range tools {
		out = append(out, name)
	}
	for name := range quietTools {
		out = append(out, name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// shadow returns a rule that always counts where r would, and is stricter; nil if none is known. Only plain command patterns
// are compared.
func (l *linter) shadow(r *rule) *rule {
	for _, s := range slices.Concat(l.base.rules, l.rules) {
		if s == r || s.verdict.Rank() <= r.verdict.Rank() || len(s.except) > 0 || len(s.profiles) > 0 || !covers(&s.scope, &r.scope) ||
			slices.ContainsFunc(l.tunes, func(t *tune) bool { return t.rule == s.id }) {
			continue
		}
		if len(r.patterns) > 0 && !slices.ContainsFunc(r.patterns, func(p pattern) bool {
			return !slices.ContainsFunc(s.patterns, func(q pattern) bool { return q.coversCommand(&p) })
		}) {
			return s
		}
	}
	return nil
}

// coversCommand reports whether every command that p matches is matched by q, as a pattern of a deny or ask rule.
func (q *pattern) coversCommand(p *pattern) bool {
	if len(q.words) == 0 || len(p.words) < len(q.words) || !q.prefix && (p.prefix || len(p.words) != len(q.words)) {
		return false
	}
	for i, w := range q.words {
		o := p.words[i]
		if i == 0 && !strings.Contains(w, "/") {
			o = baseName(o)
		}
		if o != w {
			return false
		}
	}
	return true
}
