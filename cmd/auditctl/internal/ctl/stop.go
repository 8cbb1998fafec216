// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/service"
	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/hooks/install"
)

// stopTime bounds the wait for the daemon, which has five seconds of its own to answer what is under way.
const stopTime = 15 * time.Second

func (a *app) stop() *cobra.Command {
	disable := false
	cmd := &cobra.Command{
		Use:   "stop",
		Short: "Stop the daemon, and say what that means for agents",
		Long: `End the daemon and the sockets that would start it again, and leave a mark so that no hook does. auditctl start takes the mark
away. Agents whose settings hold our hooks are told from then on what on_down says: deny, unless a person chose allow.

Exit codes: 0 it is stopped, 1 error, 2 usage.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runStop(cmd.Context(), disable) },
	}
	cmd.Flags().BoolVar(&disable, "disable", false, "also take out the units that start it at login")
	return cmd
}

func (a *app) runStop(ctx context.Context, disable bool) error {
	if err := a.needPerson("stopping the daemon"); err != nil {
		return err
	}
	p, err := a.places()
	if err != nil {
		return err
	}
	k, err := a.keeper(ctx, p)
	if err != nil {
		return err
	}
	// before the daemon ends: a hook could start it again at once
	if err := mark(p); err != nil {
		return err
	}
	pid, _ := service.Holder(p.LockFile)
	if err := k.Stop(ctx); err != nil {
		return failf("", "%s does not stop it: %v", k.Name(), err)
	}
	if rest, err := a.end(ctx, p); err != nil {
		return err
	} else if rest != 0 {
		pid = rest
	}
	if pid == 0 {
		fmt.Fprintln(a.Out, "no daemon runs")
	} else {
		fmt.Fprintf(a.Out, "triplined (pid %d) has stopped\n", pid)
	}
	if k.Name() == service.None {
		a.notes(k)
	}
	if disable {
		removed, err := k.Disable(ctx)
		for _, path := range removed {
			fmt.Fprintf(a.Out, "removed %s\n", show.Line(path, 500))
		}
		if err != nil {
			return failf("", "%s was not told all of it: %v", k.Name(), err)
		}
	} else if k.Name() != service.None {
		fmt.Fprintf(a.Err, "note: %s starts it again at the next login; to keep it from that: %s\n", k.Name(), a.paste("stop", "--disable"))
	}
	a.sayAgents(p)
	if !disable {
		fmt.Fprintf(a.Out, "start it again: %s\n", a.paste("start"))
	}
	return nil
}

// end ends the daemon that holds the lock and returns its process id, 0 if there was none.
func (a *app) end(ctx context.Context, p config.Places) (int, error) {
	pid, err := service.End(ctx, p.LockFile, stopTime)
	switch {
	case errors.Is(err, service.ErrStillRuns):
		return pid, failf(fmt.Sprintf("end it by force, the log stands that: kill -KILL %d", pid), "%v", err)
	case err != nil:
		return pid, failf("", "%v", err)
	}
	return pid, nil
}

// sayAgents tells what agents get while no daemon runs.
func (a *app) sayAgents(p config.Places) {
	wired, err := a.wired(p)
	switch {
	case err != nil:
		fmt.Fprintf(a.Err, "warning: could not tell whether claude is wired: %s\n", show.Line(err.Error(), 500))
	case wired.path == "":
		fmt.Fprintln(a.Out, "no agent is wired in this user's settings, so none is affected")
	case wired.pass:
		fmt.Fprintf(a.Out, "claude is wired (%s) with on_down: allow: until the next start its calls run unchecked, and are recorded late\n", show.Line(wired.path, 500))
	default:
		fmt.Fprintf(a.Out, "claude is wired (%s): until the next start its guarded calls are denied\n", show.Line(wired.path, 500))
	}
}

// wiring is what an agent's settings say of us.
type wiring struct {
	path   string // the settings file, "" if there is nothing of ours in it
	pass   bool   // its calls pass without a daemon
	starts bool   // its hooks start the daemon when it is away
}

// wired reads the settings of the only agent that this version wires.
func (a *app) wired(p config.Places) (wiring, error) {
	path, err := a.settingsPath("claude", p)
	if err != nil {
		return wiring{}, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return wiring{}, nil
	}
	if err != nil {
		return wiring{}, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 4<<20))
	if err != nil {
		return wiring{}, err
	}
	entries, err := install.Installed(b)
	if err != nil || len(entries) == 0 {
		return wiring{}, err
	}
	w := wiring{path: path, pass: true}
	for _, e := range entries {
		w.pass = w.pass && (e.AllowOnDown || !e.Block)
		w.starts = w.starts || e.Daemon != nil
	}
	return w, nil
}

// mark keeps hooks from starting the daemon.
func mark(p config.Places) error {
	if err := os.MkdirAll(p.RunDir, 0o700); err != nil {
		return failf("", "the mark that keeps hooks from starting it cannot be left: %v", err)
	}
	err := leave(p.StoppedFile, func(path string, text []byte) error {
		return renameio.WriteFile(path, text, 0o600, renameio.IgnoreUmask())
	})
	if err != nil {
		return failf("", "the mark that keeps hooks from starting it cannot be left: %v", err)
	}
	return nil
}

// leave writes the mark. That it is there is what counts, so on a full disk it stays empty: a name may still have room.
func leave(path string, write func(string, []byte) error) error {
	err := write(path, []byte("stopped by auditctl stop; auditctl start removes this\n"))
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}
