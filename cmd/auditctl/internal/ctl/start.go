// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/service"
	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/daemon/control"
)

// How long a start may take. A daemon with a large log reads its end first.
const (
	startTime = 60 * time.Second
	askEvery  = 30 * time.Millisecond
)

func (a *app) start() *cobra.Command {
	return &cobra.Command{
		Use:   "start",
		Short: "Start the daemon, or say that it runs",
		Long: `Start the daemon and wait until it answers. Where a user session of systemd or launchd answers, the daemon is put under it and
comes again at login; elsewhere it is detached from this shell. What auditctl stop left is taken away. Starting twice is harmless.

Exit codes: 0 it runs, 1 it does not, 2 usage.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runStart(cmd.Context()) },
	}
}

func (a *app) restart() *cobra.Command {
	return &cobra.Command{
		Use:   "restart",
		Short: "Stop the daemon and start it again, after an upgrade for example",
		Long: `End the daemon and start the one beside this program. Calls of agents that come meanwhile wait where the service manager holds
the socket; elsewhere the hook starts the daemon, or such a call is denied.

Exit codes: 0 it runs, 1 it does not, 2 usage.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runRestart(cmd.Context()) },
	}
}

// keeper is who keeps the daemon of this install running.
type keeper struct {
	service.Manager
	why string // why it is no other one
}

// keeper finds the service manager, and the daemon beside this program.
func (a *app) keeper(ctx context.Context, p config.Places) (*keeper, error) {
	in := service.Install{
		Program: a.daemonProgram(), Args: append(p.Dirs().Args(), a.daemonFlags()...),
		HookSocket: p.HookSocket, ControlSocket: p.ControlSocket, LogFile: p.DaemonLog, Private: p.TriplineHome != "",
	}
	m, why, err := service.Detect(ctx, service.ThisHost(runtime.GOOS, p.Home, a.Getenv), in)
	if err != nil {
		return nil, failf("", "%v", err)
	}
	return &keeper{Manager: m, why: why}, nil
}

// daemonProgram is the daemon beside this program.
func (a *app) daemonProgram() string { return filepath.Join(filepath.Dir(a.Exe), "triplined") }

// daemonFlags say what this program's environment says of the daemon's configuration: the daemon gets no environment.
func (a *app) daemonFlags() []string {
	if v := a.Getenv("TRIPLINE_METRICS_LISTEN"); v != "" {
		return []string{"--metrics-listen=" + v}
	}
	return nil
}

// program makes sure that there is a daemon to start.
func (a *app) program() error {
	path := a.daemonProgram()
	if fi, err := os.Stat(path); err != nil || fi.IsDir() || fi.Mode()&0o111 == 0 {
		return failf("install the three programs into one directory", "triplined is not beside this program: %s", path)
	}
	return nil
}

func (a *app) runStart(ctx context.Context) error {
	p, err := a.places()
	if err != nil {
		return err
	}
	if err := a.program(); err != nil {
		return err
	}
	k, err := a.keeper(ctx, p)
	if err != nil {
		return err
	}
	if err := unmark(p); err != nil {
		return err
	}
	if st, err := a.running(ctx, p); err != nil {
		return err
	} else if st != nil {
		fmt.Fprintln(a.Err, "nothing to do: it runs already")
		return a.sayRunning(p, k, *st, false)
	}
	return a.bringUp(ctx, p, k, 0, k.Start)
}

// running returns the state of the daemon that answers, nil if there is none. One that holds the lock and does not answer is
// about to begin or to end: it gets some time for that.
func (a *app) running(ctx context.Context, p config.Places) (*control.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		if st, err := a.ask(ctx, p); err == nil {
			return &st, nil
		}
		pid, err := service.Holder(p.LockFile)
		if err != nil {
			return nil, failf("", "%v", err)
		}
		if pid == 0 {
			return nil, nil
		}
		select {
		case <-ctx.Done():
			return nil, failf("end it and start another: "+a.paste("restart"), "a daemon (pid %d) runs, but does not answer", pid)
		case <-tick.C:
		}
	}
}

func (a *app) runRestart(ctx context.Context) error {
	p, err := a.places()
	if err != nil {
		return err
	}
	if err := a.program(); err != nil {
		return err
	}
	k, err := a.keeper(ctx, p)
	if err != nil {
		return err
	}
	if err := unmark(p); err != nil {
		return err
	}
	// one that the manager runs is ended by the manager, which holds the sockets meanwhile
	if st, err := a.ask(ctx, p); err != nil || st.StartedBy != k.Name() {
		if _, err := a.end(ctx, p); err != nil {
			return err
		}
	}
	old, _ := service.Holder(p.LockFile) // if a manager takes its time, it may answer once more
	return a.bringUp(ctx, p, k, old, k.Restart)
}

// bringUp starts the daemon by begin and waits until one answers that is not the process old.
func (a *app) bringUp(ctx context.Context, p config.Places, k *keeper, old int, begin func(context.Context) (<-chan error, error)) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	_, err := os.Lstat(filepath.Join(p.KeysDir, "log.pub"))
	first := errors.Is(err, fs.ErrNotExist)
	done, err := begin(ctx)
	if err != nil {
		return a.notUp(ctx, k, err)
	}
	st, err := a.await(ctx, p, done, old)
	if err != nil {
		return a.notUp(ctx, k, err)
	}
	return a.sayRunning(p, k, st, first)
}

// await asks the daemon until it answers, or until it has ended.
func (a *app) await(ctx context.Context, p config.Places, done <-chan error, old int) (control.Status, error) {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		st, err := a.ask(ctx, p)
		if err == nil && st.PID != old {
			return st, nil
		}
		select {
		case end := <-done:
			// another one may have been quicker: then that one holds the lock, and answers now or soon
			if pid, err := service.Holder(p.LockFile); err == nil && pid != 0 && pid != old {
				done = nil
				continue
			}
			if st, err := a.ask(ctx, p); err == nil {
				return st, nil
			}
			if end == nil {
				end = errors.New("exit status 0")
			}
			return control.Status{}, fmt.Errorf("it ended at once (%w)", end)
		case <-ctx.Done():
			return control.Status{}, fmt.Errorf("it does not answer: %w", err)
		case <-tick.C:
		}
	}
}

// ask asks the daemon once.
func (a *app) ask(ctx context.Context, p config.Places) (control.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	return (&control.Client{Socket: p.ControlSocket}).Status(ctx)
}

// notUp says why the daemon is not there, in its own words where it has some.
func (a *app) notUp(ctx context.Context, k *keeper, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	e := &Error{Code: exitError, Msg: "the daemon did not come up: " + cause.Error(), Err: cause}
	if errors.Is(cause, service.ErrForeign) {
		e.Hints = []string{"nothing was started"}
		return e
	}
	if words := forPeople(k.LastWords(ctx)); len(words) > 0 {
		fmt.Fprintln(a.Err, "the daemon's last words:")
		for _, line := range words {
			fmt.Fprintf(a.Err, "  %s\n", show.Line(line, 1000))
		}
	}
	e.Hints = []string{"all that it said: " + k.Where(), "mend that, then: " + a.paste("start")}
	return e
}

// forPeople takes those lines of a log that are written for people; if there are none, all.
func forPeople(text string) []string {
	if text == "" {
		return nil
	}
	all := strings.Split(text, "\n")
	if plain := slices.DeleteFunc(slices.Clone(all), func(line string) bool { return strings.HasPrefix(line, "{") }); len(plain) > 0 {
		return plain
	}
	return all
}

// sayRunning describes the daemon that answers.
func (a *app) sayRunning(p config.Places, k *keeper, st control.Status, first bool) error {
	by := map[string]string{"systemd": "kept by systemd: " + service.UnitNames, "launchd": "kept by launchd: " + service.Label}[st.StartedBy]
	where := k.Where()
	if by == "" {
		by, where = "detached from this shell; hooks start it again when it is away", p.DaemonLog
	}
	metrics := "off"
	if st.MetricsAddr != "" {
		metrics = st.MetricsAddr
	}
	fmt.Fprintf(a.Out, "triplined runs (pid %d, version %s)\n", st.PID, show.Line(st.Version, 100))
	for _, row := range [][2]string{{"manager", by}, {"messages", where}, {"hooks", st.HookSocket}, {"control", st.ControlSocket}, {"metrics", metrics}, {"log", st.LogDir}} {
		fmt.Fprintf(a.Out, "  %-9s %s\n", row[0], show.Line(row[1], 500))
	}
	if first {
		fmt.Fprintf(a.Out, "a new log was begun; keep its key outside this machine, `%s` checks against it:\n  %s\n", a.paste("verify", "--key"), show.Line(st.GenesisKey, 300))
	}
	switch k.Name() {
	case service.None:
		fmt.Fprintf(a.Err, "no service manager is used: %s\n", show.Line(k.why, 500))
		a.notes(k)
	case st.StartedBy:
		a.notes(k)
	default:
		fmt.Fprintf(a.Err, "note: %s does not keep this daemon; to hand it over: %s\n", k.Name(), a.paste("restart"))
	}
	a.warnMetrics(p, st)
	return nil
}

// notes says what a person should know of the service manager.
func (a *app) notes(k *keeper) {
	for _, n := range k.Notes() {
		fmt.Fprintf(a.Err, "note: %s\n", show.Line(n, 500))
	}
}

// warnMetrics tells of an address of the metrics that could not be had.
func (a *app) warnMetrics(p config.Places, st control.Status) {
	if st.MetricsAddr != "" {
		return
	}
	listen := a.Getenv("TRIPLINE_METRICS_LISTEN")
	if c, err := config.Load(p.ConfigFile); listen == "" && err == nil {
		listen = c.MetricsListen
	}
	if listen != "" && listen != "off" {
		fmt.Fprintf(a.Err, "warning: there are no metrics: %s is taken, or cannot be had; metrics.listen in %s names another, or off\n",
			show.Line(listen, 200), show.Line(p.ConfigFile, 500))
	}
}

// unmark takes away what auditctl stop left.
func unmark(p config.Places) error {
	if err := os.Remove(p.StoppedFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failf("", "the mark of auditctl stop cannot be removed: %v", err)
	}
	return nil
}
