// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"slices"

	"github.com/tripline-sh/tripline/hooks/event"
)

// maxMatches bounds the matches of one decision; the strictest ones stay.
const maxMatches = 64

// opinion is a Match with the rule that gave it.
type opinion struct {
	Match
	rule *rule
}

// judge asks every rule and returns all opinions, strictest first.
func (x *evaluation) judge() []opinion {
	var out []opinion
	var allows []*rule
	for _, r := range x.eng.rules.rules {
		if !r.scope.applies(x) {
			continue
		}
		if r.verdict == event.Allow {
			allows = append(allows, r)
			continue
		}
		token, ok := x.hit(r)
		if !ok {
			continue
		}
		o := opinion{rule: r, Match: Match{Rule: r.id, Layer: string(r.layer), Verdict: r.verdict, Floor: r.floor, Why: r.why, Token: token}}
		if r.floor {
			o.Layer = layerFloor
		} else {
			x.soften(&o)
		}
		out = append(out, o)
	}
	if r := x.allowedBy(allows); r != nil {
		out = append(out, opinion{rule: r, Match: Match{Rule: r.id, Layer: string(r.layer), Verdict: event.Allow, Why: r.why}})
	}
	slices.SortStableFunc(out, compareOpinions)
	return out[:min(len(out), maxMatches)]
}

// compareOpinions orders the strictest first; of equals, the one that a person wrote comes last, since the built-in texts
// say more.
func compareOpinions(a, b opinion) int {
	if a.Floor != b.Floor {
		if a.Floor {
			return -1
		}
		return 1
	}
	return b.Verdict.Rank() - a.Verdict.Rank()
}

// soften applies the profile and the tune entries to a built-in rule's opinion.
func (x *evaluation) soften(o *opinion) {
	if v, ok := o.rule.profiles[x.eng.profile]; ok {
		o.Verdict = v
	}
	for _, t := range x.eng.rules.tunes {
		if t.rule == o.rule.id && o.rule.layer == LayerBuiltin && t.when.applies(x) {
			o.Verdict, o.Tuned = t.to, t.id()
		}
	}
}

// hit reports whether a deny or ask rule matches anything of the call, and on what.
func (x *evaluation) hit(r *rule) (token string, ok bool) {
	for i := range r.patterns {
		p := &r.patterns[i]
		if p.tool != "" {
			if p.onTool(&x.call, false) && !x.excepted(r, nil, nil) {
				return x.call.Tool, true
			}
			continue
		}
		if len(p.words) > 0 {
			for _, c := range x.cmds {
				if p.onCommand(c, false) && !x.excepted(r, c, nil) {
					return joinWords(p.words), true
				}
			}
			continue
		}
		for j := range x.findings {
			if f := &x.findings[j]; p.onFinding(x, f) && !x.excepted(r, nil, f) {
				return f.Target, true
			}
		}
	}
	return "", false
}

// excepted reports whether the rule's except list takes out what was matched. A command is taken out by a Bash pattern, an
// effect by a path, domain or effect pattern, and also by a Bash pattern on the command that makes it.
func (x *evaluation) excepted(r *rule, c *command, f *finding) bool {
	if f != nil && f.cmd >= 0 && f.cmd < len(x.cmds) {
		c = x.cmds[f.cmd]
	}
	for i := range r.except {
		p := &r.except[i]
		switch {
		case p.tool != "":
			if p.onTool(&x.call, true) {
				return true
			}
		case len(p.words) > 0:
			if c != nil && c.plain() && p.onCommand(c, true) {
				return true
			}
		case f != nil:
			if f.Certainty == Certain && p.onFinding(x, f) {
				return true
			}
		}
	}
	return false
}

// allowedBy returns the first allow rule if the whole call is covered by allow rules: every command of a compound, with its
// redirections and assignments, and nothing of it uncertain. A single part that no rule names takes the allow away.
func (x *evaluation) allowedBy(rules []*rule) *rule {
	if len(rules) == 0 || len(x.uncertain) > 0 {
		return nil
	}
	var by *rule
	covered := func(match func(p *pattern) bool, except func(r *rule) bool) bool {
		for _, r := range rules {
			for i := range r.patterns {
				if match(&r.patterns[i]) && !except(r) {
					if by == nil {
						by = r
					}
					return true
				}
			}
		}
		return false
	}
	whole := func(p *pattern) bool { return p.onTool(&x.call, true) }
	if covered(whole, func(r *rule) bool { return x.excepted(r, nil, nil) }) {
		return by
	}
	if !x.shell {
		if len(x.findings) == 0 {
			return nil
		}
		for i := range x.findings {
			f := &x.findings[i]
			if f.Certainty != Certain || !covered(func(p *pattern) bool { return p.onFinding(x, f) },
				func(r *rule) bool { return x.excepted(r, nil, f) }) {
				return nil
			}
		}
		return by
	}
	if len(x.cmds) == 0 {
		return nil
	}
	for i, c := range x.cmds {
		if !c.plain() || !covered(func(p *pattern) bool { return p.onCommand(c, true) },
			func(r *rule) bool { return x.excepted(r, c, nil) }) {
			return nil
		}
		for j := range x.findings {
			f := &x.findings[j]
			if f.cmd != i || !f.redir {
				continue
			}
			if f.Certainty != Certain || !covered(func(p *pattern) bool { return p.onFinding(x, f) },
				func(r *rule) bool { return x.excepted(r, nil, f) }) {
				return nil
			}
		}
	}
	for i := range x.findings {
		if x.findings[i].cmd < 0 && !x.findings[i].quiet {
			return nil
		}
	}
	return by
}
