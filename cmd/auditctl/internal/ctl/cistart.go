// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/ci"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/service"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/words"
	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/daemon/control"
)

func (a *app) runCIStart(ctx context.Context, o *ciStartOptions) error {
	if err := a.needPerson("guarding a job"); err != nil {
		return err
	}
	if err := a.program(); err != nil {
		return err
	}
	c := config.Default()
	for _, kv := range [][2]string{{"mode", o.mode}, {"profile", o.profile}, {"on_down", o.onDown}, {"metrics.listen", o.metrics}} {
		if err := c.Set(kv[0], kv[1]); err != nil {
			return usagef("%v", err)
		}
	}
	job, err := a.findJob(o)
	if err != nil {
		return err
	}
	begun := job == nil
	if begun {
		if job, err = a.newJob(o, c); err != nil {
			return err
		}
	}
	p, err := a.jobPlaces(job)
	if err != nil {
		return failf("", "%v", err)
	}
	st, err := a.guardJob(ctx, p, job)
	if err == nil {
		return a.announceJob(job, st)
	}
	if begun { // nothing may stay behind that guards nobody
		_, _ = service.End(context.WithoutCancel(ctx), p.LockFile, stopTime)
	}
	return err
}

// guardJob brings the daemon up and wires the agent.
func (a *app) guardJob(ctx context.Context, p config.Places, job *ci.Job) (control.Status, error) {
	st, err := a.jobDaemon(ctx, p)
	if err != nil {
		return st, err
	}
	if job.Key == "" {
		job.Key = st.GenesisKey
		if err := job.Save(); err != nil {
			return st, failf("", "the job cannot be kept: %v", err)
		}
	}
	if job.Key != st.GenesisKey {
		return st, failf("", "the log in %s is not the one that this job began with: its key differs", job.Dir)
	}
	return st, a.wireJob(ctx, p, job)
}

// findJob is the job that runs already: in --dir, or in TRIPLINE_HOME; nil if there is none.
func (a *app) findJob(o *ciStartOptions) (*ci.Job, error) {
	dir := o.dir
	if dir == "" {
		dir = a.Getenv("TRIPLINE_HOME")
	}
	if dir == "" {
		return nil, nil
	}
	dir, err := a.jobPath(dir)
	if err != nil {
		return nil, failf("", "%v", err)
	}
	job, err := loadJob(dir)
	switch {
	case errors.Is(err, ci.ErrNoJob):
		return nil, nil
	case err != nil:
		return nil, failf("", "%v", err)
	case !job.Finished.IsZero() && o.dir != "":
		return nil, failf("give another directory, or none", "the job in %s is finished, and its log is complete", dir)
	case !job.Finished.IsZero():
		return nil, nil
	}
	for _, f := range []struct {
		given          bool
		name, was, now string
	}{
		{o.modeSet, "mode", job.Mode, o.mode}, {o.profileSet, "profile", job.Profile, o.profile}, {o.onDownSet, "on-down", job.OnDown, o.onDown},
		{o.mx, "metrics-listen", job.Metrics, o.metrics}, {len(o.rules) > 0, "rules", "", "others"},
	} {
		if f.given && f.was != f.now {
			return nil, failf(a.paste("ci", "finish", "--dir", job.Dir)+" ends that one",
				"a job runs already in %s; it cannot be given another --%s", job.Dir, f.name)
		}
	}
	return job, nil
}

// newJob makes the directory of a job, with its configuration and rules.
func (a *app) newJob(o *ciStartOptions, c config.Config) (*ci.Job, error) {
	settings, err := a.jobSettings(o)
	if err != nil {
		return nil, err
	}
	// before anything is made: whatever else is wired there would be taken over
	if err := a.otherWiring(settings, ""); err != nil {
		return nil, err
	}
	dir := o.dir
	if dir != "" {
		if dir, err = a.jobPath(dir); err != nil {
			return nil, failf("", "%v", err)
		}
	}
	job, err := ci.New(dir, a.temp())
	if err != nil {
		return nil, failf("", "%v", err)
	}
	job.Settings, job.Agent, job.Started = settings, o.agent, a.Now().UTC()
	job.Mode, job.Profile, job.OnDown, job.Metrics = c.Mode, c.Profile, c.OnDown, c.MetricsListen
	if err := a.fillJob(job, o.rules); err != nil {
		_ = os.RemoveAll(job.Dir) // it was empty or absent before
		return nil, err
	}
	return job, nil
}

// fillJob puts the configuration and the rules of a new job where its daemon looks for them.
func (a *app) fillJob(job *ci.Job, rules []string) error {
	p, err := a.jobPlaces(job)
	if err != nil {
		return failf("", "%v", err)
	}
	if err := os.MkdirAll(p.ConfigDir, 0o700); err != nil {
		return failf("", "%v", err)
	}
	text := fmt.Sprintf("# written by auditctl ci start\nmode: %s\nprofile: %s\non_down: %s\nmetrics:\n  listen: %q\n", job.Mode, job.Profile, job.OnDown, job.Metrics)
	if err := ci.Write(p.ConfigFile, []byte(text), 0o600); err != nil {
		return failf("", "%v", err)
	}
	paths := make([]string, len(rules))
	for i, r := range rules {
		if paths[i], err = a.jobPath(r); err != nil {
			return failf("", "%v", err)
		}
	}
	if err := ci.CopyRules(paths, p.RulesDir); err != nil {
		return failf("nothing was started", "the rules cannot be taken: %v", err)
	}
	if err := job.Save(); err != nil {
		return failf("", "the job cannot be kept: %v", err)
	}
	return nil
}

// jobSettings is the settings file that is wired.
func (a *app) jobSettings(o *ciStartOptions) (string, error) {
	usual, err := a.settingsPath(o.agent, config.Places{Home: a.Getenv("HOME")})
	if o.settings == "" || usual == "" && o.agent != "claude" {
		return usual, err
	}
	if usual, err = a.jobPath(o.settings); err != nil {
		return "", failf("", "%v", err)
	}
	if dir := filepath.Dir(usual); !dirThere(dir) { // a mistyped path would be made, and no agent would read it
		return "", failf("if it is meant: mkdir -p "+words.Shell(dir), "--settings: there is no directory %s", dir)
	}
	return usual, nil
}

func dirThere(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir()
}

// announceJob tells people and later steps where the job is.
func (a *app) announceJob(j *ci.Job, st control.Status) error {
	fmt.Fprintf(a.Err, "triplined runs for this job (pid %d), mode %s, profile %s\n", st.PID, show.Line(st.Mode, 20), show.Line(st.Profile, 20))
	fmt.Fprintf(a.Err, "%s is wired in %s\n", j.Agent, show.Line(j.Settings, 500))
	fmt.Fprintf(a.Err, "the log's key: %s\n", show.Line(j.Key, 300))
	fmt.Fprintf(a.Err, "at the end of the job: %s\n", show.Line(a.paste("ci", "finish", "--dir", j.Dir, "--key", j.Key), 2000))
	if path := a.Getenv("GITHUB_ENV"); path != "" {
		if err := ci.AppendVars(path, ci.Var{Name: "TRIPLINE_HOME", Value: j.Dir}); err != nil {
			return failf("the agent is guarded all the same", "GITHUB_ENV: %v", err)
		}
	}
	if path := a.Getenv("GITHUB_OUTPUT"); path != "" {
		err := ci.AppendVars(path, ci.Var{Name: "dir", Value: j.Dir}, ci.Var{Name: "key", Value: j.Key}, ci.Var{Name: "auditctl", Value: a.Exe})
		if err != nil {
			return failf("the agent is guarded all the same", "GITHUB_OUTPUT: %v", err)
		}
	}
	fmt.Fprintf(a.Out, "TRIPLINE_HOME=%s\n", words.Shell(j.Dir))
	return nil
}
