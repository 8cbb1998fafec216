// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/audit/record"
)

// show runs auditctl and tells both the command and its output. Only exit code 0 is well.
func (w *world) show(ctx context.Context, args ...string) error {
	out, code, err := w.run(ctx, "auditctl", args...)
	line := "auditctl"
	for _, arg := range args {
		if strings.ContainsAny(arg, " '\"") {
			arg = fmt.Sprintf("%q", arg)
		}
		line += " " + arg
	}
	w.say("  $ %s\n    %s", line, strings.ReplaceAll(out, "\n", "\n    "))
	if err != nil || code != 0 {
		return fmt.Errorf("%s: exit code %d %w", line, code, err)
	}
	return nil
}

// questions are what a person asks afterwards.
func (w *world) questions(ctx context.Context) error {
	w.chapter("What did it do?")
	if err := w.show(ctx, "query", "--since", "1h"); err != nil {
		return err
	}
	w.chapter("In short (from auditctl query -o jsonl)")
	if err := w.summary(ctx); err != nil {
		return err
	}
	w.chapter("Is the record whole, and is it the one that the first denial was written to?")
	if err := w.show(ctx, "verify", "--anchor", w.anchor); err != nil {
		return err
	}
	w.chapter("How is Tripline?")
	if err := w.show(ctx, "status"); err != nil {
		return err
	}
	w.chapter("What Prometheus sees (what is not zero)")
	return w.metrics(ctx)
}

// summary counts the calls of the day as a report would.
func (w *world) summary(ctx context.Context) error {
	out, code, err := w.run(ctx, "auditctl", "query", "--since", "1h", "-o", "jsonl")
	if err != nil || code != 0 {
		return fmt.Errorf("auditctl query: exit code %d %w", code, err)
	}
	outcomes, rules, who := map[string]int{}, map[string]int{}, map[string]int{}
	calls := 0
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "{") {
			continue // the range of time, which goes to standard error
		}
		var c record.Call
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			return fmt.Errorf("auditctl query printed %q: %w", line, err)
		}
		calls++
		outcomes[string(c.Outcome)]++
		if c.Rule != "" {
			rules[c.Rule]++
		}
		if c.Outcome == record.Ran || c.Outcome == record.Failed {
			who[c.Who]++
		}
	}
	w.say("  %d calls: %s", calls, counted(outcomes))
	w.say("  stopped or held by: %s", counted(rules))
	w.say("  those that ran were let through by: %s", counted(who))
	return nil
}

// counted lists what was counted, the most frequent first.
func counted(m map[string]int) string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if m[a] != m[b] {
			return m[b] - m[a]
		}
		return strings.Compare(a, b)
	})
	for i, k := range keys {
		keys[i] = fmt.Sprintf("%d %s", m[k], k)
	}
	return strings.Join(keys, ", ")
}

// address is where the daemon's metrics are.
func (w *world) address() (string, error) {
	data, err := os.ReadFile(filepath.Join(w.home, ".local/state/tripline/run/metrics.addr"))
	return strings.TrimSpace(string(data)), err
}

// metrics shows the counters that tell the session's story.
func (w *world) metrics(ctx context.Context) error {
	addr, err := w.address()
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/metrics", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	if err != nil {
		return err
	}
	shown := 0
	for line := range strings.Lines(string(body)) {
		line = strings.TrimSpace(line)
		for _, name := range []string{"tool_calls_total", "tripwire_hits_total", "floor_hits_total", "approvals_total", "log_records", "log_commits_total"} {
			if strings.HasPrefix(line, "tripline_"+name) && !strings.HasSuffix(line, " 0") {
				w.say("  %s", line)
				shown++
			}
		}
	}
	if shown == 0 {
		return fmt.Errorf("no metric of the session at %s", addr)
	}
	return nil
}
