// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/ci"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/service"
	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/daemon/control"
	"github.com/tripline-sh/tripline/hooks/agents/claude"
	"github.com/tripline-sh/tripline/hooks/install"
)

// A job must not hang at its end: these bound questions to the daemon that take it no time, and one that takes some.
const (
	askTime    = 20 * time.Second
	verifyTime = 5 * time.Minute
)

// ciFinishOptions are the flags of ci finish.
type ciFinishOptions struct {
	dir, key, failOn, summary, out, textfile string
}

// jobEnd is the end of one job. What goes wrong on the way is kept, so that the rest is done and the summary tells it.
type jobEnd struct {
	a      *app
	o      *ciFinishOptions
	job    *ci.Job
	p      config.Places
	first  bool // nobody finished it before
	report *ci.Report

	alive bool                 // the daemon answered
	asked *record.Verification // what the daemon found, nil if it was not asked
	notes []string             // what could not be done
}

func (a *app) runCIFinish(ctx context.Context, o *ciFinishOptions) error {
	if err := a.needPerson("ending the guard of a job"); err != nil {
		return err
	}
	severity, err := ci.ParseSeverity(o.failOn)
	if err != nil {
		return usagef("--fail-on: %v", err)
	}
	for _, path := range []*string{&o.out, &o.textfile, &o.dir} {
		if *path == "" {
			continue
		}
		if *path, err = a.jobPath(*path); err != nil {
			return failf("", "%v", err)
		}
	}
	if o.dir == "" {
		o.dir = a.Getenv("TRIPLINE_HOME")
	}
	none := "start one first: " + a.paste("ci", "start")
	if o.dir == "" {
		return &Error{Code: exitNothing, Msg: "no job was started: neither --dir nor TRIPLINE_HOME names one", Hints: []string{none}}
	}
	job, err := loadJob(o.dir)
	if errors.Is(err, ci.ErrNoJob) {
		return &Error{Code: exitNothing, Msg: err.Error(), Err: err, Hints: []string{none}}
	}
	if err != nil {
		return failf("", "%v", err)
	}
	e := &jobEnd{a: a, o: o, job: job, first: job.Finished.IsZero()}
	if e.p, err = a.jobPlaces(job); err != nil {
		return failf("", "%v", err)
	}
	e.askDaemon(ctx)
	e.askAgent()
	e.unwire(ctx)
	stopped := e.stop(ctx)
	e.read(ctx, stopped)
	if err := e.keep(); err != nil {
		e.note("the end of the job cannot be kept: %v", err)
	}
	return e.tell(severity)
}

// note keeps what went wrong, and says it at once.
func (e *jobEnd) note(format string, args ...any) {
	text := show.Line(fmt.Sprintf(format, args...), 1000)
	e.notes = append(e.notes, text)
	fmt.Fprintf(e.a.Err, "WARNING: %s\n", text)
}

// askAgent takes the agent's version from the transcript that it wrote during the job; no hook tells it.
func (e *jobEnd) askAgent() {
	if !e.first {
		return
	}
	name := e.job.Agent + " (no transcript of this job tells its version)"
	if v, at, ok := claude.TranscriptVersion(filepath.Dir(e.job.Settings)); ok && !at.Before(e.job.Started.Truncate(time.Second)) {
		name = e.job.Agent + " " + v.String()
	}
	e.job.Agents = []string{name}
}

// askDaemon takes what only the running daemon knows.
func (e *jobEnd) askDaemon(ctx context.Context) {
	st, err := e.a.ask(ctx, e.p)
	if err != nil {
		if !e.first {
			return // as it should be
		}
		e.job.Died = true
		fmt.Fprintf(e.a.Err, "WARNING: the daemon of this job is gone or gives no answer (%s); what follows is from the log's files\n", show.Line(err.Error(), 300))
		if e.o.textfile != "" {
			fmt.Fprintln(e.a.Err, "WARNING: the metrics went with the daemon; no textfile is written")
		}
		return
	}
	e.alive, e.job.Daemon = true, st.Version
	c := &control.Client{Socket: e.p.ControlSocket}
	patient, done := context.WithTimeout(ctx, verifyTime)
	defer done()
	v, err := c.Verify(patient, control.VerifyRequest{Key: e.key()})
	if err != nil {
		e.note("the daemon did not verify its log: %v", err)
	} else {
		e.asked = &v
	}
	if e.o.textfile == "" {
		return
	}
	brief, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	text, err := c.Metrics(brief)
	if err == nil {
		err = ci.Write(e.o.textfile, text, 0o644) // for a collector under another user; it holds numbers only
	}
	if err != nil {
		e.note("no metrics: %v", err)
	}
}

func (e *jobEnd) key() string {
	if e.o.key != "" {
		return e.o.key
	}
	return e.job.Key
}

// unwire takes our entries out of the agent's settings, and sees whether they were still as they had been put there.
func (e *jobEnd) unwire(ctx context.Context) {
	change, err := install.PlanRemoval(e.job.Settings, os.Getuid())
	if err != nil {
		e.note("the hooks could not be taken out of %s: %v", e.job.Settings, err)
		return
	}
	if change.Old != nil {
		entries, err := install.Installed(change.Old)
		if err != nil {
			e.note("the hooks could not be taken out of %s: %v", e.job.Settings, err)
			return
		}
		for _, n := range entries {
			if n.Socket != e.p.HookSocket {
				e.note("%s is wired to another Tripline by now and was left alone", e.job.Settings)
				return
			}
		}
	}
	if e.first {
		now, err := e.a.jobPlan(e.p, e.job)
		if e.job.Altered = err != nil || !now.Empty(); e.job.Altered {
			fmt.Fprintf(e.a.Err, "WARNING: the hooks in %s are not the ones that were put there\n", show.Line(e.job.Settings, 500))
		}
	}
	if change.Empty() {
		return
	}
	if e.alive {
		ctx, cancel := context.WithTimeout(ctx, askTime)
		defer cancel()
		_, err = e.a.apply(ctx, e.p, change, "uninstall", e.job.Agent)
	} else {
		err = change.Apply() // nobody to tell of it
	}
	if err != nil {
		e.note("the hooks could not be taken out of %s: %v", e.job.Settings, err)
		return
	}
	fmt.Fprintf(e.a.Err, "%s is no longer wired in %s\n", e.job.Agent, show.Line(e.job.Settings, 500))
}

// stop ends the daemon and reports whether none runs. One that hangs is killed: nothing of a job may outlive it.
func (e *jobEnd) stop(ctx context.Context) bool {
	pid, err := service.End(ctx, e.p.LockFile, stopTime)
	if errors.Is(err, service.ErrStillRuns) && ctx.Err() == nil {
		e.note("the daemon did not end when it was asked to, and is killed")
		// it holds the lock and was looked at: no other process has its number
		if err = syscall.Kill(pid, syscall.SIGKILL); err == nil {
			err = e.released(ctx)
		}
	}
	if err != nil {
		e.note("the daemon (process %d) could not be stopped: %v", pid, err)
	}
	return err == nil
}

// released waits until nobody holds the daemon's lock.
func (e *jobEnd) released(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		if pid, err := service.Holder(e.p.LockFile); err == nil && pid == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return service.ErrStillRuns
		case <-tick.C:
		}
	}
}
