// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

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
	hook := ""
	cmd := &cobra.Command{
		Use:   "restart",
		Short: "Stop the daemon and start it again, for an upgrade for example",
		Long: `End the daemon and start the one beside this program. Calls of agents that come meanwhile wait where the service manager holds
the socket; elsewhere the hook starts the daemon, or such a call is denied.

The daemon raises an alarm if somebody replaces the hook program under it. With --hook FILE, which is how an upgrade does it, the
daemon is told first, then the tripline-hook beside this program becomes a copy of FILE, then the daemon is restarted.

Exit codes: 0 it runs, 1 it does not, 2 usage.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runRestart(cmd.Context(), hook) },
	}
	cmd.Flags().StringVar(&hook, "hook", "", "replace the hook program by a copy of this `FILE` first")
	return cmd
}

// mayStart finds what start and restart need, and takes away what stop left.
func (a *app) mayStart(ctx context.Context) (config.Places, *keeper, error) {
	p, err := a.places()
	if err != nil {
		return p, nil, err
	}
	if err := a.program(); err != nil {
		return p, nil, err
	}
	k, err := a.keeper(ctx, p)
	if err != nil {
		return p, nil, err
	}
	return p, k, unmark(p)
}

func (a *app) runStart(ctx context.Context) error {
	p, k, err := a.mayStart(ctx)
	if err != nil {
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

func (a *app) runRestart(ctx context.Context, hook string) error {
	p, k, err := a.mayStart(ctx)
	if err != nil {
		return err
	}
	if hook != "" {
		if err := a.upgradeHook(ctx, p, hook); err != nil {
			return err
		}
	}
	old, _ := service.Holder(p.LockFile) // looked at before it ends: one that a hook starts right after it is as good as ours
	// one that the manager runs is ended by the manager, which holds the sockets meanwhile
	if st, err := a.ask(ctx, p); err != nil || st.StartedBy != k.Name() {
		if _, err := a.end(ctx, p); err != nil {
			return err
		}
	}
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

// unmark takes away what auditctl stop left.
func unmark(p config.Places) error {
	if err := os.Remove(p.StoppedFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failf("", "the mark of auditctl stop cannot be removed: %v", err)
	}
	return nil
}
