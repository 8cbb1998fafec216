// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/audit/show"
)

// tableLimit is how many calls a table shows unless --limit says otherwise.
const tableLimit = 100

type queryOptions struct {
	record.Filter
	since, until string
	output       *outputFlag
}

func (a *app) query() *cobra.Command {
	o := &queryOptions{output: newOutput(formatTable, formatJSON, formatJSONL, formatCSV)}
	cmd := &cobra.Command{
		Use:   "query [WHEN]",
		Short: "List what agents did: every tool call, with its verdict and outcome",
		Long: `List tool calls, oldest first. WHEN is a time word, today by default; the range that it stands for is said on stderr.
It works with the daemon down, from the log's files.

Exit codes: 0 ok, 1 error, 2 usage, 3 nothing found.`,
		Example: `  auditctl query tuesday
  auditctl query --denied "last week"
  auditctl query --since "yesterday 14:00" --tool Bash --grep deploy -o jsonl`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runQuery(cmd.Context(), o, args, cmd.Flags().Changed("limit"))
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.since, "since", "", "from this time on (time words)")
	f.StringVar(&o.until, "until", "", "before this time (time words; a day means its end)")
	f.StringVar(&o.Session, "session", "", "only this session (prefix of its id)")
	f.StringVar(&o.Agent, "agent", "", "only this agent")
	f.StringVar(&o.Tool, "tool", "", "only this tool")
	f.StringVar(&o.Verdict, "verdict", "", "only this verdict: deny, ask, allow or pass")
	f.StringVar(&o.Rule, "rule", "", "only calls that this rule, or one of this family (delete, git ...), had an opinion on")
	f.StringVar(&o.Project, "project", "", "only calls in this project or directory")
	f.StringVar(&o.Grep, "grep", "", "only calls whose input, reason or error holds this text (case does not matter)")
	f.BoolVar(&o.Denied, "denied", false, "only denied calls")
	f.BoolVar(&o.Asked, "asked", false, "only calls that a person was asked about")
	f.BoolVar(&o.Failed, "failed", false, "only calls that failed")
	f.BoolVar(&o.Canary, "canary", false, "also the test calls that auditctl doctor makes")
	f.IntVar(&o.Limit, "limit", tableLimit, "show the newest so many (0 = all; machine formats show all by default)")
	f.VarP(o.output, "output", "o", "output format")
	return cmd
}

func (a *app) runQuery(ctx context.Context, o *queryOptions, args []string, limitGiven bool) error {
	switch o.Verdict {
	case "", "deny", "ask", "allow", "pass":
	default:
		return usagef("unknown verdict %q: it is one of deny, ask, allow, pass", o.Verdict)
	}
	if o.Limit < 0 {
		return usagef("--limit must not be negative")
	}
	limit := o.Limit
	cut := o.output.value == formatTable && limit > 0
	if o.output.value != formatTable && !limitGiven {
		limit = 0
	}
	var err error
	if o.From, o.To, err = a.timeRange(args, o.since, o.until, "today"); err != nil {
		return err
	}
	src, err := a.openLog(ctx)
	if err != nil {
		return err
	}
	defer src.Close()
	f := o.Filter
	f.Limit = limit
	if cut {
		f.Limit = limit + 1 // one more, to know whether something was left out
	}
	out := a.callWriter(o.output.value)
	n := 0
	err = src.Calls(ctx, f, func(c record.Call) error {
		n++
		c.Time = c.Time.In(a.Now().Location())
		return out.add(c)
	})
	if err := a.partly(err); err != nil {
		return err
	}
	if err := out.finish(limit); err != nil {
		return err
	}
	if cut && n > limit {
		fmt.Fprintf(a.Err, "only the newest %d are shown; --limit 0 shows all\n", limit)
	}
	if n == 0 {
		fmt.Fprintln(a.Err, "nothing found")
		return quiet(exitNothing)
	}
	return nil
}

// callWriter writes calls in one format. JSON lines and CSV stream; a table and an array are written at the end.
type callWriter struct {
	a     *app
	fmt   format
	calls []record.Call
	n     int
}

func (a *app) callWriter(f format) *callWriter { return &callWriter{a: a, fmt: f} }

func (w *callWriter) add(c record.Call) error {
	if c.Input == nil {
		c.Input = json.RawMessage("null")
	}
	w.n++
	switch w.fmt {
	case formatJSONL:
		return writeJSONL(w.a.Out, c)
	case formatCSV:
		if w.n == 1 {
			return writeCSV(w.a.Out, csvHeader, [][]string{csvRow(c)})
		}
		return writeCSVRow(w.a.Out, csvRow(c))
	}
	w.calls = append(w.calls, c)
	return nil
}

// finish prints what was collected; limit > 0 keeps the newest so many rows of a table.
func (w *callWriter) finish(limit int) error {
	switch w.fmt {
	case formatJSON:
		if w.calls == nil {
			w.calls = []record.Call{}
		}
		return writeJSON(w.a.Out, w.calls)
	case formatCSV:
		if w.n == 0 {
			return writeCSV(w.a.Out, csvHeader, nil)
		}
	case formatTable:
		if len(w.calls) == 0 {
			return nil
		}
		calls := w.calls
		if limit > 0 && len(calls) > limit {
			calls = calls[len(calls)-limit:]
		}
		t := &table{header: []string{"TIME", "ID", "SESSION", "TOOL", "VERDICT", "OUTCOME", "RULE", "INPUT"}}
		n := idLength(calls)
		for _, c := range calls {
			t.add(w.a.clock(c.Time), c.ID[:min(n, len(c.ID))], short(c.Session), c.Tool, verdictWord(c), c.Outcome, dash(c.Rule), summary(c.Tool, c.Input))
		}
		t.color = w.a.verdictColor(4)
		return t.print(w.a.Out, w.a.Width)
	}
	return nil
}

// verdictWord is the verdict as a table shows it: what was only observed is marked.
func verdictWord(c record.Call) string {
	if !c.Enforced && (c.Verdict == "deny" || c.Verdict == "ask") {
		return "would " + c.Verdict
	}
	return c.Verdict
}

func (a *app) verdictColor(column int) func(int, string) string {
	if !a.color() {
		return nil
	}
	return func(i int, cell string) string {
		if i != column {
			return cell
		}
		switch cell {
		case "deny":
			return red + cell + reset
		case "ask":
			return yellow + cell + reset
		case "allow":
			return green + cell + reset
		}
		return cell
	}
}

// clock shows a time: only the hour for today, the date as well for other days.
func (a *app) clock(t time.Time) string {
	now := a.Now()
	if t.Year() == now.Year() && t.YearDay() == now.YearDay() {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04:05")
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// idLength is how much of the calls' ids must be shown so that each can be named by it. Ids begin with their time, so that calls
// of one moment share much of theirs.
func idLength(calls []record.Call) int {
	for n := 12; n < 26; n++ {
		seen := make(map[string]bool, len(calls))
		for _, c := range calls {
			seen[c.ID[:min(n, len(c.ID))]] = true
		}
		if len(seen) == len(calls) {
			return n
		}
	}
	return 26
}

// short cuts a session's id for a table.
func short(id string) string {
	if r := []rune(show.Line(id, 200)); len(r) > 8 {
		return string(r[:8])
	}
	return dash(id)
}

// summary is the most telling part of a tool's input on one line.
func summary(tool string, input json.RawMessage) string {
	var m map[string]json.RawMessage
	if json.Unmarshal(input, &m) != nil {
		return dash(string(input))
	}
	for _, key := range []string{"command", "file_path", "notebook_path", "url", "pattern", "query", "path", "description", "prompt"} {
		var s string
		if json.Unmarshal(m[key], &s) == nil && s != "" {
			return s
		}
	}
	return string(input)
}
