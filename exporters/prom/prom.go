// SPDX-License-Identifier: Apache-2.0

// Package prom owns Tripline's Prometheus metrics and their endpoint. A Metrics has a registry of its own, so that two
// daemons can live in one process. Labels come from closed lists: never a command, a path, a session or a person.
//
// Every series with a known label set exists at zero from the start, so that increase() sees the first hit.
//
//	tripline_build_info{version,goversion}                1, of the running daemon
//	tripline_tool_calls_total{agent,tool,decision}        calls judged, by what the agent was answered (deny, ask, allow, pass)
//	tripline_tripwire_hits_total{rule,verdict}            calls that a rule decided
//	tripline_floor_hits_total{rule}                       calls denied by the floor, each also counted as a tripwire hit
//	tripline_stage_duration_seconds{stage}                time in one stage of the pipeline
//	tripline_hook_duration_seconds{agent}                 time from the hook's start to our reply, holds left out
//	tripline_log_commits_total{result}                    durable commits of the log (ok, failed)
//	tripline_log_commit_duration_seconds                  time of one commit
//	tripline_log_commit_records                           records in one commit
//	tripline_log_records                                  records in the log
//	tripline_log_bytes                                    size of the log's files, sealed ones included
//	tripline_log_last_append_timestamp_seconds            when the last commit succeeded; 0 = not yet
//	tripline_log_failing                                  1 while the log takes no records, and so every gate event is denied
//	tripline_disk_free_bytes                              free for this user on the log's file system
//	tripline_disk_total_bytes                             size of that file system; 0 = could not tell
//	tripline_approvals_pending                            approval cards that wait for a decision
//	tripline_approvals_total{outcome}                     approval cards by what became of them
//	tripline_approval_wait_seconds                        time from a card's request to its decision or end
//	tripline_approval_oldest_seconds                      age of the oldest card that waits for a decision; 0 = none waits
//	tripline_log_verify_failures_total                    verifications of the log that a person asked for and that did not end in OK
//	tripline_sessions_active{agent}                       sessions that started and have not ended, silent ones for a day at most
//	tripline_last_event_timestamp_seconds{agent}          when the agent's newest event happened; 0 = never, as far as the log's tail tells
//	tripline_canary_last_success_timestamp_seconds        when a canary last came through a hook and was judged and recorded; 0 = not since the start
//	tripline_hooks_removed                                settings files whose hooks of ours are gone or switched off without a person's word
//	tripline_fail_closed_total{reason}                    gate events denied because something of ours failed
//	tripline_hook_fail_open_total                         gate events that hooks let pass without a daemon, since on_down is allow
//	tripline_events_undecodable_total{agent}              events that their adapter could not read
//	tripline_events_dropped_total{reason}                 events that were lost, each declared by a gap record
//	tripline_spool_pending                                events in the spool that wait to be ingested
//	tripline_spool_ingested_total                         events taken from the spool
//	tripline_connections                                  open hook connections
//	tripline_alarms_total{kind}                           records of tampering, gaps and failures that need a person
//	tripline_config_last_reload_successful                1 if the rules and config on disk were read without error
//	tripline_config_last_reload_success_timestamp_seconds when that was last so; 0 = not yet
//	tripline_config_reloads_total{result}                 attempts to load rules and config (ok, failed)
//	tripline_config_loosening_pending                     differences on disk that wait for a person's reload
//
// Beside these stand the go_ and process_ metrics of the client library.
package prom

import (
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Metrics is the set of metrics of one daemon. All methods are safe for concurrent use and never block.
type Metrics struct {
	registry *prometheus.Registry // Tripline's own metrics
	all      prometheus.Gatherers // these, and what the client library tells of the runtime and the process
	agents   closed
	rules    ruleIDs

	calls       *prometheus.CounterVec
	tripwires   *prometheus.CounterVec
	floor       *prometheus.CounterVec
	stages      *prometheus.HistogramVec
	hooks       *prometheus.HistogramVec
	commits     *prometheus.CounterVec
	commitTime  prometheus.Histogram
	commitSize  prometheus.Histogram
	lastAppend  prometheus.Gauge
	logRecords  prometheus.Gauge
	logBytes    prometheus.Gauge
	logFailing  prometheus.Gauge
	diskFree    prometheus.Gauge
	diskTotal   prometheus.Gauge
	pending     prometheus.Gauge
	oldest      prometheus.Gauge
	approvals   *prometheus.CounterVec
	wait        prometheus.Histogram
	verifyBad   prometheus.Counter
	sessions    *prometheus.GaugeVec
	lastEvent   *prometheus.GaugeVec
	canary      prometheus.Gauge
	unhooked    prometheus.Gauge
	failClosed  *prometheus.CounterVec
	failOpen    prometheus.Counter
	undecodable *prometheus.CounterVec
	dropped     *prometheus.CounterVec
	spool       prometheus.Gauge
	ingested    prometheus.Counter
	connections prometheus.Gauge
	alarms      *prometheus.CounterVec
	reloadOK    prometheus.Gauge
	reloadTime  prometheus.Gauge
	reloads     *prometheus.CounterVec
	loosening   prometheus.Gauge
}

// New makes the metrics of one daemon. agents are the names of the adapters that it has; none means claude alone. Any
// other agent counts as "other".
func New(version string, agents ...string) *Metrics {
	if len(agents) == 0 {
		agents = []string{"claude"}
	}
	m := &Metrics{registry: prometheus.NewRegistry(), agents: newClosed(agents...)}
	m.define()
	build := prometheus.NewGaugeVec(opts("build_info", "Version of the running daemon; always 1."), []string{"version", "goversion"})
	build.WithLabelValues(bounded(version, 64), runtime.Version()).Set(1)
	m.registry.MustRegister(build)
	library := prometheus.NewRegistry()
	library.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.all = prometheus.Gatherers{m.registry, library}
	m.zero()
	return m
}

func opts(name, help string) prometheus.GaugeOpts {
	return prometheus.GaugeOpts{Namespace: "tripline", Name: name, Help: help}
}

// define creates and registers everything but build_info.
func (m *Metrics) define() {
	r := m.registry
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts(opts(name, help)), labels)
		r.MustRegister(v)
		return v
	}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(opts(name, help))
		r.MustRegister(g)
		return g
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "tripline", Name: name, Help: help, Buckets: buckets}, labels)
		r.MustRegister(h)
		return h
	}
	single := func(h *prometheus.HistogramVec) prometheus.Histogram {
		return h.WithLabelValues().(prometheus.Histogram)
	}

	m.calls = counter("tool_calls_total", "Tool calls judged, by what the agent was answered.", "agent", "tool", "decision")
	m.tripwires = counter("tripwire_hits_total", "Tool calls that a rule decided, by its verdict.", "rule", "verdict")
	m.floor = counter("floor_hits_total", "Tool calls that the floor denied.", "rule")
	m.stages = histogram("stage_duration_seconds", "Time spent in one stage of the pipeline.", fine, "stage")
	m.hooks = histogram("hook_duration_seconds", "Time from the start of the hook to the reply, without time on hold.", hook, "agent")
	m.commits = counter("log_commits_total", "Commits of the audit log, by result.", "result")
	m.commitTime = single(histogram("log_commit_duration_seconds", "Time of one durable commit of the audit log.", hook))
	m.commitSize = single(histogram("log_commit_records", "Records made durable by one commit.", prometheus.ExponentialBuckets(1, 2, 9)))
	m.lastAppend = gauge("log_last_append_timestamp_seconds", "Unix time of the last successful commit; 0 before the first.")
	m.logRecords = gauge("log_records", "Records in the audit log.")
	m.logBytes = gauge("log_bytes", "Size of the files of the audit log, sealed segments included.")
	m.logFailing = gauge("log_failing", "Whether the audit log takes no records at the moment.")
	m.diskFree = gauge("disk_free_bytes", "Bytes free for this user on the file system of the audit log.")
	m.diskTotal = gauge("disk_total_bytes", "Size of the file system of the audit log; 0 if it could not be told.")
	m.pending = gauge("approvals_pending", "Approval cards that wait for a decision.")
	m.oldest = gauge("approval_oldest_seconds", "Age of the oldest approval card that waits for a decision; 0 if none waits.")
	m.approvals = counter("approvals_total", "Approval cards, by what became of them.", "outcome")
	m.wait = single(histogram("approval_wait_seconds", "Time from the request of an approval to its decision or end.", patience))
	m.verifyBad = counter("log_verify_failures_total", "Verifications of the audit log that did not end in OK.").WithLabelValues()
	m.sessions = prometheus.NewGaugeVec(opts("sessions_active", "Sessions that started and have not ended."), []string{"agent"})
	r.MustRegister(m.sessions)
	m.lastEvent = prometheus.NewGaugeVec(opts("last_event_timestamp_seconds", "Unix time of the newest event of an agent; 0 if none is known."), []string{"agent"})
	r.MustRegister(m.lastEvent)
	m.canary = gauge("canary_last_success_timestamp_seconds", "Unix time at which a canary last came through a hook and was judged and recorded; 0 before the first.")
	m.unhooked = gauge("hooks_removed", "Settings files whose hooks of ours are gone or switched off without a person's word.")
	m.failClosed = counter("fail_closed_total", "Gate events denied because something failed, by what failed.", "reason")
	m.failOpen = counter("hook_fail_open_total", "Gate events that a hook let pass because there was no daemon to ask.").WithLabelValues()
	m.undecodable = counter("events_undecodable_total", "Events that could not be decoded.", "agent")
	m.dropped = counter("events_dropped_total", "Events lost, by reason; each is declared in the audit log.", "reason")
	m.spool = gauge("spool_pending", "Events in the spool that wait to be ingested.")
	m.ingested = counter("spool_ingested_total", "Events ingested from the spool.").WithLabelValues()
	m.connections = gauge("connections", "Open connections of hooks.")
	m.alarms = counter("alarms_total", "Records of tampering, gaps and failures that need a person.", "kind")
	m.reloadOK = gauge("config_last_reload_successful", "Whether the last load of rules and config succeeded.")
	m.reloadTime = gauge("config_last_reload_success_timestamp_seconds", "Unix time of the last successful load of rules and config; 0 before the first.")
	m.reloads = counter("config_reloads_total", "Loads of rules and config, by result.", "result")
	m.loosening = gauge("config_loosening_pending", "Differences on disk that loosen and wait for a person's reload.")
}

// Buckets, in seconds: fine for stages of microseconds, hook for what a person waits for, patience for approvals.
var (
	fine     = prometheus.ExponentialBuckets(0.00001, 4, 9)
	hook     = prometheus.ExponentialBuckets(0.0005, 2, 12)
	patience = []float64{1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600, 14400, 28800}
)

// Call counts one judged tool call. decision is what the agent was answered.
func (m *Metrics) Call(agent, tool, decision string) {
	m.calls.WithLabelValues(m.agents.fold(agent), toolClass(tool), decisions.fold(decision)).Inc()
}

// Tripwire counts one call that a rule decided.
func (m *Metrics) Tripwire(rule, verdict string) {
	m.tripwires.WithLabelValues(m.rules.fold(rule), decisions.fold(verdict)).Inc()
}

// Floor counts one call that the floor denied.
func (m *Metrics) Floor(rule string) { m.floor.WithLabelValues(m.rules.fold(rule)).Inc() }

// Rules makes the series of the rules in force exist at zero. Ids beyond the bound on rule labels count as "other".
func (m *Metrics) Rules(ids []string) {
	for _, id := range ids {
		id = m.rules.fold(id)
		for _, v := range []string{"deny", "ask"} {
			m.tripwires.WithLabelValues(id, v).Add(0)
		}
		m.floor.WithLabelValues(id).Add(0)
	}
}

// Stage observes the time that one event spent in a stage: decode, enrich, analyse, decide, gate, redact, append, encode.
func (m *Metrics) Stage(name string, d time.Duration) {
	m.stages.WithLabelValues(stages.fold(name)).Observe(d.Seconds())
}

// Hook observes the time from the start of a hook process to its reply, time on hold left out.
func (m *Metrics) Hook(agent string, d time.Duration) {
	m.hooks.WithLabelValues(m.agents.fold(agent)).Observe(d.Seconds())
}

// Commit observes one commit of the log: how many records it made durable, how long it took, and whether it failed.
func (m *Metrics) Commit(records int, d time.Duration, err error) {
	m.commitTime.Observe(d.Seconds())
	if err != nil {
		m.commits.WithLabelValues("failed").Inc()
		return
	}
	m.commits.WithLabelValues("ok").Inc()
	m.commitSize.Observe(float64(records))
	m.lastAppend.SetToCurrentTime()
}

// LogRecords sets how many records the log holds.
func (m *Metrics) LogRecords(n uint64) { m.logRecords.Set(float64(n)) }

// LogBytes sets the size of the log's files, sealed segments included.
func (m *Metrics) LogBytes(n int64) { m.logBytes.Set(float64(n)) }

// LogFailing sets whether the log takes no records.
func (m *Metrics) LogFailing(failing bool) {
	v := 0.0
	if failing {
		v = 1
	}
	m.logFailing.Set(v)
}

// Disk sets the bytes that are free for this user on the log's file system, and its size.
func (m *Metrics) Disk(free, total int64) {
	m.diskFree.Set(float64(free))
	m.diskTotal.Set(float64(total))
}

// VerifyFailed counts one verification of the log that did not end in OK.
func (m *Metrics) VerifyFailed() { m.verifyBad.Inc() }

// Sessions sets how many sessions of each agent are active. An agent that is not in active has none.
func (m *Metrics) Sessions(active map[string]int) {
	counts := map[string]int{other: 0}
	for _, agent := range m.agents.values {
		counts[agent] = 0
	}
	for agent, n := range active {
		counts[m.agents.fold(agent)] += n
	}
	for agent, n := range counts {
		m.sessions.WithLabelValues(agent).Set(float64(n))
	}
}

// ApprovalsPending sets how many cards wait for a decision.
func (m *Metrics) ApprovalsPending(n int) { m.pending.Set(float64(n)) }

// ApprovalOldest sets the age of the oldest card that waits; 0 if none does.
func (m *Metrics) ApprovalOldest(age time.Duration) { m.oldest.Set(max(0, age).Seconds()) }

// LastEvent sets when the newest event of an agent happened.
func (m *Metrics) LastEvent(agent string, at time.Time) {
	m.lastEvent.WithLabelValues(m.agents.fold(agent)).Set(seconds(at))
}

// Canary notes that a canary came through a hook, and was judged and recorded.
func (m *Metrics) Canary(at time.Time) { m.canary.Set(seconds(at)) }

// HooksRemoved sets how many settings files have lost our hooks, or switch them off.
func (m *Metrics) HooksRemoved(files int) { m.unhooked.Set(float64(files)) }

// ApprovalDone counts one step that ended a card's wait (approved, denied, expired, cancelled) or an approval (consumed,
// lapsed, revoked), or a use that was refused. wait, if it is above zero, is observed as the time since the request.
func (m *Metrics) ApprovalDone(outcome string, wait time.Duration) {
	m.approvals.WithLabelValues(outcomes.fold(outcome)).Inc()
	if wait > 0 {
		m.wait.Observe(wait.Seconds())
	}
}

// FailClosed counts one gate event that was denied because something of ours failed.
func (m *Metrics) FailClosed(reason string) {
	m.failClosed.WithLabelValues(failures.fold(reason)).Inc()
}

// FailOpen counts one gate event that a hook let pass because there was no daemon to ask.
func (m *Metrics) FailOpen() { m.failOpen.Inc() }

// Undecodable counts one event that the adapter of agent could not read.
func (m *Metrics) Undecodable(agent string) {
	m.undecodable.WithLabelValues(m.agents.fold(agent)).Inc()
}

// Dropped counts n lost events.
func (m *Metrics) Dropped(reason string, n int) {
	if n > 0 {
		m.dropped.WithLabelValues(drops.fold(reason)).Add(float64(n))
	}
}

// Spool sets how many spooled events wait.
func (m *Metrics) Spool(n int) { m.spool.Set(float64(n)) }

// Ingested counts n events taken from the spool.
func (m *Metrics) Ingested(n int) {
	if n > 0 {
		m.ingested.Add(float64(n))
	}
}

// Connections sets how many hook connections are open.
func (m *Metrics) Connections(n int) { m.connections.Set(float64(n)) }

// Alarm counts one record that needs a person, by its kind: one of the tamper family, a gap, or one of the daemon's own.
func (m *Metrics) Alarm(kind string) { m.alarms.WithLabelValues(alarms.fold(kind)).Inc() }

// Reload notes one attempt to load rules and config, and when it was.
func (m *Metrics) Reload(ok bool, when time.Time) {
	if !ok {
		m.reloadOK.Set(0)
		m.reloads.WithLabelValues("failed").Inc()
		return
	}
	m.reloadOK.Set(1)
	m.reloadTime.Set(seconds(when))
	m.reloads.WithLabelValues("ok").Inc()
}

// Loosening sets how many differences on disk wait for a person's reload.
func (m *Metrics) Loosening(n int) { m.loosening.Set(float64(n)) }

// seconds is a time as a metric holds it.
func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }
