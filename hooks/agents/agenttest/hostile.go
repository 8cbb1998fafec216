// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/tripline-sh/tripline/hooks/agents"
	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/hooks/wire"
)

// bombs decodes payloads that are small work for their sender and must be small work for us.
func bombs(t *testing.T, a agents.Adapter, c Config) {
	const size = 4 << 20 // decoded to values, each of these takes at least ten times as much
	command := func(s string) string { return `{"` + c.Key + `":"ls","zz":` + s + `}` }
	for _, tc := range []struct {
		name, input string
		decodes     bool
	}{
		{"open brackets", command(strings.Repeat("[", size)), false},
		{"open objects", command(strings.Repeat(`{"a":`, size/5)), false},
		{"balanced brackets, a thousand deep", command(strings.Repeat("[", 1000) + strings.Repeat("]", 1000)), false},
		{"millions of small keys", command(`{"a":0` + strings.Repeat(`,"a":0`, size/6) + `}`), true},
		{"millions of small keys beside the command", `{"` + c.Key + `":"ls"` + strings.Repeat(`,"a":0`, size/6) + `}`, false},
		{"millions of empty arrays", command("[[]" + strings.Repeat(",[]", size/3-1) + "]"), true},
		{"one number of millions of digits", command(strings.Repeat("9", size)), true},
		{"one string of escapes", command(`"` + strings.Repeat(`\u0000`, size/6) + `"`), true},
		{"a 6 MB command", `{"` + c.Key + `":"` + strings.Repeat("x", 6<<20) + `"}`, true},
		{"beyond the size limit", command(`"` + strings.Repeat("x", wire.MaxPayload) + `"`), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			payload := c.Call(c.Tool, tc.input)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := a.Decode(c.PreTool, payload)
			runtime.ReadMemStats(&after)
			if tc.decodes && err != nil || !tc.decodes && !errors.Is(err, agents.ErrUndecodable) {
				t.Errorf("decoding: %v", err)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
				t.Errorf("decoding %d bytes allocated %d", len(payload), used)
			}
		})
	}
}

// confusing gives the adapter inputs that two readers take for two different calls.
func confusing(t *testing.T, a agents.Adapter, c Config) {
	first := `{"` + c.Key + `":"rm -rf ~"`
	for _, again := range variants(c.Key) {
		for _, input := range []string{first + `,"` + again + `":"ls"}`, `{"` + again + `":"ls",` + first[1:] + `}`} {
			if _, err := a.Decode(c.PreTool, c.Call(c.Tool, input)); !errors.Is(err, agents.ErrUndecodable) {
				t.Errorf("%s: %v", input, err)
			}
		}
	}
	for _, input := range []string{`null`, `[]`, `"ls"`, `1`} {
		if _, err := a.Decode(c.PreTool, c.Call(c.Tool, input)); !errors.Is(err, agents.ErrUndecodable) {
			t.Errorf("the input %s: %v", input, err)
		}
	}
	if _, err := a.Decode(c.PreTool, c.Call("", first+"}")); !errors.Is(err, agents.ErrUndecodable) {
		t.Errorf("no tool name: %v", err)
	}
	for _, value := range []string{`\ud800`, `\u0000`, `\n`, `\u202e`, "\u202e", `"}],\"x\":`} {
		value = strings.ReplaceAll(value, `"}`, `\"}`)
		input := `{ "` + c.Key + `" : "` + value + `" }`
		ev, err := a.Decode(c.PreTool, c.Call(c.Tool, input))
		if err != nil || string(ev.Input) != input {
			t.Errorf("%s: %v", input, err)
		}
	}
}

// canonical checks what an approval is bound to.
func canonical(t *testing.T, a agents.Adapter, c Config) {
	form := func(input string) string {
		t.Helper()
		b, err := a.CanonicalInput(c.Tool, []byte(input))
		if err != nil {
			t.Errorf("%s: %v", input, err)
		}
		return string(b)
	}
	one := form(`{"` + c.Key + `":"ls","timeout":1000}`)
	for _, same := range []string{
		`{ "timeout" : 1000 , "` + c.Key + `" : "ls" }`,
		`{"` + c.Key + `":"\u006cs","timeout":1000}`,
	} {
		if got := form(same); got != one {
			t.Errorf("%s has the form %s, not %s", same, got, one)
		}
	}
	for _, other := range []string{
		`{"` + c.Key + `":"ls ","timeout":1000}`, `{"` + c.Key + `":"ls","timeout":1001}`, `{"` + c.Key + `":"ls"}`,
		`{"` + c.Key + `":"ls","timeout":"1000"}`, `{"` + c.Key + `":"ls","timeout":1000,"x":null}`,
		`{"` + c.Key + `":["ls"],"timeout":1000}`,
	} {
		if form(other) == one {
			t.Errorf("%s is taken for another call", other)
		}
	}
	if c.Commentary != "" {
		if got := form(`{"` + c.Commentary + `":"lists","` + c.Key + `":"ls","timeout":1000}`); got != one {
			t.Errorf("commentary is bound: %s", got)
		}
	}
	for _, bad := range []string{``, `null`, `[]`, `{"a":1,"a":2}`, `{"a":1`, "{\"a\":\"\xff\"}", strings.Repeat(`{"a":`, 5000)} {
		if got, err := a.CanonicalInput(c.Tool, []byte(bad)); err == nil {
			t.Errorf("%.40q has the form %q", bad, got)
		}
	}
}

// gates checks that no gate of the agent is forgotten, and that the times of each registration leave room for a reply.
func gates(t *testing.T, a agents.Adapter, c Config, captures []capture) {
	registered := make(map[string]bool)
	for _, r := range c.Events {
		kind, ok := a.Kind(r.Event)
		if !ok || kind != r.Kind || registered[r.Event] {
			t.Errorf("%s is registered as %s, twice, or unknown", r.Event, r.Kind)
		}
		if r.Deadline <= 0 || r.Deadline > r.Timeout*14/15 || r.Timeout%1e9 != 0 {
			t.Errorf("%s: deadline %v under timeout %v", r.Event, r.Deadline, r.Timeout)
		}
		if !captured(captures, r.Event) {
			t.Errorf("%s is registered but not captured", r.Event)
		}
		registered[r.Event] = true
	}
	for _, p := range captures {
		if kind, _ := a.Kind(p.event); kind.Gates() && !registered[p.event] {
			t.Errorf("%s gates and is not registered", p.event)
		}
	}
	if kind, ok := a.Kind("NoSuchEvent"); ok || kind != event.KindOther {
		t.Errorf("an unknown event is %s, %v", kind, ok)
	}
}

func captured(captures []capture, name string) bool {
	for _, p := range captures {
		if p.event == name {
			return true
		}
	}
	return false
}

// oneLine reports whether b is empty or one line.
func oneLine(b []byte) bool {
	return len(b) == 0 || bytes.IndexByte(b, '\n') == len(b)-1
}
