// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"context"
	"fmt"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/daemon/control"
)

type eventsOptions struct {
	since, until, kind string
	output             *outputFlag
}

func (a *app) events() *cobra.Command {
	o := &eventsOptions{output: newOutput(formatTable, formatJSON, formatJSONL)}
	cmd := &cobra.Command{
		Use:   "events [WHEN]",
		Short: "List what is on record beside tool calls: alarms, sessions, settings and rule changes, gaps",
		Long: `List records that belong to no tool call, oldest first, today by default. --kind takes a kind such as tamper.settings or a
family such as tamper or approval.

Exit codes: 0 ok, 1 error, 2 usage, 3 nothing found.`,
		Example: `  auditctl events --kind tamper "last week"
  auditctl events --kind config -o jsonl`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runEvents(cmd.Context(), o, args) },
	}
	cmd.Flags().StringVar(&o.since, "since", "", "from this time on (time words)")
	cmd.Flags().StringVar(&o.until, "until", "", "before this time (time words; a day means its end)")
	cmd.Flags().StringVar(&o.kind, "kind", "", "only this kind, or this family of kinds")
	cmd.Flags().VarP(o.output, "output", "o", "output format")
	return cmd
}

func (a *app) runEvents(ctx context.Context, o *eventsOptions, args []string) error {
	switch o.kind {
	case "", string(record.Gap), string(record.Prompt): // kinds without a family
	default:
		if !strings.Contains(o.kind, ".") {
			o.kind += "." // the log takes a word that ends so for a family
		}
	}
	from, to, err := a.timeRange(args, o.since, o.until, "today")
	if err != nil {
		return err
	}
	src, err := a.openLog(ctx)
	if err != nil {
		return err
	}
	defer src.Close()
	t := &table{header: []string{"SEQ", "TIME", "KIND", "SESSION", "WHAT"}}
	views, n := []control.RecordView{}, 0
	err = src.Events(ctx, from, to, o.kind, func(v control.RecordView) error {
		n++
		v.Record.Time = v.Record.Time.In(a.Now().Location())
		switch o.output.value {
		case formatJSONL:
			return writeJSONL(a.Out, v)
		case formatJSON:
			views = append(views, v)
		default:
			t.add(fmt.Sprint(v.Record.Seq), a.clock(v.Record.Time), string(v.Record.Kind), short(v.Record.Session), eventWords(&v.Record, v.Bodies))
		}
		return nil
	})
	if err := a.partly(err); err != nil {
		return err
	}
	switch {
	case o.output.value == formatJSON:
		if err := writeJSON(a.Out, views); err != nil {
			return err
		}
	case o.output.value == formatTable && n > 0:
		if err := t.print(a.Out, a.Width); err != nil {
			return err
		}
	}
	if n == 0 {
		fmt.Fprintln(a.Err, "nothing found")
		return quiet(exitNothing)
	}
	return nil
}

// eventWords says on one line what a record tells: its facts, then the beginning of its texts.
func eventWords(r *record.Record, bodies map[string]string) string {
	var parts []string
	if r.Event != "" {
		parts = append(parts, r.Event)
	}
	for _, k := range sortedKeys(r.Detail) {
		parts = append(parts, k+"="+r.Detail[k])
	}
	for _, k := range sortedKeys(bodies) {
		parts = append(parts, k+": "+strings.TrimSpace(bodies[k]))
	}
	return dash(strings.Join(parts, "  "))
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
