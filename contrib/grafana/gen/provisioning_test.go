// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// The format of Grafana's provisioning files, as far as ours use it. A field that is not here is an error.
type (
	alertingFile struct {
		APIVersion int `yaml:"apiVersion"`
		Groups     []struct {
			OrgID    int64  `yaml:"orgId"`
			Name     string `yaml:"name"`
			Folder   string `yaml:"folder"`
			Interval string `yaml:"interval"`
			Rules    []managed
		} `yaml:"groups"`
	}
	managed struct {
		UID          string            `yaml:"uid"`
		Title        string            `yaml:"title"`
		Condition    string            `yaml:"condition"`
		For          string            `yaml:"for"`
		NoDataState  string            `yaml:"noDataState"`
		ExecErrState string            `yaml:"execErrState"`
		Labels       map[string]string `yaml:"labels"`
		Annotations  map[string]string `yaml:"annotations"`
		Data         []struct {
			RefID             string `yaml:"refId"`
			RelativeTimeRange struct {
				From int `yaml:"from"`
				To   int `yaml:"to"`
			} `yaml:"relativeTimeRange"`
			DatasourceUID string `yaml:"datasourceUid"`
			Model         struct {
				RefID      string `yaml:"refId"`
				Expr       string `yaml:"expr"`
				Instant    bool   `yaml:"instant"`
				Range      bool   `yaml:"range"`
				Type       string `yaml:"type"`
				Expression string `yaml:"expression"`
				Datasource *source
				Conditions []struct {
					Evaluator struct {
						Type   string    `yaml:"type"`
						Params []float64 `yaml:"params"`
					} `yaml:"evaluator"`
				} `yaml:"conditions"`
			} `yaml:"model"`
		} `yaml:"data"`
	}
	ruleFile struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Record, Expr, For string
				Labels, Annotations      map[string]string
			}
		}
	}
)

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

func TestManagedRulesHaveTheFormThatGrafanaReads(t *testing.T) {
	t.Parallel()
	var f alertingFile
	strict(t, "../provisioning/alerting/tripline.yaml", &f)
	if f.APIVersion != 1 || len(f.Groups) == 0 {
		t.Fatalf("version %d, %d groups", f.APIVersion, len(f.Groups))
	}
	uids := map[string]bool{}
	for _, g := range f.Groups {
		if g.Name == "" || g.Folder == "" || g.Interval == "" || g.OrgID != 1 || len(g.Rules) == 0 {
			t.Errorf("group %q: folder %q, interval %q", g.Name, g.Folder, g.Interval)
		}
		for _, r := range g.Rules {
			if r.UID == "" || len(r.UID) > 40 || uids[r.UID] || !regexp.MustCompile(`^[a-z0-9-]+$`).MatchString(r.UID) {
				t.Errorf("%s: uid %q", r.Title, r.UID)
			}
			uids[r.UID] = true
			if !slices.Contains([]string{"NoData", "OK", "Alerting", "KeepLast"}, r.NoDataState) ||
				!slices.Contains([]string{"Error", "OK", "Alerting", "KeepLast"}, r.ExecErrState) {
				t.Errorf("%s: without data %q, on errors %q", r.Title, r.NoDataState, r.ExecErrState)
			}
			if (r.NoDataState == "Alerting") != (r.Title == "TriplineDaemonDown") {
				t.Errorf("%s: without data %q; one alert is enough for a daemon that is not there", r.Title, r.NoDataState)
			}
			refs := map[string]bool{}
			for _, q := range r.Data {
				if q.RefID == "" || refs[q.RefID] || q.Model.RefID != q.RefID || q.RelativeTimeRange.From <= q.RelativeTimeRange.To {
					t.Errorf("%s: query %q %+v", r.Title, q.RefID, q.RelativeTimeRange)
				}
				refs[q.RefID] = true
				switch q.DatasourceUID {
				case datasourceUID:
					if q.Model.Expr == "" || !q.Model.Instant || q.Model.Range {
						t.Errorf("%s: query %q", r.Title, q.RefID)
					}
				case expressionUID:
					if q.Model.Type != "threshold" || !refs[q.Model.Expression] || len(q.Model.Conditions) != 1 || len(q.Model.Conditions[0].Evaluator.Params) != 1 {
						t.Errorf("%s: expression %q %+v", r.Title, q.RefID, q.Model)
					}
				default:
					t.Errorf("%s: data source %q", r.Title, q.DatasourceUID)
				}
			}
			if !refs[r.Condition] {
				t.Errorf("%s: condition %q", r.Title, r.Condition)
			}
		}
	}
}

// What Prometheus asks is, blanks aside, what Grafana asks with the limit behind it.
func TestBothSetsOfAlertsAgree(t *testing.T) {
	t.Parallel()
	var grafana alertingFile
	strict(t, "../provisioning/alerting/tripline.yaml", &grafana)
	managedBy := map[string]managed{}
	groupOf := map[string]string{}
	for _, g := range grafana.Groups {
		for _, r := range g.Rules {
			managedBy[r.Title], groupOf[r.Title] = r, g.Name
		}
	}
	var rules ruleFile
	strict(t, "../../prometheus/tripline.rules.yml", &rules)
	flat := strings.NewReplacer(" ", "", "\n", "")
	for _, g := range rules.Groups {
		for _, a := range g.Rules {
			if a.Alert == "" {
				continue
			}
			r, ok := managedBy[a.Alert]
			if !ok || len(r.Data) != 2 {
				t.Errorf("%s is not in Grafana's set", a.Alert)
				continue
			}
			delete(managedBy, a.Alert)
			evaluator := r.Data[1].Model.Conditions[0].Evaluator
			op, ok := map[string]string{"gt": ">", "lt": "<"}[evaluator.Type]
			limit := strconv.FormatFloat(evaluator.Params[0], 'f', -1, 64)
			query := flat.Replace(r.Data[0].Model.Expr)
			want := []string{query + op + limit, fmt.Sprintf("(%s)%s%s", query, op, limit)}
			if !ok || !slices.Contains(want, flat.Replace(a.Expr)) {
				t.Errorf("%s:\nPrometheus %s\nGrafana    %s %s %s", a.Alert, a.Expr, r.Data[0].Model.Expr, evaluator.Type, limit)
			}
			if r.For != a.For || r.Labels["severity"] != a.Labels["severity"] || len(r.Labels) != len(a.Labels) || groupOf[a.Alert] != g.Name {
				t.Errorf("%s: Prometheus waits %s, %v; Grafana %s, %v", a.Alert, a.For, a.Labels, r.For, r.Labels)
			}
			if fmt.Sprint(r.Annotations) != fmt.Sprint(a.Annotations) {
				t.Errorf("%s: Prometheus says %v, Grafana %v", a.Alert, a.Annotations, r.Annotations)
			}
		}
	}
	for name := range managedBy {
		t.Errorf("%s is not in the set for Prometheus", name)
	}
}

func TestProvisioningPointsToWhatIsThere(t *testing.T) {
	t.Parallel()
	var sources struct {
		APIVersion  int `yaml:"apiVersion"`
		Datasources []struct {
			Name      string         `yaml:"name"`
			UID       string         `yaml:"uid"`
			Type      string         `yaml:"type"`
			Access    string         `yaml:"access"`
			URL       string         `yaml:"url"`
			IsDefault bool           `yaml:"isDefault"`
			Editable  bool           `yaml:"editable"`
			JSONData  map[string]any `yaml:"jsonData"`
		} `yaml:"datasources"`
	}
	strict(t, "../provisioning/datasources/tripline.yaml", &sources)
	if len(sources.Datasources) != 1 || sources.Datasources[0].UID != datasourceUID || sources.Datasources[0].Type != "prometheus" || sources.Datasources[0].IsDefault {
		t.Errorf("data sources %+v", sources)
	}
	var dashboards struct {
		APIVersion int `yaml:"apiVersion"`
		Providers  []struct {
			Name            string            `yaml:"name"`
			OrgID           int64             `yaml:"orgId"`
			Folder          string            `yaml:"folder"`
			Type            string            `yaml:"type"`
			DisableDeletion bool              `yaml:"disableDeletion"`
			AllowUIUpdates  bool              `yaml:"allowUiUpdates"`
			Options         map[string]string `yaml:"options"`
		} `yaml:"providers"`
	}
	strict(t, "../provisioning/dashboards/tripline.yaml", &dashboards)
	if len(dashboards.Providers) != 1 || dashboards.Providers[0].Type != "file" || dashboards.Providers[0].Options["path"] == "" {
		t.Errorf("providers %+v", dashboards)
	}
	if sources.APIVersion != 1 || dashboards.APIVersion != 1 {
		t.Error("the version of a provisioning file is 1")
	}
}
