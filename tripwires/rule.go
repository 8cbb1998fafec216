// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/tripline-sh/tripline/hooks/event"
)

// Layer says where a rule comes from. Later layers may only add to what earlier ones say; the strictest verdict wins.
type Layer string

// The layers of rules.
const (
	LayerBuiltin Layer = "builtin"
	LayerSystem  Layer = "system"
	LayerUser    Layer = "user"
	LayerProject Layer = "project"
)

// layerFloor and layerMode are the layers of a Match that no file can have.
const (
	layerFloor = "floor"
	layerMode  = "mode"
)

// rule is one compiled rule. It never changes after loading.
type rule struct {
	id      string // as shown: project rules carry their "project:" prefix
	layer   Layer
	file    string
	line    int
	col     int
	verdict event.Decision
	floor   bool // built-in only: holds in every mode and profile and cannot be tuned

	patterns []pattern
	except   []pattern
	profiles map[string]event.Decision // built-in only: verdict in a profile other than standard

	severity string
	gate     string
	why      string
	instead  string
	scope    scope

	match, noMatch []ownCase

	hash string // of the rule's own content, independent of its place in a file
	body []byte // the canonical content that hash covers
}

// scope limits a rule to some agents and projects. Empty lists do not limit.
type scope struct {
	agents   []string
	projects []string // directories; "~" is each known home
	session  bool     // an approval counts for its session only
}

// tune softens (or raises) one built-in rule.
type tune struct {
	rule  string
	to    event.Decision
	when  scope
	layer Layer
	file  string
	line  int
	col   int
	hash  string
}

// ownCase is one of a rule's own cases: a shell command, or a tool with its input.
type ownCase struct {
	Tool  string
	Input json.RawMessage
	text  string // as written, for messages
	line  int
	col   int
}

// id of a tune entry as it is shown in a Match.
func (t *tune) id() string { return string(t.layer) + ":tune:" + t.rule }

// String says what the entry does: "tune delete.outside to ask in ~/shop".
func (t *tune) String() string {
	text := "tune " + t.rule + " to " + string(t.to)
	if when := t.when.words(); when != "" {
		text += " " + when
	}
	return text
}

// contentHash hashes a canonical rendering.
func contentHash(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// applies reports whether the scope covers the call.
func (s *scope) applies(x *evaluation) bool {
	if len(s.agents) > 0 {
		ok := false
		for _, a := range s.agents {
			ok = ok || a == x.call.Agent
		}
		if !ok {
			return false
		}
	}
	if len(s.projects) == 0 {
		return true
	}
	for _, p := range s.projects {
		for _, dir := range x.expandHome(p) {
			if x.root != "" && within(dir, x.root) {
				return true
			}
		}
	}
	return false
}
