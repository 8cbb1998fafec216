// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/preview"
	"github.com/tripline-sh/tripline/daemon/config"
)

type previewOptions struct {
	since, until, project, claudeDir, mode, profile string
	limit                                           int
	output                                          *outputFlag
}

// previewLimit is how many lines a table shows of each rule unless --limit says otherwise.
const previewLimit = 10

func (a *app) preview() *cobra.Command {
	o := &previewOptions{output: newOutput(formatTable, formatJSON, formatJSONL)}
	cmd := &cobra.Command{
		Use:   "preview",
		Short: "Say what Tripline would have stopped in your past sessions; nothing is installed",
		Long: `Read the transcripts that Claude Code keeps of its sessions, run every past tool call through the built-in rules and the
rules and config in force for this user, and list what would have been asked about (a prompt for you) or denied (a block
for the agent). It needs no daemon and no install. It only reads: nothing is run, written or recorded, and nothing leaves
this machine.

The rule that would have bothered most comes first; equal calls of a project share a line. A day is one on which agents made
calls. Verdicts that depend on files (is it there? does git hold it?) are given with the files as they are now, and marked
with a *. Calls that were refused at that time anyway are marked with who refused them. A transcript tells what the model
asked for, a little before the client completed it; files that were last changed before --since are not opened.

-o json prints one object, also if nothing is found: "summary" (counts), "rules" (what stopped something: rule, layer, why,
asked, denied, floor, as_of_today, refused, projects, all_projects, relax) and "calls" (time, session, subagent, project, cwd,
tool, tool_use_id, input, verdict, rule, floor, reason, as_of_today, refused, refused_by), oldest first; -o jsonl prints the
calls, one a line. Secrets are taken out of inputs.

Exit codes: 0 ok, 1 error, 2 usage, 3 nothing found (no transcripts, or no calls in that time).`,
		Example: `  auditctl preview
  auditctl preview --since "last week" --profile strict
  auditctl preview --since 90d --project ~/shop -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.runPreview(cmd.Context(), o, cmd.Flags().Changed("limit"))
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.since, "since", "30d", "from this time on (time words)")
	f.StringVar(&o.until, "until", "", "before this time (time words; a day means its end)")
	f.StringVar(&o.project, "project", "", "only calls in this project or directory")
	f.StringVar(&o.claudeDir, "claude-dir", "", "the client's directory (default: $CLAUDE_CONFIG_DIR, else ~/.claude)")
	f.StringVar(&o.mode, "mode", "", "judge in this mode (guard, ask, plan, auto, observe)")
	f.StringVar(&o.profile, "profile", "", "judge with this profile (standard, strict, ci)")
	f.IntVar(&o.limit, "limit", previewLimit, "lines to show of each rule, the most frequent calls (0 = all); json and jsonl: the newest calls, all by default")
	f.VarP(o.output, "output", "o", "output format")
	return cmd
}

func (a *app) runPreview(ctx context.Context, o *previewOptions, limitGiven bool) error {
	if o.limit < 0 {
		return usagef("--limit must not be negative")
	}
	if o.output.value != formatTable && !limitGiven {
		o.limit = 0
	}
	p, err := a.places()
	if err != nil {
		return err
	}
	engine, err := a.engine(p, o.mode, o.profile)
	if err != nil {
		return err
	}
	po := preview.Options{Dir: a.claudeDir(p, o.claudeDir), Engine: engine, Homes: a.homes(p), Location: a.Now().Location(), All: o.limit == 0, Now: time.Now}
	silent := *a // the answer itself tells the time range
	silent.Err = io.Discard
	if po.From, po.To, err = silent.timeRange(nil, o.since, o.until, ""); err != nil {
		return err
	}
	if o.project != "" {
		if po.Project, err = a.absolutePath(o.project); err != nil {
			return err
		}
	}
	bar := &preview.Bar{}
	if a.ErrTTY && a.Getenv("TERM") != "dumb" && a.Getenv("TERM") != "" {
		width := a.Width
		if width == 0 { // stdout goes elsewhere
			width = 60
		}
		bar = preview.NewBar(a.Err, width, time.Now)
		po.Progress = bar.Set
	}
	rep, err := preview.Run(ctx, po)
	bar.Clear()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := a.printPreview(o, rep); err != nil {
			return err
		}
		return &Error{Code: exitNothing, Msg: "there are no transcripts of Claude Code below " + po.Dir, Err: err,
			Hints: []string{"name the client's directory with --claude-dir"}}
	case errors.Is(err, context.Canceled):
		return failf("", "interrupted; nothing was written")
	case err != nil:
		return failf("", "the transcripts cannot be read: %v", err)
	}
	for i := range rep.Rules {
		rep.Rules[i].Relax = a.relaxCommand(&rep.Rules[i])
	}
	for i := range rep.Calls {
		rep.Calls[i].Time = rep.Calls[i].Time.In(a.Now().Location())
	}
	if err := a.printPreview(o, rep); err != nil {
		return err
	}
	if rep.Summary.Calls == 0 {
		fmt.Fprintln(a.Err, "nothing found "+a.period(o, &rep.Summary))
		a.previewUnread(rep)
		return quiet(exitNothing)
	}
	return nil
}

// claudeDir is the directory of Claude Code for this user.
func (a *app) claudeDir(p config.Places, given string) string {
	switch {
	case given != "":
		return given
	case a.Getenv("CLAUDE_CONFIG_DIR") != "":
		return a.Getenv("CLAUDE_CONFIG_DIR")
	}
	return filepath.Join(p.Home, ".claude")
}

// absolutePath makes a path of the command line absolute.
func (a *app) absolutePath(path string) (string, error) {
	if filepath.IsAbs(path) {
		return filepath.Clean(path), nil
	}
	cwd, err := a.Getwd()
	if err != nil {
		return "", failf("give an absolute path", "the current directory cannot be told: %v", err)
	}
	return filepath.Join(cwd, path), nil
}

// printPreview writes the report to stdout.
func (a *app) printPreview(o *previewOptions, rep *preview.Report) error {
	switch o.output.value {
	case formatJSON:
		rep.Calls = newestOfEach(rep.Calls, o.limit)
		return writeJSON(a.Out, rep)
	case formatJSONL:
		for _, c := range newestOfEach(rep.Calls, o.limit) {
			if err := writeJSONL(a.Out, c); err != nil {
				return err
			}
		}
		if rep.Summary.Calls > 0 {
			fmt.Fprintln(a.Err, a.answer(o, &rep.Summary))
		}
		return nil
	}
	if rep.Summary.Calls == 0 {
		return nil
	}
	return a.previewTable(o, rep)
}

// newestOfEach keeps the newest calls of each rule, in their order; limit 0 keeps all.
func newestOfEach(calls []preview.Call, limit int) []preview.Call {
	if limit == 0 {
		return calls
	}
	left := map[string]int{}
	for _, c := range calls {
		left[c.Rule]++
	}
	out := []preview.Call{}
	for _, c := range calls {
		if left[c.Rule] <= limit {
			out = append(out, c)
		}
		left[c.Rule]--
	}
	return out
}

// relaxCommand is what a person pastes to soften a rule where it bothered most, "" if nothing does.
func (a *app) relaxCommand(r *preview.Rule) string {
	if r.Floor || r.Layer != "builtin" || r.Rule == "" {
		return ""
	}
	if p := bothered(r); p != "" {
		return a.paste("rules", "relax", r.Rule, "--project", p)
	}
	return a.paste("rules", "relax", r.Rule, "--here")
}

// bothered is the project that a rule bothered most, "" if a shell does not take its name as it is shown.
func bothered(r *preview.Rule) string {
	if show.Line(r.Worst, 0) == r.Worst {
		return r.Worst
	}
	return ""
}
