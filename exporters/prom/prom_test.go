// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

var update = flag.Bool("update", false, "write the golden files anew")

// scrape returns the text exposition without what differs from machine to machine.
func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler(0).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	var own strings.Builder
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE "), "tripline_") {
			own.WriteString(strings.ReplaceAll(line, runtime.Version(), "GOVERSION"))
		}
	}
	return own.String()
}

func TestEverySeriesExistsAtZeroBeforeAnyEvent(t *testing.T) {
	t.Parallel()
	got := scrape(t, New("1.2.3"))
	golden := filepath.Join("testdata", "start.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("run with -update if this is meant:\n%s", diff)
	}
	for line := range strings.Lines(got) {
		if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "tripline_build_info") && !strings.HasSuffix(line, " 0\n") {
			t.Errorf("not zero: %s", line)
		}
	}
}

// exercise calls every method once, with values that are known and values that are not.
func exercise(m *Metrics) {
	for _, v := range []string{"claude", "Bash", "deny", "other", "", "mcp__github__create", "\xff\x00", strings.Repeat("x", 1000)} {
		m.Call(v, v, v)
		m.Tripwire(v, v)
		m.Floor(v)
		m.LastEvent(v, time.Unix(1700000000, 0))
		m.Stage(v, time.Millisecond)
		m.Hook(v, time.Millisecond)
		m.ApprovalDone(v, time.Minute)
		m.FailClosed(v)
		m.Alarm(v)
		m.Dropped(v, 2)
		m.Undecodable(v)
	}
	m.Rules([]string{"delete.recursive", "no rule at all", "project:x"})
	m.Commit(3, time.Millisecond, nil)
	m.Commit(3, time.Millisecond, errors.New("disk full"))
	m.LogRecords(7)
	m.LogBytes(4096)
	m.VerifyFailed()
	m.FailOpen()
	m.Sessions(map[string]int{"gone": 9})
	m.Sessions(map[string]int{"claude": 2, "x": 1, "y": 3})
	m.ApprovalsPending(2)
	m.ApprovalOldest(90 * time.Second)
	m.LogFailing(false)
	m.LogFailing(true)
	m.Disk(1000, 5000)
	m.Canary(time.Unix(1700000001, 0))
	m.HooksRemoved(2)
	m.Spool(4)
	m.Ingested(3)
	m.Connections(5)
	m.Reload(true, time.Unix(1700000000, 0))
	m.Reload(false, time.Unix(1800000000, 0))
	m.Loosening(1)
	m.Dropped("log", 0)
	m.Ingested(-1)
}

func TestNamesAndHelpFollowTheConventions(t *testing.T) {
	t.Parallel()
	m := New("1.2.3", "claude", "codex")
	exercise(m)
	problems, err := testutil.GatherAndLint(m.registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestMethodsCountWhatTheySay(t *testing.T) {
	t.Parallel()
	m := New("1.2.3")
	exercise(m)
	got := scrape(t, m)
	for _, line := range []string{
		`tripline_tool_calls_total{agent="claude",decision="other",tool="other"} 1`,
		`tripline_tool_calls_total{agent="other",decision="other",tool="Bash"} 1`,
		`tripline_tool_calls_total{agent="other",decision="other",tool="mcp"} 1`,
		`tripline_tool_calls_total{agent="other",decision="deny",tool="other"} 1`,
		`tripline_tripwire_hits_total{rule="delete.recursive",verdict="deny"} 0`,
		`tripline_tripwire_hits_total{rule="project:x",verdict="ask"} 0`,
		`tripline_floor_hits_total{rule="delete.recursive"} 0`,
		`tripline_floor_hits_total{rule="Bash"} 1`,
		`tripline_last_event_timestamp_seconds{agent="claude"} 1.7e+09`,
		`tripline_approval_oldest_seconds 90`,
		`tripline_log_failing 1`,
		`tripline_disk_free_bytes 1000`,
		`tripline_disk_total_bytes 5000`,
		`tripline_canary_last_success_timestamp_seconds 1.700000001e+09`,
		`tripline_hooks_removed 2`,
		`tripline_stage_duration_seconds_count{stage="other"} 8`,
		`tripline_hook_duration_seconds_count{agent="claude"} 1`,
		`tripline_log_commits_total{result="ok"} 1`,
		`tripline_log_commits_total{result="failed"} 1`,
		`tripline_log_commit_records_sum 3`,
		`tripline_log_records 7`,
		`tripline_log_bytes 4096`,
		`tripline_log_verify_failures_total 1`,
		`tripline_hook_fail_open_total 1`,
		`tripline_sessions_active{agent="claude"} 2`,
		`tripline_sessions_active{agent="other"} 4`,
		`tripline_approvals_pending 2`,
		`tripline_approval_wait_seconds_sum 480`,
		`tripline_events_dropped_total{reason="other"} 16`,
		`tripline_events_dropped_total{reason="log"} 0`,
		`tripline_spool_pending 4`,
		`tripline_spool_ingested_total 3`,
		`tripline_connections 5`,
		`tripline_config_last_reload_successful 0`,
		`tripline_config_last_reload_success_timestamp_seconds 1.7e+09`,
		`tripline_config_reloads_total{result="failed"} 1`,
		`tripline_config_loosening_pending 1`,
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("missing %s", line)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}

func TestLabelsStayBounded(t *testing.T) {
	t.Parallel()
	m := New("1.2.3")
	before := strings.Count(scrape(t, m), "\n")
	for i := range 5000 {
		v := fmt.Sprintf("v%d", i)
		m.Call(v, v, v)
		m.Tripwire(v, v)
		m.Stage(v, 0)
		m.Hook(v, 0)
		m.ApprovalDone(v, 0)
		m.FailClosed(v)
		m.Alarm(v)
		m.Dropped(v, 1)
		m.Undecodable(v)
		m.Rules([]string{"r" + v})
	}
	if after := strings.Count(scrape(t, m), "\n"); after > before+2*maxRules+50 {
		t.Errorf("%d lines before, %d after", before, after)
	}
}

func TestRuleIdsMustLookLikeOne(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"delete.recursive": "delete.recursive", "project:no-secrets": "project:no-secrets", "A_1": "A_1",
		"": other, ".x": other, "a b": other, "rm -rf /": other, "é": other, "a\n": other, strings.Repeat("a", 65): other,
	} {
		var r ruleIDs
		if got := r.fold(id); got != want {
			t.Errorf("%q became %q, want %q", id, got, want)
		}
	}
}

func TestTwoDaemonsInOneProcessCountApart(t *testing.T) {
	t.Parallel()
	a, b := New("1"), New("1")
	a.Connections(3)
	if testutil.ToFloat64(b.connections) != 0 {
		t.Error("shared")
	}
}

func TestEveryMetricIsDocumented(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("prom.go")
	if err != nil {
		t.Fatal(err)
	}
	names, err := New("1").Names()
	if err != nil {
		t.Fatal(err)
	}
	doc := string(src[:strings.Index(string(src), "\npackage prom")])
	for _, n := range names {
		if !strings.Contains(doc, "//\t"+n+" ") && !strings.Contains(doc, "//\t"+n+"{") {
			t.Errorf("%s is not in the package comment", n)
		}
	}
	if len(names) != strings.Count(doc, "//\ttripline_") {
		t.Errorf("%d metrics, %d in the package comment", len(names), strings.Count(doc, "//\ttripline_"))
	}
}

func TestOwnMetricsAreTextAndNothingElse(t *testing.T) {
	t.Parallel()
	m := New("1.2.3")
	exercise(m)
	for _, header := range []http.Header{nil, {"Accept": {"application/openmetrics-text"}, "Accept-Encoding": {"gzip"}}} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/v1/metrics", nil)
		if header != nil {
			r.Header = header
		}
		m.Own().ServeHTTP(w, r)
		if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain; version=0.0.4") {
			t.Fatalf("status %d, type %q", w.Code, w.Header().Get("Content-Type"))
		}
		samples := 0
		for line := range strings.Lines(w.Body.String()) {
			if !strings.HasPrefix(strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE "), "tripline_") {
				t.Errorf("not ours: %q", line)
			}
			if !strings.HasPrefix(line, "#") {
				samples++
			}
		}
		if want := strings.Count(scrape(t, m), "\n") - strings.Count(scrape(t, m), "\n#") - 1; samples != want {
			t.Errorf("%d samples, want %d", samples, want)
		}
	}
}
