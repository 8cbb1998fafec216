// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/audittest"
	"github.com/tripline-sh/tripline/audit/record"
)

// benchEntry is a call of usual size: about 700 bytes of record and 1 KB of bodies.
func benchEntry(i int) *audit.Entry {
	e := call("")
	e.Record.Session, e.Record.ToolUseID, e.Record.Cwd = "0b9f5a5e-5d0e-4a55-8a52-3c0b0f5c7d11", fmt.Sprint("toolu_", i), "/home/u/shop"
	e.Record.Peer = &record.Peer{UID: 1000, GID: 1000, PID: 4242, Exe: "/home/u/.local/bin/tripline-hook", AgentPID: 4000, AgentExe: "/usr/bin/claude"}
	e.Bodies = []audit.RawBody{
		{Name: "input", Data: fmt.Appendf(nil, `{"command":"go test ./pkg%d/...","description":"%0300d"}`, i, i)},
		{Name: "analysis", Data: fmt.Appendf(nil, `{"reason":"","effects":[],"pad":"%0500d"}`, i)},
	}
	return e
}

// BenchmarkAppend measures one durable append. Beside ns/op it reports the median of the single latencies, which is what a
// hook waits.
func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			l := audittest.NewLog(b, audittest.Options(b))
			var next atomic.Int64
			var mu sync.Mutex
			var took []time.Duration
			b.ResetTimer()
			var wg sync.WaitGroup
			for range writers {
				wg.Go(func() {
					var own []time.Duration
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						e := benchEntry(int(i))
						start := time.Now()
						if _, err := l.Append(context.Background(), e); err != nil {
							b.Error(err)
							return
						}
						own = append(own, time.Since(start))
					}
					mu.Lock()
					took = append(took, own...)
					mu.Unlock()
				})
			}
			wg.Wait()
			b.StopTimer()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}

// filled is a closed log of n calls, each with an end, all within one day.
func filled(b *testing.B, n int) audit.Options {
	b.Helper()
	c := newClock(noon)
	o := audittest.Options(b)
	o.Now, o.MaxGroup = c.now, 1024
	l := audittest.Open(b, o)
	var wg sync.WaitGroup
	var next atomic.Int64
	for range 512 {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				c.advance(time.Millisecond)
				r, err := l.Append(context.Background(), benchEntry(int(i)))
				if err != nil {
					b.Error(err)
					return
				}
				end := benchEntry(int(i))
				end.Record.Kind, end.Record.Call, end.Record.Decision = record.CallFinished, r.ID, nil
				end.Bodies = []audit.RawBody{{Name: "response", Data: make([]byte, 500)}}
				if _, err := l.Append(context.Background(), end); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	fi, err := os.Stat(live(b, o))
	must(b, err)
	b.Logf("%d records, live segment of %.1f MB, %.0f bytes a record", l.Size(), float64(fi.Size())/1e6, float64(fi.Size())/float64(l.Size()))
	audittest.Close(b, l)
	return o
}

// BenchmarkVerify checks 100,000 records.
func BenchmarkVerify(b *testing.B) {
	o := filled(b, 50_000)
	for b.Loop() {
		if v := audittest.Verify(b, o); v.Outcome != "OK" {
			b.Fatalf("%+v", v)
		}
	}
}

// BenchmarkQuery asks about one day of 20,000 calls, 40,000 records.
func BenchmarkQuery(b *testing.B) {
	o := filled(b, 20_000)
	r, err := audit.OpenReader(o.Dir, audit.ReaderOptions{KeyDir: o.KeyDir})
	must(b, err)
	midnight := noon.Add(-12 * time.Hour)
	day := record.Filter{From: midnight, To: midnight.Add(24 * time.Hour)}
	for _, bb := range []struct {
		name string
		set  func(*record.Filter)
		want int
	}{
		{"all", func(*record.Filter) {}, 20_000},
		{"limit=100", func(f *record.Filter) { f.Limit = 100 }, 100},
		{"grep", func(f *record.Filter) { f.Grep = "pkg777/" }, 1},
		{"denied", func(f *record.Filter) { f.Denied = true }, 0},
	} {
		b.Run(bb.name, func(b *testing.B) {
			f := day
			bb.set(&f)
			for b.Loop() {
				if got := len(list(b, r, f)); got != bb.want {
					b.Fatalf("%d calls", got)
				}
			}
		})
	}
}
