// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
)

// gaps counts what could not be recorded, until a gap record declares it. Safe for concurrent use.
type gaps struct {
	mu    sync.Mutex
	lost  map[string]int // reason -> events
	ready chan struct{}  // one token while something is lost
}

func newGaps() *gaps { return &gaps{lost: make(map[string]int), ready: make(chan struct{}, 1)} }

// add notes n events lost for a reason of a closed list.
func (g *gaps) add(reason string, n int) {
	if n <= 0 {
		return
	}
	g.mu.Lock()
	g.lost[reason] += n
	g.mu.Unlock()
	select {
	case g.ready <- struct{}{}:
	default:
	}
}

// take returns the gap record of everything lost so far and forgets it; nil if nothing was lost. restore takes it back
// when the record could not be written either.
func (g *gaps) take() (e *audit.Entry, restore func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.lost) == 0 {
		return nil, nil
	}
	lost := g.lost
	g.lost = make(map[string]int)
	detail := make(map[string]string, len(lost)+1)
	total := 0
	for _, reason := range slices.Sorted(maps.Keys(lost)) {
		detail["lost_"+reason] = strconv.Itoa(lost[reason])
		total += lost[reason]
	}
	detail["count"] = strconv.Itoa(total)
	return &audit.Entry{Record: record.Record{Kind: record.Gap, Detail: detail}}, func() {
		for reason, n := range lost {
			g.add(reason, n)
		}
	}
}
