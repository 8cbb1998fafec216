// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/tripline-sh/tripline/hooks/event"
)

// Bounds of what one file may hold.
const (
	maxRules    = 1000 // a file
	maxPatterns = 500  // a list
	maxText     = 500  // bytes of why and instead
	maxIDLen    = 64
)

var (
	userID    = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*(\.[a-z0-9][a-z0-9_-]*)*$`)
	builtinID = regexp.MustCompile(`^[a-z]+\.[a-z0-9-]+$`)
)

// places that a matcher may name.
var placeNames = []string{"tripline", "device", "home-root", "project-root", "project", "temp", "system", "outside-project", "unknown"}

// parseRules reads the whole of one file.
func parseRules(layer Layer, file string, data []byte) ([]*rule, []*tune, error) {
	root, err := parseYAML(data)
	if err != nil {
		return nil, nil, err
	}
	if root.kind != mapNode {
		return nil, nil, root.err("want a mapping with version and rules")
	}
	var rules []*rule
	var tunes []*tune
	version := false
	for i, k := range root.keys {
		v := root.list[i]
		switch k.text {
		case "version":
			if v.kind != scalarNode || v.text != "1" {
				return nil, nil, v.err("version must be 1")
			}
			version = true
		case "rules":
			if err := v.wantList("rules", maxRules); err != nil {
				return nil, nil, err
			}
			for _, n := range v.list {
				r, err := parseRule(layer, n)
				if err != nil {
					return nil, nil, err
				}
				r.file, r.line, r.col = file, n.line, n.col
				rules = append(rules, r)
			}
		case "tune":
			if layer != LayerUser && layer != LayerSystem {
				return nil, nil, k.err("tune is for user and system files only")
			}
			if err := v.wantList("tune", maxRules); err != nil {
				return nil, nil, err
			}
			for _, n := range v.list {
				t, err := parseTune(layer, n)
				if err != nil {
					return nil, nil, err
				}
				t.file, t.line, t.col = file, n.line, n.col
				tunes = append(tunes, t)
			}
		default:
			return nil, nil, k.err("unknown key %q; want version, rules, tune", shorten(k.text, 80))
		}
	}
	if !version {
		return nil, nil, root.err("version: 1 is missing")
	}
	if len(rules) == 0 && len(tunes) == 0 {
		return nil, nil, root.err("no rules and no tune")
	}
	return rules, tunes, nil
}

func parseRule(layer Layer, n *node) (*rule, error) {
	if n.kind != mapNode {
		return nil, n.err("a rule is a mapping")
	}
	r := &rule{layer: layer}
	for i, k := range n.keys {
		if err := r.set(k, n.list[i]); err != nil {
			return nil, err
		}
	}
	if r.id == "" {
		return nil, n.err("id is missing")
	}
	if r.verdict == "" {
		return nil, n.err("rule %q has none of deny, ask, allow", r.id)
	}
	if r.verdict != event.Ask && (r.gate != "" || r.scope.session) {
		return nil, n.err("rule %q: gate and scope: session are for ask rules", r.id)
	}
	if layer == LayerProject {
		r.id = "project:" + r.id
	}
	r.seal()
	return r, nil
}

// set takes one key of a rule.
func (r *rule) set(k, v *node) error {
	if err := r.mayHave(k); err != nil {
		return err
	}
	var err error
	switch k.text {
	case "id":
		want := userID
		if r.layer == LayerBuiltin {
			want = builtinID
		}
		if v.kind != scalarNode || len(v.text) > maxIDLen || !want.MatchString(v.text) {
			return v.err("id must be lower-case letters, digits, - _ and dots, at most %d bytes", maxIDLen)
		}
		r.id = v.text
	case "deny", "ask", "allow":
		if r.verdict != "" {
			return k.err("a rule has one of deny, ask, allow")
		}
		r.verdict = event.Decision(k.text)
		r.patterns, err = parsePatterns(k.text, v)
	case "except":
		r.except, err = parsePatterns(k.text, v)
	case "gate":
		if v.text == "webhook" {
			return v.err("the webhook gate is not part of this version; use native or hold")
		}
		r.gate, err = v.oneOf("gate", "native", "hold")
	case "why":
		r.why, err = v.prose("why")
	case "instead":
		r.instead, err = v.prose("instead")
	case "severity":
		r.severity, err = v.oneOf("severity", "low", "medium", "high", "critical")
	case "floor":
		r.floor, err = v.flag("floor")
	case "profiles":
		err = r.setProfiles(v)
	case "scope":
		r.scope, err = parseScope(v, true)
	case "match":
		r.match, err = parseCases(k.text, v)
	case "no_match":
		r.noMatch, err = parseCases(k.text, v)
	default:
		return k.err("unknown key %q in a rule", shorten(k.text, 80))
	}
	return err
}

// mayHave refuses keys that the rule's layer must not use.
func (r *rule) mayHave(k *node) error {
	builtin := r.layer == LayerBuiltin
	switch k.text {
	case "floor", "profiles", "severity":
		if !builtin {
			return k.err("unknown key %q in a rule", shorten(k.text, 80))
		}
	case "allow", "except", "why", "instead", "gate", "scope":
		if r.layer == LayerProject {
			return k.err("a project's rules may only deny and ask; %q is not theirs", k.text)
		}
	}
	return nil
}

func (r *rule) setProfiles(v *node) error {
	if v.kind != mapNode || len(v.keys) == 0 {
		return v.err("profiles is a mapping of profile to verdict")
	}
	r.profiles = map[string]event.Decision{}
	for i, k := range v.keys {
		if k.text != ProfileStrict && k.text != ProfileCI {
			return k.err("unknown profile %q", shorten(k.text, 80))
		}
		d, err := v.list[i].oneOf("verdict", "deny", "ask", "pass")
		if err != nil {
			return err
		}
		r.profiles[k.text] = event.Decision(d)
	}
	return nil
}

// seal computes the rule's own hash: what it says, not where it stands nor its own cases.
func (r *rule) seal() {
	pats := func(in []pattern) []json.RawMessage {
		out := []json.RawMessage{}
		for i := range in {
			out = append(out, in[i].canonical())
		}
		return out
	}
	r.body, _ = json.Marshal(struct { // strings, lists and booleans always marshal
		ID       string                    `json:"id"`
		Layer    Layer                     `json:"layer"`
		Verdict  event.Decision            `json:"verdict"`
		Floor    bool                      `json:"floor"`
		Patterns []json.RawMessage         `json:"patterns"`
		Except   []json.RawMessage         `json:"except"`
		Profiles map[string]event.Decision `json:"profiles"`
		Gate     string                    `json:"gate"`
		Agents   []string                  `json:"agents"`
		Projects []string                  `json:"projects"`
		Session  bool                      `json:"session"`
		Why      string                    `json:"why"`
		Instead  string                    `json:"instead"`
	}{r.id, r.layer, r.verdict, r.floor, pats(r.patterns), pats(r.except), r.profiles, r.gate, r.scope.agents,
		r.scope.projects, r.scope.session, r.why, r.instead})
	r.hash = contentHash(r.body)
}

func parsePatterns(key string, v *node) ([]pattern, error) {
	if err := v.wantList(key, maxPatterns); err != nil {
		return nil, err
	}
	var out []pattern
	for _, n := range v.list {
		switch n.kind {
		case scalarNode:
			p, msg := parsePattern(n.text)
			if msg != "" {
				return nil, n.err("%q: %s", shorten(n.text, 80), msg)
			}
			out = append(out, p)
		case mapNode:
			m, err := parseMatcher(n)
			if err != nil {
				return nil, err
			}
			out = append(out, pattern{effect: m})
		default:
			return nil, n.err("%s: want a pattern or an effect matcher", key)
		}
	}
	return out, nil
}

func parseMatcher(n *node) (*matcher, error) {
	if len(n.keys) == 0 {
		return nil, n.err("an empty matcher would match everything")
	}
	m := &matcher{}
	for i, k := range n.keys {
		v := n.list[i]
		if _, ok := matcherFlag(&finding{}, k.text); ok {
			want, err := v.flag(k.text)
			if err != nil {
				return nil, err
			}
			m.flags = append(m.flags, flagTest{k.text, want})
			continue
		}
		words, err := v.words(k.text)
		if err != nil {
			return nil, err
		}
		switch k.text {
		case "effect":
			for _, w := range words {
				if !EffectKind(w).known() {
					return nil, v.err("unknown effect %q", shorten(w, 80))
				}
				m.kinds = append(m.kinds, EffectKind(w))
			}
		case "place":
			for _, w := range words {
				if !slices.Contains(placeNames, w) {
					return nil, v.err("unknown place %q; want one of %s", shorten(w, 80), strings.Join(placeNames, ", "))
				}
			}
			m.places = words
		case "program":
			m.programs = words
		case "form":
			m.forms = words
		case "target":
			if len(words) != 1 || !doublestar.ValidatePattern(words[0]) {
				return nil, v.err("target is one path pattern")
			}
			m.target = words[0]
		default:
			return nil, k.err("unknown key %q in an effect matcher", shorten(k.text, 80))
		}
	}
	return m, nil
}
