// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/daemon/control"
)

func (a *app) show() *cobra.Command {
	out := newOutput(formatTable, formatJSON, formatJSONL)
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show everything on record about one call",
		Long: `Show every record of one call, with its bodies. ID is a unique prefix of a call's id, as query prints it.

Exit codes: 0 ok, 1 error (an ambiguous id, too), 2 usage, 3 nothing found.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runShow(cmd.Context(), args[0], out.value) },
	}
	cmd.Flags().VarP(out, "output", "o", "output format")
	return cmd
}

func (a *app) runShow(ctx context.Context, id string, f format) error {
	src, err := a.openLog(ctx)
	if err != nil {
		return err
	}
	defer src.Close()
	var views []control.RecordView
	err = src.Records(ctx, id, func(v control.RecordView) error {
		v.Record.Time = v.Record.Time.In(a.Now().Location())
		views = append(views, v)
		return nil
	})
	switch {
	case errors.Is(err, audit.ErrAmbiguous):
		return failf("give more of it", "more than one call's id begins with %q", id)
	case errors.Is(err, audit.ErrNotFound) || err == nil && len(views) == 0:
		return &Error{Code: exitNothing, Msg: fmt.Sprintf("no call's id begins with %q", id)}
	case err != nil:
		return a.controlError(err)
	}
	switch f {
	case formatJSON:
		return writeJSON(a.Out, views)
	case formatJSONL:
		for _, v := range views {
			if err := writeJSONL(a.Out, v); err != nil {
				return err
			}
		}
		return nil
	}
	for i, v := range views {
		if i > 0 {
			fmt.Fprintln(a.Out)
		}
		if err := printRecord(a.Out, v); err != nil {
			return err
		}
	}
	return nil
}

// printRecord writes one record for people: what it says, who says so, and the bodies, made harmless.
func printRecord(w io.Writer, v control.RecordView) error {
	r := v.Record
	var b strings.Builder
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "  %-12s %s\n", name, show.Line(value, 2000))
		}
	}
	fmt.Fprintf(&b, "#%d  %s  %s\n", r.Seq, r.Time.Format("2006-01-02 15:04:05.000 MST"), r.Kind)
	row("call", r.Call)
	row("agent", strings.TrimSpace(r.Agent+" "+r.Event))
	row("session", r.Session)
	row("subagent", strings.TrimSpace(r.Subagent+" "+r.SubagentType))
	row("tool", r.Tool)
	row("tool use", r.ToolUseID)
	row("mcp server", strings.TrimSpace(r.MCPServer+" "+r.MCPSource))
	row("directory", r.Cwd)
	row("project", r.Project)
	if d := r.Decision; d != nil {
		verdict := d.Verdict
		if d.Floor {
			verdict += " (floor)"
		}
		if !d.Enforced {
			verdict += " (not enforced)"
		}
		row("verdict", verdict)
		row("answer", d.Answer)
		row("rule", d.Rule)
		row("failure", d.Failure)
		row("effects", strings.Join(d.Effects, ", "))
		row("card", d.Card)
		row("mode", d.Mode+" "+d.Profile)
	}
	row("outcome", r.Outcome)
	row("who", strings.TrimSpace(r.Who+" "+r.WhoBasis))
	if r.DurationMS != nil {
		row("duration", fmt.Sprintf("%d ms", *r.DurationMS))
	}
	row("source", r.Source)
	if r.Late {
		row("", "came late and unauthenticated")
	}
	if p := r.Peer; p != nil {
		row("peer", fmt.Sprintf("uid %d pid %d %s", p.UID, p.PID, p.Exe))
		if p.AgentPID != 0 {
			row("agent claim", fmt.Sprintf("pid %d %s", p.AgentPID, p.AgentExe))
		}
	}
	for _, k := range sortedKeys(r.Detail) {
		row(k, r.Detail[k])
	}
	for _, c := range r.Bodies {
		note := fmt.Sprintf("%d bytes", c.Full)
		if c.Cut {
			note += fmt.Sprintf(", cut to %d", c.Len)
		}
		if c.Redacted > 0 {
			note += fmt.Sprintf(", %d secrets taken out", c.Redacted)
		}
		text, ok := v.Bodies[c.Name]
		if !ok {
			note += ", no longer kept"
		}
		fmt.Fprintf(&b, "  %s (%s)\n", show.Line(c.Name, 64), note)
		if ok {
			for _, line := range slices.Collect(strings.Lines(show.Text(text, 16<<10))) {
				fmt.Fprintf(&b, "    %s\n", strings.TrimRight(line, "\n"))
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
