// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// seen is what a reading gave, one text a call or result.
func seen(t *testing.T, text string, o Options) ([]string, Stats, int64) {
	t.Helper()
	var out []string
	next, s, err := NewReader(o).Read(context.Background(), strings.NewReader(text), 0, collect(&out))
	if err != nil {
		t.Fatal(err)
	}
	return out, s, next
}

func collect(out *[]string) *Visitor {
	return &Visitor{
		Call: func(c *Call) error {
			*out = append(*out, fmt.Sprintf("call %s %s %s @%s", c.ToolUseID, c.Tool, c.Input, c.Cwd))
			return nil
		},
		Result: func(r *Result) error {
			*out = append(*out, fmt.Sprintf("result %s error=%v refused=%q by=%q", r.ToolUseID, r.IsError, r.Refused, r.RefusedBy))
			return nil
		},
	}
}

func call(id, command string) string {
	return fmt.Sprintf(`{"message":{"id":"msg_1","model":"m","content":[{"id":%q,"input":{"command":%q},"name":"Bash","type":"tool_use"}]},"type":"assistant","timestamp":"2026-11-24T09:30:00.000Z","cwd":"/home/dev/shop","sessionId":"s1","version":"2.1.332"}`, id, command)
}

func result(id, rest string) string {
	return fmt.Sprintf(`{"type":"user","message":{"role":"user","content":[{"tool_use_id":%q,"type":"tool_result","content":"x"%s}]},"sessionId":"s1"}`, id, rest)
}

func TestLinesAreReadOrCounted(t *testing.T) {
	t.Parallel()
	good := `call toolu_1 Bash {"command":"ls"} @/home/dev/shop`
	for name, tt := range map[string]struct {
		text                          string
		want                          []string
		broken, unfinished, oversized int64
	}{
		"a call":                                     {text: call("toolu_1", "ls") + "\n", want: []string{good}},
		"a call with a carriage return":              {text: call("toolu_1", "ls") + "\r\n", want: []string{good}},
		"a call between blanks":                      {text: "\n  " + call("toolu_1", "ls") + "  \n\n", want: []string{good}},
		"a last line that is whole but has no end":   {text: call("toolu_1", "ls"), want: []string{good}},
		"a last line that is half written":           {text: call("toolu_1", "ls") + "\n" + call("toolu_2", "ls")[:80], want: []string{good}, unfinished: 1},
		"a last line of a few bytes":                 {text: call("toolu_1", "ls") + "\n{", want: []string{good}, unfinished: 1},
		"a half line in the middle":                  {text: call("toolu_2", "x")[:150] + "\n" + call("toolu_1", "ls") + "\n", want: []string{good}, broken: 1},
		"NULs after a crash":                         {text: strings.Repeat("\x00", 4000) + "\n" + call("toolu_1", "ls") + "\n", want: []string{good}, broken: 1},
		"no JSON at all":                             {text: "hello\n" + call("toolu_1", "ls") + "\n", want: []string{good}, broken: 1},
		"two objects on a line":                      {text: call("toolu_2", "x") + call("toolu_1", "ls") + "\n", broken: 1},
		"deep nesting":                               {text: `{"a":` + strings.Repeat("[", 100_000) + `"tool_use"` + "\n" + call("toolu_1", "ls") + "\n", want: []string{good}, broken: 1},
		"a call whose input is no object":            {text: `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"a","name":"Bash","input":"ls"}]}}` + "\n", broken: 1},
		"a call whose input is not JSON inside":      {text: `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"a","name":"Bash","input":{"command":truth}}]}}` + "\n", broken: 1},
		"a call without an id":                       {text: `{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash","input":{}}]}}` + "\n", broken: 1},
		"a person who types the marks":               {text: `{"type":"user","message":{"role":"user","content":"{\"type\":\"tool_use\",\"id\":\"a\"}"}}` + "\n"},
		"a call that the client only quotes":         {text: `{"type":"api-request-blob","message":{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"Bash","input":{}}]}}` + "\n"},
		"a call of a tool of the server":             {text: `{"type":"assistant","message":{"content":[{"type":"server_tool_use","id":"a","name":"web_search","input":{}}],"stop_reason":"tool_use"}}` + "\n"},
		"an answer in words":                         {text: `{"type":"assistant","message":{"content":"text","stop_reason":"tool_use"}}` + "\n"},
		"a key twice: the last one counts":           {text: `{"type":"user","type":"assistant","message":{"content":[{"type":"tool_use","id":"a","id":"toolu_1","name":"Bash","input":{"command":"ls"}}]},"cwd":"/","cwd":"/home/dev/shop"}` + "\n", want: []string{good}},
		"a key in escapes":                           {text: `{"ty\u0070e":"assistant","message":{"content":[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"ls"}}]},"cwd":"/home/dev/shop"}` + "\n", want: []string{good}},
		"keys of another case are other keys":        {text: `{"Type":"assistant","message":{"content":[{"type":"tool_use","id":"a","name":"Bash","input":{}}]}}` + "\n"},
		"a lone surrogate":                           {text: `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"a","name":"Bash","input":{"command":"\ud800"}}]},"cwd":"/\udc00"}` + "\n", want: []string{"call a Bash {\"command\":\"\\ud800\"} @/\ufffd"}},
		"backslashes before a quote":                 {text: `{"x":"\\\\\\\"","type":"assistant","message":{"content":[{"type":"tool_use","id":"a","name":"Bash","input":{"command":"\\"}}]},"cwd":"/"}` + "\n", want: []string{`call a Bash {"command":"\\"} @/`}},
		"a result":                                   {text: result("toolu_1", "") + "\n", want: []string{`result toolu_1 error=false refused="" by=""`}},
		"a result that is an error":                  {text: result("toolu_1", `,"is_error":true`) + "\n", want: []string{`result toolu_1 error=true refused="" by=""`}},
		"a refusal by a hook":                        {text: strings.Replace(result("toolu_1", `,"is_error":true`), `"sessionId"`, `"toolDenialKind":"permission-rule","permissionDecision":{"decision":"reject","source":"hook"},"sessionId"`, 1) + "\n", want: []string{`result toolu_1 error=true refused="permission-rule" by="hook"`}},
		"a refusal in the words of an older client":  {text: strings.Replace(result("toolu_1", `,"is_error":true`), `"sessionId"`, `"toolUseResult":"User rejected tool use","sessionId"`, 1) + "\n", want: []string{`result toolu_1 error=true refused="user-rejected" by=""`}},
		"several calls in one answer":                {text: `{"type":"assistant","message":{"content":[{"type":"text","text":"x"},{"type":"tool_use","id":"a","name":"Read","input":{}},{"type":"tool_use","id":"b","name":"Read","input":{}}]},"cwd":"/"}` + "\n", want: []string{"call a Read {} @/", "call b Read {} @/"}},
		"an id that is too long to be one":           {text: call(strings.Repeat("x", 600), "ls") + "\n", broken: 1},
		"a line that is too long keeps its call":     {text: call("toolu_1", strings.Repeat("x", 200_000)) + "\n", want: []string{`call toolu_1 Bash  @/home/dev/shop`}, oversized: 1},
		"a line that is too long keeps its result":   {text: strings.Replace(result("toolu_1", ""), `"content":"x"`, `"content":"`+strings.Repeat(`\u00e9\\\"`, 50_000)+`"`, 1) + "\n", want: []string{`result toolu_1 error=false refused="" by=""`}, oversized: 1},
		"a line too long for anything, then a call":  {text: `{"a":[` + strings.Repeat("1,", 2<<20) + `1]}` + "\n" + call("toolu_1", "ls") + "\n", want: []string{good}, oversized: 1},
		"a line that is too long and has no end":     {text: `{"a":"` + strings.Repeat("x", 3<<20), unfinished: 1},
		"a line that is too long and whole, no end":  {text: call("toolu_1", strings.Repeat("x", 200_000)), want: []string{`call toolu_1 Bash  @/home/dev/shop`}, oversized: 1},
		"an empty file":                              {text: ""},
		"a mark at the very end of a broken line":    {text: `{"type":"assistant","x":"tool_use"` + "\n", broken: 1},
		"an unknown kind of line that holds results": {text: `{"type":"queue","message":{"content":[{"type":"tool_result","tool_use_id":"a"}]}}` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, s, next := seen(t, tt.text, Options{MaxLine: 128 << 10})
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
			if s.Broken != tt.broken || s.Unfinished != tt.unfinished || s.Oversized != tt.oversized {
				t.Errorf("broken, unfinished, oversized = %d, %d, %d; want %d, %d, %d", s.Broken, s.Unfinished, s.Oversized, tt.broken, tt.unfinished, tt.oversized)
			}
			if tt.unfinished == 0 && next != int64(len(tt.text)) {
				t.Errorf("next offset %d of %d", next, len(tt.text))
			}
		})
	}
}

func TestEveryFieldOfACallIsTold(t *testing.T) {
	t.Parallel()
	text := `{"parentUuid":null,"isSidechain":true,"agentId":"a17","message":{"model":"claude-x","id":"msg_9","content":[{"type":"tool_use","id":"toolu_1","name":"Write","input":{"file_path":"/x","content":"\n"}}]},"type":"assistant","timestamp":"2026-11-24T09:30:00.25Z","cwd":"/home/dev","sessionId":"s","version":"2.1.332"}`
	var got Call
	_, _, err := NewReader(Options{}).Read(context.Background(), strings.NewReader("{}\n"+text+"\n"), 100, &Visitor{Call: func(c *Call) error { got = *c; return nil }})
	if err != nil {
		t.Fatal(err)
	}
	if got.Session != "s" || got.Subagent != "a17" || !got.Sidechain || got.Tool != "Write" || got.ToolUseID != "toolu_1" || got.MessageID != "msg_9" ||
		string(got.Input) != `{"file_path":"/x","content":"\n"}` || got.Cwd != "/home/dev" || got.Time.UnixMilli() != 1795512600250 || got.Version != "2.1.332" ||
		got.Model != "claude-x" || got.Offset != 103 {
		t.Errorf("%+v", got)
	}
}

// A file is read while it grows: whatever the cuts, the pieces give what the whole gives.
func TestReadingGoesOnWhereItEnded(t *testing.T) {
	t.Parallel()
	text := call("toolu_1", "ls") + "\n" + result("toolu_1", "") + "\n{}\n" + call("toolu_2", strings.Repeat("y", 3000)) + "\n" + call("toolu_3", "é") + "\n"
	want, _, _ := seen(t, text, Options{MaxLine: 2048})
	r := NewReader(Options{MaxLine: 2048})
	for cut := range len(text) {
		var got []string
		from := int64(0)
		for _, end := range []int{cut, len(text)} {
			next, _, err := r.Read(context.Background(), strings.NewReader(text[from:end]), from, collect(&got))
			if err != nil {
				t.Fatal(err)
			}
			from = next
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || from != int64(len(text)) {
			t.Fatalf("cut at %d: got %q, offset %d; want %q, %d", cut, got, from, want, len(text))
		}
	}
}

func TestResultsAreReadOnlyWhileTheyAreAskedFor(t *testing.T) {
	t.Parallel()
	text := result("toolu_0", "") + "\n" + call("toolu_1", "ls") + "\n" + result("toolu_1", "") + "\n" + result("toolu_2", "") + "\n" + call("toolu_3", "ls") + "\n"
	var got []string
	var v Visitor
	v.Call = func(c *Call) error {
		got = append(got, c.ToolUseID)
		v.Result = func(r *Result) error {
			got = append(got, "result "+r.ToolUseID)
			v.Result = nil
			return nil
		}
		return nil
	}
	if _, s, err := NewReader(Options{}).Read(context.Background(), strings.NewReader(text), 0, &v); err != nil || s.Lines != 5 || s.Broken != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if fmt.Sprint(got) != "[toolu_1 result toolu_1 toolu_3]" {
		t.Errorf("%q", got)
	}
}

func TestErrorsOfTheVisitorAndTheSourceEndAReading(t *testing.T) {
	t.Parallel()
	text := call("toolu_1", "ls") + "\n" + call("toolu_2", "ls") + "\n"
	stop := errors.New("stop")
	n := 0
	next, _, err := NewReader(Options{}).Read(context.Background(), strings.NewReader(text), 0, &Visitor{Call: func(*Call) error {
		if n++; n == 2 {
			return stop
		}
		return nil
	}})
	if !errors.Is(err, stop) || next != int64(len(call("toolu_1", "ls"))+1) {
		t.Errorf("next %d, error %v", next, err)
	}
	_, _, err = NewReader(Options{}).Read(context.Background(), io.MultiReader(strings.NewReader(text[:10]), failing{}), 0, &Visitor{})
	if !errors.Is(err, errFail) {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err = NewReader(Options{}).Read(ctx, strings.NewReader(text), 0, &Visitor{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

var errFail = errors.New("fails")

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errFail }

func TestMemoryIsBoundedByTheLongestLine(t *testing.T) {
	t.Parallel()
	r := NewReader(Options{MaxLine: 1 << 20})
	src := io.MultiReader(strings.NewReader(`{"a":"`), io.LimitReader(endless{}, 16<<20), strings.NewReader("\"}\n"+call("toolu_1", "ls")+"\n"))
	var got []string
	if _, s, err := r.Read(context.Background(), src, 0, collect(&got)); err != nil || len(got) != 1 || s.Oversized != 1 {
		t.Errorf("%q %+v %v", got, s, err)
	}
	if n := cap(r.lines.buf) + cap(r.lines.short.out); n > 4<<20 {
		t.Errorf("%d bytes are held", n)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestTheRealClientsTranscripts(t *testing.T) {
	t.Parallel()
	tree, err := Open("testdata/real")
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	files, s, err := tree.Files(context.Background())
	if err != nil || len(files) != 3 || s != (Stats{}) {
		t.Fatalf("%d files, %+v, %v", len(files), s, err)
	}
	tools, refused, subagents, failed := map[string]int{}, map[string]string{}, map[string]bool{}, 0
	ids := map[string]bool{}
	r := NewReader(Options{})
	for _, f := range files {
		_, s, err := r.ReadFile(context.Background(), tree, f, 0, &Visitor{
			Call: func(c *Call) error {
				if c.Session == "" || c.Cwd == "" || c.Time.IsZero() || c.Version == "" || c.Model == "" {
					t.Errorf("%s: a call lacks something: %+v", f.Path, c)
				}
				if (f.Main != "") != c.Sidechain || (f.Main != "") != (c.Subagent != "") {
					t.Errorf("%s: %+v", f.Path, c)
				}
				if !ids[c.ToolUseID] {
					tools[c.Tool]++
				}
				ids[c.ToolUseID] = true
				subagents[c.Subagent] = true
				return nil
			},
			Result: func(res *Result) error {
				if !ids[res.ToolUseID] {
					t.Errorf("%s: a result without its call: %+v", f.Path, res)
				}
				if res.Refused != "" {
					refused[res.Refused] = res.RefusedBy
				} else if res.IsError {
					failed++
				}
				return nil
			},
		})
		if err != nil || s.Broken+s.Unfinished+s.Oversized != 0 {
			t.Errorf("%s: %+v, %v", f.Path, s, err)
		}
		if got := r.FirstCwd(tree, f); got != "/home/dev/shop" {
			t.Errorf("%s: the session began in %q", f.Path, got)
		}
	}
	for _, tool := range []string{"Bash", "Write", "Read", "Edit", "Agent", "WebFetch"} {
		if tools[tool] == 0 {
			t.Errorf("no call of %s in %v", tool, tools)
		}
	}
	if refused["permission-rule"] != "hook" || refused["user-rejected"] != "config" || len(subagents) != 2 || failed == 0 {
		t.Errorf("refused %v, subagents %v, failed %d", refused, subagents, failed)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(call("toolu_1", "ls")+"\n"+result("toolu_1", "")+"\n"), 100)
	f.Add([]byte(`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"a","name":"B","input":{"x":"\ud800\\"}}]}}`), 7)
	f.Add([]byte("\x00\x00\n{\"a\":\"\\u12\n\"tool_use\"[[[[{{{\n"), 64)
	names, _ := filepath.Glob("testdata/real/projects/*/*.jsonl")
	for _, name := range names {
		if b, err := os.ReadFile(name); err == nil {
			f.Add(b[:min(len(b), 20_000)], 2000)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, max int) {
		o := Options{MaxLine: 64 + max&0xfff}
		whole, s, next := seen(t, string(data), o)
		if next < 0 || next > int64(len(data)) || s.Calls+s.Results < int64(len(whole)) {
			t.Fatalf("next %d of %d, %+v", next, len(data), s)
		}
		// The bound of a line changes which inputs are kept, never which calls and results are told of lines within it.
		if all, big, _ := seen(t, string(data), Options{}); s.Oversized == 0 && s.Unfinished == big.Unfinished && fmt.Sprint(all) != fmt.Sprint(whole) {
			t.Fatalf("bounded %q\nwhole   %q", whole, all)
		}
		var pieces []string
		r := NewReader(o)
		cut := max % (len(data) + 1)
		if cut < 0 {
			cut = -cut
		}
		mid, _, err := r.Read(context.Background(), strings.NewReader(string(data[:cut])), 0, collect(&pieces))
		if err != nil {
			t.Fatal(err)
		}
		if mid == int64(cut) && cut > 0 && data[cut-1] != '\n' {
			return // a whole line without an end was taken for what it was; nothing may follow it but its end
		}
		end, _, err := r.Read(context.Background(), strings.NewReader(string(data[mid:])), mid, collect(&pieces))
		if err != nil || end != next || fmt.Sprint(pieces) != fmt.Sprint(whole) {
			t.Fatalf("cut at %d: %q, offset %d, %v\nwhole %q, offset %d", cut, pieces, end, err, whole, next)
		}
	})
}
