// SPDX-License-Identifier: Apache-2.0

package main

// quantiles of a histogram over all that is selected.
func quantiles(metric, selector string) []query {
	var out []query
	for _, q := range [][2]string{{"0.5", "p50"}, {"0.95", "p95"}, {"0.99", "p99"}} {
		out = append(out, query{"histogram_quantile(" + q[0] + ", sum by (le) (rate(" + metric + "_bucket" + selector + "[$__rate_interval])))", q[1]})
	}
	return out
}

// rows is what the dashboard shows, from "is something wrong" to "why".
func rows() []row {
	perMinute := func(by, metric string) string {
		return "60 * sum by (" + by + ") (rate(" + metric + "[$__rate_interval]))"
	}
	verdicts := [][2]string{{"deny", "red"}, {"ask", "orange"}, {"allow", "green"}, {"pass", "blue"}}
	calls := `tripline_tool_calls_total{*,agent=~"$agent"}`
	return []row{
		{"Now", []panel{
			stat("Daemons up", "Daemons that Prometheus reaches.", "short", 3, "", 0, `count(tripline_build_info{*})`),
			stat("Sessions", "Sessions that started and have not ended.", "short", 3, "", 0, `sum(tripline_sessions_active{*,agent=~"$agent"})`),
			stat("Approvals waiting", "Cards that nobody has decided.", "short", 3, "orange", 1, `sum(tripline_approvals_pending{*})`),
			stat("Calls", "Calls judged in the time shown.", "short", 3, "", 0, `sum(increase(`+calls+`[$__range]))`),
			stat("Denied", "Calls denied in the time shown.", "short", 3, "", 0, `sum(increase(tripline_tool_calls_total{*,agent=~"$agent",decision="deny"}[$__range]))`),
			stat("Alarms", "Records that need a person, in the time shown.", "short", 3, "red", 0.5, `sum(increase(tripline_alarms_total{*}[$__range]))`),
			stat("Passed unjudged", "Calls that hooks let pass without a daemon (on_down: allow), in the time shown.", "short", 3, "red", 0.5, `sum(increase(tripline_hook_fail_open_total{*}[$__range]))`),
			stat("Settings without hooks", "Settings files that lost our hooks, or switch them off, without a person's word.", "short", 3, "red", 1, `sum(tripline_hooks_removed{*})`),
		}},
		{"What agents did", []panel{
			coloured(stacked(lines("Calls a minute, by verdict", "What the agent was answered. pass: no opinion, the agent's own permissions decide.", "short", 12,
				query{perMinute("decision", calls), "{{decision}}"})), verdicts...),
			stacked(lines("Calls a minute, by tool", "Tools that the list does not know are \"other\", those of MCP servers \"mcp\".", "short", 12,
				query{perMinute("tool", calls), "{{tool}}"})),
			stacked(lines("Tripwires a minute, by kind of effect", "The family of the rule that decided: delete, git, secret and so on. Rules of your own count under their name up to the first dot.", "short", 12,
				query{`60 * sum by (family) (label_replace(rate(tripline_tripwire_hits_total{*}[$__rate_interval]), "family", "$1", "rule", "([^.]+).*"))`, "{{family}}"})),
			ranking("Rules that decided most", "In the time shown, with the verdict that they gave.", 12,
				query{`topk(12, sum by (rule, verdict) (increase(tripline_tripwire_hits_total{*}[$__range])) > 0)`, "{{rule}} ({{verdict}})"}),
		}},
		{"Hook latency", []panel{
			lines("What an agent waits for a verdict", "From the start of the hook to our reply, time on hold left out.", "s", 12, quantiles("tripline_hook_duration_seconds", `{*,agent=~"$agent"}`)...),
			stacked(lines("Mean time by stage", "Where the daemon spends it. append is the disk; gate leaves out the wait for a person.", "s", 12,
				query{`sum by (stage) (rate(tripline_stage_duration_seconds_sum{*}[$__rate_interval])) / sum by (stage) (rate(tripline_stage_duration_seconds_count{*}[$__rate_interval]))`, "{{stage}}"})),
		}},
		{"Approvals", []panel{
			lines("Waiting", "Cards that wait for a person.", "short", 6, query{`sum by (instance) (tripline_approvals_pending{*})`, "{{instance}}"}),
			lines("Oldest that waits", "How long the oldest undecided card has been waiting.", "s", 6, query{`tripline_approval_oldest_seconds{*}`, "{{instance}}"}),
			lines("Outcomes a minute", "approved, denied, expired and cancelled end a card's wait; consumed, lapsed and revoked end an approval; refused: used for another call.", "short", 6,
				query{perMinute("outcome", `tripline_approvals_total{*}`), "{{outcome}}"}),
			lines("Time to a decision", "From the request to the decision or the end of the card.", "s", 6, quantiles("tripline_approval_wait_seconds", "{*}")...),
		}},
		{"Log", []panel{
			coloured(lines("Commits a minute", "No call is let through before its record is durable.", "short", 8,
				query{perMinute("result", `tripline_log_commits_total{*}`), "{{result}}"}), [2]string{"failed", "red"}, [2]string{"ok", "green"}),
			lines("Time of a commit", "Mostly the disk's fsync.", "s", 8, quantiles("tripline_log_commit_duration_seconds", "{*}")...),
			lines("Since the last append and the last event", "Both grow while no agent works; only the second growing while sessions run means silent hooks.", "s", 8,
				query{`time() - (tripline_log_last_append_timestamp_seconds{*} > 0)`, "append, {{instance}}"},
				query{`time() - (tripline_last_event_timestamp_seconds{*,agent=~"$agent"} > 0)`, "{{agent}}, {{instance}}"}),
			lines("Size", "Files of the log, sealed ones included.", "bytes", 8, query{`tripline_log_bytes{*}`, "{{instance}}"}),
			lines("Free where the log is", "At nothing, every call is denied.", "bytes", 8, query{`tripline_disk_free_bytes{*}`, "{{instance}}"}),
			lines("Records", "Records in the log.", "short", 8,
				query{`tripline_log_records{*}`, "{{instance}}"}),
		}},
		{"Trouble", []panel{
			stacked(lines("Alarms in five minutes", "Records of tampering, gaps and failures, in five minutes.", "short", 12, query{`sum by (kind) (increase(tripline_alarms_total{*}[5m]))`, "{{kind}}"})),
			stacked(lines("Denied because something failed", "In five minutes, by what failed.", "short", 12, query{`sum by (reason) (increase(tripline_fail_closed_total{*}[5m]))`, "{{reason}}"})),
			lines("Lost, unreadable, unverified, unjudged", "In five minutes. All should stay at zero.", "short", 12,
				query{`sum(increase(tripline_events_dropped_total{*}[5m]))`, "events lost"},
				query{`sum(increase(tripline_events_undecodable_total{*}[5m]))`, "events unreadable"},
				query{`sum(increase(tripline_log_verify_failures_total{*}[5m]))`, "verifications failed"},
				query{`sum(increase(tripline_hook_fail_open_total{*}[5m]))`, "passed without a daemon"},
				query{`sum(tripline_spool_pending{*})`, "spooled, waiting"},
				query{`sum(tripline_config_loosening_pending{*})`, "loosening, waiting"}),
			table("Versions", "Daemons and what they were built with.", 12, 8, query{`sum by (job, instance, version, goversion) (tripline_build_info{*})`, ""}),
		}},
	}
}
