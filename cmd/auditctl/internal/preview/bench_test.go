// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/tripwires"
)

// BenchmarkPreview reads and judges generated transcripts on one core. PREVIEW_CALLS sets their size:
//
//	PREVIEW_CALLS=100000 go test -run '^$' -bench Preview -benchtime 1x ./cmd/auditctl/internal/preview
func BenchmarkPreview(b *testing.B) {
	calls := 5000
	if n, err := strconv.Atoi(os.Getenv("PREVIEW_CALLS")); err == nil && n > 0 {
		calls = n
	}
	for _, unique := range []bool{false, true} {
		b.Run(fmt.Sprintf("unique=%v", unique), func(b *testing.B) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			home := b.TempDir()
			g := generated{calls: calls, unique: unique}
			dir := generate(b, home, &g)
			e, err := tripwires.New(tripwires.Options{})
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(g.bytes)
			for b.Loop() {
				rep, err := Run(context.Background(), Options{Dir: dir, Engine: e, Homes: []string{home}, Workers: 1, Now: time.Now})
				if err != nil || rep.Summary.Calls != calls {
					b.Fatalf("%+v %v", rep, err)
				}
				b.ReportMetric(float64(rep.Summary.Asked+rep.Summary.Denied), "stopped")
			}
			b.ReportMetric(float64(calls)*float64(b.N)/b.Elapsed().Seconds(), "calls/s")
		})
	}
}
