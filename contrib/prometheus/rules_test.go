// SPDX-License-Identifier: Apache-2.0

// Package prometheus_test holds the alert rules to the metrics that exist, to their runbooks, and to their own tests.
package prometheus_test

import (
	"bytes"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/tripline-sh/tripline/exporters/prom"
)

// rule is one rule of the file, an alert or a recorded series.
type rule struct {
	Alert, Record, Expr, For string
	Labels, Annotations      map[string]string
}

// strict decodes a YAML file of this directory; a field that is not expected is an error.
func strict(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict()).Decode(into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func rules(t *testing.T) (alerts, records []rule) {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string
			Rules []rule
		}
	}
	strict(t, "tripline.rules.yml", &file)
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" {
				records = append(records, r)
				continue
			}
			alerts = append(alerts, r)
		}
	}
	if len(alerts) < 20 {
		t.Fatalf("%d alerts", len(alerts))
	}
	return alerts, records
}

func TestEveryAlertHasASeverityAndSaysWhatItMeans(t *testing.T) {
	t.Parallel()
	alerts, _ := rules(t)
	name := regexp.MustCompile(`^Tripline([A-Z][a-z]+)+$`)
	seen := map[string]bool{}
	for _, a := range alerts {
		if !name.MatchString(a.Alert) || seen[a.Alert] {
			t.Errorf("%q is no name, or there twice", a.Alert)
		}
		seen[a.Alert] = true
		if len(a.Labels) != 1 || !slices.Contains([]string{"critical", "warning", "info"}, a.Labels["severity"]) {
			t.Errorf("%s: labels %v", a.Alert, a.Labels)
		}
		if len(a.Annotations) != 3 || a.Annotations["summary"] == "" || a.Annotations["description"] == "" ||
			a.Annotations["runbook_url"] != "contrib/prometheus/runbooks/"+a.Alert+".md" {
			t.Errorf("%s: annotations %v", a.Alert, a.Annotations)
		}
		// In a provisioning file of Grafana a dollar would be taken for a variable of the environment.
		if strings.Contains(a.Annotations["summary"]+a.Annotations["description"], "$") {
			t.Errorf("%s: an annotation holds a dollar", a.Alert)
		}
	}
}

func TestMetricsOfRulesExist(t *testing.T) {
	t.Parallel()
	names, err := prom.New("test").Names()
	if err != nil {
		t.Fatal(err)
	}
	alerts, records := rules(t)
	metric := regexp.MustCompile(`\btripline_[a-z_]+[a-z]`)
	histogram := regexp.MustCompile(`_(bucket|sum|count)$`)
	for _, r := range append(alerts, records...) {
		found := metric.FindAllString(r.Expr, -1)
		if len(found) == 0 && !strings.Contains(r.Expr, "up{") && !strings.Contains(r.Expr, "process_start_time_seconds{") {
			t.Errorf("%s%s asks for no metric", r.Alert, r.Record)
		}
		for _, name := range found {
			if !slices.Contains(names, name) && !slices.Contains(names, histogram.ReplaceAllString(name, "")) {
				t.Errorf("%s%s asks for %s, which does not exist", r.Alert, r.Record, name)
			}
		}
	}
}

// A kind of alarm that no alert matches would be counted and never told; one that two match would be told twice.
func TestEveryKindOfAlarmHasOneAlert(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	prom.New("test").Own().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	kinds := regexp.MustCompile(`(?m)^tripline_alarms_total\{kind="([^"]+)"\}`).FindAllStringSubmatch(w.Body.String(), -1)
	if len(kinds) < 10 {
		t.Fatalf("%d kinds in:\n%s", len(kinds), w.Body)
	}
	matcher := regexp.MustCompile(`tripline_alarms_total\{kind(=|=~|!~)"([^"]+)"\}`)
	alerts, _ := rules(t)
	for _, kind := range kinds {
		var by []string
		for _, a := range alerts {
			m := matcher.FindStringSubmatch(a.Expr)
			if m == nil {
				continue
			}
			value := strings.ReplaceAll(m[2], `\\`, `\`)
			hit := value == kind[1]
			if m[1] != "=" {
				hit = regexp.MustCompile("^(?:"+value+")$").MatchString(kind[1]) == (m[1] == "=~")
			}
			if hit {
				by = append(by, a.Alert)
			}
		}
		if len(by) != 1 {
			t.Errorf("%s is told by %v", kind[1], by)
		}
	}
}

func TestEveryRuleIsTestedFiringAndQuiet(t *testing.T) {
	t.Parallel()
	type sample struct {
		Labels string
		Value  float64
	}
	type file struct {
		RuleFiles          []string `yaml:"rule_files"`
		EvaluationInterval string   `yaml:"evaluation_interval"`
		Tests              []struct {
			Name, Interval string
			InputSeries    []struct{ Series, Values string } `yaml:"input_series"`
			Exprs          []struct {
				Expr     string
				EvalTime string   `yaml:"eval_time"`
				Samples  []sample `yaml:"exp_samples"`
			} `yaml:"promql_expr_test"`
			Alerts []any `yaml:"alert_rule_test"`
		}
	}
	fires, quiet, recorded := map[string]bool{}, map[string]bool{}, map[string]bool{}
	alertname := regexp.MustCompile(`alertname="(\w+)"`)
	alerts, records := rules(t)
	for _, path := range testFiles(t) {
		var f file
		strict(t, path, &f)
		if !slices.Equal(f.RuleFiles, []string{"../tripline.rules.yml"}) {
			t.Errorf("%s tests %v", path, f.RuleFiles)
		}
		for _, c := range f.Tests {
			about, what, _ := strings.Cut(c.Name, " ")
			never := len(c.Exprs) > 0
			for _, e := range c.Exprs {
				for _, r := range records {
					recorded[r.Record] = recorded[r.Record] || strings.Contains(e.Expr, r.Record) && len(e.Samples) > 0
				}
				m := alertname.FindStringSubmatch(e.Expr)
				if m == nil {
					never = false
					continue
				}
				if m[1] != about {
					t.Errorf("%s: %q asks about %s", path, c.Name, m[1])
				}
				never = never && len(e.Samples) == 0
				fires[about] = fires[about] || len(e.Samples) > 0
			}
			quiet[about] = quiet[about] || never
			if strings.HasPrefix(what, "is quiet") != never {
				t.Errorf("%s: %q does not show what it says", path, c.Name)
			}
		}
	}
	for _, a := range alerts {
		if !fires[a.Alert] || !quiet[a.Alert] {
			t.Errorf("%s: tested firing %v, quiet %v", a.Alert, fires[a.Alert], quiet[a.Alert])
		}
	}
	for _, r := range records {
		if !recorded[r.Record] {
			t.Errorf("%s is not tested", r.Record)
		}
	}
}

func testFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("tests/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests: %v", err)
	}
	return files
}

// The real programs read the files, and the rules do what their tests say.
func TestPrometheusAndAlertmanagerAcceptTheFiles(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"promtool", "check", "config", "prometheus.yml"},
		{"promtool", "check", "rules", "tripline.rules.yml"},
		append([]string{"promtool", "test", "rules"}, testFiles(t)...),
		{"amtool", "check-config", "alertmanager.yml"},
	} {
		if _, err := exec.LookPath(args[0]); err != nil {
			if os.Getenv("TRIPLINE_E2E") == "1" {
				t.Fatalf("%s is not installed, and TRIPLINE_E2E=1 asks for it", args[0])
			}
			t.Skipf("THE RULES WERE NOT TESTED: %s is not installed (Debian: prometheus, prometheus-alertmanager)", args[0])
		}
		if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
