// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/doctor"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/words"
	"github.com/tripline-sh/tripline/daemon/control"
)

func (a *app) status() *cobra.Command {
	out := newOutput(formatTable, formatJSON)
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say on one screen whether all is well, and what mends what is not",
		Long: `Show the daemon, the agents, the log, what waits for a person, and every problem with the command that mends it. It works
while the daemon is down, from the files. It changes nothing and runs nothing.

-o json gives one object. Keys are added, never renamed: daemon {running, pid, version, started, started_by}, agents [{agent,
version, wired, events, events_wanted, settings, last_event, sessions}], sessions [live ones: {agent, session, pid, cwd,
last_event}], policy {mode, profile, on_down}, log {dir, records, bytes, last_write, verified {size, at}, anchored, free_bytes,
total_bytes, file_system}, approvals {waiting, oldest}, rules {set, count, loosening, error}, alarms [text], metrics (address, ""
if off), problems [{id, severity, text, command, evidence}]. A severity is problem, warning or note. What only a running
daemon knows is null or absent while none runs.

Exit codes: 0 all is well (warnings and notes included), 1 a problem needs a person, 2 usage, 7 the daemon is down.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runStatus(cmd.Context(), out.value) },
	}
	cmd.Flags().VarP(out, "output", "o", "output format")
	return cmd
}

func (a *app) runStatus(ctx context.Context, format format) error {
	f, err := a.look(ctx)
	if err != nil {
		return err
	}
	var quick []doctor.Check
	for _, c := range doctor.Checks() {
		if c.Quick {
			quick = append(quick, c)
		}
	}
	v := newStatusView(f, doctor.Findings(doctor.Run(ctx, quick, f)))
	if format == formatJSON {
		if err := writeJSON(a.Out, v); err != nil {
			return err
		}
	} else if err := a.printStatus(a.Out, v); err != nil {
		return err
	}
	switch {
	case !v.Daemon.Running:
		return quiet(exitUnreachable)
	case has(v.Problems, doctor.Problem):
		return quiet(exitError)
	}
	return nil
}

// statusView is what status shows; its JSON is a promise.
type statusView struct {
	Daemon    daemonView            `json:"daemon"`
	Agents    []agentView           `json:"agents"`
	Sessions  []control.LiveSession `json:"sessions"`
	Policy    policyView            `json:"policy"`
	Log       logView               `json:"log"`
	Approvals approvalsView         `json:"approvals"`
	Rules     *rulesView            `json:"rules"`
	Alarms    []string              `json:"alarms"`
	Metrics   string                `json:"metrics"`
	Problems  []doctor.Finding      `json:"problems"`

	now time.Time
}

type daemonView struct {
	Running   bool       `json:"running"`
	PID       int        `json:"pid,omitempty"`
	Version   string     `json:"version,omitempty"`
	Started   *time.Time `json:"started,omitempty"`
	StartedBy string     `json:"started_by,omitempty"`
}

type agentView struct {
	Agent     string     `json:"agent"`
	Version   string     `json:"version,omitempty"`
	Wired     bool       `json:"wired"`
	Events    int        `json:"events"`        // that are registered
	Wanted    int        `json:"events_wanted"` // that install registers
	Settings  string     `json:"settings"`
	LastEvent *time.Time `json:"last_event"`
	Sessions  int        `json:"sessions"`
}

type policyView struct {
	Mode    string `json:"mode"`
	Profile string `json:"profile"`
	OnDown  string `json:"on_down"`
}

type logView struct {
	Dir        string           `json:"dir"`
	Records    *uint64          `json:"records"`
	Bytes      int64            `json:"bytes"`
	LastWrite  *time.Time       `json:"last_write"`
	Verified   *control.Checked `json:"verified"`
	Anchored   uint64           `json:"anchored"`
	FreeBytes  int64            `json:"free_bytes"`
	TotalBytes int64            `json:"total_bytes"`
	FileSystem string           `json:"file_system"`
}

type approvalsView struct {
	Waiting int        `json:"waiting"`
	Oldest  *time.Time `json:"oldest"`
}

type rulesView struct {
	Set       string   `json:"set"`
	Count     int      `json:"count"`
	Loosening []string `json:"loosening"`
	Error     string   `json:"error,omitempty"`
}

func newStatusView(f *doctor.Facts, problems []doctor.Finding) *statusView {
	v := &statusView{
		now: f.Now, Problems: problems, Sessions: []control.LiveSession{}, Alarms: []string{},
		Policy: policyView{f.Config.Mode, f.Config.Profile, f.Config.OnDown},
		Log: logView{Dir: f.Places.LogDir, Bytes: f.Log.Bytes, LastWrite: timeOrNil(f.Log.Last),
			FreeBytes: f.Disk.Free, TotalBytes: f.Disk.Total, FileSystem: f.Disk.Kind},
	}
	claude := agentView{Agent: "claude", Wired: f.User.Wired(), Events: f.Registered(), Wanted: doctor.WantedEvents(), Settings: f.User.Path}
	if version, ok := f.Agent.Version(); ok {
		claude.Version = version.String()
	}
	if st := f.Status; st != nil {
		v.Daemon = daemonView{Running: true, PID: st.PID, Version: st.Version, Started: &st.Started, StartedBy: st.StartedBy}
		v.Policy = policyView{st.Mode, st.Profile, st.OnDown}
		v.Log.Records, v.Log.Verified, v.Log.Anchored = &st.Size, st.Verified, st.Anchored
		v.Approvals = approvalsView{st.Pending, timeOrNil(f.OldestWaiting())}
		v.Rules = &rulesView{st.RuleSet, st.Rules, append([]string{}, st.Loosening...), st.RulesError}
		v.Alarms = append(v.Alarms, st.Alarms...)
		v.Metrics = st.MetricsAddr
		v.Sessions = append(v.Sessions, st.Live...)
		for _, s := range st.Agents {
			if s.Agent == claude.Agent {
				claude.LastEvent, claude.Sessions = s.LastEvent, s.Sessions
			}
		}
	}
	v.Agents = []agentView{claude}
	return v
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// printStatus writes the screen.
func (a *app) printStatus(w io.Writer, v *statusView) error {
	var b strings.Builder
	r := rows{w: &b, width: a.screenWidth(), label: 11}
	if d := v.Daemon; d.Running {
		r.add("daemon", fmt.Sprintf("up since %s (%s), pid %d, version %s%s", a.when(*d.Started, v.now), doctor.Ago(v.now.Sub(*d.Started)), d.PID, d.Version,
			words.Prefixed(", started by ", d.StartedBy)), a.severityPaint(doctor.OK))
	} else {
		r.add("daemon", "down", a.severityPaint(doctor.Problem))
	}
	for _, g := range v.Agents {
		text := g.Agent + words.Prefixed(" ", g.Version)
		if !g.Wired {
			r.add("agent", text+" is not wired", nil)
			continue
		}
		text += fmt.Sprintf(" is wired (%d of %d events)", g.Events, g.Wanted)
		if g.LastEvent != nil {
			text += ", last event " + doctor.Ago(v.now.Sub(*g.LastEvent)) + " ago"
		} else if v.Daemon.Running {
			text += ", no event yet"
		}
		if v.Daemon.Running {
			text += fmt.Sprintf(", %d live", len(v.Sessions)) + plural(len(v.Sessions), " session")
		}
		r.add("agent", text, nil)
	}
	r.add("mode", fmt.Sprintf("%s, profile %s; while the daemon is away: %s", v.Policy.Mode, v.Policy.Profile, v.Policy.OnDown), nil)
	r.add("log", a.logLine(v), nil)
	if v.Daemon.Running {
		text := "none waits"
		if n := v.Approvals.Waiting; n > 0 {
			text = fmt.Sprintf("%d waiting", n)
			if v.Approvals.Oldest != nil {
				text += ", the oldest for " + doctor.Ago(v.now.Sub(*v.Approvals.Oldest))
			}
		}
		r.add("approvals", text, nil)
		text = fmt.Sprintf("%d in force, set %s", v.Rules.Count, shortHash(v.Rules.Set))
		if n := len(v.Rules.Loosening); n > 0 {
			text += fmt.Sprintf(", %d loosening %s waiting", n, plural(n, "change"))
		}
		r.add("rules", text, nil)
		if n := len(v.Alarms); n > 0 {
			r.add("alarms", fmt.Sprintf("%d standing", n), a.severityPaint(doctor.Problem))
		} else {
			r.add("alarms", "none", nil)
		}
		r.add("metrics", metricsText(v.Metrics), nil)
	}
	if len(v.Problems) > 0 {
		b.WriteString("\n")
		a.findings(&b, v.Problems, false)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (a *app) logLine(v *statusView) string {
	l := v.Log
	var parts []string
	if l.Records != nil {
		parts = append(parts, fmt.Sprintf("%d %s", *l.Records, plural(int(min(*l.Records, 2)), "record")))
	}
	if l.LastWrite == nil {
		parts = append(parts, "empty")
	} else {
		parts = append(parts, doctor.Bytes(l.Bytes))
		if l.Records == nil {
			parts = append(parts, "written to "+doctor.Ago(v.now.Sub(*l.LastWrite))+" ago")
		}
	}
	switch {
	case l.Verified != nil:
		parts = append(parts, fmt.Sprintf("verified to %d %s ago", l.Verified.Size, doctor.Ago(v.now.Sub(l.Verified.At))))
	case v.Daemon.Running:
		parts = append(parts, "not verified yet")
	}
	switch {
	case l.Anchored > 0:
		parts = append(parts, fmt.Sprintf("anchored to %d", l.Anchored))
	case v.Daemon.Running:
		parts = append(parts, "not anchored")
	}
	if l.TotalBytes > 0 {
		parts = append(parts, doctor.Bytes(l.FreeBytes)+" free")
	}
	return strings.Join(parts, ", ")
}

// when is a time as people say it, in their zone: the clock for today, the date before it for other days.
func (a *app) when(t, now time.Time) string {
	t = t.In(now.Location())
	switch {
	case t.Format(time.DateOnly) == now.Format(time.DateOnly):
		return t.Format("15:04")
	case now.Sub(t) < 180*24*time.Hour:
		return t.Format("Mon 2 Jan 15:04")
	}
	return t.Format("2 Jan 2006")
}

func metricsText(addr string) string {
	switch {
	case addr == "":
		return "off"
	case strings.HasPrefix(addr, "unix:"):
		return addr
	}
	return "http://" + addr + "/metrics"
}

// shortHash is the beginning of a hash.
func shortHash(hash string) string {
	if _, rest, ok := strings.Cut(hash, ":"); ok {
		hash = rest
	}
	return show.Line(hash[:min(len(hash), 8)], 8)
}

func plural(n int, one string) string {
	if n == 1 {
		return one
	}
	return one + "s"
}
