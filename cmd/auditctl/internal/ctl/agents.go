// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/doctor"
)

func (a *app) agents() *cobra.Command {
	out := newOutput(formatTable, formatJSON)
	cmd := &cobra.Command{
		Use:   "agents",
		Short: "Show which agents are covered, how far, and where we are blind",
		Long: `Show for each agent on this machine whether it is covered: its version (found without running it), the events that its settings
register, the newest sign of life, and what no hook of it ever sees. This version covers claude.

-o json gives an array of {agent, covered, version, program, settings, wired, events, events_wanted, last_event, last_canary, sessions,
blind_spots}. Keys are added, never renamed; times are null where none is known.

Exit codes: 0 ok, 1 error, 2 usage.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runAgents(cmd.Context(), out.value) },
	}
	cmd.Flags().VarP(out, "output", "o", "output format")
	return cmd
}

// coverageView is one agent; its JSON is a promise.
type coverageView struct {
	Agent      string     `json:"agent"`
	Covered    bool       `json:"covered"` // by this version; Wired says whether it is
	Version    string     `json:"version,omitempty"`
	Program    string     `json:"program,omitempty"`
	Settings   string     `json:"settings,omitempty"`
	Wired      bool       `json:"wired"`
	Events     int        `json:"events"`
	Wanted     int        `json:"events_wanted"`
	LastEvent  *time.Time `json:"last_event"`
	LastCanary *time.Time `json:"last_canary"`
	Sessions   int        `json:"sessions"`
	BlindSpots []string   `json:"blind_spots"`
}

// canaryLookback is how far back the newest canary is looked for.
const canaryLookback = 7 * 24 * time.Hour

func (a *app) runAgents(ctx context.Context, format format) error {
	f, err := a.look(ctx)
	if err != nil {
		return err
	}
	views := coverage(f)
	if f.Status != nil {
		err := f.Client.Calls(ctx, record.Filter{From: f.Now.Add(-canaryLookback), Session: doctor.CanarySession, Limit: 1}, func(c record.Call) error {
			if c.Source == "canary" {
				views[0].LastCanary = &c.Time
			}
			return nil
		})
		if err != nil {
			return a.controlError(err)
		}
	}
	if format == formatJSON {
		return writeJSON(a.Out, views)
	}
	return a.printAgents(a.Out, views, f.Now)
}

func coverage(f *doctor.Facts) []coverageView {
	s := newStatusView(f, nil).Agents[0]
	views := []coverageView{{
		Agent: s.Agent, Covered: true, Version: s.Version, Program: f.Agent.Program, Settings: s.Settings, Wired: s.Wired, Events: s.Events, Wanted: s.Wanted,
		LastEvent: s.LastEvent, Sessions: s.Sessions, BlindSpots: f.BlindSpots(),
	}}
	for _, o := range f.Absent {
		views = append(views, coverageView{Agent: o.Name, Settings: o.Dir, BlindSpots: []string{"everything: this version does not speak to it"}})
	}
	return views
}

func (a *app) printAgents(w io.Writer, views []coverageView, now time.Time) error {
	ago := func(t *time.Time) string {
		if t == nil {
			return "-"
		}
		return doctor.Ago(now.Sub(*t)) + " ago"
	}
	t := &table{header: []string{"AGENT", "VERSION", "WIRED", "EVENTS", "LAST EVENT", "LAST CANARY", "SETTINGS"}}
	for _, v := range views {
		wired, events := "no", "-"
		switch {
		case !v.Covered:
			wired = "not covered"
		case v.Wired:
			wired, events = "yes", fmt.Sprintf("%d of %d", v.Events, v.Wanted)
		}
		t.add(v.Agent, dash(v.Version), wired, events, ago(v.LastEvent), ago(v.LastCanary), v.Settings)
	}
	if err := t.print(w, a.screenWidth()); err != nil {
		return err
	}
	var b strings.Builder
	for _, v := range views {
		if !v.Covered {
			continue
		}
		fmt.Fprintf(&b, "\nwhat no hook of %s sees:\n", v.Agent)
		r := rows{w: &b, width: a.screenWidth(), label: 2}
		for _, s := range v.BlindSpots {
			r.add("-", s, nil)
		}
		if !v.Wired {
			fmt.Fprintf(&b, "\nwire it: %s install %s\n", a.paste(), v.Agent)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
