// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/audittest"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/audit/segment"
)

// waitFor polls until ok says so.
func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(audittest.Patience)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("still waiting for %s", what)
		}
		<-tick.C
	}
}

// live returns the path of the newest segment.
func live(t testing.TB, o audit.Options) string {
	t.Helper()
	names, err := segment.List(o.Dir)
	if err != nil || len(names) == 0 {
		t.Fatalf("segments %v, %v", names, err)
	}
	return filepath.Join(o.Dir, names[len(names)-1].File())
}

// ofKind returns the records of one kind.
func ofKind(records []record.Record, k record.Kind) []record.Record {
	var out []record.Record
	for _, r := range records {
		if r.Kind == k {
			out = append(out, r)
		}
	}
	return out
}

// failing is a fault that can be switched on and off.
type failing struct {
	on  atomic.Bool
	err error
}

func (f *failing) call() error {
	if f.on.Load() {
		return f.err
	}
	return nil
}

func TestAFailedCommitDeniesUntilItWasReadBackAndSaysWhatWasFound(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		after bool // the group had been written
		found string
	}{
		{"with nothing written", false, "0"},
		{"with everything written", true, "1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := &failing{err: syscall.EIO}
			o := audittest.Options(t)
			if tt.after {
				o = audit.WithFaults(o, nil, f.call)
			} else {
				o = audit.WithFaults(o, f.call, nil)
			}
			var failed atomic.Int64
			o.OnCommit = func(c audit.CommitInfo) {
				if c.Err != nil {
					failed.Add(1)
				}
			}
			l := audittest.NewLog(t, o)
			e := call("before")
			e.State = []audit.StateOp{{Key: "k", Value: []byte("before")}}
			audittest.Append(t, l, e)
			f.on.Store(true)
			e = call("doubtful")
			e.State = []audit.StateOp{{Key: "k", Value: []byte("doubtful")}}
			if _, err := l.Append(context.Background(), e); !errors.Is(err, audit.ErrUnavailable) || !strings.Contains(err.Error(), "input/output") {
				t.Errorf("append: %v", err)
			}
			if _, err := l.Append(context.Background(), call("refused")); !errors.Is(err, audit.ErrUnavailable) {
				t.Errorf("while failed: %v", err)
			}
			if l.Err() == nil {
				t.Error("no error while failed")
			}
			waitFor(t, "the report of one failed commit", func() bool { return failed.Load() == 1 })
			f.on.Store(false)
			waitFor(t, "recovery", func() bool { return l.Err() == nil })
			audittest.Append(t, l, call("after"))
			got := collect(t, l)
			notes := ofKind(got, record.CommitUnknown)
			if len(notes) == 0 || notes[0].Detail["found"] != tt.found || notes[0].Detail["records"] != "1" {
				t.Fatalf("notes: %+v", notes)
			}
			if ids := notes[0].Detail["found_ids"] + notes[0].Detail["missing_ids"]; ids != "doubtful" {
				t.Errorf("ids %q", ids)
			}
			var ids []string
			for _, r := range ofKind(got, record.CallRequested) {
				ids = append(ids, r.ID)
			}
			want, state := "before after", "before"
			if tt.after {
				want, state = "before doubtful after", "doubtful"
			}
			if strings.Join(ids, " ") != want {
				t.Errorf("records %q, want %q", ids, want)
			}
			if s, _ := l.State("k"); string(s["k"]) != state {
				t.Errorf("state %q, want %q", s["k"], state)
			}
		})
	}
}

func TestACommitThatComesTooLateIsUnknownAndTheLogComesBack(t *testing.T) {
	t.Parallel()
	var slow atomic.Bool
	release := make(chan struct{})
	o := audittest.Options(t)
	o.CommitTimeout = 50 * time.Millisecond
	o = audit.WithFaults(o, nil, func() error {
		if slow.Load() {
			<-release
		}
		return nil
	})
	l := audittest.NewLog(t, o)
	slow.Store(true)
	if _, err := l.Append(context.Background(), call("slow")); !errors.Is(err, audit.ErrUnavailable) {
		t.Fatalf("append: %v", err)
	}
	if _, err := l.Append(context.Background(), call("refused")); !errors.Is(err, audit.ErrUnavailable) {
		t.Errorf("while slow: %v", err)
	}
	slow.Store(false)
	close(release)
	waitFor(t, "recovery", func() bool { return l.Err() == nil })
	notes := ofKind(collect(t, l), record.CommitUnknown)
	if len(notes) != 1 || notes[0].Detail["found_ids"] != "slow" {
		t.Errorf("notes %+v", notes)
	}
	audittest.Append(t, l, call("after"))
}

func TestACommitThatHangsForGoodIsDeliveredToFailed(t *testing.T) {
	t.Parallel()
	var hang atomic.Bool
	release := make(chan struct{})
	o := audittest.Options(t)
	o.CommitTimeout = 20 * time.Millisecond
	o = audit.WithFaults(o, func() error {
		if hang.Load() {
			<-release
		}
		return nil
	}, nil)
	l := audittest.NewLog(t, o)
	t.Cleanup(func() { close(release) }) // before the log is closed and verified
	audittest.Append(t, l, call("before"))
	hang.Store(true)
	if _, err := l.Append(context.Background(), call("hangs")); !errors.Is(err, audit.ErrUnavailable) {
		t.Fatalf("append: %v", err)
	}
	select {
	case err := <-l.Failed():
		if err == nil {
			t.Error("Failed delivered nil")
		}
	case <-time.After(audittest.Patience):
		t.Fatal("Failed delivers nothing")
	}
	if _, err := l.Append(context.Background(), call("refused")); !errors.Is(err, audit.ErrUnavailable) {
		t.Errorf("append: %v", err)
	}
}

func TestAFileThatIsGoneAcknowledgesNothingAndTheLossIsDeclared(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		spoil func(t *testing.T, path string)
		cause string
	}{
		{"deleted", func(t *testing.T, path string) { must(t, os.Remove(path)) }, "missing"},
		{"moved away", func(t *testing.T, path string) { must(t, os.Rename(path, path+".bak")) }, "missing"},
		{"truncated to nothing", func(t *testing.T, path string) { must(t, os.Truncate(path, 0)) }, "damaged"},
		{"truncated to one page", func(t *testing.T, path string) { must(t, os.Truncate(path, 4096)) }, "damaged"},
		{"replaced by a directory", func(t *testing.T, path string) { must(t, os.Remove(path)); must(t, os.Mkdir(path, 0o700)) }, "missing"},
		{"replaced by a link", func(t *testing.T, path string) {
			must(t, os.Rename(path, path+".bak"))
			must(t, os.Symlink(path+".bak", path))
		}, "missing"},
		{"replaced by a FIFO", func(t *testing.T, path string) { must(t, os.Remove(path)); must(t, syscall.Mkfifo(path, 0o600)) }, "missing"},
		{"replaced by text", func(t *testing.T, path string) {
			must(t, os.Remove(path))
			must(t, os.WriteFile(path, []byte("not a log"), 0o600))
		}, "missing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := audittest.Options(t)
			l := audittest.NewLog(t, o)
			e := call("a")
			e.State = []audit.StateOp{{Key: "k", Value: []byte("kept")}}
			audittest.Append(t, l, e)
			last := audittest.Append(t, l, call("b"))
			tt.spoil(t, live(t, o))
			if r, err := l.Append(context.Background(), call("c")); !errors.Is(err, audit.ErrUnavailable) {
				t.Fatalf("append: %+v, %v", r, err)
			}
			waitFor(t, "recovery", func() bool { return l.Err() == nil })
			next := audittest.Append(t, l, call("d"))
			if next.Seq <= last.Seq {
				t.Errorf("number %d after %d", next.Seq, last.Seq)
			}
			got, err := records(l)
			if err != nil && !errors.Is(err, audit.ErrDamaged) {
				t.Fatalf("scan: %v", err)
			}
			gaps := ofKind(got, record.Gap)
			if len(gaps) != 1 || gaps[0].Detail["first"] != "1" || gaps[0].Detail["last"] != strconv.FormatUint(last.Seq, 10) || gaps[0].Detail["cause"] != tt.cause {
				t.Errorf("gaps %+v", gaps)
			}
			if s, _ := l.State("k"); string(s["k"]) != "kept" {
				t.Errorf("state %q", s)
			}
			if r := l.Report(); r.Lost != last.Seq || r.FirstRun != true {
				t.Errorf("report %+v", r)
			}
			// What was acknowledged is gone, and whoever saw it can tell.
			v, err := l.Verify(context.Background(), audit.Anchor{Seq: last.Seq, Root: last.Root})
			if err != nil || v.Outcome != "TRUNCATED" {
				t.Errorf("verify with an anchor: %+v, %v", v, err)
			}
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// records is collect for logs that are damaged.
func records(s interface {
	Scan(context.Context, audit.Range, func(*record.Record, audit.BodiesFunc) error) error
}) (out []record.Record, err error) {
	err = s.Scan(context.Background(), audit.Range{}, func(r *record.Record, _ audit.BodiesFunc) error {
		out = append(out, *r)
		return nil
	})
	return out, err
}

func TestAnOlderCopyPutBackUnderTheRunningLogIsNoticed(t *testing.T) {
	t.Parallel()
	o := audittest.Options(t)
	l := audittest.Open(t, o)
	audittest.Append(t, l, call("a"))
	audittest.Close(t, l)
	path := live(t, o)
	old, err := os.ReadFile(path)
	must(t, err)
	l = audittest.NewLog(t, o)
	audittest.Append(t, l, call("b"))
	must(t, os.Remove(path))
	must(t, os.WriteFile(path, old, 0o600))
	if _, err := l.Append(context.Background(), call("c")); !errors.Is(err, audit.ErrUnavailable) {
		t.Fatalf("append: %v", err)
	}
	waitFor(t, "recovery", func() bool { return l.Err() == nil })
	got := collect(t, l)
	gaps := ofKind(got, record.Gap)
	if len(gaps) != 1 || gaps[0].Detail["first"] != "3" || gaps[0].Detail["last"] != "3" {
		t.Errorf("gaps %+v", gaps)
	}
	if s := fmt.Sprintf("%s %s %s %d", got[0].Kind, got[1].ID, got[2].Kind, got[2].Seq); s != "daemon.segment a daemon.segment 4" {
		t.Errorf("records begin with %s", s)
	}
}

func TestAFullDiskDeniesAndRecoversWhenThereIsSpace(t *testing.T) {
	t.Parallel()
	if !inChild(t, "fill") {
		runChild(t, "TestAFullDiskDeniesAndRecoversWhenThereIsSpace", "fill", nil)
		return
	}
	// The limit on file sizes stands for the full disk: writes beyond it fail, and it can be raised again.
	o := childOptions()
	l := audittest.NewLog(t, o)
	audittest.Append(t, l, call("a"))
	fi, err := os.Stat(live(t, o))
	must(t, err)
	var rl syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &rl))
	ignoreFileSizeSignal()
	must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: uint64(fi.Size()), Max: rl.Max}))
	acknowledged := map[string]bool{"a": true}
	var failure error
	for i := 0; failure == nil && i < 200; i++ {
		e := call(fmt.Sprint("fill-", i))
		e.Bodies[0].Data = make([]byte, 256<<10)
		if _, failure = l.Append(context.Background(), e); failure == nil {
			acknowledged[e.Record.ID] = true
		}
	}
	if !errors.Is(failure, audit.ErrUnavailable) || len(acknowledged) < 3 {
		t.Fatalf("after %d records: %v", len(acknowledged), failure)
	}
	must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &rl))
	waitFor(t, "recovery", func() bool { return l.Err() == nil })
	audittest.Append(t, l, call("z"))
	acknowledged["z"] = true
	for _, r := range collect(t, l) {
		delete(acknowledged, r.ID)
	}
	if len(acknowledged) > 0 {
		t.Errorf("acknowledged and lost: %v", acknowledged)
	}
}

func TestAFileCutShortUnderTheMapNeitherKillsNorAcknowledges(t *testing.T) {
	t.Parallel()
	size, child := int64(0), false
	for _, c := range []struct {
		role string
		size int64
	}{{"sigbus-0", 0}, {"sigbus-5-pages", 5 * 4096}, {"sigbus-half-page", 10*4096 + 100}} {
		if inChild(t, c.role) {
			size, child = c.size, true
		} else if os.Getenv(childRole) == "" {
			runChild(t, "TestAFileCutShortUnderTheMapNeitherKillsNorAcknowledges", c.role, nil)
		}
	}
	if !child {
		return
	}
	// Cut short after the check of the file and before the write: the memory map faults.
	o := childOptions()
	o.CommitTimeout = 500 * time.Millisecond
	var cut atomic.Bool
	o = audit.WithFaults(o, func() error {
		if cut.CompareAndSwap(true, false) {
			return os.Truncate(live(t, o), size)
		}
		return nil
	}, nil)
	l := audittest.Open(t, o)
	for i := range 50 {
		audittest.Append(t, l, call(fmt.Sprint(i)))
	}
	cut.Store(true)
	if _, err := l.Append(context.Background(), call("lost")); !errors.Is(err, audit.ErrUnavailable) {
		t.Fatalf("append: %v", err)
	}
	// A query over the same map must not die either.
	_, _ = records(l)
	waitFor(t, "recovery or a call for a restart", func() bool {
		select {
		case <-l.Failed():
			return true
		default:
			return l.Err() == nil
		}
	})
	fmt.Println("recovered:", l.Err() == nil)
}

func TestADirectoryThatCannotBeWrittenIsAnErrorAtStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	must(t, os.Symlink(dir, filepath.Join(dir, "link")))
	for _, tt := range []struct {
		name string
		o    audit.Options
	}{
		{"a file where the log directory should be", audit.Options{Dir: file, KeyDir: dir}},
		{"a file above it", audit.Options{Dir: filepath.Join(file, "log"), KeyDir: dir}},
		{"a link as the log directory", audit.Options{Dir: filepath.Join(dir, "link"), KeyDir: dir}},
		{"a file where the key directory should be", audit.Options{Dir: filepath.Join(dir, "log"), KeyDir: file}},
		{"no directory", audit.Options{KeyDir: dir}},
		{"no key directory", audit.Options{Dir: filepath.Join(dir, "log")}},
	} {
		if l, err := audit.Open(context.Background(), tt.o); err == nil {
			audittest.Close(t, l)
			t.Errorf("%s: no error", tt.name)
		}
	}
}

func TestAReadOnlyDirectoryIsAnErrorAndHarmsNothing(t *testing.T) {
	t.Parallel()
	if !inChild(t, "readonly") {
		runChild(t, "TestAReadOnlyDirectoryIsAnErrorAndHarmsNothing", "readonly", unprivileged(t))
		return
	}
	o := childOptions()
	l := audittest.Open(t, o)
	audittest.Append(t, l, call("a"))
	// While it runs nothing new is needed in the directory.
	must(t, os.Chmod(o.Dir, 0o500))
	audittest.Append(t, l, call("b"))
	audittest.Close(t, l)
	must(t, os.Chmod(live(t, o), 0o400))
	if l, err := audit.Open(context.Background(), o); !errors.Is(err, os.ErrPermission) {
		t.Errorf("open: %v, %v", l, err)
	}
	audittest.CheckOK(t, o)
	must(t, os.Chmod(live(t, o), 0o600))
	must(t, os.Chmod(o.Dir, 0o700))
	l = audittest.NewLog(t, o)
	audittest.Append(t, l, call("c"))
}
