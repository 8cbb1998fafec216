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
	"github.com/tripline-sh/tripline/audit/segment/segmenttest"
)

// clock is a clock that tests set.
type clock struct{ at atomic.Int64 }

func newClock(t time.Time) *clock {
	c := new(clock)
	c.at.Store(t.UnixNano())
	return c
}

func (c *clock) now() time.Time          { return time.Unix(0, c.at.Load()) }
func (c *clock) advance(d time.Duration) { c.at.Add(int64(d)) }

var evening = time.Date(2026, 11, 30, 23, 59, 0, 0, time.UTC)

// segments returns the file names of the segments.
func segments(t testing.TB, o audit.Options) string {
	t.Helper()
	names, err := segment.List(o.Dir)
	must(t, err)
	var files []string
	for _, n := range names {
		files = append(files, n.File())
	}
	return strings.Join(files, " ")
}

func TestANewUTCDayBeginsANewSegmentLinkedToTheOld(t *testing.T) {
	t.Parallel()
	c := newClock(evening)
	o := audittest.Options(t)
	o.Now = c.now
	l := audittest.NewLog(t, o)
	e := call("a")
	e.State = []audit.StateOp{{Key: "k", Value: []byte("v")}}
	a := audittest.Append(t, l, e)
	root := l.Root()
	c.advance(2 * time.Minute)
	b := audittest.Append(t, l, call("b"))
	if a.Seq != 2 || b.Seq != 4 {
		t.Errorf("numbers %d and %d", a.Seq, b.Seq)
	}
	if got, want := segments(t, o), "2026-11-30-000000000001.db 2026-12-01-000000000003.db"; got != want {
		t.Errorf("segments %q, want %q", got, want)
	}
	begin := collect(t, l)[2]
	if begin.Kind != record.SegmentBegin || begin.Detail["prev_name"] != "2026-11-30-000000000001.db" || begin.Detail["prev_size"] != "2" ||
		begin.Detail["prev_root"] != root || !strings.Contains(begin.Detail["prev_checkpoint"], root) {
		t.Errorf("begin %+v", begin)
	}
	if s, _ := l.State(""); string(s["k"]) != "v" {
		t.Errorf("state %q", s)
	}
	// A clock that goes back makes no new segment.
	c.advance(-48 * time.Hour)
	audittest.Append(t, l, call("c"))
	if strings.Count(segments(t, o), ".db") != 2 {
		t.Errorf("segments %q", segments(t, o))
	}
	// Old segments are checked and queried while the log runs.
	v, err := l.Verify(context.Background(), audit.Anchor{Seq: a.Seq, Root: a.Root}, audit.Anchor{Seq: b.Seq, Root: b.Root})
	if err != nil || v.Outcome != "OK" || len(v.Segments) != 2 || v.Size != l.Size() {
		t.Errorf("verify %+v, %v", v, err)
	}
	audittest.Close(t, l)
	l = audittest.NewLog(t, o)
	if s, _ := l.State(""); string(s["k"]) != "v" || l.Size() != 5 {
		t.Errorf("state %q, size %d", s, l.Size())
	}
}

func TestAFullSegmentIsFollowedByAnotherOfTheSameDay(t *testing.T) {
	t.Parallel()
	o := audittest.Options(t)
	o.MaxSegment = 200 << 10
	l := audittest.NewLog(t, o)
	for i := range 60 {
		e := call(fmt.Sprint("c", i))
		e.Bodies[0].Data = make([]byte, 20<<10)
		e.State = []audit.StateOp{{Key: "last", Value: []byte(strconv.Itoa(i))}}
		audittest.Append(t, l, e)
	}
	if n := strings.Count(segments(t, o), ".db"); n < 4 || n > 12 {
		t.Errorf("%d segments", n)
	}
	if s, _ := l.State("last"); string(s["last"]) != "59" {
		t.Errorf("state %q", s)
	}
	if got := ofKind(collect(t, l), record.CallRequested); len(got) != 60 {
		t.Errorf("%d records", len(got))
	}
}

func TestARollThatWasCutOffIsRepairedAtOpen(t *testing.T) {
	t.Parallel()
	// What each step of beginning a segment leaves on disk if the process ends behind it.
	tests := []struct {
		name string
		cut  func(t *testing.T, dir, next string)
		want string // segments after the next append
	}{
		{"nothing yet", func(t *testing.T, dir, next string) {
			must(t, os.Remove(filepath.Join(dir, next)))
		}, "2026-11-30-000000000001.db 2026-12-01-000000000003.db"},
		{"an empty file without a name", func(t *testing.T, dir, next string) {
			must(t, os.Remove(filepath.Join(dir, next)))
			must(t, os.WriteFile(filepath.Join(dir, ".new-"+next), nil, 0o600))
		}, "2026-11-30-000000000001.db 2026-12-01-000000000003.db"},
		{"half a file without a name", func(t *testing.T, dir, next string) {
			must(t, os.Truncate(filepath.Join(dir, next), 5000))
			must(t, os.Rename(filepath.Join(dir, next), filepath.Join(dir, ".new-"+next)))
		}, "2026-11-30-000000000001.db 2026-12-01-000000000003.db"},
		{"a whole file without a name", func(t *testing.T, dir, next string) {
			must(t, os.Rename(filepath.Join(dir, next), filepath.Join(dir, ".new-"+next)))
		}, "2026-11-30-000000000001.db 2026-12-01-000000000003.db"},
		{"a whole file with both names", func(t *testing.T, dir, next string) {
			must(t, os.Link(filepath.Join(dir, next), filepath.Join(dir, ".new-"+next)))
		}, "2026-11-30-000000000001.db 2026-12-01-000000000003.db"},
		{"everything", func(*testing.T, string, string) {}, "2026-11-30-000000000001.db 2026-12-01-000000000003.db"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newClock(evening)
			o := audittest.Options(t)
			o.Now = c.now
			l := audittest.Open(t, o)
			e := call("a")
			e.State = []audit.StateOp{{Key: "k", Value: []byte("v")}}
			audittest.Append(t, l, e)
			audittest.Close(t, l)
			anchor, err := os.ReadFile(filepath.Join(o.KeyDir, "last.checkpoint"))
			must(t, err)
			// The new segment is complete, and the group that wanted it is not written.
			c.advance(time.Hour)
			f := &failing{err: errors.New("cut off here")}
			f.on.Store(true)
			l = audittest.Open(t, audit.WithFaults(o, f.call, nil))
			if _, err := l.Append(context.Background(), call("never")); !errors.Is(err, audit.ErrUnavailable) {
				t.Fatalf("append: %v", err)
			}
			audittest.Close(t, l)
			must(t, os.WriteFile(filepath.Join(o.KeyDir, "last.checkpoint"), anchor, 0o600))
			tt.cut(t, o.Dir, "2026-12-01-000000000003.db")

			l = audittest.NewLog(t, o)
			if r := l.Report(); r.Lost != 0 || len(r.Quarantined)+len(r.Tampered)+len(r.Skipped) != 0 {
				t.Errorf("report %+v", r)
			}
			if r := audittest.Append(t, l, call("b")); r.Seq != 4 {
				t.Errorf("number %d", r.Seq)
			}
			if got := segments(t, o); got != tt.want {
				t.Errorf("segments %q, want %q", got, tt.want)
			}
			if s, _ := l.State("k"); string(s["k"]) != "v" {
				t.Errorf("state %q", s)
			}
			left, err := filepath.Glob(filepath.Join(o.Dir, ".new-*"))
			if err != nil || len(left) > 0 {
				t.Errorf("left over: %v", left)
			}
		})
	}
}

func TestADamagedNewestSegmentIsSetAsideAndDeclared(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		spoil func(t *testing.T, path string)
	}{
		{"empty", func(t *testing.T, path string) { must(t, os.Truncate(path, 0)) }},
		{"zeros", func(t *testing.T, path string) {
			must(t, os.Truncate(path, 0))
			must(t, os.Truncate(path, 1<<20))
		}},
		{"three pages", func(t *testing.T, path string) { must(t, os.Truncate(path, 3*4096)) }},
		{"half", func(t *testing.T, path string) { must(t, os.Truncate(path, 16*4096)) }},
		{"both meta pages damaged", func(t *testing.T, path string) { overwrite(t, path, 40, 4096+40) }},
		{"pages behind the meta pages zeroed", func(t *testing.T, path string) {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			must(t, err)
			_, err = f.WriteAt(make([]byte, 200*4096), 2*4096)
			must(t, err)
			must(t, f.Close())
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := audittest.Options(t)
			l := audittest.Open(t, o)
			var last audit.Receipt
			for i := range 40 {
				e := call(fmt.Sprint("c", i))
				e.State = []audit.StateOp{{Key: "k", Value: []byte("v")}}
				last = audittest.Append(t, l, e)
			}
			audittest.Close(t, l)
			path := live(t, o)
			tt.spoil(t, path)
			l = audittest.NewLog(t, o)
			r := l.Report()
			if len(r.Quarantined) != 1 || r.Lost < last.Seq || r.FirstRun {
				t.Fatalf("report %+v", r)
			}
			if s, _ := l.State("k"); r.StateLost != (len(s) == 0) {
				t.Errorf("state %q, report %+v", s, r)
			}
			if _, err := os.Stat(filepath.Join(o.Dir, r.Quarantined[0])); err != nil || !strings.Contains(r.Quarantined[0], ".db~corrupt-") {
				t.Errorf("set aside: %v", err)
			}
			if next := audittest.Append(t, l, call("next")); next.Seq <= last.Seq {
				t.Errorf("number %d after %d", next.Seq, last.Seq)
			}
			if gaps := ofKind(collect(t, l), record.Gap); len(gaps) != 1 || gaps[0].Detail["cause"] != "damaged" || gaps[0].Detail["file"] != r.Quarantined[0] {
				t.Errorf("gaps %+v", gaps)
			}
			v, err := l.Verify(context.Background())
			if err != nil || v.Outcome != "TRUNCATED" && v.Outcome != "OK" || !strings.Contains(strings.Join(v.Warnings, "\n"), "set aside") {
				t.Errorf("verify %+v, %v", v, err)
			}
		})
	}
}

// overwrite damages single bytes.
func overwrite(t testing.TB, path string, offsets ...int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	for _, at := range offsets {
		b := make([]byte, 1)
		_, err := f.ReadAt(b, at)
		must(t, err)
		b[0] ^= 0x55
		_, err = f.WriteAt(b, at)
		must(t, err)
	}
	must(t, f.Close())
}

func TestForeignThingsWithASegmentsNameAreLeftAlone(t *testing.T) {
	t.Parallel()
	things := []struct {
		name string
		make func(t *testing.T, path string)
	}{
		{"a directory", func(t *testing.T, path string) { must(t, os.Mkdir(path, 0o700)) }},
		{"a dangling link", func(t *testing.T, path string) { must(t, os.Symlink("nowhere", path)) }},
		{"a link to a file", func(t *testing.T, path string) {
			must(t, os.WriteFile(path+".target", []byte("theirs"), 0o644))
			must(t, os.Symlink(path+".target", path))
		}},
		{"a FIFO", func(t *testing.T, path string) { must(t, syscall.Mkfifo(path, 0o600)) }},
		{"text", func(t *testing.T, path string) { must(t, os.WriteFile(path, []byte("theirs"), 0o644)) }},
		{"another database", func(t *testing.T, path string) { segmenttest.NewDatabase(t, path) }},
		{"a segment of another log", func(t *testing.T, path string) { copySegment(t, path) }},
	}
	for _, tt := range things {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newClock(evening)
			o := audittest.Options(t)
			o.Now = c.now
			l := audittest.Open(t, o)
			audittest.Append(t, l, call("a"))
			audittest.Close(t, l)
			// Newer than everything, at a name that is not needed now.
			path := filepath.Join(o.Dir, "2026-12-01-000000000004.db")
			tt.make(t, path)
			before := describe(t, path)
			l = audittest.Open(t, o)
			if r := l.Report(); len(r.Skipped) != 1 || r.Skipped[0] != filepath.Base(path) || r.FirstRun || r.Lost != 0 {
				t.Errorf("report %+v", r)
			}
			if r := audittest.Append(t, l, call("b")); r.Seq != 3 {
				t.Errorf("number %d", r.Seq)
			}
			// Now its name is needed: the old segment goes on, and says so.
			c.advance(time.Hour)
			if r := audittest.Append(t, l, call("c")); r.Seq != 4 {
				t.Errorf("number %d", r.Seq)
			}
			audittest.Close(t, l)
			if after := describe(t, path); after != before {
				t.Errorf("it was %s, it is %s", before, after)
			}
			v := audittest.Verify(t, o)
			if v.Outcome != "OK" || !strings.Contains(strings.Join(v.Warnings, "\n"), "skipped: ") {
				t.Errorf("verify %+v", v)
			}
		})
	}
}

// describe says what a thing is and holds.
func describe(t testing.TB, path string) string {
	t.Helper()
	fi, err := os.Lstat(path)
	must(t, err)
	s := fmt.Sprint(fi.Mode(), fi.ModTime().UnixNano())
	if fi.Mode().IsRegular() || fi.Mode()&os.ModeSymlink != 0 {
		b, err := os.ReadFile(path)
		s += fmt.Sprint(len(b), err)
	}
	return s
}

// copySegment puts a segment of another log at path.
func copySegment(t testing.TB, path string) {
	t.Helper()
	o := audittest.Options(t)
	l := audittest.Open(t, o)
	audittest.Close(t, l)
	b, err := os.ReadFile(live(t, o))
	must(t, err)
	must(t, os.WriteFile(path, b, 0o600))
}

func TestASegmentWhoseNameIsTakenIsTriedAgainLater(t *testing.T) {
	t.Parallel()
	c := newClock(evening)
	o := audittest.Options(t)
	o.Now = c.now
	var rolls atomic.Int64
	o.OnCommit = func(i audit.CommitInfo) {
		if i.RollErr != nil {
			rolls.Add(1)
		}
	}
	l := audittest.NewLog(t, o)
	taken := filepath.Join(o.Dir, "2026-12-01-000000000002.db")
	must(t, os.Mkdir(taken, 0o700))
	c.advance(time.Hour)
	audittest.Append(t, l, call("a"))
	audittest.Append(t, l, call("b"))
	if rolls.Load() != 1 {
		t.Errorf("%d attempts", rolls.Load())
	}
	c.advance(2 * time.Minute)
	audittest.Append(t, l, call("c"))
	if got, want := segments(t, o), "2026-11-30-000000000001.db 2026-12-01-000000000002.db 2026-12-01-000000000004.db"; got != want {
		t.Errorf("segments %q, want %q", got, want)
	}
}

func TestTheFirstSegmentsNameTakenIsAClearError(t *testing.T) {
	t.Parallel()
	o := audittest.Options(t)
	o.Now = newClock(evening).now
	must(t, os.MkdirAll(o.Dir, 0o700))
	l := audittest.Open(t, audit.Options{Dir: filepath.Join(filepath.Dir(o.Dir), "other"), KeyDir: o.KeyDir})
	audittest.Close(t, l)
	must(t, os.Remove(filepath.Join(o.KeyDir, "last.checkpoint")))
	must(t, os.Mkdir(filepath.Join(o.Dir, "2026-11-30-000000000001.db"), 0o700))
	_, err := audit.Open(context.Background(), o)
	if !errors.Is(err, os.ErrExist) || !strings.Contains(err.Error(), "move that away") {
		t.Errorf("open: %v", err)
	}
}

func TestALostOrWrongKeyIsNotReplaced(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		spoil func(t *testing.T, key string)
		want  string
	}{
		{"missing", func(t *testing.T, key string) { must(t, os.Remove(key)) }, "restore the key"},
		{"empty", func(t *testing.T, key string) { must(t, os.Truncate(key, 0)) }, "not a signing key"},
		{"text", func(t *testing.T, key string) { must(t, os.WriteFile(key, []byte("hunter2"), 0o600)) }, "not a signing key"},
		{"a link", func(t *testing.T, key string) {
			must(t, os.Rename(key, key+".x"))
			must(t, os.Symlink(key+".x", key))
		}, "symbolic links"},
		{"a FIFO", func(t *testing.T, key string) { must(t, os.Remove(key)); must(t, syscall.Mkfifo(key, 0o600)) }, "no regular file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := audittest.Options(t)
			l := audittest.Open(t, o)
			audittest.Close(t, l)
			tt.spoil(t, filepath.Join(o.KeyDir, "log.key"))
			_, err := audit.Open(context.Background(), o)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("open: %v", err)
			}
			audittest.CheckOK(t, o)
		})
	}
}

func TestTheNewestSegmentTakenAwayWhileStoppedIsDeclared(t *testing.T) {
	t.Parallel()
	c := newClock(evening)
	o := audittest.Options(t)
	o.Now = c.now
	l := audittest.Open(t, o)
	audittest.Append(t, l, call("a"))
	c.advance(time.Hour)
	last := audittest.Append(t, l, call("b"))
	audittest.Close(t, l)
	must(t, os.Remove(live(t, o)))
	l = audittest.NewLog(t, o)
	if r := l.Report(); r.Lost != 2 || !r.StateStale || r.FirstRun {
		t.Errorf("report %+v", r)
	}
	if next := audittest.Append(t, l, call("c")); next.Seq <= last.Seq {
		t.Errorf("number %d after %d", next.Seq, last.Seq)
	}
}

func TestASegmentThatContradictsItsCheckpointIsKeptAsEvidence(t *testing.T) {
	t.Parallel()
	o := audittest.Options(t)
	l := audittest.Open(t, o)
	for i := range 5 {
		audittest.Append(t, l, call(fmt.Sprint("c", i)))
	}
	audittest.Close(t, l)
	segmenttest.Edit(t, live(t, o), "record", func(b segmenttest.Bucket) error { return b.Delete(segmenttest.Key(6)) })
	l = audittest.Open(t, o)
	if r := l.Report(); len(r.Tampered) != 1 || r.Lost != 1 {
		t.Errorf("report %+v", r)
	}
	audittest.Append(t, l, call("after"))
	audittest.Close(t, l)
	if v := audittest.Verify(t, o); v.Outcome != "TRUNCATED" || v.FirstBad != 6 {
		t.Errorf("verify %+v", v)
	}
}

func TestASecondWriterAndAReaderAreToldThatTheLogIsHeld(t *testing.T) {
	t.Parallel()
	o := audittest.Options(t)
	audittest.NewLog(t, o)
	if _, err := audit.OpenReader(o.Dir, audit.ReaderOptions{KeyDir: o.KeyDir}); !errors.Is(err, audit.ErrLocked) {
		t.Errorf("reader: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := audit.Open(ctx, o); !errors.Is(err, audit.ErrLocked) {
		t.Errorf("writer: %v", err)
	}
}
