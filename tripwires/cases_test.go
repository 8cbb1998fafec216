// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/tripline-sh/tripline/tripwires/view"
)

// fileCase is one line of testdata/cases.jsonl.
type fileCase struct {
	ID     string          `json:"id"`
	Tool   string          `json:"tool"`
	Input  json.RawMessage `json:"input"`
	Cwd    string          `json:"cwd"`
	Home   string          `json:"home"`
	Accept []string        `json:"accept"`
	Why    string          `json:"why"`
	Floor  bool            `json:"floor"`
}

func readCases(t testing.TB) []fileCase {
	t.Helper()
	data, err := os.ReadFile("testdata/cases.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var out []fileCase
	for sc := bufio.NewScanner(bytes.NewReader(data)); sc.Scan(); {
		var c fileCase
		if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
			t.Fatalf("%s: %v", sc.Bytes(), err)
		}
		out = append(out, c)
	}
	return out
}

// call makes the Call of a case: a text is the command of a shell.
func (c fileCase) call() Call {
	in := c.Input
	if in[0] == '"' {
		in = json.RawMessage(`{"command":` + string(in) + `}`)
	}
	return Call{Agent: "claude", Tool: c.Tool, Input: in, Cwd: c.Cwd, FirstCwd: c.Cwd, Homes: []string{c.Home}}
}

func newEngine(t testing.TB, o Options) *Engine {
	t.Helper()
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestEveryCaseOfTheFileIsInsideItsAcceptList(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{})
	for _, c := range readCases(t) {
		d := e.Evaluate(context.Background(), c.call(), view.NewMemory().NewReader())
		if !slices.Contains(c.Accept, string(d.Verdict)) || c.Floor && !d.Floor {
			effects, _ := json.Marshal(d.Effects)
			t.Errorf("%s %s %s\n\tgot %s by %q (floor %v), want %v (%s)\n\t%s\n\t%s", c.ID, c.Tool, c.Input, d.Verdict, d.Rule, d.Floor, c.Accept, c.Why, d.Reason, effects)
		}
	}
}

func TestTheBuiltInRulesPassTheirOwnCases(t *testing.T) {
	t.Parallel()
	s, err := Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range s.Test() {
		t.Error(f)
	}
}
