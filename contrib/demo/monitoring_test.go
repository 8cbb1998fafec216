// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

// A real Prometheus scrapes the real daemon while the session is played. Then every query of the dashboard and of the alerts has
// data, only the alerts of this story fire, and a real Alertmanager tells a real receiver of them.
//
// The conditions of alerts are empty while all is well, so what must have data is each alert's query without its limit (as
// Grafana's rules hold it); with the limit it must be accepted.
func TestPanelsAndAlertsHaveData(t *testing.T) {
	t.Parallel()
	programs := lookFor(t, "prometheus", "prometheus-alertmanager", "alertmanager")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	w := newHome(t)
	if err := w.start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.stop(); err != nil {
			t.Error(err)
		}
	})
	daemon, err := w.address()
	if err != nil {
		t.Fatal(err)
	}
	hook := newReceiver(t)
	m := newMonitoring(t, programs, daemon, hook.URL)

	// A second session stays open, so that alerts on open sessions have something to look at.
	other := map[string]any{"session_id": "5e55a9e0-0000-4000-8000-000000000002"}
	if _, err := w.send(ctx, "SessionStart.startup", other); err != nil {
		t.Fatal(err)
	}
	// The counters have been seen at zero before the first call.
	eventually(t, "the daemon is scraped, with a session", func() error { return m.hasData(`tripline_sessions_active{agent="claude"} > 0`) })
	if err := w.session(ctx); err != nil {
		t.Fatalf("%v\n%s", err, w.out)
	}

	t.Run("panels", func(t *testing.T) {
		for title, exprs := range panels(t) {
			for _, expr := range exprs {
				eventually(t, title+": "+expr, func() error { return m.hasData(expr) })
			}
		}
	})
	t.Run("alerts", func(t *testing.T) {
		for name, query := range managedQueries(t) {
			eventually(t, name+": "+query, func() error { return m.hasData(query) })
		}
		alerts, records := ruleExprs(t)
		for name, expr := range alerts {
			if _, err := m.query(expr); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for name := range records {
			eventually(t, name, func() error { return m.hasData(name) })
		}
	})
	t.Run("firing", func(t *testing.T) {
		want := []string{"TriplineTripwireFired delete.project", "TriplineTripwireFired download.execute", "TriplineFloorFired delete.home"}
		for _, alert := range want {
			eventually(t, "the receiver is told of "+alert, func() error { return hook.told(alert) })
		}
		firing, err := m.firing()
		if err != nil {
			t.Fatal(err)
		}
		for name := range firing {
			if name != "TriplineTripwireFired" && name != "TriplineFloorFired" {
				t.Errorf("%s fires, though all is well", name)
			}
		}
		if page := hook.runbook("TriplineTripwireFired"); page == "" {
			t.Error("the receiver was told of no runbook")
		} else if _, err := os.Stat(filepath.Join("../..", page)); err != nil {
			t.Errorf("the runbook that the receiver was told of: %v", err)
		}
	})
}

// lookFor finds Prometheus and Alertmanager (which Debian calls by another name), by the first name given for each.
func lookFor(t *testing.T, prometheus string, alertmanager ...string) (programs [2]string) {
	t.Helper()
	for i, names := range [][]string{{prometheus}, alertmanager} {
		for _, name := range names {
			if path, err := exec.LookPath(name); err == nil && programs[i] == "" {
				programs[i] = path
			}
		}
		if programs[i] != "" {
			continue
		}
		if os.Getenv("TRIPLINE_E2E") == "1" {
			t.Fatalf("%s is not installed, and TRIPLINE_E2E=1 asks for it", names[0])
		}
		t.Skipf("NO QUERY OF THE DASHBOARD OR OF AN ALERT WAS TRIED: %s is not installed (Debian: prometheus, prometheus-alertmanager)", names[0])
	}
	return programs
}

// newHome makes what demo.sh makes.
func newHome(t *testing.T) *world {
	t.Helper()
	home, err := os.MkdirTemp("/tmp", "tripline-demo.") // short, since the sockets lie below it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	bin := filepath.Join(home, ".local/bin")
	if out, err := exec.CommandContext(t.Context(), "../dev/build.sh", bin).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	source, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	return newWorld(home, source, bin+":"+filepath.Dir(git)+":/usr/bin:/bin", &lockedBuffer{})
}

// forReal puts values into the variables of Grafana.
var forReal = strings.NewReplacer("$__rate_interval", "1m", "$__range", "5m", "$job", ".*", "$instance", ".*", "$agent", ".*")

func panels(t *testing.T) map[string][]string {
	t.Helper()
	data, err := os.ReadFile("../grafana/dashboards/tripline.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	variable := regexp.MustCompile(`\$[A-Za-z_{]`)
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			expr := forReal.Replace(q.Expr)
			if variable.MatchString(expr) {
				t.Errorf("%s holds a variable that has no value here: %s", p.Title, expr)
			}
			out[p.Title] = append(out[p.Title], expr)
		}
	}
	if len(out) < 20 {
		t.Fatalf("%d panels", len(out))
	}
	return out
}

// managedQueries are the queries of Grafana's rules, by alert.
func managedQueries(t *testing.T) map[string]string {
	t.Helper()
	var f struct {
		Groups []struct {
			Rules []struct {
				Title string
				Data  []struct{ Model struct{ Expr string } }
			}
		}
	}
	decode(t, "../grafana/provisioning/alerting/tripline.yaml", &f)
	out := map[string]string{}
	for _, g := range f.Groups {
		for _, r := range g.Rules {
			out[r.Title] = r.Data[0].Model.Expr
		}
	}
	if len(out) < 20 {
		t.Fatalf("%d rules", len(out))
	}
	return out
}

func ruleExprs(t *testing.T) (alerts, records map[string]string) {
	t.Helper()
	var f struct {
		Groups []struct {
			Rules []struct{ Alert, Record, Expr string }
		}
	}
	decode(t, "../prometheus/tripline.rules.yml", &f)
	alerts, records = map[string]string{}, map[string]string{}
	for _, g := range f.Groups {
		for _, r := range g.Rules {
			if r.Alert != "" {
				alerts[r.Alert] = r.Expr
			} else {
				records[r.Record] = r.Expr
			}
		}
	}
	if len(alerts) < 20 || len(records) == 0 {
		t.Fatalf("%d alerts, %d records", len(alerts), len(records))
	}
	return alerts, records
}

func decode(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatal(fmt.Errorf("%s: %w", path, err))
	}
}
