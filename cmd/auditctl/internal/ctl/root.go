// SPDX-License-Identifier: Apache-2.0

// Package ctl is the command tree of auditctl. A command is a constructor, an options struct and a run function in one
// file; streams, clock and environment are injected. Data goes to stdout, everything else to stderr.
package ctl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/daemon/config"
)

// Run executes one command line and returns the exit code.
func Run(ctx context.Context, env Env, version string, args []string) int {
	if msg := kernelTool(env, args); msg != "" {
		fmt.Fprintln(env.Err, msg)
		return exitUsage
	}
	out := &stickyWriter{w: env.Out}
	a := &app{Env: env}
	a.Out = out
	root := a.root(version)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = out.err // data that did not arrive is no success
	}
	if err == nil {
		return exitOK
	}
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Code: exitError, Msg: err.Error(), Err: err}
		if !a.started { // cobra refused the command line before any of our code ran
			e.Code = exitUsage
			e.Hints = append(e.Hints, "see "+a.paste("--help"))
		}
	}
	if msg := e.Error(); msg != "" {
		fmt.Fprintf(env.Err, "%s: %s\n", env.Name, show.Text(msg, 4000))
	}
	for _, h := range e.Hints {
		fmt.Fprintf(env.Err, "  %s\n", show.Text(h, 1000))
	}
	return exitCode(e)
}

// Tree is the command tree under the given name, for what writes the reference. Its commands are not to be run.
func Tree(name string) *cobra.Command { return (&app{Env: Env{Name: name}}).root("") }

// app carries what commands share.
type app struct {
	Env
	started bool   // a command's own code has begun
	version string // of this program
}

func (a *app) root(version string) *cobra.Command {
	a.version = version
	root := &cobra.Command{
		Use:   a.Name,
		Short: "What did the coding agent do, what was stopped, and why",
		Long: `auditctl asks Tripline's log what coding agents did on this machine, explains verdicts, and decides what waits for
a person. It is never in the way of a verdict.

Exit codes: 0 ok, 1 error, 2 usage, 3 nothing found, 4 denied (explain), 5 would ask (explain),
6 verification failed, 7 daemon unreachable.`,
		Version:           version,
		SilenceUsage:      true,
		SilenceErrors:     true,
		Args:              cobra.NoArgs,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(*cobra.Command, []string) error { a.started = true; return nil },
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}} (Tripline)\n")
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetIn(a.In)
	root.CompletionOptions.HiddenDefaultCmd = false
	root.AddCommand(
		a.query(), a.show(), a.sessions(), a.events(), a.verify(),
		a.explain(), a.preview(),
		a.approvals(),
		a.rules(),
		a.start(), a.stop(), a.restart(), a.purge(),
		a.install(), a.uninstall(),
		a.status(), a.doctor(), a.agents(),
		a.ci(),
		a.pathsCmd(),
	)
	a.explainUsage(root)
	a.completions(root)
	return root
}

// places finds the install's files and says so when TRIPLINE_HOME moved them.
func (a *app) places() (config.Places, error) {
	p, err := config.FindPlaces(a.Getenv)
	if err != nil {
		return p, failf("set HOME to your home directory", "%v", err)
	}
	if p.TriplineHome != "" {
		fmt.Fprintf(a.Err, "TRIPLINE_HOME is in force: %s\n", show.Line(p.TriplineHome, 500))
	}
	return p, nil
}

// self is how this program is called in a command line that people can paste: by the name that PATH finds, else by path.
func (a *app) self() string {
	own, err := os.Stat(a.Exe)
	if err != nil {
		return a.Name
	}
	for _, name := range []string{"auditctl", "tripline"} {
		for _, dir := range filepath.SplitList(a.Getenv("PATH")) {
			fi, err := os.Stat(filepath.Join(dir, name))
			if err != nil || fi.IsDir() || fi.Mode()&0o111 == 0 {
				continue
			}
			if os.SameFile(own, fi) || sameProgram(filepath.Join(dir, name), a.Exe) {
				return name
			}
			break // PATH finds another program of that name
		}
	}
	return a.Exe
}

// sameProgram reports whether two files are copies of one program in one directory: install copies, and some file systems
// have no links.
func sameProgram(a, b string) bool {
	return filepath.Dir(a) == filepath.Dir(b)
}

// kernelTool recognises the flags of the Linux audit package's auditctl, which has the same name.
func kernelTool(env Env, args []string) string {
	if len(args) == 0 || filepath.Base(env.Name) != "auditctl" {
		return ""
	}
	switch args[0] {
	case "-l", "-s", "-w", "-W", "-D", "-a", "-A", "-d", "-e", "-f", "-b", "-r", "-R", "-k", "-m", "-S", "-F", "-C", "-p", "-q", "-t", "-i", "-c",
		"--loginuid-immutable", "--backlog_wait_time", "--reset-lost", "--signal":
		return strings.Join([]string{
			"this is Tripline's auditctl, which asks what coding agents did; " + args[0] + " is a flag of the kernel's audit tool of the same name",
			"  the kernel's tool is /sbin/auditctl; ours also answers to the name tripline",
		}, "\n")
	}
	return ""
}
