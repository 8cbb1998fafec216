// SPDX-License-Identifier: Apache-2.0

package main

import "strings"

// row is a title and the panels below it.
type row struct {
	title  string
	panels []panel
}

// query is one line of a panel: PromQL in which {...} stands for the variables job and instance, and what it is called.
type query struct{ expr, legend string }

// selected puts the dashboard's variables into an expression: every `{` of a selector that opens with the mark `{*`.
func selected(expr string) string {
	expr = strings.ReplaceAll(expr, "{*}", `{job=~"$job",instance=~"$instance"}`)
	return strings.ReplaceAll(expr, "{*", `{job=~"$job",instance=~"$instance"`)
}

func targets(instant bool, format string, queries []query) []target {
	var out []target
	for i, q := range queries {
		out = append(out, target{
			RefID: string(rune('A' + i)), Datasource: prometheus, Expr: selected(q.expr), LegendFormat: q.legend,
			Instant: instant, Range: !instant, Format: format,
		})
	}
	return out
}

// stat is one number. bad is where it turns from green to the colour, 0 for a number that is neither good nor bad.
func stat(title, text, unit string, width int, colour string, bad float64, expr string) panel {
	zero := 0
	f := fieldDefaults{Unit: unit, Decimals: &zero, Color: map[string]any{"mode": "thresholds"}}
	f.Thresholds = &thresholds{"absolute", []step{{"text", nil}}}
	if colour != "" {
		f.Thresholds.Steps = []step{{"green", nil}, {colour, &bad}}
	}
	return panel{
		Type: "stat", Title: title, Description: text, GridPos: grid{H: 4, W: width}, Datasource: &prometheus,
		Targets: targets(true, "time_series", []query{{expr, ""}}), FieldConfig: &fieldConfig{f, []any{}},
		Options: map[string]any{
			"colorMode": "value", "graphMode": "none", "textMode": "value", "justifyMode": "auto", "orientation": "auto",
			"wideLayout": true, "showPercentChange": false, "percentChangeColorMode": "standard",
			"reduceOptions": map[string]any{"calcs": []string{"lastNotNull"}, "fields": "", "values": false},
		},
	}
}

// lines is a chart over time.
func lines(title, text, unit string, width int, queries ...query) panel {
	zero := 0
	return panel{
		Type: "timeseries", Title: title, Description: text, GridPos: grid{H: 8, W: width}, Datasource: &prometheus,
		Targets: targets(false, "time_series", queries),
		FieldConfig: &fieldConfig{fieldDefaults{
			Unit: unit, Min: &zero, Color: map[string]any{"mode": "palette-classic-by-name"},
			Custom: map[string]any{"drawStyle": "line", "lineWidth": 1, "fillOpacity": 10, "showPoints": "never", "stacking": map[string]any{"mode": "none", "group": "A"}},
		}, []any{}},
		Options: map[string]any{
			"legend":  map[string]any{"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []string{}},
			"tooltip": map[string]any{"mode": "multi", "sort": "desc"},
		},
	}
}

// stacked is a chart whose series add up.
func stacked(p panel) panel {
	c := p.FieldConfig.Defaults.Custom
	c["stacking"], c["fillOpacity"] = map[string]any{"mode": "normal", "group": "A"}, 40
	return p
}

// coloured gives series of these names fixed colours, so that a denial looks the same everywhere.
func coloured(p panel, colours ...[2]string) panel {
	for _, c := range colours {
		p.FieldConfig.Overrides = append(p.FieldConfig.Overrides, map[string]any{
			"matcher":    map[string]any{"id": "byName", "options": c[0]},
			"properties": []any{map[string]any{"id": "color", "value": map[string]any{"mode": "fixed", "fixedColor": c[1]}}},
		})
	}
	return p
}

// ranking is bars, the longest first.
func ranking(title, text string, width int, q query) panel {
	zero := 0
	return panel{
		Type: "bargauge", Title: title, Description: text, GridPos: grid{H: 8, W: width}, Datasource: &prometheus,
		Targets:     targets(true, "time_series", []query{q}),
		FieldConfig: &fieldConfig{fieldDefaults{Unit: "short", Decimals: &zero, Min: &zero, Color: map[string]any{"mode": "continuous-BlPu"}}, []any{}},
		Options: map[string]any{
			"displayMode": "basic", "orientation": "horizontal", "valueMode": "color", "namePlacement": "auto", "showUnfilled": false, "sizing": "auto",
			"minVizWidth": 8, "minVizHeight": 16, "maxVizHeight": 300,
			"legend":        map[string]any{"showLegend": false, "displayMode": "list", "placement": "bottom", "calcs": []string{}},
			"reduceOptions": map[string]any{"calcs": []string{"lastNotNull"}, "fields": "", "values": false},
		},
	}
}

// table shows labels as columns.
func table(title, text string, width, height int, q query) panel {
	return panel{
		Type: "table", Title: title, Description: text, GridPos: grid{H: height, W: width}, Datasource: &prometheus,
		Targets:     targets(true, "table", []query{q}),
		FieldConfig: &fieldConfig{fieldDefaults{Unit: "none", Color: map[string]any{"mode": "thresholds"}}, []any{}},
		Options:     map[string]any{"frameIndex": 0, "showHeader": true, "cellHeight": "sm"},
		Transform: []any{map[string]any{"id": "organize", "options": map[string]any{
			"excludeByName": map[string]any{"Time": true, "Value": true}, "indexByName": map[string]any{}, "renameByName": map[string]any{},
		}}},
	}
}
