// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/ci"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/service"
	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/daemon/control"
	"github.com/tripline-sh/tripline/hooks/agents/claude"
	"github.com/tripline-sh/tripline/hooks/install"
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
		fmt.Fprintf(e.a.Err, "WARNING: the daemon of this job is gone (%s); what follows is from the log's files\n", show.Line(err.Error(), 300))
		if e.o.textfile != "" {
			fmt.Fprintln(e.a.Err, "WARNING: the metrics went with the daemon; no textfile is written")
		}
		return
	}
	e.job.Daemon = st.Version
	c := &control.Client{Socket: e.p.ControlSocket}
	v, err := c.Verify(ctx, control.VerifyRequest{Key: e.key()})
	if err != nil {
		e.note("the daemon did not verify its log: %v", err)
	} else {
		e.asked = &v
	}
	if e.o.textfile == "" {
		return
	}
	text, err := c.Metrics(ctx)
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
	if _, err := e.a.apply(ctx, e.p, change, "uninstall", e.job.Agent); err != nil {
		e.note("the hooks could not be taken out of %s: %v", e.job.Settings, err)
		return
	}
	fmt.Fprintf(e.a.Err, "%s is no longer wired in %s\n", e.job.Agent, show.Line(e.job.Settings, 500))
}

// stop ends the daemon and reports whether none runs.
func (e *jobEnd) stop(ctx context.Context) bool {
	if _, err := service.End(ctx, e.p.LockFile, stopTime); err != nil {
		e.note("the daemon could not be stopped: %v", err)
		return false
	}
	return true
}

// read makes the report from the log's files, and the artefacts.
func (e *jobEnd) read(ctx context.Context, stopped bool) {
	job := *e.job
	job.Key = e.key()
	e.report = &ci.Report{Job: &job}
	defer func() { e.report.Spooled = ci.Spooled(e.p.SpoolDir) }()
	var exp *ci.Export
	if e.o.out != "" {
		var err error
		if exp, err = ci.NewExport(e.o.out); err != nil {
			e.note("no artefacts: %v", err)
		}
	}
	src, err := audit.OpenReader(e.p.LogDir, audit.ReaderOptions{KeyDir: e.p.KeysDir, VerifierKey: e.key()})
	if err != nil {
		e.report.CheckBy = err.Error()
		e.note("the log cannot be read: %v", err)
		return
	}
	defer src.Close()
	e.collect(ctx, fileLog{src}, &job, exp)
	e.report.Check, err = src.Verify(ctx)
	switch {
	case err != nil:
		e.report.CheckBy = err.Error()
		e.note("the log cannot be verified: %v", err)
	case e.asked != nil && e.asked.Outcome != "OK" && e.report.Check.Outcome == "OK":
		e.report.Check = *e.asked // what the daemon held in its hands counts, too
	}
	if exp == nil || !stopped {
		return
	}
	if err := exp.Log(e.p); err != nil {
		e.note("%v", err)
		return
	}
	fmt.Fprintf(e.a.Err, "artefacts: %s\n", show.Line(e.o.out, 500))
}

// collect reads calls and events once, into the report and the JSON lines.
func (e *jobEnd) collect(ctx context.Context, src ci.Source, job *ci.Job, exp *ci.Export) {
	var calls, events *ci.Lines
	if exp != nil {
		var err1, err2 error
		calls, err1 = exp.Lines("calls.jsonl")
		events, err2 = exp.Lines("events.jsonl")
		if err := errors.Join(err1, err2); err != nil {
			e.note("no JSON lines: %v", err)
			calls, events = nil, nil
		}
	}
	f := ci.Format{JSONL: writeJSONL, Summary: summary, Words: eventWords, Zone: e.a.Now().Location()}
	var cw, ew io.Writer
	if calls != nil {
		defer calls.Drop()
		defer events.Drop()
		cw, ew = calls, events
	}
	r, err := ci.Collect(ctx, src, job, cw, ew, f)
	e.report = r
	if err != nil {
		r.Partly = err.Error()
		e.note("part of the log cannot be read: %v", err)
	}
	if calls != nil {
		if err := errors.Join(calls.Done(), events.Done()); err != nil {
			e.note("no JSON lines: %v", err)
		}
	}
}

// keep notes in the job's directory that it is finished.
func (e *jobEnd) keep() error {
	if !e.first {
		return nil
	}
	e.job.Finished = e.a.Now().UTC()
	return e.job.Save()
}

// tell writes the summary and says how the job ends.
func (e *jobEnd) tell(s ci.Severity) error {
	e.report.Notes = e.notes
	if err := e.write(e.report.Markdown()); err != nil {
		e.note("the summary cannot be written: %v", err)
	}
	r := e.report
	if r.Silent() {
		fmt.Fprintf(e.a.Err, "WARNING: 0 calls were seen, though %s was wired\n", e.job.Agent)
	}
	switch hit := r.Hit(s); {
	case r.Check.Outcome != "OK" && r.CheckBy == "":
		return &Error{Code: exitVerify, Msg: fmt.Sprintf("the log does not verify: %s %s", r.Check.Outcome, r.Check.Detail)}
	case r.CheckBy != "":
		return &Error{Code: exitVerify, Msg: "the log could not be verified: " + r.CheckBy}
	case len(e.notes) > 0:
		return failf("", "the job is finished, but not all went well: see the warnings above")
	case hit != "":
		return &Error{Code: exitDenied, Msg: fmt.Sprintf("--fail-on %s: %s", s, hit)}
	}
	fmt.Fprintf(e.a.Err, "the log verifies: %d records, root %s\n", r.Check.Size, show.Line(r.Check.Root, 100))
	return nil
}

// write puts the summary where it belongs.
func (e *jobEnd) write(text string) error {
	runner := e.a.Getenv("GITHUB_STEP_SUMMARY")
	switch {
	case e.o.summary == "-" || e.o.summary == "" && runner == "":
		_, err := io.WriteString(e.a.Out, text)
		return err
	case e.o.summary == "":
		return ci.AppendText(runner, []byte(text))
	}
	path, err := e.a.jobPath(e.o.summary)
	if err != nil {
		return err
	}
	return ci.Write(path, []byte(text), 0o644)
}
