// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tripline-sh/tripline/hooks/event"
)

// wantList refuses everything but a list that holds something.
func (n *node) wantList(key string, most int) error {
	switch {
	case n.kind != listNode:
		return n.err("%s must be a list", key)
	case len(n.list) == 0:
		return n.err("%s is an empty list: it would never match", key)
	case len(n.list) > most:
		return n.err("%s has more than %d entries", key, most)
	}
	return nil
}

// words reads a word or a list of words, none of them blank.
func (n *node) words(key string) ([]string, error) {
	list := []*node{n}
	if n.kind != scalarNode {
		if err := n.wantList(key, maxPatterns); err != nil {
			return nil, err
		}
		list = n.list
	}
	var out []string
	for _, e := range list {
		if e.kind != scalarNode || strings.TrimSpace(e.text) == "" {
			return nil, e.err("%s: blank entry", key)
		}
		out = append(out, e.text)
	}
	return out, nil
}

func (n *node) oneOf(key string, allowed ...string) (string, error) {
	if n.kind != scalarNode || !slices.Contains(allowed, n.text) {
		return "", n.err("%s must be one of %s", key, strings.Join(allowed, ", "))
	}
	return n.text, nil
}

func (n *node) flag(key string) (bool, error) {
	if n.kind == scalarNode && !n.quoted && (n.text == "true" || n.text == "false") {
		return n.text == "true", nil
	}
	return false, n.err("%s must be true or false", key)
}

func (n *node) prose(key string) (string, error) {
	s := strings.TrimSpace(n.text)
	if n.kind != scalarNode || s == "" || len(s) > maxText {
		return "", n.err("%s must be text of 1 to %d bytes", key, maxText)
	}
	return s, nil
}

func parseScope(n *node, rule bool) (scope, error) {
	var s scope
	if rule && n.kind == scalarNode && n.text == "session" {
		return scope{session: true}, nil
	}
	if n.kind != mapNode || len(n.keys) == 0 {
		return s, n.err("want agent and project")
	}
	for i, k := range n.keys {
		v := n.list[i]
		var err error
		switch {
		case k.text == "agent":
			s.agents, err = v.words("agent")
		case k.text == "project":
			s.projects, err = v.words("project")
			for _, p := range s.projects {
				if p != "~" && !strings.HasPrefix(p, "~/") && !filepath.IsAbs(p) {
					return s, v.err("project %q must be absolute or start with ~/", shorten(p, 80))
				}
			}
		case k.text == "session" && rule:
			s.session, err = v.flag("session")
		default:
			return s, k.err("unknown key %q in a scope", shorten(k.text, 80))
		}
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

func parseTune(layer Layer, n *node) (*tune, error) {
	if n.kind != mapNode {
		return nil, n.err("a tune entry is a mapping")
	}
	t := &tune{layer: layer}
	for i, k := range n.keys {
		v := n.list[i]
		var err error
		switch k.text {
		case "rule":
			if v.kind != scalarNode || !builtinID.MatchString(v.text) {
				return nil, v.err("rule must be the id of a built-in rule")
			}
			t.rule = v.text
		case "to":
			var to string
			to, err = v.oneOf("to", "deny", "ask", "pass")
			t.to = event.Decision(to)
		case "when":
			t.when, err = parseScope(v, false)
		default:
			return nil, k.err("unknown key %q in a tune entry", shorten(k.text, 80))
		}
		if err != nil {
			return nil, err
		}
	}
	if t.rule == "" || t.to == "" {
		return nil, n.err("a tune entry needs rule and to")
	}
	b, _ := json.Marshal([]any{t.rule, t.to, t.when.agents, t.when.projects, t.layer}) // strings always marshal
	t.hash = contentHash(b)
	return t, nil
}

// parseCases reads own cases: a command line, or {tool: NAME, input: JSON TEXT}.
func parseCases(key string, v *node) ([]ownCase, error) {
	if err := v.wantList(key, maxPatterns); err != nil {
		return nil, err
	}
	var out []ownCase
	for _, n := range v.list {
		c := ownCase{Tool: "Bash", text: n.text, line: n.line, col: n.col}
		switch {
		case n.kind == scalarNode && strings.TrimSpace(n.text) != "":
			c.Input, _ = json.Marshal(map[string]string{"command": n.text}) // a string always marshals
		case n.kind == mapNode:
			c.Tool = ""
			for i, k := range n.keys {
				if n.list[i].kind != scalarNode {
					return nil, n.list[i].err("%s: %s must be text", key, shorten(k.text, 40))
				}
				switch k.text {
				case "tool":
					c.Tool = n.list[i].text
				case "input":
					c.Input, c.text = json.RawMessage(n.list[i].text), n.list[i].text
				default:
					return nil, k.err("unknown key %q in a case", shorten(k.text, 80))
				}
			}
			if c.Tool == "" || !json.Valid(c.Input) {
				return nil, n.err("%s: want tool and input (JSON text)", key)
			}
		default:
			return nil, n.err("%s: a case is a command line, or tool and input", key)
		}
		out = append(out, c)
	}
	return out, nil
}

// shorten cuts a text for a message at a rune border.
func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	s = s[:most]
	for !utf8.ValidString(s) && len(s) > 0 {
		s = s[:len(s)-1]
	}
	return s + "..."
}
