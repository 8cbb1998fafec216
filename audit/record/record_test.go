// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tripline-sh/tripline/audit/record"
)

var update = flag.Bool("update", false, "write the golden files anew; a released format must not need it")

var when = time.Date(2026, 11, 30, 12, 34, 56, 789012345, time.FixedZone("x", 3600))

// full has every field set.
func full() record.Record {
	ms := int64(0)
	return record.Record{
		V: 1, Seq: 4711, Time: when.UTC(), Kind: record.CallRequested, ID: "01m8pqyhvwkv7jxxxcbz41dvfe", Call: "01m8pqyhvwkv7jxxxcbz41dvfe",
		Agent: "claude", Session: "s", Subagent: "sub", SubagentType: "explorer", Prompt: "p", Event: "PreToolUse", Tool: "Bash",
		ToolUseID: "toolu_1", MCPServer: "srv", MCPSource: "project", Cwd: "/home/u/<shop> & co", Project: "/home/u", AgentMode: "default",
		Decision: &record.Decision{
			Verdict: "ask", Answer: "deny", Rule: "git.push", Floor: true, Enforced: true, Mode: "guard", Profile: "standard", Gate: "hold",
			Card: "c1", Effects: []string{"delete", "write"}, Matches: []string{"git.push", "mine"}, RuleSet: "abc", Failure: "deadline",
		},
		Outcome: "ran", Who: "person", WhoBasis: "claimed", DurationMS: &ms, Source: "hook", Late: true,
		Peer:   &record.Peer{UID: 1000, GID: 100, PID: 42, Exe: "/usr/bin/tripline-hook", AgentPID: 41, AgentExe: "/usr/bin/claude"},
		Bodies: []record.Commitment{{Name: "input", Len: 3, Full: 5, Redacted: 1, Cut: true, MAC: record.MAC(make([]byte, 32), "input", []byte("abc"))}},
		Detail: map[string]string{"z": "1", "a": "\u2028\x00<"},
	}
}

func goldens() map[string]record.Record {
	return map[string]record.Record{
		"full":    full(),
		"minimal": {V: 1, Seq: 1, Time: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC), Kind: record.DaemonStart, ID: "x"},
	}
}

func TestTheFormatIsFrozen(t *testing.T) {
	t.Parallel()
	for name, r := range goldens() {
		path := filepath.Join("testdata", name+".json")
		got, err := record.Marshal(&r)
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: the bytes of version 1 changed, which breaks every log there is\n got %s\nwant %s", name, got, want)
		}
		back, err := record.Unmarshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(r, *back); d != "" {
			t.Errorf("%s: read back differently:\n%s", name, d)
		}
		if h, ok := record.Peek(want); !ok || h != r.Head() {
			t.Errorf("%s: peeked %+v, %v", name, h, ok)
		}
	}
}

func TestTheFullGoldenRecordIsFull(t *testing.T) {
	t.Parallel()
	var walk func(v reflect.Value, path string)
	walk = func(v reflect.Value, path string) {
		switch v.Kind() {
		case reflect.Pointer:
			walk(v.Elem(), path)
		case reflect.Slice:
			walk(v.Index(0), path)
		case reflect.Struct:
			if v.Type() == reflect.TypeFor[time.Time]() {
				return
			}
			for i := range v.NumField() {
				f := v.Field(i)
				if f.IsZero() {
					t.Errorf("%s.%s is not in the golden file: set it", path, v.Type().Field(i).Name)
					continue
				}
				walk(f, path+"."+v.Type().Field(i).Name)
			}
		}
	}
	walk(reflect.ValueOf(full()), "record")
}

func TestCommitmentsBindNameSaltAndBytes(t *testing.T) {
	t.Parallel()
	salt := bytes.Repeat([]byte{7}, record.SaltSize)
	// HMAC-SHA256 of "input", a zero byte and "abc", worked out with another implementation.
	const want = "GLtGVDpAWK-CJAWpI28cO6sXDqpcjp8HUnDCc_qvUsY"
	if got := record.MAC(salt, "input", []byte("abc")); got != want {
		t.Errorf("MAC %s, want %s", got, want)
	}
	c := record.Commitment{Name: "input", Len: 3, MAC: want}
	good := record.Body{Name: "input", Salt: salt, Data: []byte("abc")}
	if !c.Matches(good) {
		t.Error("the right body does not match")
	}
	for name, b := range map[string]record.Body{
		"another name":  {Name: "inputa", Salt: salt, Data: []byte("bc")},
		"another salt":  {Name: "input", Salt: bytes.Repeat([]byte{8}, record.SaltSize), Data: []byte("abc")},
		"no salt":       {Name: "input", Data: []byte("abc")},
		"other bytes":   {Name: "input", Salt: salt, Data: []byte("abd")},
		"fewer bytes":   {Name: "input", Salt: salt, Data: []byte("ab")},
		"salt and data": {Name: "input", Salt: salt[:31], Data: []byte("\x07abc")},
	} {
		if c.Matches(b) {
			t.Errorf("%s matches", name)
		}
	}
}

func TestValidNamesAreShortWords(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"input": true, "a.b_c-9": true, strings.Repeat("x", 32): true,
		"": false, "Input": false, "in put": false, "in\x00put": false, "ä": false, strings.Repeat("x", 33): false,
	} {
		if got := record.ValidName(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

func TestIDsSortByTimeAndDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	last := ""
	for i := range 1000 {
		id := record.NewID(when.Add(time.Duration(i) * time.Millisecond))
		if len(id) != 26 || seen[id] || id <= last || strings.Trim(id, "0123456789abcdefghjkmnpqrstvwxyz") != "" {
			t.Fatalf("id %q after %q", id, last)
		}
		seen[id], last = true, id
	}
	if a, b := record.NewID(when), record.NewID(when); a == b || a[:10] != b[:10] {
		t.Errorf("ids %s and %s of one moment", a, b)
	}
}

func TestPeekReadsPlainHeadsAndLeavesTheRestToUnmarshal(t *testing.T) {
	t.Parallel()
	plain := full()
	for name, tt := range map[string]struct {
		change func(*record.Record)
		ok     bool
	}{
		"every field":          {func(*record.Record) {}, true},
		"no call":              {func(r *record.Record) { r.Call = "" }, true},
		"no agent":             {func(r *record.Record) { r.Agent = "" }, true},
		"no session":           {func(r *record.Record) { r.Session = "" }, true},
		"the largest number":   {func(r *record.Record) { r.Seq = 1<<64 - 1 }, true},
		"a quote in an id":     {func(r *record.Record) { r.ID = `a"b` }, false},
		"a letter beyond it":   {func(r *record.Record) { r.Session = "\u00e4" }, false},
		"a backslash":          {func(r *record.Record) { r.Session = `\` }, false},
		"a line end in a call": {func(r *record.Record) { r.Call = "a\nb" }, false},
		"no id":                {func(r *record.Record) { r.ID = "" }, false},
	} {
		r := plain
		tt.change(&r)
		leaf, err := record.Marshal(&r)
		if err != nil {
			t.Fatal(err)
		}
		if h, ok := record.Peek(leaf); ok != tt.ok || ok && h != r.Head() {
			t.Errorf("%s: %+v, %v", name, h, ok)
		}
		for i := range leaf {
			if h, ok := record.Peek(leaf[:i]); ok && h.Seq != r.Seq {
				t.Errorf("%s: cut at %d: %+v", name, i, h)
			}
		}
	}
}

// undecodable are leaves that Unmarshal must refuse.
var undecodable = []string{
	"", "null", "{}", "[]", "{", `{"v":0}`, `{"v":2}`, `{"v":1,"seq":-1}`, `{"v":"1"}`, `{"v":1,"time":"never"}`, "\x00", strings.Repeat("[", 10000),
}

func TestUndecodableLeavesAreErrors(t *testing.T) {
	t.Parallel()
	for _, s := range append(undecodable, `{"v":1,"cwd":"`+strings.Repeat("x", record.MaxLeaf)+`"}`) {
		if r, err := record.Unmarshal([]byte(s)); err == nil {
			t.Errorf("%.40q: %+v", s, r)
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	for _, r := range goldens() {
		b, err := record.Marshal(&r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for _, s := range undecodable {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, leaf []byte) {
		r, err := record.Unmarshal(leaf)
		if err != nil {
			_, _ = record.Peek(leaf) // must not panic
			return
		}
		again, err := record.Marshal(r)
		if err != nil {
			t.Fatalf("read but not written: %v", err)
		}
		back, err := record.Unmarshal(again)
		if err != nil {
			t.Fatalf("written but not read: %v\n%s", err, again)
		}
		third, err := record.Marshal(back)
		if err != nil || !bytes.Equal(again, third) {
			t.Fatalf("not stable: %s\n%s", again, third)
		}
		if h, ok := record.Peek(again); ok && h != back.Head() {
			t.Fatalf("peeked %+v of %s", h, again)
		}
	})
}

// metas are segment descriptions, good and bad.
var metas = []struct {
	text string
	ok   bool
}{
	{`{"v":1,"log":"l","name":"n","first":1}`, true},
	{`{"v":1,"log":"l","name":"n","first":5,"prev":{"name":"p","first":1,"size":4}}`, true},
	{`{"v":1,"log":"l","name":"n","first":9,"prev":{"name":"p","first":1,"size":4},"lost":{"first":5,"last":8,"cause":"missing"}}`, true},
	{`{"v":1,"first":0}`, false},
	{`{"v":2,"first":1}`, false},
	{`{"v":1,"first":5,"prev":{"first":1,"size":5}}`, false},
	{`{"v":1,"first":5,"prev":{"first":1,"size":0}}`, false},
	{`{"v":1,"first":5,"prev":{"first":18446744073709551615,"size":2}}`, false},
	{`{"v":1,"first":5,"lost":{"first":1,"last":5}}`, false},
	{`{"v":1,"first":5,"lost":{"first":3,"last":2}}`, false},
	{`nonsense`, false},
	{``, false},
}

func TestSegmentDescriptionsAreChecked(t *testing.T) {
	t.Parallel()
	for _, tt := range metas {
		if m, err := record.UnmarshalMeta([]byte(tt.text)); (err == nil) != tt.ok {
			t.Errorf("%s: %+v, %v", tt.text, m, err)
		}
	}
}

func FuzzUnmarshalMeta(f *testing.F) {
	for _, tt := range metas {
		f.Add([]byte(tt.text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := record.UnmarshalMeta(b)
		if err != nil {
			return
		}
		if m.Prev != nil && m.Prev.First+m.Prev.Size-1 >= m.First {
			t.Errorf("overlaps its predecessor: %s", b)
		}
		if len(m.Detail()) < 3 {
			t.Errorf("detail %v", m.Detail())
		}
		out, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := record.UnmarshalMeta(out); err != nil {
			t.Errorf("written but not read: %v", err)
		}
	})
}
