// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/ci"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/service"
	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/daemon/control"
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
	job    *ci.Job // what it says is a hint
	p      config.Places
	began  time.Time
	report *ci.Report

	silent error                // why the daemon did not answer; nil = it did
	asked  *record.Verification // what the daemon found, nil if it was not asked
	asPut  bool                 // the hooks were as ci start puts them
	late   bool                 // they are taken out when no daemon runs any more
	killed bool                 // the daemon did not end when it was asked to
	notes  []string             // what could not be done
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
	o.key = strings.TrimSpace(o.key)
	e := &jobEnd{a: a, o: o, job: job, began: a.Now()}
	if e.p, err = a.jobPlaces(job); err != nil {
		return failf("", "%v", err)
	}
	e.askDaemon(ctx)
	e.unwire(ctx)
	stopped := e.stop(ctx)
	e.unwireLate()
	e.read(ctx, stopped)
	e.judge()
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

// askDaemon takes what only the running daemon knows.
func (e *jobEnd) askDaemon(ctx context.Context) {
	if _, e.silent = e.a.ask(ctx, e.p); e.silent != nil {
		return
	}
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

// unwire takes our entries out of the agent's settings, and sees whether they were still as they had been put there. Only then is the
// daemon told, so that its log shows that this was the end of the job; else they are taken out behind its back, when it is gone.
func (e *jobEnd) unwire(ctx context.Context) {
	change, err := e.removal(e.job.Settings)
	if err != nil {
		e.note("the hooks could not be taken out of %s: %v", e.job.Settings, err)
		return
	}
	now, err := e.a.jobPlan(e.p, e.job)
	e.asPut = err == nil && now.Empty()
	if !e.asPut || e.silent != nil {
		e.late = true
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	if _, err := e.a.apply(ctx, e.p, change, "uninstall", e.job.Agent); err != nil {
		e.note("the hooks could not be taken out of %s with the daemon's word: %v", e.job.Settings, err)
		e.late = true
		return
	}
	e.sayUnwired(e.job.Settings)
}

// errOther says that settings are wired to something else than this job.
var errOther = errors.New("it is wired to another Tripline by now and was left alone")

// removal plans to take the entries of this job out of a settings file.
func (e *jobEnd) removal(path string) (*install.Change, error) {
	change, err := install.PlanRemoval(path, os.Getuid())
	if err != nil || change.Old == nil {
		return change, err
	}
	entries, err := install.Installed(change.Old)
	if err != nil {
		return nil, err
	}
	for _, n := range entries {
		if n.Socket != e.p.HookSocket {
			return nil, errOther
		}
	}
	return change, nil
}

// unwireLate takes our entries out when there is no daemon to tell of it.
func (e *jobEnd) unwireLate() {
	if e.late {
		e.takeOut(e.job.Settings)
	}
}

func (e *jobEnd) takeOut(path string) {
	change, err := e.removal(path)
	if err == nil && change.Empty() {
		return
	}
	if err == nil {
		err = change.Apply()
	}
	if err != nil {
		e.note("the hooks could not be taken out of %s: %v", path, err)
		return
	}
	e.sayUnwired(path)
}

func (e *jobEnd) sayUnwired(path string) {
	fmt.Fprintf(e.a.Err, "%s is no longer wired in %s\n", show.Line(e.job.Agent, 100), show.Line(path, 500))
}

// stop ends the daemon and reports whether none runs. One that hangs is killed: nothing of a job may outlive it.
func (e *jobEnd) stop(ctx context.Context) bool {
	pid, err := service.End(ctx, e.p.LockFile, stopTime)
	if errors.Is(err, service.ErrStillRuns) && ctx.Err() == nil {
		e.killed = true
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
