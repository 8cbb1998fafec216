// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/ci"
	"github.com/tripline-sh/tripline/hooks/agents/claude"
)

// read makes the report from the log's files, and the artefacts.
func (e *jobEnd) read(ctx context.Context, stopped bool) {
	e.report = &ci.Report{Job: e.job, Settings: e.job.Settings}
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
	e.collect(ctx, fileLog{src}, exp)
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
func (e *jobEnd) collect(ctx context.Context, src ci.Source, exp *ci.Export) {
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
	r, err := ci.Collect(ctx, src, e.job, cw, ew, f)
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

// judge says what became of the guard, from the log and from what was found.
func (e *jobEnd) judge() {
	r := e.report
	r.Key = e.key()
	r.Judge(ci.End{Began: e.began, Answered: e.silent == nil, AsPut: e.asPut, Key: e.o.key})
	if path := r.Settings; path != e.job.Settings && filepath.IsAbs(path) {
		e.takeOut(path) // the file that the log tells of was not looked at yet
	}
	if e.job.Killed && !e.killed {
		e.note("the daemon did not end when an earlier finish asked it to, and was killed")
	}
	r.Agents = []string{e.agent()}
	warn := func(format string, args ...any) { fmt.Fprintf(e.a.Err, "WARNING: "+format+"\n", args...) }
	if !r.Before.IsZero() {
		warn("the job was finished before, at %s; what ran after that was not guarded", r.Before.Format(time.DateTime))
	}
	if r.Claimed {
		warn("the job's file tells that it was finished before; the log does not prove it, so that it counts for nothing")
	}
	if e.silent != nil && r.Before.IsZero() {
		warn("the daemon of this job is gone or gives no answer (%s); what follows is from the log's files", show.Line(e.silent.Error(), 300))
	} else if r.Died || r.Away {
		warn("the daemon of this job was gone for a time")
	}
	if e.silent != nil && e.o.textfile != "" {
		warn("the metrics went with the daemon; no textfile is written")
	}
	if r.Altered {
		warn("the hooks in %s are not the ones that were put there", show.Line(r.Settings, 500))
	}
	if len(r.Forged) > 0 {
		warn("the job's file tells otherwise than the log and the arguments: %s; it was changed", strings.Join(r.Forged, ", "))
	}
}

// agent takes the agent's version from the transcript that it wrote during the job; no hook tells it.
func (e *jobEnd) agent() string {
	name, begun := e.job.Agent, e.report.Guard.Started
	if g := e.report.Guard.Agent; g != "" {
		name = g
	}
	if v, at, ok := claude.TranscriptVersion(filepath.Dir(e.report.Settings)); ok && !begun.IsZero() && !at.Before(begun.Truncate(time.Second)) {
		return name + " " + v.String()
	}
	return name + " (no transcript of this job tells its version)"
}

// keep notes in the job's directory that it is finished, and what was found, for whoever finishes it again.
func (e *jobEnd) keep() error {
	if e.job.Finished.IsZero() {
		e.job.Finished = e.a.Now().UTC()
	}
	e.job.Killed = e.job.Killed || e.killed
	if e.report.CheckBy == "" && e.report.Partly == "" { // else it is not known
		e.job.Died, e.job.Altered = e.report.Died, e.report.Altered
	}
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
