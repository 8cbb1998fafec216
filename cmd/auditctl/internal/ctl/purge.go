// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/service"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/words"
	"github.com/tripline-sh/tripline/daemon/config"
)

type purgeOptions struct {
	dryRun, yes bool
}

func (a *app) purge() *cobra.Command {
	o := &purgeOptions{}
	cmd := &cobra.Command{
		Use:   "purge",
		Short: "Delete this install's configuration, rules, keys and log, for good",
		Long: `Delete what this install keeps: configuration, rules, keys, the log, sockets and units. Only files that bear names of ours go, links
are never followed, and what else lies there is listed and stays. It is refused while a daemon runs or an agent is wired. The programs stay.

Exit codes: 0 ok, 1 error or refused, 2 usage.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runPurge(cmd.Context(), o) },
	}
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "list what would go and what would stay, and delete nothing")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do it without asking (for scripts that a person runs)")
	return cmd
}

func (a *app) runPurge(ctx context.Context, o *purgeOptions) error {
	if !o.dryRun {
		if err := a.needPerson("deleting the log"); err != nil {
			return err
		}
	}
	p, err := a.places()
	if err != nil {
		return err
	}
	pl, err := planPurge(p)
	if err != nil {
		return failf("nothing was deleted", "%v", err)
	}
	if !o.dryRun {
		if err := a.mayPurge(ctx, p); err != nil {
			return err
		}
	}
	for _, path := range pl.files {
		fmt.Fprintf(a.Out, "delete %s\n", show.Line(path, 1000))
	}
	if o.dryRun {
		a.sayLeft(pl)
		fmt.Fprintln(a.Err, "nothing was deleted (dry run)")
		return nil
	}
	k, err := a.keeper(ctx, p)
	if err != nil {
		return err
	}
	if len(pl.files) > 0 {
		if err := a.agreePurge(ctx, o, pl, p); err != nil {
			return err
		}
	}
	if err := k.Stop(ctx); err != nil {
		return failf("nothing was deleted", "%s does not stop the sockets: %v", k.Name(), err)
	}
	units, err := k.Disable(ctx)
	for _, path := range units {
		fmt.Fprintf(a.Out, "removed %s\n", show.Line(path, 500))
	}
	if err != nil {
		return failf("nothing else was deleted", "%s was not told all of it: %v", k.Name(), err)
	}
	// once more: it may have been started while the question stood there
	if err := a.mayPurge(ctx, p); err != nil {
		return err
	}
	if k.Name() == service.None {
		a.notes(k)
	}
	n, err := pl.carryOut()
	fmt.Fprintf(a.Out, "deleted %s\n", words.Count(n, "file"))
	a.sayLeft(pl)
	if err != nil {
		return failf("run it again to delete the rest", "%v", err)
	}
	return nil
}

// mayPurge refuses while something still uses what would go.
func (a *app) mayPurge(ctx context.Context, p config.Places) error {
	switch pid, err := service.Holder(p.LockFile); {
	case err != nil:
		return failf("nothing was deleted", "%v", err)
	case pid != 0:
		return failf("stop it first: "+a.paste("stop"), "a daemon runs (pid %d)", pid)
	}
	if st, err := a.ask(ctx, p); err == nil { // its lock file is gone; it ends by itself when it sees that
		return failf("end it first: kill "+strconv.Itoa(st.PID), "a daemon answers (pid %d)", st.PID)
	}
	switch w, err := a.wired(p); {
	case err != nil:
		return failf("nothing was deleted", "could not tell whether claude is wired: %v", err)
	case w.path != "":
		return failf("take the hooks out first: "+a.paste("uninstall", "claude"), "claude is wired in %s: without the rest its calls would all be denied", w.path)
	}
	return nil
}

// agreePurge asks for a person's word.
func (a *app) agreePurge(ctx context.Context, o *purgeOptions, pl *purgePlan, p config.Places) error {
	switch {
	case o.yes:
		return nil
	case !a.InTTY:
		return failf("run it in a terminal, or with --yes", "a person's word is needed to delete the log")
	}
	if !a.confirm(ctx, fmt.Sprintf("delete these %d files, the log in %s among them, for good?", len(pl.files), show.Line(p.LogDir, 500))) {
		return failf("", "not confirmed: nothing was deleted")
	}
	return nil
}

// sayLeft lists what is not ours.
func (a *app) sayLeft(pl *purgePlan) {
	for _, path := range pl.foreign {
		fmt.Fprintf(a.Err, "left: %s is not one of Tripline's files\n", show.Line(path, 1000))
	}
	if a.program() == nil {
		fmt.Fprintf(a.Err, "the programs stay in %s\n", show.Line(filepath.Dir(a.Exe), 500))
	}
}
