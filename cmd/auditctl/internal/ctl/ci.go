// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tripline-sh/tripline/cmd/auditctl/internal/ci"
	"github.com/tripline-sh/tripline/daemon/config"
)

func (a *app) ci() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ci",
		Short: "Guard an agent for one job of a CI service, and say afterwards what it did",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.ciStart(), a.ciFinish())
	return cmd
}

// ciStartOptions are the flags of ci start.
type ciStartOptions struct {
	dir, settings, agent               string
	mode, profile, onDown, metrics     string
	rules                              []string
	modeSet, profileSet, onDownSet, mx bool // given, not defaults
}

func (a *app) ciStart() *cobra.Command {
	o := &ciStartOptions{}
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Start a daemon for this job only, and wire the agent to it",
		Long: `Start a daemon whose files all lie in a directory of this job, detached, without a service manager, and wire Claude Code's user
settings to it. TRIPLINE_HOME is printed, and given to later steps where GITHUB_ENV and GITHUB_OUTPUT name files. Starting twice
is harmless; a second job that wants the same settings is refused. auditctl ci finish undoes all of it.

The directory is new and below $RUNNER_TEMP, else $TMPDIR, unless --dir names one that is empty. It is below /tmp where neither is
set or that would be too deep: the path of a socket can have about a hundred bytes.

Exit codes: 0 the agent is guarded, 1 error or refused, 2 usage.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f := cmd.Flags()
			o.modeSet, o.profileSet, o.onDownSet, o.mx = f.Changed("mode"), f.Changed("profile"), f.Changed("on-down"), f.Changed("metrics-listen")
			return a.inert(func(a *app) error { return a.runCIStart(cmd.Context(), o) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.dir, "dir", "", "keep everything in this directory, which must be empty or absent")
	f.StringVar(&o.settings, "settings", "", "the agent's settings file (default $CLAUDE_CONFIG_DIR/settings.json, else ~/.claude/settings.json)")
	f.StringVar(&o.agent, "agent", "claude", "the agent that is wired")
	f.StringVar(&o.mode, "mode", "guard", "guard, ask, plan, auto or observe")
	f.StringVar(&o.profile, "profile", "ci", "standard, strict or ci")
	f.StringVar(&o.onDown, "on-down", "deny", "what hooks do without a daemon: deny or allow")
	f.StringVar(&o.metrics, "metrics-listen", "off", "address of the metrics; several jobs may share a machine")
	f.StringArrayVar(&o.rules, "rules", nil, "a file of rules, or a directory of them; may be repeated")
	return cmd
}

func (a *app) ciFinish() *cobra.Command {
	o := &ciFinishOptions{}
	cmd := &cobra.Command{
		Use:   "finish",
		Short: "Take the agent's wiring out again, stop the daemon, and write what the agent did",
		Long: `Undo auditctl ci start, verify the log, and write a summary in Markdown: to --summary, else to the file that GITHUB_STEP_SUMMARY
names, else to standard output. It works when the daemon has died (and says so), and a second time, which says that and ends alike.
The directory of the job stays.

What counts is what the log tells, under --key, and whether the hooks were as ci start had put them. The files of the job are
written by the same user as the agent's: one that tells otherwise is an alarm, and none makes the end milder.

With --out, that directory gets calls.jsonl, events.jsonl, and below state/ the log and its public key; TRIPLINE_HOME=DIR
auditctl query, and verify --key, read it anywhere. No secret key and no token is among it.

--fail-on names what fails the job: never, asked, denied, floor or alarm, each with the graver ones after it. --dir and --key, as
ci start printed them, keep an agent from naming a log of its own in their place: TRIPLINE_HOME is only a variable.

Exit codes: 0 ok, 1 error, 2 usage, 3 no job was started, 4 what --fail-on names happened, 6 the log does not verify.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.inert(func(a *app) error { return a.runCIFinish(cmd.Context(), o) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.dir, "dir", "", "the directory of the job (default $TRIPLINE_HOME)")
	f.StringVar(&o.key, "key", "", "the verifier key that ci start printed")
	f.StringVar(&o.failOn, "fail-on", "never", "never, asked, denied, floor or alarm")
	f.StringVar(&o.summary, "summary", "", "write the summary to this file (- = standard output)")
	f.StringVar(&o.out, "out", "", "leave the artefacts in this directory")
	f.StringVar(&o.textfile, "metrics-textfile", "", "leave the metrics in this file, for a textfile collector")
	return cmd
}

// inert runs a command of a job so that no line that it prints means anything to a runner, whatever an agent, a settings
// file or a path put into it.
func (a *app) inert(run func(*app) error) error {
	out, errs := &ci.Writer{W: a.Out}, &ci.Writer{W: a.Err}
	b := &app{Env: a.Env, started: a.started}
	b.Out, b.Err = out, errs
	err := run(b)
	if ferr := errors.Join(out.Flush(), errs.Flush()); err == nil && ferr != nil {
		err = ferr
	}
	if err == nil {
		return nil
	}
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Code: exitError, Msg: err.Error(), Err: err}
	}
	safe := &Error{Code: e.Code, Msg: ci.InertText(e.Error()), Err: e}
	for _, h := range e.Hints {
		safe.Hints = append(safe.Hints, ci.InertText(h))
	}
	return safe
}

// jobPath makes a path that was given on the command line absolute.
func (a *app) jobPath(path string) (string, error) {
	if filepath.IsAbs(path) {
		return filepath.Clean(path), nil
	}
	wd, err := a.Getwd()
	if err != nil {
		return "", err
	}
	return filepath.Join(wd, path), nil
}

// jobPlaces are where the install of a job is.
func (a *app) jobPlaces(j *ci.Job) (config.Places, error) {
	return config.FindPlaces(func(name string) string {
		if name == "TRIPLINE_HOME" {
			return j.Dir
		}
		return a.Getenv(name)
	})
}

// loadJob reads the job of a directory, by whichever of its names.
func loadJob(dir string) (*ci.Job, error) {
	j, err := ci.Load(dir)
	if err != nil {
		return nil, err
	}
	one, err1 := os.Stat(dir)
	other, err2 := os.Stat(j.Dir)
	if err1 != nil || err2 != nil || !os.SameFile(one, other) {
		return nil, fmt.Errorf("%s tells of a job in %s, which is another directory", dir, j.Dir)
	}
	// what it is called here and now, not what a file says that can change meanwhile
	if j.Dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	return j, nil
}

// temp is where a new directory of a job is made.
func (a *app) temp() string {
	for _, name := range []string{"RUNNER_TEMP", "TMPDIR"} {
		if dir := a.Getenv(name); filepath.IsAbs(dir) {
			return dir
		}
	}
	return "/tmp"
}
