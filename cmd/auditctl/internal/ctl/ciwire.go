// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/ci"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/service"
	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/daemon/control"
	"github.com/tripline-sh/tripline/hooks/install"
)

// otherWiring refuses settings that are wired to another Tripline than the one with this socket, and a file of which the agent
// would not read a word, hooks included, whatever stands in it.
func (a *app) otherWiring(settings, socket string) error {
	c, err := install.PlanRemoval(settings, os.Getuid())
	if err != nil {
		return failf("the file was left as it is", "%v", err)
	}
	if why := install.Skipped(c.Old); why != "" {
		return failf("take comments and trailing commas out of it", "%s: %s", settings, why)
	}
	entries, err := install.Installed(c.Old)
	if c.Old == nil || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return failf("the file was left as it is", "%v", err)
	}
	for _, e := range entries {
		if e.Socket == socket {
			continue
		}
		home := filepath.Dir(filepath.Dir(e.Socket))
		hint := "take that out first: " + a.paste("uninstall", "claude")
		if j, err := loadJob(home); err == nil {
			hint = "end that job first: " + a.paste("ci", "finish", "--dir", j.Dir)
		}
		return failf(hint, "%s is wired to another Tripline, whose socket is %s", settings, e.Socket)
	}
	return nil
}

// jobDaemon is the daemon of a job, started if it does not run.
func (a *app) jobDaemon(ctx context.Context, p config.Places) (control.Status, error) {
	if st, err := a.answering(ctx, p); err == nil {
		return st, nil
	}
	k, err := a.keeper(ctx, p)
	if err != nil {
		return control.Status{}, err
	}
	if err := unmark(p); err != nil {
		return control.Status{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	old, _ := service.Holder(p.LockFile)
	done, err := k.Start(ctx)
	if err != nil {
		return control.Status{}, a.notUp(ctx, k, err)
	}
	st, err := a.await(ctx, p, done, old)
	if err != nil {
		return st, a.notUp(ctx, k, err)
	}
	if st.RulesError != "" {
		_, _ = service.End(ctx, p.LockFile, stopTime)
		return st, failf("nothing is guarded; mend the rules", "the rules of the job are not in force: %s", st.RulesError)
	}
	return st, nil
}

// answering asks the daemon. One that holds the lock and gives no answer is about to begin or to end, and gets a moment for that.
func (a *app) answering(ctx context.Context, p config.Places) (control.Status, error) {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for end := time.Now().Add(5 * time.Second); ; {
		st, err := a.ask(ctx, p)
		if pid, herr := service.Holder(p.LockFile); err == nil || herr == nil && pid == 0 || time.Now().After(end) {
			return st, err
		}
		select {
		case <-ctx.Done():
			return st, ctx.Err()
		case <-tick.C:
		}
	}
}

// jobPlan is the change that wires a job's settings; it is empty if they are wired as they should be.
func (a *app) jobPlan(p config.Places, j *ci.Job) (*install.Change, error) {
	options, err := a.entries(p, j.Settings, j.OnDown)
	if err != nil {
		return nil, err
	}
	change, err := install.Plan(options)
	if err != nil {
		return nil, failf("the file was left as it is", "%v", err)
	}
	return change, nil
}

func (a *app) wireJob(ctx context.Context, p config.Places, j *ci.Job) error {
	if err := a.otherWiring(j.Settings, p.HookSocket); err != nil {
		return err
	}
	change, err := a.jobPlan(p, j)
	if err != nil {
		return err
	}
	for _, w := range change.Warnings {
		fmt.Fprintf(a.Err, "warning: %s\n", show.Line(w, 500))
	}
	if err := writeToken(p, change.Token); err != nil {
		return err
	}
	if change.Empty() {
		return nil
	}
	running, err := a.apply(ctx, p, change, "install", j.Agent)
	if err == nil && !running { // the log must tell what was wired, since ci finish believes nothing else
		return failf("", "the daemon of this job went away while the agent was wired")
	}
	return err
}
