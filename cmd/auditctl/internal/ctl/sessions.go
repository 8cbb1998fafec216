// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tripline-sh/tripline/audit/record"
)

func (a *app) sessions() *cobra.Command {
	var since, until string
	out := newOutput(formatTable, formatJSON, formatJSONL)
	cmd := &cobra.Command{
		Use:   "sessions [WHEN]",
		Short: "List the sessions of agents, with what happened in each",
		Long: `List sessions that were active in a range of time, today by default.

Exit codes: 0 ok, 1 error, 2 usage, 3 nothing found.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runSessions(cmd.Context(), args, since, until, out.value)
		},
	}
	cmd.Flags().StringVar(&since, "since", "", "from this time on (time words)")
	cmd.Flags().StringVar(&until, "until", "", "before this time (time words; a day means its end)")
	cmd.Flags().VarP(out, "output", "o", "output format")
	return cmd
}

func (a *app) runSessions(ctx context.Context, args []string, since, until string, f format) error {
	from, to, err := a.timeRange(args, since, until, "today")
	if err != nil {
		return err
	}
	src, err := a.openLog(ctx)
	if err != nil {
		return err
	}
	defer src.Close()
	found := []record.Session{}
	err = src.Sessions(ctx, from, to, func(s record.Session) error {
		loc := a.Now().Location()
		s.First, s.Last = s.First.In(loc), s.Last.In(loc)
		found = append(found, s)
		if f == formatJSONL {
			return writeJSONL(a.Out, s)
		}
		return nil
	})
	if err := a.partly(err); err != nil {
		return err
	}
	switch {
	case f == formatJSON:
		if err := writeJSON(a.Out, found); err != nil {
			return err
		}
	case f == formatTable && len(found) > 0:
		t := &table{header: []string{"SESSION", "AGENT", "FIRST", "LAST", "CALLS", "DENIED", "ASKED", "FAILED", "STATE", "PROJECT", "PROMPT"}}
		for _, s := range found {
			state := "open"
			if s.Ended {
				state = "ended"
			}
			t.add(short(s.ID), s.Agent, a.clock(s.First), a.clock(s.Last), strconv.Itoa(s.Calls), strconv.Itoa(s.Denied), strconv.Itoa(s.Asked),
				strconv.Itoa(s.Failed), state, dash(s.Project), dash(s.Prompt))
		}
		if err := t.print(a.Out, a.Width); err != nil {
			return err
		}
	}
	if len(found) == 0 {
		fmt.Fprintln(a.Err, "nothing found")
		return quiet(exitNothing)
	}
	return nil
}
