// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/user"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/daemon/control"
	"github.com/tripline-sh/tripline/hooks/agents/claude"
	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/tripwires"
)

func (a *app) rules() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "See, check, write and relax the rules that calls are judged by",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		a.rulesList(), a.rulesShow(), a.rulesLint(), a.rulesTest(),
		a.rulesNew(), a.rulesRelax(), a.rulesImport(), a.rulesReload(),
	)
	return cmd
}

type reloadOptions struct {
	dryRun, yes bool
	output      *outputFlag
}

func (a *app) rulesReload() *cobra.Command {
	o := &reloadOptions{output: newOutput(formatTable, formatJSON)}
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Put the rules and the config on disk in force, also where they loosen",
		Long: `The daemon adopts tightening (added deny and ask rules, stricter modes) by itself as soon as a file changes. Everything
else waits for this command, since a hidden write to a file must not loosen anything. In a terminal, what loosens is shown
first, and exactly that comes in force on a typed yes. The difference is recorded.

Exit codes: 0 ok, 1 error (a bad file: the last good rules stay) or refused, 2 usage, 7 daemon unreachable.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runReload(cmd.Context(), o) },
	}
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "say what would change and change nothing")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do it without asking (for scripts that a person runs)")
	cmd.Flags().VarP(o.output, "output", "o", "output format")
	return cmd
}

func (a *app) runReload(ctx context.Context, o *reloadOptions) error {
	if !o.dryRun {
		if err := a.needPerson("putting rules in force"); err != nil {
			return err
		}
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	req := control.ReloadRequest{DryRun: o.dryRun, Proof: a.proof()}
	asks := a.InTTY && !o.dryRun && !o.yes
	if asks {
		// Who typed this may have another change in mind than the one that lies there.
		seen, err := c.Reload(ctx, control.ReloadRequest{DryRun: true, Proof: a.proof()})
		if err != nil {
			return a.controlError(err)
		}
		if len(seen.Loosened) > 0 {
			sayDifference(a.Err, seen)
			if !a.confirm(ctx, "put this in force?") {
				return failf("", "not confirmed: nothing was loosened")
			}
		}
		req.Expect = seen.Loosened
	}
	r, err := c.Reload(ctx, req)
	if err != nil {
		return a.controlError(err)
	}
	if o.output.value == formatJSON {
		return writeJSON(a.Out, r)
	}
	if !asks || len(req.Expect) == 0 {
		sayDifference(a.Out, r)
	}
	switch {
	case o.dryRun:
		fmt.Fprintln(a.Out, "nothing was changed (dry run)")
	case r.Changed:
		fmt.Fprintf(a.Out, "in force: %d rules, set %s\n", r.Rules, short(r.RuleSet))
	default:
		fmt.Fprintf(a.Out, "nothing to change: %d rules, set %s\n", r.Rules, short(r.RuleSet))
	}
	return nil
}

// sayDifference lists what a reload changes.
func sayDifference(w io.Writer, r control.ReloadResponse) {
	for _, t := range r.Tightened {
		fmt.Fprintf(w, "tightens  %s\n", show.Line(t, 500))
	}
	for _, l := range r.Loosened {
		fmt.Fprintf(w, "loosens   %s\n", show.Line(l, 500))
	}
	for _, k := range r.Restart {
		fmt.Fprintf(w, "at the next start  %s\n", show.Line(k, 500))
	}
}

// newEngine loads what the daemon would load at its first start.
func (a *app) newEngine(p config.Places, c config.Config) (*tripwires.Engine, error) {
	files, err := tripwires.ReadRulesDir(p.RulesDir, tripwires.LayerUser)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, failf("", "the rules cannot be read: %v", err)
	}
	set, err := tripwires.Load(files)
	if err != nil {
		return nil, failf("mend the file; until then the daemon keeps the last good rules", "%v", err)
	}
	return tripwires.New(tripwires.Options{
		Rules: set, Mode: c.Mode, Profile: c.Profile, Unmapped: event.Decision(c.Unmapped), OwnPaths: slices.Concat(p.Own(), a.programs()), Settings: claude.JudgeSettings,
	})
}

// homes are the directories that count as home for this user: HOME, and the one that the password database names.
func (a *app) homes(p config.Places) []string {
	var out []string
	if p.Home != "" {
		out = append(out, p.Home)
	}
	if u, err := user.Current(); err == nil && u.HomeDir != "" && u.HomeDir != p.Home {
		out = append(out, u.HomeDir)
	}
	return out
}

// programs are the files of this install that live outside its own directories.
func (a *app) programs() []string {
	var out []string
	for _, name := range []string{"auditctl", "tripline", "triplined", "tripline-hook"} {
		out = append(out, filepath.Join(filepath.Dir(a.Exe), name))
	}
	return out
}
