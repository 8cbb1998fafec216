// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const generated = "# Written by contrib/grafana/gen from its list of alerts: change that, then `go generate ./contrib/grafana/gen`.\n"

// quoted is a text in double quotes. What JSON may escape YAML reads in the same way.
func quoted(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // a string always encodes
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// block is a text as a literal block, every line indented.
func block(s, indent string) string {
	return "|-\n" + indent + strings.ReplaceAll(s, "\n", "\n"+indent)
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// runbook is the path of an alert's page in this repository.
func (a alert) runbook() string { return "contrib/prometheus/runbooks/" + a.Name + ".md" }

// expr is the condition as Prometheus writes it.
func (a alert) expr() string {
	q := a.Query
	if !slices.ContainsFunc([]string{"sum by", "max by", "changes(", "tripline_"}, func(p string) bool { return strings.HasPrefix(q, p) }) {
		q = "(\n  " + strings.ReplaceAll(q, "\n", "\n  ") + "\n)" // a comparison binds stronger than what joins its parts
	}
	return q + " " + a.Op + " " + number(a.Limit)
}

// uid is the rule's identifier in Grafana: at most 40 characters.
func (a alert) uid() string {
	var b strings.Builder
	for i, r := range a.Name {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				b.WriteByte('-')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

func (a alert) wait() string {
	if a.For == "" {
		return "0s"
	}
	return a.For
}

// prometheusRules is the rule file for Prometheus.
func prometheusRules() []byte {
	var b bytes.Buffer
	b.WriteString(generated)
	b.WriteString("groups:\n")
	for _, g := range groups {
		fmt.Fprintf(&b, "  - name: %s\n    rules:\n", g.Name)
		for _, a := range g.Alerts {
			fmt.Fprintf(&b, "      - alert: %s\n        expr: %s\n        for: %s\n        labels:\n          severity: %s\n        annotations:\n",
				a.Name, block(a.expr(), "          "), a.wait(), a.Severity)
			fmt.Fprintf(&b, "          summary: %s\n          description: %s\n          runbook_url: %s\n", quoted(a.Summary), quoted(a.Detail), a.runbook())
		}
	}
	b.WriteString("  - name: tripline-records\n    rules:\n")
	for _, r := range records {
		fmt.Fprintf(&b, "      - record: %s\n        expr: %s\n", r.Name, block(r.Expr, "          "))
	}
	return b.Bytes()
}

// Grafana's identifiers for the data source of the provisioning file beside the rules, and for its own expressions.
const (
	datasourceUID = "tripline-prometheus"
	expressionUID = "__expr__"
)

// grafanaRules is the provisioning file with the same alerts: A asks Prometheus, B compares with the limit.
func grafanaRules() []byte {
	var b bytes.Buffer
	b.WriteString(generated)
	b.WriteString("apiVersion: 1\ngroups:\n")
	for _, g := range groups {
		fmt.Fprintf(&b, "  - orgId: 1\n    name: %s\n    folder: Tripline\n    interval: 1m\n    rules:\n", g.Name)
		for _, a := range g.Alerts {
			a.grafana(&b)
		}
	}
	return b.Bytes()
}

func (a alert) grafana(b *bytes.Buffer) {
	noData, evaluator := "OK", "gt"
	if a.Dead {
		noData = "Alerting"
	}
	if a.Op == "<" {
		evaluator = "lt"
	}
	fmt.Fprintf(b, `      - uid: %s
        title: %s
        condition: B
        for: %s
        noDataState: %s
        execErrState: Error
        labels:
          severity: %s
        annotations:
          summary: %s
          description: %s
          runbook_url: %s
        data:
          - refId: A
            relativeTimeRange: {from: 3600, to: 0}
            datasourceUid: %s
            model:
              refId: A
              expr: %s
              instant: true
              range: false
          - refId: B
            relativeTimeRange: {from: 3600, to: 0}
            datasourceUid: %s
            model:
              refId: B
              type: threshold
              expression: A
              datasource: {type: %s, uid: %s}
              conditions:
                - evaluator: {type: %s, params: [%s]}
`, a.uid(), a.Name, a.wait(), noData, a.Severity, quoted(a.Summary), quoted(a.Detail), a.runbook(),
		datasourceUID, block(a.Query, "                "), expressionUID, expressionUID, expressionUID, evaluator, number(a.Limit))
}
