// SPDX-License-Identifier: Apache-2.0

// Package agenttest is the conformance suite of agent adapters: what the daemon relies on, whatever the agent. An adapter's
// own tests add what is particular to its agent.
package agenttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tripline-sh/tripline/hooks/agents"
	"github.com/tripline-sh/tripline/hooks/event"
)

// Config tells the suite what it cannot know of an agent.
type Config struct {
	// Captures is a directory of real payloads, one a file, named EVENT.json or EVENT.DETAIL.json.
	Captures string
	// Events is what an install registers; between them they must cover every kind that gates and that the agent has.
	Events []agents.Registration
	// Call builds a payload of the agent's pre-tool event PreTool: a call of the tool with this JSON as its input.
	PreTool string
	Call    func(tool, input string) []byte
	// Tool is one of the agent's own tools that runs a command, Key the key of its command, Keys the top-level keys of a
	// payload that the adapter reads.
	Tool, Key string
	Keys      []string
	// Commentary is a key of Tool's input that the approval of a call does not bind, "" if there is none.
	Commentary string
	// Reads models how the agent takes what its hook left: event.Deny if the reply blocks whatever the event stands for.
	Reads func(name string, r event.Reply) event.Decision
	// Fallbacks returns the replies that the hook gives by itself when it has no verdict, one for each failure it tells
	// apart; nil leaves them out.
	Fallbacks func(name string) []event.Reply
}

// Run runs the suite. The sub-tests that measure memory are not parallel and come first.
func Run(t *testing.T, a agents.Adapter, c Config) {
	captures := c.captures(t)
	t.Run("bombs are refused in little memory", func(t *testing.T) { bombs(t, a, c) })
	t.Run("captures", func(t *testing.T) {
		t.Parallel()
		for _, p := range captures {
			t.Run(p.file, func(t *testing.T) {
				t.Parallel()
				p.decodes(t, a)
				p.broken(t, a, c)
			})
		}
	})
	t.Run("every gate of the agent is captured and registered", func(t *testing.T) {
		t.Parallel()
		gates(t, a, c, captures)
	})
	t.Run("input has one reading", func(t *testing.T) {
		t.Parallel()
		confusing(t, a, c)
	})
	t.Run("canonical input", func(t *testing.T) {
		t.Parallel()
		canonical(t, a, c)
	})
	t.Run("replies", func(t *testing.T) {
		t.Parallel()
		replies(t, a, c)
	})
	if c.Fallbacks != nil {
		t.Run("the hook's own replies", func(t *testing.T) {
			t.Parallel()
			fallbacks(t, a, c)
		})
	}
}

// capture is one real payload.
type capture struct {
	file, event string
	payload     []byte
}

func (c Config) captures(t *testing.T) []capture {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(c.Captures, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no captures in %s: %v", c.Captures, err)
	}
	all := make([]capture, 0, len(files))
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		base := filepath.Base(f)
		name, _, _ := strings.Cut(base, ".")
		all = append(all, capture{file: base, event: name, payload: b})
	}
	return all
}

// decodes checks a capture as it is.
func (p capture) decodes(t *testing.T, a agents.Adapter) {
	kind, ok := a.Kind(p.event)
	if !ok {
		t.Errorf("the agent sends %s, which the adapter does not know", p.event)
	}
	before := bytes.Clone(p.payload)
	ev, err := a.Decode(p.event, p.payload)
	if err != nil {
		t.Fatal(err)
	}
	if ev.Agent != a.Name() || ev.Name != p.event || ev.Kind != kind {
		t.Errorf("decoded as %s %s %s", ev.Agent, ev.Name, ev.Kind)
	}
	if !bytes.Equal(ev.Raw, before) || !bytes.Equal(p.payload, before) {
		t.Error("the payload is not preserved byte for byte")
	}
	if ev.Session == "" {
		t.Error("no session")
	}
	switch kind {
	case event.KindPreTool, event.KindSkillShell, event.KindPermissionRequest, event.KindPostTool, event.KindPostToolFailure:
		if ev.Tool == "" || len(ev.Input) == 0 || !bytes.Contains(before, ev.Input) {
			t.Errorf("tool %q with input %q", ev.Tool, ev.Input)
		}
	case event.KindToolBatch:
		if len(ev.Batch) == 0 {
			t.Error("a batch without calls")
		}
	}
	if kind == event.KindPostTool && len(ev.Response) == 0 {
		t.Error("no response")
	}
}

// broken checks what must not decode.
func (p capture) broken(t *testing.T, a agents.Adapter, c Config) {
	undecodable := func(what, name string, payload []byte) {
		t.Helper()
		if ev, err := a.Decode(name, payload); !errors.Is(err, agents.ErrUndecodable) || ev != nil {
			t.Errorf("%s: decoded, or failed with %v", what, err)
		}
	}
	for _, other := range []string{"", "Nothing", strings.ToLower(p.event), p.event + " ", c.otherEvent(p.event)} {
		undecodable("as "+other, other, p.payload)
	}
	object := bytes.TrimSpace(p.payload)
	step := max(1, len(object)/400)
	for n := 0; n < len(object); n += step {
		undecodable("truncated", p.event, object[:n])
	}
	undecodable("with a byte order mark", p.event, append([]byte("\ufeff"), object...))
	undecodable("with a line before it", p.event, append([]byte("ok\n"), object...))
	undecodable("with a line behind it", p.event, append(bytes.Clone(object), "\nok"...))
	undecodable("twice", p.event, append(bytes.Clone(object), object...))
	undecodable("in an array", p.event, append(append([]byte("["), object...), ']'))
	var top map[string]json.RawMessage
	if err := json.Unmarshal(object, &top); err != nil {
		t.Fatal(err)
	}
	for _, key := range c.Keys {
		if _, ok := top[key]; !ok {
			continue
		}
		for _, again := range variants(key) {
			undecodable("with "+again, p.event, with(object, again))
		}
	}
	if _, err := a.Decode(p.event, with(object, "zz_unknown")); err != nil {
		t.Errorf("an unknown key: %v", err)
	}
}

// otherEvent is a registered event that is not name.
func (c Config) otherEvent(name string) string {
	for _, r := range c.Events {
		if r.Event != name {
			return r.Event
		}
	}
	return "-"
}

// with returns the object with one more member.
func with(object []byte, key string) []byte {
	out := bytes.Clone(object[:len(object)-1])
	return append(out, `,"`+key+`":null}`...)
}

// variants are keys that some JSON decoder takes for this one: the key again, other cases, escapes.
func variants(key string) []string {
	all := []string{key, strings.ToUpper(key), strings.ToUpper(key[:1]) + key[1:], `\u00` + hex(key[0]) + key[1:]}
	if i := strings.IndexByte(key, 's'); i >= 0 {
		all = append(all, key[:i]+"ſ"+key[i+1:])
	}
	if i := strings.IndexByte(key, 'k'); i >= 0 {
		all = append(all, key[:i]+"\u212a"+key[i+1:])
	}
	return all
}

func hex(c byte) string { return string("0123456789abcdef"[c>>4]) + string("0123456789abcdef"[c&15]) }
