// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tripline-sh/tripline/exporters/prom"
)

func TestWhatIsCommittedIsWhatIsGenerated(t *testing.T) {
	t.Parallel()
	again := outputs()
	for path, data := range outputs() {
		committed, err := os.ReadFile(filepath.Join("..", "..", path))
		if err != nil {
			t.Error(err)
			continue
		}
		if !bytes.Equal(committed, data) || !bytes.Equal(data, again[path]) {
			t.Errorf("contrib/%s is not what the generator writes: go generate ./contrib/grafana/gen", path)
		}
	}
}

// loaded is the committed dashboard, strictly decoded.
func loaded(t *testing.T) dashboard {
	t.Helper()
	data, err := os.ReadFile("../dashboards/tripline.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestPanelsAreNumberedPlacedAndFed(t *testing.T) {
	t.Parallel()
	d := loaded(t)
	if d.UID == "" || len(d.UID) > 40 || d.Title == "" {
		t.Errorf("uid %q, title %q", d.UID, d.Title)
	}
	ids, titles := map[int]bool{}, map[string]bool{}
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 || p.Title == "" || titles[p.Title] {
			t.Errorf("panel %d %q is there twice, or has no name", p.ID, p.Title)
		}
		ids[p.ID], titles[p.Title] = true, true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%q lies over %q or over the edge", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Description == "" || p.FieldConfig == nil || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 {
			t.Errorf("%q has no description, unit or query", p.Title)
		}
		refs := map[string]bool{}
		for _, q := range p.Targets {
			if q.Expr == "" || refs[q.RefID] || q.Datasource != prometheus || q.Instant == q.Range {
				t.Errorf("%q: query %+v", p.Title, q)
			}
			refs[q.RefID] = true
		}
	}
	if len(ids) < 25 {
		t.Errorf("%d panels", len(ids))
	}
}

func TestPanelsAskForMetricsThatExistAndForTheVariables(t *testing.T) {
	t.Parallel()
	names, err := prom.New("test").Names()
	if err != nil {
		t.Fatal(err)
	}
	d := loaded(t)
	known := []string{"__rate_interval", "__range", "1"} // $1 is label_replace's own
	for _, v := range d.Templating.List {
		known = append(known, v.Name)
	}
	metric := regexp.MustCompile(`\b(tripline_[a-z_]+[a-z])(\{[^}]*\})?`)
	histogram := regexp.MustCompile(`_(bucket|sum|count)$`)
	variable := regexp.MustCompile(`\$\{?(\w+)`)
	shown := map[string]bool{}
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			for _, m := range metric.FindAllStringSubmatch(q.Expr, -1) {
				name := m[1]
				if !slices.Contains(names, name) {
					name = histogram.ReplaceAllString(name, "")
				}
				if !slices.Contains(names, name) {
					t.Errorf("%q asks for %s, which does not exist", p.Title, m[1])
				}
				shown[name] = true
				if !strings.HasPrefix(m[2], `{job=~"$job",instance=~"$instance"`) {
					t.Errorf("%q asks for %s without the variables: %s", p.Title, m[1], q.Expr)
				}
			}
			for _, m := range variable.FindAllStringSubmatch(q.Expr, -1) {
				if !slices.Contains(known, m[1]) {
					t.Errorf("%q uses $%s, which is no variable", p.Title, m[1])
				}
			}
		}
	}
	// What is not on the dashboard is left out on purpose.
	hidden := []string{
		"tripline_connections",          // of the moment, mostly 0
		"tripline_log_commit_records",   // for tuning only
		"tripline_log_failing",          // TriplineLogCannotWrite, and commits that fail
		"tripline_spool_ingested_total", // the spool's size tells
		"tripline_disk_total_bytes",     // free is what counts
		"tripline_config_reloads_total", // TriplineConfigReloadFailed
		"tripline_floor_hits_total",     // each is a tripwire hit as well
		"tripline_config_last_reload_successful", "tripline_config_last_reload_success_timestamp_seconds",
		"tripline_canary_last_success_timestamp_seconds", // 0 until somebody runs doctor
	}
	for _, name := range names {
		if shown[name] == slices.Contains(hidden, name) {
			t.Errorf("%s: shown %v, though the list of hidden ones says otherwise", name, shown[name])
		}
	}
}
