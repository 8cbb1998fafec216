// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/contrib/e2e/model"
)

// BenchmarkSession compares a session of 20 Bash calls under Tripline with the same session under /bin/true registered for the
// same events: alternating pairs, median of the paired ratios (goal 1.15).
func BenchmarkSession(b *testing.B) {
	const pairs = 9
	calls := make([]model.Call, 20)
	for i := range calls {
		calls[i] = bash("true")
	}
	w := newWorld(b, map[string][]model.Step{"work": steps(calls...)})
	w.install()
	settings := filepath.Join(w.home, ".claude/settings.json")
	ours, err := os.ReadFile(settings)
	if err != nil {
		b.Fatal(err)
	}
	plain := withTrue(b, ours)
	session := func(content []byte) time.Duration {
		// the client must not watch the file change, so it is written between sessions
		if err := os.WriteFile(settings, content, 0o600); err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		w.claude("work", allowed...)
		return time.Since(start)
	}
	for b.Loop() {
		session(ours)
		session(plain)
		var ratios []float64
		for i := range pairs {
			var t, p time.Duration
			if i%2 == 0 {
				t, p = session(ours), session(plain)
			} else {
				p, t = session(plain), session(ours)
			}
			ratios = append(ratios, float64(t)/float64(p))
			b.Logf("pair %d: tripline %v, true %v, ratio %.3f", i, t.Round(time.Millisecond), p.Round(time.Millisecond), ratios[i])
		}
		slices.Sort(ratios)
		b.ReportMetric(ratios[pairs/2], "ratio")
		fmt.Printf("20 Bash calls, %d alternating pairs: median of paired ratios %.3f (min %.3f, max %.3f; goal 1.15)\n",
			pairs, ratios[pairs/2], ratios[0], ratios[pairs-1])
	}
	if n := len(find(w.calls("--limit", "0"), "true")); n != 20*(pairs+1) {
		b.Errorf("%d of %d calls are on record", n, 20*(pairs+1))
	}
}

// withTrue replaces our handlers by /bin/true, for the same events.
func withTrue(b *testing.B, settings []byte) []byte {
	b.Helper()
	var all map[string]any
	if err := json.Unmarshal(settings, &all); err != nil {
		b.Fatal(err)
	}
	for _, groups := range all["hooks"].(map[string]any) {
		for _, g := range groups.([]any) {
			for _, h := range g.(map[string]any)["hooks"].([]any) {
				h := h.(map[string]any)
				h["command"], h["args"] = "/bin/true", []string{}
			}
		}
	}
	out, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		b.Fatal(err)
	}
	return out
}
