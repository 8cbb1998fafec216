// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/audittest"
	"github.com/tripline-sh/tripline/audit/record"
)

// call returns the entry of a request.
func call(id string) *audit.Entry {
	return &audit.Entry{
		Record: record.Record{
			Kind: record.CallRequested, ID: id, Agent: "claude", Session: "s-1", Tool: "Bash", Project: "/home/u/shop",
			Decision: &record.Decision{Verdict: "pass", Answer: "pass", Enforced: true},
		},
		Bodies: []audit.RawBody{{Name: "input", Data: []byte(`{"command":"ls ` + id + `"}`), Full: 20}},
	}
}

// collect returns all records of a log or reader.
func collect(t testing.TB, s interface {
	Scan(context.Context, audit.Range, func(*record.Record, audit.BodiesFunc) error) error
}) []record.Record {
	t.Helper()
	var out []record.Record
	err := s.Scan(context.Background(), audit.Range{}, func(r *record.Record, _ audit.BodiesFunc) error {
		out = append(out, *r)
		return nil
	})
	if err != nil {
		t.Fatalf("scan: %v", err)
	}
	return out
}

func TestEveryAcknowledgedRecordOf64WritersIsThereInOrder(t *testing.T) {
	t.Parallel()
	const writers, each = 64, 20
	var commits, records atomic.Int64
	o := audittest.Options(t)
	o.OnCommit = func(c audit.CommitInfo) {
		commits.Add(1)
		records.Add(int64(c.Records))
		if c.Err != nil || c.Bytes <= 0 || c.Duration <= 0 {
			t.Errorf("commit: %+v", c)
		}
	}
	l := audittest.NewLog(t, o)
	var mu sync.Mutex
	receipts := map[uint64]audit.Receipt{}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			last := uint64(0)
			for i := range each {
				r, err := l.Append(context.Background(), call(fmt.Sprintf("w%02d-%03d", w, i)))
				if err != nil {
					t.Errorf("append: %v", err)
					return
				}
				if r.Seq <= last {
					t.Errorf("writer %d got %d after %d", w, r.Seq, last)
				}
				last = r.Seq
				mu.Lock()
				receipts[r.Seq] = r
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(receipts) != writers*each {
		t.Fatalf("%d receipts with different numbers, want %d", len(receipts), writers*each)
	}
	got := collect(t, l)
	if len(got) != writers*each+1 || l.Size() != uint64(len(got)) {
		t.Fatalf("%d records, size %d", len(got), l.Size())
	}
	for i, r := range got {
		if r.Seq != uint64(i+1) {
			t.Fatalf("record %d has number %d", i+1, r.Seq)
		}
		if a, ok := receipts[r.Seq]; ok && (a.ID != r.ID || !a.Time.Equal(r.Time)) || !ok && r.Kind != record.SegmentBegin {
			t.Errorf("record %d is %s %s, receipt %+v", r.Seq, r.Kind, r.ID, a)
		}
	}
	// Each receipt is an anchor that the log satisfies, from inside and from the files.
	var anchors []audit.Anchor
	for _, r := range receipts {
		anchors = append(anchors, audit.Anchor{Seq: r.Seq, Root: r.Root})
	}
	v, err := l.Verify(context.Background(), anchors...)
	if err != nil || v.Outcome != "OK" || v.Anchored != l.Size() || v.Root != l.Root() {
		t.Errorf("verify: %+v, %v", v, err)
	}
	if n := commits.Load(); n >= writers*each || records.Load() != writers*each {
		t.Errorf("%d records in %d commits: no grouping", records.Load(), n)
	}
}

func TestAppendFillsInWhatTheLogKnows(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 23, 0, 0, 5, time.FixedZone("x", 3600))
	o := audittest.Options(t)
	o.Now = func() time.Time { return now }
	l := audittest.NewLog(t, o)
	e := call("")
	e.Record.Seq, e.Record.V = 99, 7
	r := audittest.Append(t, l, e)
	got := collect(t, l)[1]
	if got.V != record.Version || got.Seq != 2 || got.ID == "" || got.Call != got.ID || got.ID != r.ID || !got.Time.Equal(now) || got.Time.Location() != time.UTC {
		t.Errorf("got %+v, receipt %+v", got, r)
	}
	if len(r.Root) != 16 || len(got.Bodies) != 1 || got.Bodies[0].Full != 20 || got.Bodies[0].Len != len(e.Bodies[0].Data) {
		t.Errorf("receipt %+v, bodies %+v", r, got.Bodies)
	}
	if e.Record.Seq != 99 || e.Record.ID != "" {
		t.Error("the caller's entry was changed")
	}
}

func TestEntriesThatCanNeverBeStoredAreRefusedAlone(t *testing.T) {
	t.Parallel()
	l := audittest.NewLog(t, audittest.Options(t))
	tests := []struct {
		name string
		e    audit.Entry
	}{
		{"no kind", audit.Entry{}},
		{"a record above the limit", audit.Entry{Record: record.Record{Kind: record.Prompt, Cwd: strings.Repeat("x", audit.MaxRecord)}}},
		{"a record that grows above it by escaping", audit.Entry{Record: record.Record{Kind: record.Prompt, Cwd: strings.Repeat("\x00", audit.MaxRecord/4)}}},
		{"a body above the limit", body("input", audit.MaxBody+1)},
		{"a body with a capital name", body("Input", 1)},
		{"a body with a zero byte in its name", body("in\x00put", 1)},
		{"a body without a name", body("", 1)},
		{"two bodies of one name", audit.Entry{Record: record.Record{Kind: record.Prompt}, Bodies: []audit.RawBody{{Name: "input"}, {Name: "input"}}}},
		{"too many bodies", audit.Entry{Record: record.Record{Kind: record.Prompt}, Bodies: make([]audit.RawBody, audit.MaxBodies+1)}},
		{"an empty state key", audit.Entry{Record: record.Record{Kind: record.Prompt}, State: []audit.StateOp{{}}}},
		{"a long state key", audit.Entry{Record: record.Record{Kind: record.Prompt}, State: []audit.StateOp{{Key: strings.Repeat("k", audit.MaxStateKey+1)}}}},
		{"a large state value", audit.Entry{Record: record.Record{Kind: record.Prompt}, State: []audit.StateOp{{Key: "k", Value: make([]byte, audit.MaxStateValue+1)}}}},
		{"a year that JSON does not know", audit.Entry{Record: record.Record{Kind: record.Prompt, Time: time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC)}}},
	}
	for _, tt := range tests {
		if _, err := l.Append(context.Background(), &tt.e); !errors.Is(err, audit.ErrInvalid) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	audittest.Append(t, l, call("a"))
	big := body("input", audit.MaxBody)
	audittest.Append(t, l, &big)
	if got := collect(t, l); len(got) != 3 {
		t.Errorf("%d records", len(got))
	}
}

func body(name string, size int) audit.Entry {
	return audit.Entry{Record: record.Record{Kind: record.Prompt}, Bodies: []audit.RawBody{{Name: name, Data: make([]byte, size)}}}
}

func TestHostileTextSurvivesUnchangedOrAsReplacement(t *testing.T) {
	t.Parallel()
	l := audittest.NewLog(t, audittest.Options(t))
	for _, s := range []string{"\x00", "\xff\xfe", "\u2028\u2029", "<script>&amp;", "\"seq\":1,", "\x1b[2J", strings.Repeat("é", 5000), `","time":"2001-01-01T00:00:00Z"`} {
		e := call("")
		e.Record.Session, e.Record.ID, e.Record.Tool, e.Record.Detail = s, "", s, map[string]string{s: s}
		e.Bodies[0].Data = []byte(s)
		r := audittest.Append(t, l, e)
		err := l.Records(context.Background(), r.ID, func(got record.Record, bodies map[string][]byte) error {
			if want := strings.ToValidUTF8(s, "\uFFFD"); got.Tool != want && got.Tool != strings.ReplaceAll(s, "\xff\xfe", "\uFFFD\uFFFD") {
				t.Errorf("tool %q became %q", s, got.Tool)
			}
			if !bytes.Equal(bodies["input"], []byte(s)) {
				t.Errorf("body %q became %q", s, bodies["input"])
			}
			return nil
		})
		if err != nil {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func TestStateIsKeptWithItsRecordsAndOverRestarts(t *testing.T) {
	t.Parallel()
	o := audittest.Options(t)
	l := audittest.Open(t, o)
	set := func(l *audit.Log, key string, value []byte) {
		e := call("")
		e.State = []audit.StateOp{{Key: key, Value: value}}
		audittest.Append(t, l, e)
	}
	set(l, "card/1", []byte("pending"))
	set(l, "card/2", []byte{})
	set(l, "rules", []byte("x"))
	set(l, "card/1", []byte("approved"))
	set(l, "rules", nil)
	want := map[string]string{"card/1": "approved", "card/2": ""}
	check := func(l *audit.Log) {
		t.Helper()
		got, err := l.State("card/")
		if err != nil || len(got) != len(want) {
			t.Fatalf("state %q, %v", got, err)
		}
		for k, v := range want {
			if string(got[k]) != v || got[k] == nil {
				t.Errorf("%s = %q, want %q", k, got[k], v)
			}
		}
		if got, _ := l.State("rules"); len(got) != 0 {
			t.Errorf("deleted key is back: %q", got)
		}
	}
	check(l)
	audittest.Close(t, l)
	l = audittest.NewLog(t, o)
	check(l)
	got, _ := l.State("card/1")
	got["card/1"][0] = 'X'
	check(l)
}

func TestAFirstRunMakesPrivateFilesAndSaysSo(t *testing.T) {
	t.Parallel()
	o := audittest.Options(t)
	l := audittest.Open(t, o)
	if !l.FirstRun() || l.Size() != 1 || !strings.HasPrefix(l.VerifierKey(), "tripline.log/") || l.Dir() != o.Dir {
		t.Errorf("first run %v, size %d, key %q", l.FirstRun(), l.Size(), l.VerifierKey())
	}
	key := l.VerifierKey()
	audittest.Close(t, l)
	err := filepath.WalkDir(filepath.Dir(o.Dir), func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		if want := os.FileMode(0o600); fi.Mode().IsRegular() && fi.Mode().Perm() != want {
			t.Errorf("%s has mode %v", path, fi.Mode())
		}
		if fi.IsDir() && fi.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %v", path, fi.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	l = audittest.NewLog(t, o)
	if l.FirstRun() || l.VerifierKey() != key || l.Size() != 1 {
		t.Errorf("second run: first %v, size %d", l.FirstRun(), l.Size())
	}
}

func TestAClosedLogTakesNothingAndAnAbandonedAppendSaysUnavailable(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	o := audit.WithFaults(audittest.Options(t), func() error { <-release; return nil }, nil)
	l := audittest.NewLog(t, o)
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("the agent went away")
	first := make(chan error, 1)
	go func() { _, err := l.Append(ctx, call("a")); first <- err }()
	cancel(why)
	if err := <-first; !errors.Is(err, audit.ErrUnavailable) || !errors.Is(err, why) {
		t.Errorf("abandoned: %v", err)
	}
	close(release)
	audittest.Append(t, l, call("b"))
	audittest.Close(t, l)
	if _, err := l.Append(context.Background(), call("c")); !errors.Is(err, audit.ErrClosed) {
		t.Errorf("after close: %v", err)
	}
}

func TestCloseCommitsWhatWaits(t *testing.T) {
	t.Parallel()
	started, release := make(chan struct{}, 100), make(chan struct{})
	o := audit.WithFaults(audittest.Options(t), func() error { started <- struct{}{}; <-release; return nil }, nil)
	l := audittest.NewLog(t, o)
	const n = 20
	answers := make(chan error, n)
	for i := range n {
		go func() { _, err := l.Append(context.Background(), call(fmt.Sprint("c", i))); answers <- err }()
	}
	<-started
	closed := make(chan struct{})
	go func() { audittest.Close(t, l); close(closed) }()
	close(release)
	acknowledged := 0
	for range n {
		switch err := <-answers; {
		case err == nil:
			acknowledged++
		case !errors.Is(err, audit.ErrClosed):
			t.Errorf("append: %v", err)
		}
	}
	<-closed
	if acknowledged == 0 || l.Size() != uint64(acknowledged)+1 {
		t.Errorf("%d acknowledged, size %d", acknowledged, l.Size())
	}
}
