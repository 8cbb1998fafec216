// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/audittest"
	"github.com/tripline-sh/tripline/audit/record"
)

// querier is what a Log and a Reader have in common.
type querier interface {
	Calls(context.Context, record.Filter, func(record.Call) error) error
	Sessions(ctx context.Context, from, to time.Time, fn func(record.Session) error) error
	Records(context.Context, string, func(record.Record, map[string][]byte) error) error
	Scan(context.Context, audit.Range, func(*record.Record, audit.BodiesFunc) error) error
	Verify(context.Context, ...audit.Anchor) (record.Verification, error)
}

var (
	_ querier = (*audit.Log)(nil)
	_ querier = (*audit.Reader)(nil)
)

// noon is the day that most tests ask about.
var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// rec returns a record some minutes after noon.
func rec(minute int, k record.Kind, callID string, change ...func(*record.Record)) *audit.Entry {
	e := &audit.Entry{Record: record.Record{
		Time: noon.Add(time.Duration(minute) * time.Minute), Kind: k, Call: callID, Agent: "claude", Session: "s-1", Tool: "Bash", Project: "/home/u/shop",
	}}
	if k == record.CallRequested {
		e.Record.ID = callID
	}
	for _, c := range change {
		c(&e.Record)
	}
	return e
}

// decided sets the decision of a record: verdict, answer, rule.
func decided(verdict, answer, rule string) func(*record.Record) {
	return func(r *record.Record) {
		r.Decision = &record.Decision{Verdict: verdict, Answer: answer, Rule: rule, Enforced: true}
	}
}

func by(who, basis string) func(*record.Record) {
	return func(r *record.Record) { r.Who, r.WhoBasis = who, basis }
}

func at(minute int) time.Time { return noon.Add(time.Duration(minute) * time.Minute) }

func list(t testing.TB, q querier, f record.Filter) []record.Call {
	t.Helper()
	var out []record.Call
	if err := q.Calls(context.Background(), f, func(c record.Call) error { out = append(out, c); return nil }); err != nil {
		t.Fatalf("calls: %v", err)
	}
	return out
}

func TestACallIsJoinedFromItsRecords(t *testing.T) {
	t.Parallel()
	ms := int64(1234)
	finished := func(r *record.Record) { r.DurationMS = &ms }
	later := 6 * 60 // minutes after noon
	tests := []struct {
		name    string
		entries []*audit.Entry
		now     int // minutes after noon; 0 = later
		outcome string
		who     string // with basis
	}{
		{"pass, ran", []*audit.Entry{rec(0, record.CallRequested, "x", decided("pass", "pass", "")), rec(1, record.CallFinished, "x", finished)}, 0, "ran", "agent-auto inferred"},
		{"pass, ran after the agent's own prompt", []*audit.Entry{
			rec(0, record.CallRequested, "x", decided("pass", "pass", "")),
			rec(1, record.SessionEvent, "x", func(r *record.Record) { r.Event = "PermissionRequest" }),
			rec(2, record.CallFinished, "x"),
		}, 0, "ran", "agent-prompt inferred"},
		{"pass, failed", []*audit.Entry{rec(0, record.CallRequested, "x", decided("pass", "pass", "")), rec(1, record.CallFailed, "x")}, 0, "failed", "agent-auto inferred"},
		{"pass, refused by the agent", []*audit.Entry{rec(0, record.CallRequested, "x", decided("pass", "pass", "")), rec(1, record.CallRejected, "x")}, 0, "rejected", "agent-auto inferred"},
		{"denied by a rule", []*audit.Entry{rec(0, record.CallRequested, "x", decided("deny", "deny", "delete.project"))}, 0, "blocked", "rule:delete.project proved"},
		{"denied, and ran all the same", []*audit.Entry{rec(0, record.CallRequested, "x", decided("deny", "deny", "delete.project")), rec(1, record.TamperDeniedRan, "x")}, 0, "ran", "bypass inferred"},
		{"denied, and finished all the same", []*audit.Entry{rec(0, record.CallRequested, "x", decided("deny", "deny", "delete.project")), rec(1, record.CallFinished, "x")}, 0, "ran", "bypass inferred"},
		{"denied in mode observe", []*audit.Entry{rec(0, record.CallRequested, "x", decided("deny", "pass", "delete.project")), rec(1, record.CallFinished, "x")}, 0, "ran", "agent-auto inferred"},
		{"allowed by a rule", []*audit.Entry{rec(0, record.CallRequested, "x", decided("allow", "allow", "mine")), rec(1, record.CallFinished, "x")}, 0, "ran", "rule:mine proved"},
		{"native ask, ran", []*audit.Entry{rec(0, record.CallRequested, "x", decided("ask", "ask", "git.push")), rec(1, record.CallFinished, "x")}, 0, "ran", "agent-prompt inferred"},
		{"native ask, refused", []*audit.Entry{rec(0, record.CallRequested, "x", decided("ask", "ask", "git.push")), rec(1, record.CallRejected, "x", func(r *record.Record) { r.Outcome = record.Blocked })}, 0, "blocked", "unknown inferred"},
		{"native ask, open", []*audit.Entry{rec(0, record.CallRequested, "x", decided("ask", "ask", "git.push"))}, 5, "pending", "unknown inferred"},
		{"held, waiting", []*audit.Entry{rec(0, record.ApprovalRequested, "x", decided("ask", "", "git.push"))}, 1, "pending", "unknown inferred"},
		{"held, waiting, all told by its card", []*audit.Entry{rec(0, record.ApprovalRequested, "x", func(r *record.Record) {
			r.Detail = map[string]string{"card": "k1", "rule": "git.push"}
		})}, 1, "pending", "unknown inferred"},
		{"held, approved, ran", []*audit.Entry{
			rec(0, record.ApprovalRequested, "x", decided("ask", "", "git.push")), rec(1, record.ApprovalApproved, "x"),
			rec(1, record.CallRequested, "x", decided("ask", "allow", "git.push")), rec(2, record.ApprovalConsumed, "x"), rec(2, record.CallFinished, "x"),
		}, 0, "ran", "person claimed"},
		{"held, denied by a person", []*audit.Entry{
			rec(0, record.ApprovalRequested, "x", decided("ask", "", "git.push")), rec(1, record.ApprovalDenied, "x"),
			rec(1, record.CallRequested, "x", decided("ask", "deny", "git.push")),
		}, 0, "blocked", "person claimed"},
		{"held, expired, its daemon gone before the answer", []*audit.Entry{
			rec(0, record.ApprovalRequested, "x", decided("ask", "", "git.push")), rec(1, record.ApprovalExpired, "x"),
		}, 0, "blocked", "unknown inferred"},
		{"who was recorded", []*audit.Entry{rec(0, record.CallRequested, "x", decided("allow", "allow", "mine"), by("grant:7", "proved")), rec(1, record.CallFinished, "x")}, 0, "ran", "grant:7 proved"},
		{"who was recorded later", []*audit.Entry{rec(0, record.CallRequested, "x", decided("pass", "pass", ""), by("unknown", "inferred")), rec(1, record.CallFinished, "x", by("agent-auto", "claimed"))}, 0, "ran", "agent-auto claimed"},
		{"no end, the session is quiet", []*audit.Entry{rec(0, record.CallRequested, "x", decided("pass", "pass", ""))}, 0, "unknown", "unknown inferred"},
		{"no end, the session goes on", []*audit.Entry{rec(0, record.CallRequested, "x", decided("pass", "pass", "")), rec(later-5, record.Prompt, "")}, 0, "pending", "unknown inferred"},
		{"no end, the session ended", []*audit.Entry{rec(later-9, record.CallRequested, "x", decided("pass", "pass", "")), rec(later-5, record.SessionEnd, "")}, 0, "unknown", "unknown inferred"},
		{"an end without a request", []*audit.Entry{rec(0, record.CallFinished, "x", func(r *record.Record) { r.ID = "x" })}, 0, "ran", "bypass inferred"},
		{"a failure without a request", []*audit.Entry{rec(0, record.CallFailed, "", func(r *record.Record) { r.ID = "x" })}, 0, "failed", "unknown inferred"},
		{"a refusal without a request", []*audit.Entry{rec(0, record.CallRejected, "", func(r *record.Record) { r.ID = "x" })}, 0, "rejected", "agent-auto inferred"},
		{"found in the agent's own files", []*audit.Entry{rec(0, record.TamperUnrecorded, "x")}, 0, "ran", "bypass inferred"},
		{"we failed", []*audit.Entry{rec(0, record.CallRequested, "x", func(r *record.Record) {
			r.Decision = &record.Decision{Verdict: "deny", Answer: "deny", Failure: "deadline", Enforced: true}
		})}, 0, "blocked", "unknown inferred"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := audittest.Options(t)
			now := tt.now
			if now == 0 {
				now = later
			}
			o.Now = func() time.Time { return at(now) }
			l := audittest.NewLog(t, o)
			var seqs []uint64
			for _, e := range tt.entries {
				if r := audittest.Append(t, l, e); e.Record.Call == "x" || e.Record.ID == "x" {
					seqs = append(seqs, r.Seq)
				}
			}
			got := list(t, l, record.Filter{})
			if len(got) != 1 {
				t.Fatalf("%d calls: %+v", len(got), got)
			}
			c := got[0]
			if d := tt.entries[0].Record.Detail; d != nil && (c.Card != d["card"] || c.Rule != d["rule"] || c.Verdict != "ask") {
				t.Errorf("card and rule: %+v", c)
			}
			if c.ID != "x" || c.Outcome != tt.outcome || c.Who+" "+c.WhoBasis != tt.who || !slices.Equal(c.Records, seqs) || !c.Time.Equal(tt.entries[0].Record.Time) && c.Outcome == "pending" {
				t.Errorf("got %+v, want %s by %s", c, tt.outcome, tt.who)
			}
			if tt.entries[len(tt.entries)-1].Record.DurationMS != nil && (c.DurationMS == nil || *c.DurationMS != ms) {
				t.Errorf("duration %v", c.DurationMS)
			}
		})
	}
}

// dayLog is a log with calls a to h around noon and others on the days before and after.
func dayLog(t testing.TB) (audit.Options, *audit.Log) {
	t.Helper()
	o := audittest.Options(t)
	c := newClock(noon.Add(-24 * time.Hour))
	o.Now = c.now
	l := audittest.NewLog(t, o)
	add := func(e *audit.Entry, bodies ...audit.RawBody) {
		c.at.Store(e.Record.Time.UnixNano())
		e.Bodies = bodies
		audittest.Append(t, l, e)
	}
	input := func(s string) audit.RawBody { return audit.RawBody{Name: "input", Data: []byte(s)} }
	add(rec(-24*60, record.CallRequested, "y1", decided("pass", "pass", "")), input(`{"command":"make"}`))
	add(rec(-12*60-1, record.CallRequested, "y2", decided("pass", "pass", "")), input(`{"command":"sleep 90"}`)) // 23:59 the day before
	add(rec(-12*60+1, record.CallFinished, "y2"))
	add(rec(0, record.Prompt, "", func(r *record.Record) { r.Project = "" }), audit.RawBody{Name: "prompt", Data: []byte("fix\n  the " + strings.Repeat("bug ", 100))})
	add(rec(1, record.CallRequested, "a", decided("pass", "pass", "")), input(`{"command":"ls <src> && echo \"Ä\""}`))
	add(rec(2, record.CallFinished, "a"))
	add(rec(3, record.CallRequested, "b", decided("deny", "deny", "delete.project")), input(`{"command":"rm -rf src"}`),
		audit.RawBody{Name: "analysis", Data: []byte(`{"reason":"it deletes Work","effects":[{"kind":"delete"}]}`)})
	add(rec(4, record.CallRequested, "c", decided("ask", "ask", "git.push")), input(`"not an object"`))
	add(rec(5, record.CallRequested, "d", decided("pass", "pass", ""), func(r *record.Record) { r.Tool, r.Session, r.Agent = "Write", "s-2", "codex" }), input(`{"cut":"off`))
	add(rec(6, record.CallFailed, "d", func(r *record.Record) { r.Session, r.Agent = "s-2", "codex" }), audit.RawBody{Name: "error", Data: []byte("no such FILE")})
	add(rec(7, record.CallRequested, "e", decided("allow", "allow", "mine"), func(r *record.Record) { r.Project, r.Subagent = "/home/u/shop/deep", "sub" }))
	add(rec(8, record.CallRequested, "f", decided("pass", "pass", ""), func(r *record.Record) { r.Project = "/home/u/shopping" }))
	add(rec(12*60-1, record.CallRequested, "g", decided("pass", "pass", "")), input(`{"command":"sleep 90"}`)) // 23:59
	add(rec(12*60+1, record.CallFinished, "g"))
	add(rec(12*60+2, record.CallRequested, "n", decided("pass", "pass", "")))
	add(rec(12*60+3, record.SessionEnd, ""))
	return o, l
}

func TestFiltersSelectCalls(t *testing.T) {
	t.Parallel()
	o, l := dayLog(t)
	midnight := noon.Add(-12 * time.Hour)
	day := record.Filter{From: midnight, To: midnight.Add(24 * time.Hour)}
	tests := []struct {
		name string
		set  func(*record.Filter)
		want string
	}{
		{"a day, from the first call in it to the last", func(*record.Filter) {}, "a b c d e f g"},
		{"everything", func(f *record.Filter) { *f = record.Filter{} }, "y1 y2 a b c d e f g n"},
		{"from is inclusive and to exclusive", func(f *record.Filter) { f.From, f.To = at(3), at(5) }, "b c"},
		{"an empty range", func(f *record.Filter) { f.From, f.To = at(30), at(31) }, ""},
		{"a range before everything", func(f *record.Filter) { f.From, f.To = at(-99999), at(-88888) }, ""},
		{"session", func(f *record.Filter) { f.Session = "s-2" }, "d"},
		{"a prefix of sessions", func(f *record.Filter) { f.Session = "s" }, "a b c d e f g"},
		{"agent", func(f *record.Filter) { f.Agent = "codex" }, "d"},
		{"tool", func(f *record.Filter) { f.Tool = "Write" }, "d"},
		{"verdict", func(f *record.Filter) { f.Verdict = "pass" }, "a d f g"},
		{"rule", func(f *record.Filter) { f.Rule = "delete.project" }, "b"},
		{"a family of rules", func(f *record.Filter) { f.Rule = "delete." }, "b"},
		{"a family of rules without its dot", func(f *record.Filter) { f.Rule = "delete" }, "b"},
		{"the beginning of a family is none", func(f *record.Filter) { f.Rule = "del" }, ""},
		{"half a rule is none", func(f *record.Filter) { f.Rule = "delete.pro" }, ""},
		{"a project", func(f *record.Filter) { f.Project = "/home/u/shop" }, "a b c d e g"},
		{"a directory above projects", func(f *record.Filter) { f.Project = "/home/u/" }, "a b c d e f g"},
		{"denied", func(f *record.Filter) { f.Denied = true }, "b"},
		{"asked", func(f *record.Filter) { f.Asked = true }, "c"},
		{"failed", func(f *record.Filter) { f.Failed = true }, "d"},
		{"denied or failed", func(f *record.Filter) { f.Denied, f.Failed = true, true }, "b d"},
		{"denied by that agent", func(f *record.Filter) { f.Denied, f.Agent = true, "codex" }, ""},
		{"text of the input, case aside", func(f *record.Filter) { f.Grep = "RM -rf" }, "b"},
		{"text with quotes in the input", func(f *record.Filter) { f.Grep = `echo "ä"` }, "a"},
		{"text with angle brackets", func(f *record.Filter) { f.Grep = `<src>` }, "a"},
		{"text of the reason", func(f *record.Filter) { f.Grep = "deletes work" }, "b"},
		{"text of the error", func(f *record.Filter) { f.Grep = "such file" }, "d"},
		{"text of the tool", func(f *record.Filter) { f.Grep = "writ" }, "d"},
		{"id", func(f *record.Filter) { f.ID = "e" }, "e"},
		{"the newest two", func(f *record.Filter) { f.Limit = 2 }, "f g"},
		{"the newest two of those that pass", func(f *record.Filter) { f.Limit, f.Verdict = 2, "pass" }, "f g"},
		{"more than there are", func(f *record.Filter) { f.Limit = 99 }, "a b c d e f g"},
	}
	check := func(t *testing.T, q querier) {
		for _, tt := range tests {
			f := day
			tt.set(&f)
			var ids []string
			for _, c := range list(t, q, f) {
				ids = append(ids, c.ID)
			}
			if got := strings.Join(ids, " "); got != tt.want {
				t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
			}
		}
	}
	check(t, l)
	inside := list(t, l, record.Filter{})
	audittest.Close(t, l)
	r, err := audit.OpenReader(o.Dir, audit.ReaderOptions{KeyDir: o.KeyDir})
	must(t, err)
	check(t, r)
	// Files alone give the same answer, but for what still can come.
	outside := list(t, r, record.Filter{})
	for i := range inside {
		a, b := inside[i], outside[i]
		if a.Outcome == record.Pending {
			a.Outcome = b.Outcome
		}
		x, _ := json.Marshal(a)
		y, _ := json.Marshal(b)
		if string(x) != string(y) {
			t.Errorf("from the daemon %s\nfrom the files %s", x, y)
		}
	}
}

func TestACallShowsItsBodiesAndEndsBehindTheRange(t *testing.T) {
	t.Parallel()
	_, l := dayLog(t)
	byID := map[string]record.Call{}
	for _, c := range list(t, l, record.Filter{From: noon, To: noon.Add(12 * time.Hour)}) {
		byID[c.ID] = c
	}
	for id, want := range map[string]string{"a": `{"command":"ls <src> && echo \"Ä\""}`, "c": "null", "d": "null", "e": "null"} {
		if got := string(byID[id].Input); got != want {
			t.Errorf("input of %s: %s, want %s", id, got, want)
		}
	}
	if b := byID["b"]; b.Reason != "it deletes Work" || string(b.Effects) != `[{"kind":"delete"}]` {
		t.Errorf("b: %+v", b)
	}
	if d := byID["d"]; d.Error != "no such FILE" {
		t.Errorf("d: %+v", d)
	}
	if g := byID["g"]; g.Outcome != "ran" {
		t.Errorf("g, which ended the next day: %+v", g)
	}
	out, err := json.Marshal(byID["e"])
	if err != nil || !strings.Contains(string(out), `"input":null`) || !strings.Contains(string(out), `"duration_ms":null`) {
		t.Errorf("json %s, %v", out, err)
	}
}

func TestSessionsAreCounted(t *testing.T) {
	t.Parallel()
	_, l := dayLog(t)
	var got []record.Session
	err := l.Sessions(context.Background(), noon, time.Time{}, func(s record.Session) error { got = append(got, s); return nil })
	if err != nil || len(got) != 2 {
		t.Fatalf("sessions %+v, %v", got, err)
	}
	s := got[0]
	if s.ID != "s-1" || s.Agent != "claude" || s.Project != "/home/u/shop" || s.Calls != 7 || s.Denied != 1 || s.Asked != 1 || s.Failed != 0 || !s.Ended || s.Subagent != 1 {
		t.Errorf("first session %+v", s)
	}
	if !s.First.Equal(noon) || !s.Last.Equal(at(12*60+3)) || !strings.HasPrefix(s.Prompt, "fix the bug bug") || len([]rune(s.Prompt)) != 200 {
		t.Errorf("first session %+v", s)
	}
	if s := got[1]; s.ID != "s-2" || s.Failed != 1 || s.Ended {
		t.Errorf("second session %+v", s)
	}
}

func TestRecordsAreFoundByTheStartOfACallsID(t *testing.T) {
	t.Parallel()
	l := audittest.NewLog(t, audittest.Options(t))
	for _, id := range []string{"abc1", "abc", "abd"} {
		audittest.Append(t, l, call(id))
		e := call("")
		e.Record.Kind, e.Record.Call, e.Record.Detail = record.CallFinished, id, map[string]string{"x": `"call":"zzz`}
		audittest.Append(t, l, e)
	}
	own := call("own")
	own.Record.Kind = record.DaemonStart
	audittest.Append(t, l, own)
	for _, tt := range []struct {
		prefix string
		want   string // kinds
		err    error
	}{
		{"abd", "call.requested call.finished", nil},
		{"abc1", "call.requested call.finished", nil},
		{"abc", "call.requested call.finished", nil}, // complete, so it is not ambiguous
		{"ab", "", audit.ErrAmbiguous},
		{"ow", "daemon.start", nil},
		{"zzz", "", audit.ErrNotFound},
		{"", "", audit.ErrNotFound},
		{`abc","x":"`, "", audit.ErrNotFound},
		{"\x00\xff", "", audit.ErrNotFound},
	} {
		var kinds []string
		err := l.Records(context.Background(), tt.prefix, func(r record.Record, bodies map[string][]byte) error {
			kinds = append(kinds, string(r.Kind))
			if !strings.Contains(string(bodies["input"]), "ls") {
				t.Errorf("%q: bodies %q", tt.prefix, bodies)
			}
			return nil
		})
		if !errors.Is(err, tt.err) || strings.Join(kinds, " ") != tt.want {
			t.Errorf("%q: %q, %v", tt.prefix, kinds, err)
		}
	}
}

func TestScanAndTailReadFromAnywhere(t *testing.T) {
	t.Parallel()
	c := newClock(evening)
	o := audittest.Options(t)
	o.Now = c.now
	l := audittest.NewLog(t, o)
	for i := range 9 {
		audittest.Append(t, l, call(fmt.Sprint("c", i)))
		c.advance(8 * time.Hour)
	}
	size := l.Size()
	for _, from := range []uint64{0, 1, 2, 5, size, size + 1, 1 << 62} {
		var got []uint64
		err := l.Scan(context.Background(), audit.Range{FromSeq: from}, func(r *record.Record, b audit.BodiesFunc) error {
			got = append(got, r.Seq)
			return nil
		})
		want := 0
		if from <= size {
			want = int(size - max(from, 1) + 1)
		}
		if err != nil || len(got) != want || want > 0 && got[0] != max(from, 1) {
			t.Errorf("from %d: %v, %v", from, got, err)
		}
	}
	tail, err := l.Tail(context.Background(), 3)
	if err != nil || len(tail) != 3 || tail[2].Seq != size {
		t.Errorf("tail %+v, %v", tail, err)
	}
	if tail, err = l.Tail(context.Background(), 1000); err != nil || len(tail) != int(size) {
		t.Errorf("long tail: %d, %v", len(tail), err)
	}
	stop := errors.New("enough")
	if err := l.Scan(context.Background(), audit.Range{}, func(*record.Record, audit.BodiesFunc) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("stopped: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := l.Scan(ctx, audit.Range{}, func(*record.Record, audit.BodiesFunc) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := l.Calls(ctx, record.Filter{}, func(record.Call) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestQueriesDeliverWhatCanBeReadAndSayWhatCannot(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	must(t, os.Truncate(s.days[1], 3*4096))
	r, err := audit.OpenReader(s.o.Dir, audit.ReaderOptions{KeyDir: s.o.KeyDir})
	must(t, err)
	n := 0
	count := func(record.Call) error { n++; return nil }
	if err := r.Calls(context.Background(), record.Filter{}, count); !errors.Is(err, audit.ErrDamaged) || n != 310 {
		t.Errorf("%d calls, %v", n, err)
	}
	// A range that the damaged day cannot touch is whole.
	n = 0
	if err := r.Calls(context.Background(), record.Filter{To: evening.Add(-72 * time.Hour)}, count); err != nil || n != 0 {
		t.Errorf("%d calls, %v", n, err)
	}
}

func TestQueriesRunWhileTheLogIsWritten(t *testing.T) {
	t.Parallel()
	o := audittest.Options(t)
	o.MaxSegment = 150 << 10
	l := audittest.NewLog(t, o)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 300 {
			e := call(fmt.Sprint("c", i))
			e.Bodies[0].Data = make([]byte, 2000)
			if _, err := l.Append(context.Background(), e); err != nil {
				t.Errorf("append: %v", err)
				return
			}
		}
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		size := l.Size()
		if got := len(collect(t, l)); got < int(size) {
			t.Errorf("%d records of %d", got, size)
		}
		v, err := l.Verify(context.Background())
		if err != nil || v.Outcome != "OK" || v.Size < size {
			t.Errorf("verify %+v, %v", v, err)
		}
	}
	if n := strings.Count(segments(t, o), ".db"); n < 3 {
		t.Errorf("%d segments", n)
	}
}
