// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/tripwires"
)

// BenchmarkPreview reads and judges generated transcripts on one core. PREVIEW_CALLS sets their size; with PREVIEW_HOME they are
// made in that directory and stay, for a run of the program itself:
//
//	PREVIEW_CALLS=100000 PREVIEW_HOME=/tmp/h go test -run '^$' -bench Preview/unique=false -benchtime 1x ./cmd/auditctl/internal/preview
//	GOMAXPROCS=1 HOME=/tmp/h command time -v auditctl preview --since 2026-01-01
func BenchmarkPreview(b *testing.B) {
	calls := 5000
	if n, err := strconv.Atoi(os.Getenv("PREVIEW_CALLS")); err == nil && n > 0 {
		calls = n
	}
	for _, unique := range []bool{false, true} {
		b.Run(fmt.Sprintf("unique=%v", unique), func(b *testing.B) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			home := os.Getenv("PREVIEW_HOME")
			if home == "" {
				home = b.TempDir()
			}
			g := generated{calls: calls, unique: unique}
			dir := generate(b, home, &g)
			e, err := tripwires.New(tripwires.Options{})
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(g.bytes)
			before := processorTime(b)
			for b.Loop() {
				rep, err := Run(context.Background(), Options{Dir: dir, Engine: e, Homes: []string{home}, Workers: 1, Now: time.Now})
				if err != nil || rep.Summary.Calls != calls {
					b.Fatalf("%+v %v", rep, err)
				}
				b.ReportMetric(float64(rep.Summary.Asked+rep.Summary.Denied), "stopped")
			}
			b.ReportMetric(float64(calls)*float64(b.N)/b.Elapsed().Seconds(), "calls/s")
			b.ReportMetric(float64(calls)*float64(b.N)/(processorTime(b)-before).Seconds(), "calls/cpu-s")
		})
	}
}

// processorTime is what this process has used. Unlike the time on the wall it does not depend on what else the machine does.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
