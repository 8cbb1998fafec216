// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/tripline-sh/tripline/audit/audittest"
	"github.com/tripline-sh/tripline/audit/record"
)

// residentFile returns how much of files this process has mapped and resident, in bytes.
func residentFile(t *testing.T) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	must(t, err)
	m := regexp.MustCompile(`RssFile:\s+(\d+) kB`).FindSubmatch(b)
	if m == nil {
		t.Skip("NOT TESTED: resident memory, which this kernel does not tell apart")
	}
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	must(t, err)
	return n << 10
}

func TestALargeLiveSegmentDoesNotStayInMemory(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("NOT TESTED: resident memory, which only Linux tells")
	}
	if !inChild(t, "memory") {
		runChild(t, "TestALargeLiveSegmentDoesNotStayInMemory", "memory", nil)
		return
	}
	l := audittest.NewLog(t, childOptions())
	before := residentFile(t)
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := range 64 {
				e := call(fmt.Sprint(w, "-", i))
				e.Bodies[0].Data = make([]byte, 40<<10)
				audittest.Append(t, l, e)
			}
		})
	}
	wg.Wait()
	const limit = 12 << 20 // of 40 MB
	if grown := residentFile(t) - before; grown > limit {
		t.Errorf("after appending: %d MB of the segment are resident", grown>>20)
	}
	if v, err := l.Verify(context.Background()); err != nil || v.Outcome != "OK" {
		t.Errorf("verify %+v, %v", v, err)
	}
	must(t, l.Calls(context.Background(), record.Filter{}, func(record.Call) error { return nil }))
	if grown := residentFile(t) - before; grown > limit {
		t.Errorf("after reading: %d MB of the segment are resident", grown>>20)
	}
	fmt.Printf("%d MB before, %d MB after\n", before>>20, residentFile(t)>>20)
}
