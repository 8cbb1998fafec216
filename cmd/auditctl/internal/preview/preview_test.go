// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/hooks/transcript"
	"github.com/tripline-sh/tripline/tripwires"
)

// past is a made-up past: transcripts of a home with one project, and a report on them.
type past struct {
	t    *testing.T
	home string
	n    int
	text map[string]*strings.Builder // by the transcript's path below projects
}

func newPast(t *testing.T) *past {
	t.Helper()
	p := &past{t: t, home: t.TempDir(), text: map[string]*strings.Builder{}}
	for _, d := range []string{".git", "src"} {
		if err := os.MkdirAll(filepath.Join(p.home, "shop", d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// made is a call to be written; what is not set has a default.
type made struct {
	id, message, session, origin, cwd, tool, command string
	input                                            map[string]any
	at                                               string
}

func (p *past) call(file string, m made) {
	p.n++
	pick := func(s, def string) string {
		if s == "" {
			return def
		}
		return s
	}
	if m.input == nil {
		m.input = map[string]any{"command": m.command}
	}
	p.line(file, map[string]any{
		"type": "assistant", "sessionId": pick(m.session, "s1"), "requestSessionId": pick(m.origin, pick(m.session, "s1")), "cwd": pick(m.cwd, p.home+"/shop"),
		"timestamp": pick(m.at, fmt.Sprintf("2026-11-24T09:30:%02d.000Z", p.n)),
		"message": map[string]any{"id": pick(m.message, "msg_1"), "content": []any{map[string]any{
			"type": "tool_use", "id": pick(m.id, fmt.Sprintf("toolu_%d", p.n)), "name": pick(m.tool, "Bash"), "input": m.input}}},
	})
}

func (p *past) line(file string, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		p.t.Fatal(err)
	}
	p.raw(file, string(b)+"\n")
}

func (p *past) raw(file, text string) {
	if p.text[file] == nil {
		p.text[file] = &strings.Builder{}
	}
	p.text[file].WriteString(text)
}

func (p *past) write() string {
	p.t.Helper()
	dir := filepath.Join(p.home, ".claude")
	for name, text := range p.text {
		path := filepath.Join(dir, "projects", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			p.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
			p.t.Fatal(err)
		}
	}
	return dir
}

func (p *past) report(change func(*Options)) *Report {
	p.t.Helper()
	e, err := tripwires.New(tripwires.Options{})
	if err != nil {
		p.t.Fatal(err)
	}
	o := Options{Dir: p.write(), Engine: e, Homes: []string{p.home}, Now: time.Now, Workers: 3}
	if change != nil {
		change(&o)
	}
	rep, err := Run(context.Background(), o)
	if err != nil {
		p.t.Fatal(err)
	}
	if s := &rep.Summary; s.Calls != s.AsBefore+s.Asked+s.Denied {
		p.t.Errorf("the sum is wrong: %+v", s)
	}
	return rep
}

func TestAReportCountsAndLists(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.call("p/s1.jsonl", made{command: "ls"})
	p.call("p/s1.jsonl", made{command: "rm -rf src"})
	p.call("p/s1.jsonl", made{command: "git push --force origin main"})
	p.call("p/s1.jsonl", made{command: "rm -rf /"})
	p.call("p/s1/subagents/agent-1.jsonl", made{command: "git push -f", session: "s1"})
	p.raw("p/s2.jsonl", "broken\n")
	p.call("p/s2.jsonl", made{command: "ls", session: "s2", cwd: p.home + "/other"})
	rep := p.report(nil)
	s := rep.Summary
	if s.Calls != 6 || s.AsBefore != 2 || s.Asked != 2 || s.Denied != 2 || s.Floor != 1 || s.Sessions != 2 || s.Projects != 2 || s.Unread.Broken != 1 || s.Files != 3 {
		t.Errorf("%+v", s)
	}
	var rules []string
	for _, r := range rep.Rules {
		rules = append(rules, fmt.Sprintf("%s %d %d %v %v", r.Rule, r.Asked, r.Denied, r.Floor, r.Why != ""))
	}
	if got := strings.Join(rules, ", "); !strings.HasPrefix(got, "git.force-push 2 0 false true, ") || !strings.Contains(got, "delete.project 0 1 false true") {
		t.Errorf("rules: %s", got)
	}
	var calls []string
	for _, c := range rep.Calls {
		calls = append(calls, fmt.Sprintf("%s %s %v", c.Verdict, c.Input, c.Floor))
		if c.Reason == "" || c.Session != "s1" || c.Project != p.home+"/shop" {
			t.Errorf("%+v", c)
		}
	}
	want := []string{`deny {"command":"rm -rf src"} false`, `ask {"command":"git push --force origin main"} false`, `deny {"command":"rm -rf /"} true`, `ask {"command":"git push -f"} false`}
	if strings.Join(calls, "\n") != strings.Join(want, "\n") {
		t.Errorf("calls:\n%s", strings.Join(calls, "\n"))
	}
}

func TestACallCountsOnceHoweverOftenItIsWritten(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.call("p/s5.jsonl", made{id: "toolu_1", command: "rm -rf src", at: "2026-11-24T09:30:00Z", session: "s5"})
	// the fork sorts before its origin, and the client wrote its own directory into the copy
	p.call("p/a-fork.jsonl", made{id: "toolu_1", command: "rm -rf src", at: "2026-11-24T09:30:00Z", session: "a", origin: "s5", cwd: "/tmp"})
	p.call("p/a-fork.jsonl", made{id: "toolu_2", command: "git push -f", session: "a"})
	p.call("p/s5.jsonl", made{id: "toolu_1", command: "rm -rf src", at: "2026-11-24T09:30:00Z", session: "s5"}) // the same line again
	rep := p.report(nil)
	if s := rep.Summary; s.Calls != 2 || s.Repeated != 2 || s.Sessions != 2 {
		t.Errorf("%+v", s)
	}
	if len(rep.Calls) != 2 || rep.Calls[0].Session != "s5" || rep.Calls[0].Cwd == "/tmp" {
		t.Errorf("%+v", rep.Calls)
	}
	// a copy whose origin is gone counts
	p = newPast(t)
	p.call("p/a-fork.jsonl", made{command: "rm -rf src", session: "a", origin: "gone"})
	if s := p.report(nil).Summary; s.Calls != 1 || s.Denied != 1 {
		t.Errorf("%+v", s)
	}
	// some servers count their ids from one in each session: other calls
	p = newPast(t)
	p.call("p/s1.jsonl", made{id: "call_1", command: "ls"})
	p.call("p/s2.jsonl", made{id: "call_1", command: "ls", session: "s2"})
	if s := p.report(nil).Summary; s.Calls != 2 {
		t.Errorf("%+v", s)
	}
}

func TestCallsThatDidNotRunThenAreMarked(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	for i, denial := range []string{"user-rejected", ""} {
		id := fmt.Sprint("toolu_x", i)
		p.call("p/s1.jsonl", made{id: id, command: "rm -rf src"})
		p.call("p/s1.jsonl", made{command: "ls"})
		p.line("p/s1.jsonl", map[string]any{"type": "user", "sessionId": "s1", "toolDenialKind": denial,
			"message": map[string]any{"role": "user", "content": []any{map[string]any{"type": "tool_result", "tool_use_id": id, "is_error": true}}}})
	}
	rep := p.report(nil)
	if rep.Summary.Refused != 1 || len(rep.Calls) != 2 || rep.Calls[0].Refused != "user-rejected" || rep.Calls[1].Refused != "" {
		t.Errorf("%+v", rep.Calls)
	}
}

func TestOnlyTheAskedTimeAndProjectCount(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	for _, at := range []string{"2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z", "no time"} {
		p.call("p/s1.jsonl", made{command: "rm -rf src", at: at})
	}
	p.call("p/s2.jsonl", made{command: "rm -rf src", at: "2026-11-21T01:00:00Z", cwd: p.home + "/elsewhere"})
	day := func(d int) time.Time { return time.Date(2026, 11, d, 0, 0, 0, 0, time.UTC) }
	for name, tt := range map[string]struct {
		change func(*Options)
		want   int
	}{
		"everything":                         {nil, 5},
		"from a time on":                     {func(o *Options) { o.From = day(21) }, 4},
		"before a time":                      {func(o *Options) { o.To = day(22) }, 4},
		"between, the end excluded":          {func(o *Options) { o.From, o.To = day(21), day(22) }, 3},
		"of a project":                       {func(o *Options) { o.Project = p.home + "/shop" }, 4},
		"of a directory":                     {func(o *Options) { o.Project = p.home }, 5},
		"of a directory with the same begin": {func(o *Options) { o.Project = p.home + "/sh" }, 0},
		"of files that changed since":        {func(o *Options) { o.From = time.Now().Add(time.Hour) }, 0},
	} {
		if got := p.report(tt.change).Summary.Calls; got != tt.want {
			t.Errorf("%s: %d calls, want %d", name, got, tt.want)
		}
	}
}

func TestVerdictsThatDependOnFilesAreMarked(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	for name, text := range map[string]string{"shop/a.csv": "1\n", "shop/clean.sh": "rm -rf src\n", "shop/.git/HEAD": "ref: refs/heads/main\n"} {
		if err := os.WriteFile(filepath.Join(p.home, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p.call("p/s1.jsonl", made{command: "rm a.csv"})
	p.call("p/s1.jsonl", made{command: "rm gone.csv"})
	p.call("p/s1.jsonl", made{command: "sh clean.sh"})
	p.call("p/s1.jsonl", made{command: "rm -rf node_modules"})
	p.call("p/s1.jsonl", made{command: "rm -rf src"})
	p.call("p/s1.jsonl", made{command: "git push --force"})
	p.call("p/s1.jsonl", made{command: "ls"})
	rep := p.report(nil)
	var got []string
	for _, c := range rep.Calls {
		got = append(got, fmt.Sprintf("%s %v", c.Input, c.Today))
	}
	want := `[{"command":"rm a.csv"} true {"command":"sh clean.sh"} true {"command":"rm -rf node_modules"} true {"command":"rm -rf src"} false {"command":"git push --force"} false]`
	if fmt.Sprint(got) != want || rep.Summary.Today != 3 || rep.Summary.PassedToday != 1 {
		t.Errorf("got %v, %+v", got, rep.Summary)
	}
}

func TestInputsAreListedWithoutTheirSecretsAndShort(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	secret := "ghp_" + strings.Repeat("a1B2", 9)
	p.call("p/s1.jsonl", made{command: "GITHUB_TOKEN=" + secret + " git push --force"})
	p.call("p/s1.jsonl", made{tool: "Write", input: map[string]any{"file_path": "/etc/passwd", "content": strings.Repeat("x", 100_000)}})
	p.call("p/s1.jsonl", made{command: "ls " + strings.Repeat("y", 5000)})
	rep := p.report(nil)
	out, err := json.Marshal(rep)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(out, []byte(secret)) || len(rep.Calls) != 2 || len(out) > 10_000 {
		t.Errorf("%d bytes, %d calls: %.500s", len(out), len(rep.Calls), out)
	}
}

func TestCallsThatCannotBeReadWithCertaintyAreDenied(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.raw("p/s1.jsonl", `{"type":"assistant","sessionId":"s1","cwd":"/","message":{"content":[{"type":"tool_use","id":"a","name":"Bash","input":{"command":"ls","command":"rm -rf /"}}]}}`+"\n")
	rep := p.report(nil)
	if rep.Summary.Denied != 1 || rep.Calls[0].Rule != "input.undecodable" {
		t.Errorf("%+v", rep)
	}
}

func TestTheReportIsTheSameWhateverTheWorkers(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	g := generated{calls: 1500}
	dir := generate(t, home, &g)
	e, err := tripwires.New(tripwires.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var first []byte
	for _, workers := range []int{1, 2, 7} {
		rep, err := Run(context.Background(), Options{Dir: dir, Engine: e, Homes: []string{home}, Workers: workers, Now: func() time.Time { return time.Unix(0, 0) }})
		if err != nil || rep.Summary.Calls != 1500 || rep.Summary.Bytes != g.bytes {
			t.Fatalf("%+v, %v", rep, err)
		}
		b, err := json.Marshal(rep)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = b
		}
		if !bytes.Equal(first, b) {
			t.Errorf("%d workers: another report", workers)
		}
	}
}

func TestAnInterruptedRunEnds(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	for i := range 50 {
		p.call(fmt.Sprintf("p/s%d.jsonl", i), made{command: "rm -rf src"})
	}
	ctx, cancel := context.WithCancel(context.Background())
	e, err := tripwires.New(tripwires.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Run(ctx, Options{Dir: p.write(), Engine: e, Now: time.Now, Progress: func(int64, int64) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	rep, err := Run(context.Background(), Options{Dir: t.TempDir(), Engine: e, Now: time.Now})
	if !errors.Is(err, fs.ErrNotExist) || rep == nil || rep.Rules == nil || rep.Calls == nil || rep.Summary.Mode == "" || rep.Summary.Calls != 0 {
		t.Errorf("error %v, report %+v", err, rep)
	}
}

func TestTheListIsBoundedToTheNewest(t *testing.T) {
	t.Parallel()
	input := json.RawMessage(`{"command":"` + strings.Repeat("x", 1900) + `"}`)
	n := 3 * maxListed / len(input)
	for _, all := range []bool{false, true} {
		tl := newTally(&Options{All: all}, transcript.Stats{})
		v := &verdict{decision: event.Ask, rule: "r"}
		for i := range n {
			at := (i * 7919) % n // not in order
			tl.count(&seen{key: uint64(i), day: int32(i % 5), verdict: v, listed: &Call{Time: time.Unix(int64(at), 0), Input: input}})
		}
		held := 0
		for _, c := range tl.listed {
			held += size(c)
		}
		if held != tl.held || held > maxListed && !all {
			t.Errorf("%d bytes are held, counted as %d", held, tl.held)
		}
		rep := tl.report()
		s := rep.Summary
		if s.Asked != n || len(rep.Calls)+s.LeftOut != n || all != (s.LeftOut == 0) || len(rep.Calls) < n/8 || rep.Calls[len(rep.Calls)-1].Time.Unix() != int64(n-1) {
			t.Errorf("%d of %d calls, %+v", len(rep.Calls), n, s)
		}
		for i, c := range rep.Calls[1:] {
			if c.Time.Before(rep.Calls[i].Time) {
				t.Fatalf("%v stands before %v", rep.Calls[i].Time, c.Time)
			}
		}
	}
}

func TestDaysAreThoseOfThePersonsClock(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.call("p/s1.jsonl", made{command: "ls", at: "2026-11-20T22:30:00Z"})
	p.call("p/s1.jsonl", made{command: "git push -f", at: "2026-11-20T23:30:00Z"})
	p.call("p/s1.jsonl", made{command: "rm -rf src", at: "2026-11-21T10:00:00Z"})
	p.call("p/s1.jsonl", made{command: "git push -f", at: "2026-11-22T10:00:00Z"})
	p.call("p/s1.jsonl", made{command: "git push -f", at: "no time"})
	p.call("p/s2.jsonl", made{command: "git push -f", at: "1969-12-31T23:30:00Z"})
	for name, tt := range map[string]struct {
		east int
		want string
	}{
		"at Greenwich":      {0, "4 {1969-12-31 1 0}"}, // of equals the first
		"an hour east":      {3600, "4 {2026-11-21 1 1}"},
		"half a day west":   {-12 * 3600, "3 {2026-11-20 1 1}"},
		"a quarter further": {12*3600 + 900, "3 {2026-11-21 1 1}"},
	} {
		rep := p.report(func(o *Options) { o.Location = time.FixedZone("here", tt.east) })
		if s := rep.Summary; fmt.Sprintf("%d %v", s.Days, *s.Busiest) != tt.want {
			t.Errorf("%s: %d days, the busiest %v; want %s", name, s.Days, *s.Busiest, tt.want)
		}
	}
}

func TestWhatBotheredMostComesFirst(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	refused := func(id string) {
		p.line("p/s1.jsonl", map[string]any{"type": "user", "sessionId": "s1", "toolDenialKind": "permission-rule", "permissionDecision": map[string]any{"decision": "reject", "source": "config"},
			"message": map[string]any{"role": "user", "content": []any{map[string]any{"type": "tool_result", "tool_use_id": id, "is_error": true}}}})
	}
	for i := range 3 {
		id := fmt.Sprint("refused", i)
		p.call("p/s1.jsonl", made{id: id, command: "rm -rf src"})
		refused(id)
	}
	for _, d := range []string{"/a", "/b", "/b"} {
		if err := os.MkdirAll(p.home+d+"/.git", 0o755); err != nil {
			t.Fatal(err)
		}
		p.call("p/s1.jsonl", made{command: "git push -f", cwd: p.home + d})
	}
	rep := p.report(nil)
	if len(rep.Rules) != 2 || rep.Rules[0].Rule != "git.force-push" || rep.Rules[1].Refused != 3 || rep.Calls[0].RefusedBy != "config" {
		t.Errorf("%+v", rep.Rules)
	}
	if got := rep.Rules[0].Projects; len(got) != 2 || got[0] != p.home+"/b" || rep.Rules[0].Worst != got[0] {
		t.Errorf("projects %v", got)
	}
}

func TestABarDrawsSeldomAndClearsItself(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	now := time.Unix(0, 0)
	b := NewBar(&out, 80, func() time.Time { return now })
	b.Set(1, 100)
	b.Clear()
	if out.String() != "" {
		t.Errorf("a quick run drew %q", out.String())
	}
	b = NewBar(&out, 80, func() time.Time { return now })
	for i := range 1000 {
		now = now.Add(time.Millisecond)
		b.Set(int64(i)*1000, 1_000_000)
	}
	if n := strings.Count(out.String(), "\r"); n != 10 {
		t.Errorf("drawn %d times", n)
	}
	if !strings.Contains(out.String(), "[========") || !strings.Contains(out.String(), "49 %  499 kB of 1.0 MB") {
		t.Errorf("%q", out.String())
	}
	b.Clear()
	now = now.Add(time.Hour)
	b.Set(1, 2)
	if !strings.HasSuffix(out.String(), "\r\x1b[K") {
		t.Errorf("%q", out.String())
	}
	(&Bar{}).Set(1, 2) // shows nothing
}
