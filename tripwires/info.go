// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/tripwires/builtin"
)

// RuleInfo is a rule as people see it. Texts are as the rules file holds them.
type RuleInfo struct {
	ID       string                    `json:"id"`
	Layer    Layer                     `json:"layer"`
	Verdict  event.Decision            `json:"verdict"` // as written; profiles and tune entries may change it
	Floor    bool                      `json:"floor"`
	Severity string                    `json:"severity,omitempty"`
	Why      string                    `json:"why,omitempty"`
	Instead  string                    `json:"instead,omitempty"`
	Gate     string                    `json:"gate,omitempty"`
	Scope    string                    `json:"scope,omitempty"` // in words, "" = every call
	Profiles map[string]event.Decision `json:"profiles,omitempty"`
	Tuned    []TuneInfo                `json:"tuned,omitempty"` // in their order: the last one that applies counts
	Patterns []string                  `json:"patterns"`
	Except   []string                  `json:"except,omitempty"`
	Match    []string                  `json:"match,omitempty"` // own cases
	NoMatch  []string                  `json:"no_match,omitempty"`
	File     string                    `json:"file"`
	Line     int                       `json:"line"`
	Hash     string                    `json:"hash"`             // of what the rule says
	Source   string                    `json:"source,omitempty"` // its YAML as written
}

// TuneInfo is one tune entry.
type TuneInfo struct {
	To   event.Decision `json:"to"`
	When string         `json:"when,omitempty"` // in words, "" = always
	File string         `json:"file"`
	Line int            `json:"line"`
}

// Rules describes all rules of the set, built-in ones first, in the order in which they stand. After Tighten an id may be
// there twice: a changed rule stays in force beside its new form until a person reloads.
func (s *Set) Rules() []RuleInfo {
	out := make([]RuleInfo, 0, len(s.rules))
	texts := map[string]string{}
	for _, r := range s.rules {
		i := RuleInfo{
			ID: r.id, Layer: r.layer, Verdict: r.verdict, Floor: r.floor, Severity: r.severity, Why: r.why, Instead: r.instead, Gate: r.gate,
			Scope: r.scope.words(), Profiles: r.profiles, Patterns: patternTexts(r.patterns), Except: patternTexts(r.except),
			Match: caseTexts(r.match), NoMatch: caseTexts(r.noMatch), File: r.file, Line: r.line, Hash: r.hash,
		}
		if r.profiles != nil {
			i.Profiles = map[string]event.Decision{}
			for k, v := range r.profiles {
				i.Profiles[k] = v
			}
		}
		for _, t := range s.tunes {
			if t.rule == r.id && r.layer == LayerBuiltin {
				i.Tuned = append(i.Tuned, t.info())
			}
		}
		if !r.spans(s.source(r, texts), &i.Source) {
			i.Source = ""
		}
		out = append(out, i)
	}
	return out
}

func (t *tune) info() TuneInfo {
	return TuneInfo{To: t.to, When: t.when.words(), File: t.file, Line: t.line}
}

// Tuned returns the tune entry that decides on a built-in rule in a project (an absolute path), for calls of any agent.
func (s *Set) Tuned(id, project string) (TuneInfo, bool) {
	for _, t := range slices.Backward(s.tunes) {
		if t.rule != id || len(t.when.agents) > 0 {
			continue
		}
		if len(t.when.projects) == 0 || slices.ContainsFunc(t.when.projects, func(p string) bool { return project != "" && within(p, project) }) {
			return t.info(), true
		}
	}
	return TuneInfo{}, false
}

// words says what a scope is limited to, "" for nothing.
func (s *scope) words() string {
	var parts []string
	if len(s.agents) > 0 {
		parts = append(parts, "for "+strings.Join(s.agents, ", "))
	}
	if len(s.projects) > 0 {
		parts = append(parts, "in "+strings.Join(s.projects, ", "))
	}
	if s.session {
		parts = append(parts, "an approval counts for its session only")
	}
	return strings.Join(parts, "; ")
}

func patternTexts(list []pattern) []string {
	var out []string
	for i := range list {
		if p := &list[i]; p.effect != nil {
			out = append(out, string(p.canonical()))
		} else {
			out = append(out, p.text)
		}
	}
	return out
}

func caseTexts(list []ownCase) []string {
	var out []string
	for _, c := range list {
		if c.Tool == "Bash" {
			out = append(out, c.text)
		} else {
			out = append(out, fmt.Sprintf("%s %s", c.Tool, c.text))
		}
	}
	return out
}

// source is the text of the file that a rule stands in, "" if it is not at hand.
func (s *Set) source(r *rule, texts map[string]string) string {
	key := fmt.Sprintf("%s:%d", r.file, r.line)
	if r.layer == LayerBuiltin {
		key = r.file
	}
	if text, ok := texts[key]; ok {
		return text
	}
	var text string
	if name, ok := strings.CutPrefix(r.file, "builtin/"); ok && r.layer == LayerBuiltin {
		if data, err := builtin.Packs.ReadFile(name); err == nil {
			text = string(data)
		}
	} else {
		// Of several generations of a file, the one that holds this rule at this line.
		for _, f := range s.files {
			if f.Path != r.file {
				continue
			}
			rules, _, err := parseRules(f.Layer, f.Path, f.Data)
			if err == nil && slices.ContainsFunc(rules, func(o *rule) bool { return o.line == r.line && o.id == r.id }) {
				text = string(f.Data)
			}
		}
	}
	texts[key] = text
	return text
}

// spans cuts the rule's own lines out of its file: from its first key's line to the next entry of the same list, or to the
// next key at the top. It reports whether there is such a text.
func (r *rule) spans(text string, out *string) bool {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	if text == "" || r.line < 1 || r.line > len(lines) {
		return false
	}
	dash := strings.IndexByte(lines[r.line-1], '-')
	if dash < 0 || strings.TrimSpace(lines[r.line-1][:dash]) != "" {
		*out = lines[r.line-1] // a rule in flow style: its line is what can be shown
		return true
	}
	end := r.line
	for ; end < len(lines); end++ {
		t := strings.TrimLeft(lines[end], " ")
		if t != "" && t[0] != '#' && len(lines[end])-len(t) <= dash {
			break
		}
	}
	for end > r.line && (strings.TrimSpace(lines[end-1]) == "" || strings.HasPrefix(strings.TrimSpace(lines[end-1]), "#")) {
		end--
	}
	*out = strings.Join(lines[r.line-1:end], "\n")
	return true
}
