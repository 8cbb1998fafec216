// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"slices"
	"strings"
	"sync"
)

// other is the label value of whatever a closed list does not know.
const other = "other"

// closed is a list of the only values that a label may have, besides "other".
type closed struct{ values []string }

func newClosed(values ...string) closed {
	values = slices.Clone(values)
	slices.Sort(values)
	return closed{slices.Compact(values)}
}

func (c closed) fold(v string) string {
	if _, ok := slices.BinarySearch(c.values, v); ok {
		return v
	}
	return other
}

// The closed lists. They are never changed.
var (
	decisions = newClosed("deny", "ask", "allow", "pass")
	stages    = newClosed("decode", "enrich", "analyse", "decide", "gate", "redact", "append", "encode")
	outcomes  = newClosed("approved", "denied", "expired", "cancelled", "consumed", "lapsed", "revoked", "refused")
	failures  = newClosed("undecodable", "panic", "deadline", "log", "too-large", "busy", "protocol", "stopping",
		"daemon-away", "hook-timeout", "hook-failed")
	drops  = newClosed("spool-full", "spool-bad", "log", "panic", "busy")
	alarms = newClosed("tamper.token", "tamper.rewritten", "tamper.settings", "tamper.policy", "tamper.script-changed",
		"tamper.denied-ran", "tamper.unrecorded", "tamper.undecodable", "tamper.hooks-removed", "tamper.binary", "daemon.alarm", "daemon.commit-unknown", "gap")
	tools = newClosed("Agent", "AskUserQuestion", "Bash", "BashOutput", "Edit", "ExitPlanMode", "Glob", "Grep", "KillShell", "MultiEdit",
		"NotebookEdit", "PowerShell", "Read", "Skill", "Task", "TodoWrite", "WebFetch", "WebSearch", "Write", "mcp",
		"apply_patch", "exec_command", "shell")
	zeroTools = []string{"Bash", "Edit", "Glob", "Grep", "NotebookEdit", "PowerShell", "Read", "Skill", "Task", "WebFetch", "WebSearch", "Write", "mcp", other}
)

// toolClass folds a tool's name: every MCP tool is "mcp", a name that no list knows is "other".
func toolClass(tool string) string {
	if strings.HasPrefix(tool, "mcp__") {
		return "mcp"
	}
	return tools.fold(tool)
}

// maxRules bounds the number of rule ids that become label values in one life of a daemon, reloads included.
const maxRules = 512

// ruleIDs admits rule ids as label values as long as they look like one and are not too many.
type ruleIDs struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (r *ruleIDs) fold(id string) string {
	if !saneRule(id) {
		return other
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[id] {
		return id
	}
	if len(r.seen) >= maxRules {
		return other
	}
	if r.seen == nil {
		r.seen = make(map[string]bool)
	}
	r.seen[id] = true
	return id
}

// saneRule reports whether id has the form of a rule id: FAMILY.NAME, project:ID and the like.
func saneRule(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for i := 0; i < len(id); i++ {
		c := id[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || i > 0 && (c == '.' || c == '-' || c == '_' || c == ':') {
			continue
		}
		return false
	}
	return true
}

// bounded returns s without what is no printable ASCII, cut at max bytes.
func bounded(s string, max int) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r > 0x7e {
			return -1
		}
		return r
	}, s)
	return s[:min(len(s), max)]
}

// zero makes every series exist whose labels are known beforehand.
func (m *Metrics) zero() {
	for _, agent := range append(slices.Clone(m.agents.values), other) {
		m.hooks.WithLabelValues(agent)
		m.undecodable.WithLabelValues(agent)
		m.sessions.WithLabelValues(agent)
		m.lastEvent.WithLabelValues(agent)
		for _, tool := range zeroTools {
			for _, d := range decisions.values {
				m.calls.WithLabelValues(agent, tool, d)
			}
		}
	}
	for _, s := range stages.values {
		m.stages.WithLabelValues(s)
	}
	for _, o := range outcomes.values {
		m.approvals.WithLabelValues(o)
	}
	for _, f := range append(slices.Clone(failures.values), other) {
		m.failClosed.WithLabelValues(f)
	}
	for _, d := range append(slices.Clone(drops.values), other) {
		m.dropped.WithLabelValues(d)
	}
	for _, a := range append(slices.Clone(alarms.values), other) {
		m.alarms.WithLabelValues(a)
	}
	for _, v := range []string{"deny", "ask"} {
		m.tripwires.WithLabelValues(other, v)
	}
	m.floor.WithLabelValues(other)
	for _, r := range []string{"ok", "failed"} {
		m.commits.WithLabelValues(r)
		m.reloads.WithLabelValues(r)
	}
}

// Names returns the sorted names of Tripline's own metrics as a query uses them, without the suffixes _bucket, _sum and
// _count of histograms. Dashboards and alert rules are tested against it.
func (m *Metrics) Names() ([]string, error) {
	families, err := m.registry.Gather()
	if err != nil {
		return nil, err
	}
	names := make([]string, len(families))
	for i, f := range families {
		names[i] = f.GetName()
	}
	slices.Sort(names)
	return names, nil
}
