// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
)

// The parts of Grafana's dashboard model (schema version 39, Grafana 10.4 and later) that this dashboard uses.
type (
	dashboard struct {
		UID           string   `json:"uid"`
		Title         string   `json:"title"`
		Description   string   `json:"description"`
		Tags          []string `json:"tags"`
		SchemaVersion int      `json:"schemaVersion"`
		Version       int      `json:"version"`
		Editable      bool     `json:"editable"`
		GraphTooltip  int      `json:"graphTooltip"`
		Refresh       string   `json:"refresh"`
		Time          span     `json:"time"`
		Timezone      string   `json:"timezone"`
		Annotations   struct {
			List []any `json:"list"`
		} `json:"annotations"`
		Templating struct {
			List []variable `json:"list"`
		} `json:"templating"`
		Panels []panel `json:"panels"`
	}
	span struct {
		From string `json:"from"`
		To   string `json:"to"`
	}
	source struct {
		Type string `json:"type"`
		UID  string `json:"uid"`
	}
	variable struct {
		Name       string         `json:"name"`
		Label      string         `json:"label"`
		Type       string         `json:"type"`
		Query      any            `json:"query"`
		Datasource *source        `json:"datasource,omitempty"`
		Refresh    int            `json:"refresh"`
		Multi      bool           `json:"multi"`
		IncludeAll bool           `json:"includeAll"`
		AllValue   string         `json:"allValue,omitempty"`
		Current    map[string]any `json:"current"`
		Sort       int            `json:"sort,omitempty"`
	}
	varQuery struct {
		Query string `json:"query"`
		RefID string `json:"refId"`
	}
	grid struct {
		H int `json:"h"`
		W int `json:"w"`
		X int `json:"x"`
		Y int `json:"y"`
	}
	target struct {
		RefID        string `json:"refId"`
		Datasource   source `json:"datasource"`
		Expr         string `json:"expr"`
		LegendFormat string `json:"legendFormat,omitempty"`
		Instant      bool   `json:"instant"`
		Range        bool   `json:"range"`
		Format       string `json:"format"`
	}
	panel struct {
		ID          int            `json:"id"`
		Type        string         `json:"type"`
		Title       string         `json:"title"`
		Description string         `json:"description,omitempty"`
		GridPos     grid           `json:"gridPos"`
		Collapsed   *bool          `json:"collapsed,omitempty"` // rows only
		Panels      []panel        `json:"panels,omitzero"`     // of a collapsed row
		Datasource  *source        `json:"datasource,omitempty"`
		Targets     []target       `json:"targets,omitempty"`
		FieldConfig *fieldConfig   `json:"fieldConfig,omitempty"`
		Options     map[string]any `json:"options,omitempty"`
		Transform   []any          `json:"transformations,omitempty"`
	}
	fieldConfig struct {
		Defaults  fieldDefaults `json:"defaults"`
		Overrides []any         `json:"overrides"`
	}
	fieldDefaults struct {
		Unit       string         `json:"unit"`
		Decimals   *int           `json:"decimals,omitempty"`
		Min        *int           `json:"min,omitempty"`
		Color      map[string]any `json:"color"`
		Custom     map[string]any `json:"custom,omitempty"`
		Thresholds *thresholds    `json:"thresholds,omitempty"`
	}
	thresholds struct {
		Mode  string `json:"mode"`
		Steps []step `json:"steps"`
	}
	step struct {
		Color string   `json:"color"`
		Value *float64 `json:"value"` // null: everything below the next
	}
)

// prometheus is the data source that the reader chooses on the dashboard.
var prometheus = source{"prometheus", "${datasource}"}

func newDashboard() dashboard {
	d := dashboard{
		UID: "tripline", Title: "Tripline", Description: "What coding agents did, what stopped them, and whether the record of it is sound.",
		Tags: []string{"tripline"}, SchemaVersion: 39, Version: 1, GraphTooltip: 1, Refresh: "30s",
		Time: span{"now-6h", "now"}, Timezone: "browser",
	}
	d.Annotations.List = []any{}
	choose := func(name, label, metric string) variable {
		return variable{
			Name: name, Label: label, Type: "query", Datasource: &prometheus, Refresh: 2, Multi: true, IncludeAll: true, AllValue: ".*", Sort: 1,
			Query:   varQuery{Query: "label_values(" + metric + ", " + name + ")", RefID: "variable-" + name},
			Current: map[string]any{"selected": true, "text": []string{"All"}, "value": []string{"$__all"}},
		}
	}
	d.Templating.List = []variable{
		{Name: "datasource", Label: "Data source", Type: "datasource", Query: "prometheus", Refresh: 1, Current: map[string]any{"selected": true, "text": "default", "value": "default"}},
		choose("job", "Job", "tripline_build_info"),
		choose("instance", "Instance", "tripline_build_info{job=~\"$job\"}"),
		choose("agent", "Agent", "tripline_sessions_active{job=~\"$job\",instance=~\"$instance\"}"),
	}
	return d
}

// dashboardJSON is the dashboard's file: panels laid out in rows, numbered in order.
func dashboardJSON() []byte {
	d := newDashboard()
	id, y := 0, 0
	for _, r := range rows() {
		id++
		open := false
		d.Panels = append(d.Panels, panel{ID: id, Type: "row", Title: r.title, Collapsed: &open, Panels: []panel{}, GridPos: grid{1, 24, 0, y}})
		y++
		x, height := 0, 0
		for _, p := range r.panels {
			if x+p.GridPos.W > 24 {
				x, y, height = 0, y+height, 0
			}
			id++
			p.ID, p.GridPos.X, p.GridPos.Y = id, x, y
			x, height = x+p.GridPos.W, max(height, p.GridPos.H)
			d.Panels = append(d.Panels, p)
		}
		y += height
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(d); err != nil {
		panic(err) // nothing in it that does not encode
	}
	return b.Bytes()
}
