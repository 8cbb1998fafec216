// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// alert is one alert, the source of the rule for Prometheus and of the one that Grafana manages. It fires while a value of
// Query has been beyond Limit for the time For. Without its limit a query has data as soon as a daemon is scraped (that on
// silence: as soon as a session is open; that on slow hooks: as soon as one was called).
type alert struct {
	Name     string
	Severity string // critical: look now; warning: today; info: when you pass by
	Query    string // PromQL, without a threshold
	Op       string // > or <
	Limit    float64
	For      string
	Summary  string // one line
	Detail   string // what it means, in a sentence or two

	// Dead is true for the one alert that must fire when there is no data.
	Dead bool
}

// group is alerts that are evaluated together.
type group struct {
	Name   string
	Alerts []alert
}

// recent is how much a counter grew within the window, summed by job, instance and the given labels. A series that did not
// exist a window ago counts in full: increase() sees no first value, and a daemon that a hook started may have
// counted before it was ever scraped.
func recent(series, window string, by ...string) string {
	return fmt.Sprintf(`sum by (%[3]s) (
  (%[1]s unless %[1]s offset %[2]s)
  or increase(%[1]s[%[2]s])
)`, series, window, strings.Join(append([]string{"job", "instance"}, by...), ", "))
}

// alarmsOnTheirOwn are the kinds of alarm that have an alert of their own; TriplineAlarm is for all others, whatever comes.
var alarmsOnTheirOwn = []string{"tamper.denied-ran", "tamper.hooks-removed", "tamper.binary", "tamper.unrecorded", "gap", "daemon.commit-unknown"}

// alarms chooses kinds of alarm; op is =, =~ or !~.
func alarms(op string, kinds ...string) string {
	value := strings.Join(kinds, "|")
	if op != "=" {
		value = strings.ReplaceAll(value, ".", `\\.`)
	}
	return fmt.Sprintf(`tripline_alarms_total{kind%s"%s"}`, op, value)
}

// groups is the one list of alerts.
var groups = []group{
	{"tripline-calls", []alert{
		{
			Name: "TriplineTripwireFired", Severity: "warning", Op: ">",
			Query:   recent(`tripline_tripwire_hits_total{verdict="deny"}`, "5m", "rule"),
			Summary: "An agent's call was denied by the rule {{ .Labels.rule }}",
			Detail:  "Within five minutes a call on {{ .Labels.instance }} was stopped before it ran. It is in the log with its input, directory and session.",
		},
		{
			Name: "TriplineFloorFired", Severity: "critical", Op: ">",
			Query:   recent(`tripline_floor_hits_total`, "5m", "rule"),
			Summary: "An agent's call reached the floor (rule {{ .Labels.rule }})",
			Detail:  "Within five minutes a call on {{ .Labels.instance }} that no one may approve was stopped: a home, keys, a system directory, a device, or Tripline itself.",
		},
		{
			Name: "TriplineDeniedButRan", Severity: "critical", Op: ">",
			Query:   recent(alarms("=", "tamper.denied-ran"), "15m"),
			Summary: "A call that was denied ran all the same",
			Detail:  "The agent on {{ .Labels.instance }} reported the end of a call whose answer was a denial. Another hook, another build of the agent, or the agent's settings let it through.",
		},
		{
			Name: "TriplineCallUnrecorded", Severity: "critical", Op: ">",
			Query:   recent(alarms("=", "tamper.unrecorded"), "15m"),
			Summary: "A call ran that Tripline was never asked about",
			Detail:  "The agent on {{ .Labels.instance }} listed a successful call in its turn for which no request came. The hook was switched off, replaced, or skipped for that call.",
		},
		{
			Name: "TriplineHooksRemoved", Severity: "critical", Op: ">",
			Query:   recent(alarms("=", "tamper.hooks-removed"), "15m") + " + on (job, instance) tripline_hooks_removed",
			Summary: "Tripline's entry vanished from an agent's settings",
			Detail:  "On {{ .Labels.instance }} a settings file lost our entry, or switches it off, and nobody announced it. Sessions that start now are not watched.",
		},
		{
			Name: "TriplineHookReplaced", Severity: "critical", Op: ">",
			Query:   recent(alarms("=", "tamper.binary"), "15m"),
			Summary: "The hook program that agents run is gone, or is another one",
			Detail:  "On {{ .Labels.instance }} the program that our entries name is not what a person installed. What it answers agents is not Tripline's word.",
		},
		{
			Name: "TriplineApprovalWaiting", Severity: "warning", Op: ">", Limit: 300,
			Query:   `tripline_approval_oldest_seconds`,
			Summary: "A call has waited for a person for five minutes",
			Detail:  "An approval card on {{ .Labels.instance }} is undecided. The agent stands still or has been told to go on without.",
		},
		{
			Name: "TriplineSilent", Severity: "info", Op: ">", Limit: 4 * 3600, For: "5m",
			Query: `(time() - max by (job, instance, agent) (tripline_last_event_timestamp_seconds > 0))
and on (job, instance, agent) (sum by (job, instance, agent) (tripline_sessions_active) > 0)`,
			Summary: "Sessions of {{ .Labels.agent }} are open and nothing has been heard for four hours",
			Detail:  "On {{ .Labels.instance }} a session has not ended, yet no event came. Mostly a person who went home; else hooks that are not called any more.",
		},
	}},
	{"tripline-daemon", []alert{
		{
			Name: "TriplineDaemonDown", Severity: "critical", Op: ">", For: "5m", Dead: true,
			Query:   `(1 - up{job="tripline"}) or absent(up{job="tripline"})`,
			Summary: "The daemon does not answer",
			Detail:  "The target {{ .Labels.instance }} has not been scraped for five minutes. While no daemon runs, hooks deny every call (or let all pass, with on_down: allow).",
		},
		{
			Name: "TriplineRestarting", Severity: "warning", Op: ">", Limit: 3,
			Query:   `changes(process_start_time_seconds{job="tripline"}[30m])`,
			Summary: "The daemon keeps starting anew",
			Detail:  "On {{ .Labels.instance }} it started more than three times within half an hour.",
		},
		{
			Name: "TriplineFailOpenUsed", Severity: "critical", Op: ">",
			Query:   recent(`tripline_hook_fail_open_total`, "15m"),
			Summary: "Calls ran unjudged while no daemon was there",
			Detail:  "on_down: allow is set on {{ .Labels.instance }}, and hooks made use of it. The calls were recorded afterwards, marked late.",
		},
		{
			Name: "TriplineFailClosed", Severity: "warning", Op: ">", Limit: 5,
			Query:   recent(`tripline_fail_closed_total`, "10m", "reason"),
			Summary: "Calls are denied because something of Tripline's fails ({{ .Labels.reason }})",
			Detail:  "On {{ .Labels.instance }} more than five calls within ten minutes were denied without a verdict. Agents stand still there.",
		},
		{
			Name: "TriplineSlowHooks", Severity: "warning", Op: ">", Limit: 0.25, For: "10m",
			Query: `histogram_quantile(0.99, sum by (job, instance, agent, le) (rate(tripline_hook_duration_seconds_bucket[10m])))
and on (job, instance, agent) (sum by (job, instance, agent) (rate(tripline_hook_duration_seconds_count[10m])) > 0)`,
			Summary: "Hooks of {{ .Labels.agent }} take longer than a quarter of a second",
			Detail:  "On {{ .Labels.instance }} one call in a hundred waits longer than 250 ms for its verdict, time on hold left out.",
		},
		{
			Name: "TriplineAlarm", Severity: "warning", Op: ">",
			Query:   recent(alarms("!~", alarmsOnTheirOwn...), "15m", "kind"),
			Summary: "Tripline raised an alarm: {{ .Labels.kind }}",
			Detail:  "On {{ .Labels.instance }} something happened that a person should look at. The record names the session and what was seen.",
		},
		{
			Name: "TriplineEventsUndecodable", Severity: "warning", Op: ">",
			Query:   recent(`tripline_events_undecodable_total`, "15m", "agent"),
			Summary: "Events of {{ .Labels.agent }} cannot be read",
			Detail:  "On {{ .Labels.instance }} an event did not have the form that its adapter knows; a call like that is denied. Mostly a new version of the agent.",
		},
		{
			Name: "TriplineConfigReloadFailed", Severity: "warning", Op: ">", For: "5m",
			Query:   `1 - tripline_config_last_reload_successful`,
			Summary: "Rules or configuration on disk cannot be loaded",
			Detail:  "{{ .Labels.instance }} keeps the last good set; what was written since is not in force.",
		},
		{
			Name: "TriplineLooseningWaiting", Severity: "warning", Op: ">", For: "15m",
			Query:   `tripline_config_loosening_pending`,
			Summary: "A change that loosens the rules waits for a person",
			Detail:  "On {{ .Labels.instance }} files on disk would permit more than what is in force. An agent can write files, too.",
		},
	}},
	{"tripline-log", []alert{
		{
			Name: "TriplineLogCannotWrite", Severity: "critical", Op: ">",
			Query:   recent(`tripline_log_commits_total{result="failed"}`, "15m") + " + on (job, instance) tripline_log_failing",
			Summary: "The log cannot be written",
			Detail:  "Commits fail on {{ .Labels.instance }}. No call is let through without its record, so every call is denied.",
		},
		{
			Name: "TriplineLogGap", Severity: "critical", Op: ">",
			Query:   recent(alarms("=~", "gap", "daemon.commit-unknown"), "15m", "kind"),
			Summary: "The log declares that something is missing ({{ .Labels.kind }})",
			Detail:  "On {{ .Labels.instance }} records were lost, or it is not known whether they were written. The gap is declared in the log, so verify says so too.",
		},
		{
			Name: "TriplineEventsDropped", Severity: "warning", Op: ">",
			Query:   recent(`tripline_events_dropped_total`, "15m", "reason"),
			Summary: "Events were lost ({{ .Labels.reason }})",
			Detail:  "On {{ .Labels.instance }} events could not be kept. Each loss is declared by a gap record.",
		},
		{
			Name: "TriplineVerifyFailed", Severity: "critical", Op: ">",
			Query:   recent(`tripline_log_verify_failures_total`, "1h"),
			Summary: "A verification of the log did not end in OK",
			Detail:  "On {{ .Labels.instance }} the log is edited, forked, cut short, damaged, or signed by another key.",
		},
		{
			Name: "TriplineDiskLow", Severity: "warning", Op: "<", Limit: 2e9, For: "5m",
			Query:   `tripline_disk_free_bytes`,
			Summary: "Less than 2 GB are free where the log is",
			Detail:  "When the disk of {{ .Labels.instance }} is full, no record can be written and every call is denied.",
		},
		{
			Name: "TriplineSpoolWaiting", Severity: "warning", Op: ">", For: "15m",
			Query:   `tripline_spool_pending`,
			Summary: "Events that hooks left behind are not taken in",
			Detail:  "On {{ .Labels.instance }} the spool has held events for a quarter of an hour though a daemon runs.",
		},
	}},
}

// records are series that Prometheus computes beforehand, for federation and for long ranges. Nothing here depends on them.
var records = []struct{ Name, Expr string }{
	{"job_instance_agent_decision:tripline_tool_calls:rate5m", `sum by (job, instance, agent, decision) (rate(tripline_tool_calls_total[5m]))`},
	{"job_agent:tripline_hook_duration_seconds:p99_5m", `histogram_quantile(0.99, sum by (job, agent, le) (rate(tripline_hook_duration_seconds_bucket[5m])))`},
	{"job_rule_verdict:tripline_tripwire_hits:increase1h", `sum by (job, rule, verdict) (increase(tripline_tripwire_hits_total[1h])) > 0`},
}
