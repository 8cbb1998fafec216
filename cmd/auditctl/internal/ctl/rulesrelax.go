// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/daemon/control"
	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/tripwires"
	"github.com/tripline-sh/tripline/tripwires/view"
)

// relaxedFile is the file of the rules directory that relax writes.
const relaxedFile = "relaxed.yaml"

type relaxOptions struct {
	here, everywhere bool
	project, to      string
	dryRun, yes      bool
}

func (a *app) rulesRelax() *cobra.Command {
	o := &relaxOptions{}
	cmd := &cobra.Command{
		Use:   "relax ID",
		Short: "Make a built-in rule milder: in this project, in another one, or everywhere",
		Long: `Add an entry to relaxed.yaml in the rules directory that tunes a built-in rule: one that denies to ask, one that asks to
pass, unless --to says otherwise. The difference is shown first; nothing is written without a person's word. The daemon then
puts exactly this change in force; if others wait as well, none is, and rules reload shows them all.

Without --project and --everywhere the entry counts in the project of the current directory (--here): the nearest directory
above with a .git, as calls are judged. Rules on the floor cannot be relaxed.

Exit codes: 0 ok (also if it is relaxed already), 1 error or refused, 2 usage, 3 no such rule.`,
		Example: `  auditctl rules relax delete.regenerable --here
  auditctl rules relax git.force-push --project ~/sandbox --to pass`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.ruleIDs(true),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runRelax(cmd.Context(), o, args[0]) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.here, "here", false, "in the project of the current directory (the default)")
	f.StringVar(&o.project, "project", "", "in the project that this directory belongs to")
	f.BoolVar(&o.everywhere, "everywhere", false, "in every project")
	f.StringVar(&o.to, "to", "", "what the rule then says: ask or pass")
	f.BoolVar(&o.dryRun, "dry-run", false, "show the change and write nothing")
	f.BoolVar(&o.yes, "yes", false, "do it without asking (for scripts that a person runs)")
	return cmd
}

func (a *app) runRelax(ctx context.Context, o *relaxOptions, id string) error {
	if o.to != "" && o.to != "ask" && o.to != "pass" {
		return usagef("--to is ask or pass, not %q", o.to)
	}
	if o.here && o.everywhere || o.project != "" && (o.here || o.everywhere) {
		return usagef("give one of --here, --project, --everywhere")
	}
	if !o.dryRun {
		if err := a.needPerson("relaxing a rule"); err != nil {
			return err
		}
	}
	p, err := a.places()
	if err != nil {
		return err
	}
	disk, err := readRules(p)
	if err != nil {
		return failf("mend the file first", "%v", err)
	}
	rule, err := a.relaxable(&ruleSets{set: disk}, id)
	if err != nil {
		return err
	}
	projects, where, err := a.relaxProjects(o)
	if err != nil {
		return err
	}
	now, to := saidNow(disk, rule, projects, profileOf(p)), event.Decision(o.to)
	if to == "" {
		to = milder(now)
	}
	if now == to {
		fmt.Fprintf(a.Out, "nothing to relax: the files say that already, %s is %s %s\n", id, to, show.Line(where, 500))
		if o.dryRun {
			return nil
		}
		return a.inForce(ctx, p, nil, true)
	}
	c, err := planRules(p, relaxedFile)
	if err != nil {
		return err
	}
	if c.new, err = tripwires.AddTune(c.path, c.old, id, to, projects); errors.Is(err, tripwires.ErrLayout) {
		return failf("", "%s: %v", c.path, err)
	} else if err != nil {
		return failf("", "%v", err)
	}
	set, err := c.check(p)
	if err != nil {
		return err
	}
	if err := checkRelaxed(c, set, id, to, projects); err != nil {
		return err
	}
	cl := &control.Client{Socket: p.ControlSocket}
	before, err := cl.Reload(ctx, control.ReloadRequest{DryRun: true, Proof: a.proof()})
	running := !errors.Is(err, control.ErrUnreachable)
	if running && err != nil {
		return a.controlError(err)
	}
	_, _, loosened := tripwires.Tighten(disk, set)
	if ok, err := c.agree(a, o.dryRun, o.yes); !ok {
		return err
	}
	if err := c.write(); err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "written to %s: %s is tuned to %s %s\n", show.Line(c.path, 500), id, to, show.Line(where, 500))
	if !running {
		fmt.Fprintf(a.Err, "the daemon is not running; its first start takes this as it is, a later one waits for %s\n", a.paste("rules", "reload"))
		return nil
	}
	if len(before.Loosened) > 0 {
		return a.othersWait(before.Loosened)
	}
	return a.inForce(ctx, p, loosened, false)
}

// relaxable returns the built-in rule that may be tuned, or says why there is none.
func (a *app) relaxable(v *ruleSets, id string) (tripwires.RuleInfo, error) {
	found, err := v.find(id)
	if err != nil {
		return tripwires.RuleInfo{}, err
	}
	r := found[0]
	switch {
	case r.Floor:
		return r, failf("no rule, mode or approval lifts the floor; a person can run the command in a terminal", "%s is on the floor and cannot be relaxed", id)
	case r.Layer != tripwires.LayerBuiltin:
		return r, failf("then put it in force: "+a.paste("rules", "reload"), "%s is a rule of your own: edit %s:%d", id, r.File, r.Line)
	}
	return r, nil
}

// relaxProjects are the roots that the entry counts for, none for everywhere.
func (a *app) relaxProjects(o *relaxOptions) (projects []string, where string, err error) {
	if o.everywhere {
		return nil, "everywhere", nil
	}
	dir := o.project
	if dir == "" || !filepath.IsAbs(dir) {
		cwd, err := a.Getwd()
		if err != nil {
			return nil, "", failf("give --project with an absolute path", "the current directory cannot be told: %v", err)
		}
		dir = filepath.Join(cwd, dir)
	}
	if fi, err := os.Stat(dir); err != nil || !fi.IsDir() {
		return nil, "", usagef("%s is not a directory", show.Line(dir, 500))
	}
	pool := view.NewPool(1)
	reader := pool.Reader(context.Background())
	projects = tripwires.ProjectRoots(dir, reader)
	if err := pool.Close(context.Background()); err != nil {
		return nil, "", err
	}
	if len(projects) == 0 {
		return nil, "", failf("go into the project, or name it with --project", "%s can be no project: it is a part of the machine", show.Line(dir, 500))
	}
	if _, err := os.Lstat(filepath.Join(projects[0], ".git")); err != nil {
		fmt.Fprintf(a.Err, "note: no repository holds %s; the entry counts there and in every project below\n", show.Line(projects[0], 500))
	}
	return projects, "in " + strings.Join(projects, ", "), nil
}

// saidNow is what the files make of a rule in all of these projects: the strictest counts.
func saidNow(set *tripwires.Set, r tripwires.RuleInfo, projects []string, profile string) event.Decision {
	base := r.Verdict
	if d, ok := r.Profiles[profile]; ok {
		base = d
	}
	if len(projects) == 0 {
		projects = []string{""}
	}
	now := event.Pass
	for _, dir := range projects {
		if t, ok := set.Tuned(r.ID, dir); ok {
			now = event.Stricter(now, t.To)
		} else {
			now = event.Stricter(now, base)
		}
	}
	return now
}

// milder is one step below a verdict.
func milder(d event.Decision) event.Decision {
	if d == event.Deny {
		return event.Ask
	}
	return event.Pass
}

// profileOf is the profile that the configuration on disk names.
func profileOf(p config.Places) string {
	if c, err := config.Load(p.ConfigFile); err == nil {
		return c.Profile
	}
	return tripwires.ProfileStandard
}

// checkRelaxed makes sure that the new entry is the one that counts: a later file may hold another one.
func checkRelaxed(c *rulesChange, set *tripwires.Set, id string, to event.Decision, projects []string) error {
	if len(projects) == 0 {
		projects = []string{""}
	}
	for _, dir := range projects {
		t, ok := set.Tuned(id, dir)
		if !ok || t.To != to {
			return failf("change that entry", "%s:%d tunes %s to %s and counts instead: nothing was written", t.File, t.Line, id, t.To)
		}
	}
	return nil
}

// othersWait says that the entry waits together with what waited before.
func (a *app) othersWait(lines []string) error {
	e := &Error{Code: exitError, Msg: "it is not in force yet: other changes on disk would loosen the rules, too, and wait for a person"}
	for _, l := range lines[:min(len(lines), 5)] {
		e.Hints = append(e.Hints, "waits: "+show.Line(l, 300))
	}
	e.Hints = append(e.Hints, "look at them and put all in force: "+a.paste("rules", "reload"))
	return e
}

// inForce has the daemon put in force exactly what a person saw. With already set nothing was written: it only looks whether
// something waits.
func (a *app) inForce(ctx context.Context, p config.Places, loosened []string, already bool) error {
	cl := &control.Client{Socket: p.ControlSocket}
	if already || len(loosened) == 0 {
		r, err := cl.Reload(ctx, control.ReloadRequest{DryRun: true, Proof: a.proof()})
		switch {
		case errors.Is(err, control.ErrUnreachable):
			return nil
		case err != nil:
			return a.controlError(err)
		case len(r.Loosened) > 0:
			return a.othersWait(r.Loosened)
		case already:
			fmt.Fprintln(a.Out, "it is in force")
		default:
			fmt.Fprintln(a.Out, "the daemon takes it over by itself: nothing is loosened")
		}
		return nil
	}
	r, err := cl.Reload(ctx, control.ReloadRequest{Expect: loosened, Proof: a.proof()})
	var re *control.ResponseError
	if errors.As(err, &re) && re.Status == 409 {
		now, derr := cl.Reload(ctx, control.ReloadRequest{DryRun: true, Proof: a.proof()})
		if derr != nil {
			return a.controlError(err)
		}
		return a.othersWait(slices.DeleteFunc(now.Loosened, func(l string) bool { return slices.Contains(loosened, l) }))
	}
	if err != nil {
		return a.controlError(err)
	}
	fmt.Fprintf(a.Out, "in force: %d rules, set %s\n", r.Rules, short(r.RuleSet))
	return nil
}
