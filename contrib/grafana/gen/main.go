// SPDX-License-Identifier: Apache-2.0

// Command gen writes Tripline's alert rules for Prometheus, the same alerts as rules that Grafana manages, and the dashboard,
// from one list each. Its output is committed; a test makes it again and compares.
//
//	go generate ./contrib/grafana/gen
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

//go:generate go run . ../..

// outputs are the files that the generator owns, by their paths below contrib.
func outputs() map[string][]byte {
	return map[string][]byte{
		"prometheus/tripline.rules.yml":               prometheusRules(),
		"grafana/provisioning/alerting/tripline.yaml": grafanaRules(),
		"grafana/dashboards/tripline.json":            dashboardJSON(),
	}
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gen CONTRIB")
		os.Exit(2)
	}
	for path, data := range outputs() {
		path = filepath.Join(os.Args[1], path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			fmt.Fprintln(os.Stderr, "gen:", err)
			os.Exit(1)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "gen:", err)
			os.Exit(1)
		}
	}
}
