// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"context"
	"os"
	"path/filepath"
	"runtime"

	"github.com/tripline-sh/tripline/cmd/auditctl/internal/service"
	"github.com/tripline-sh/tripline/daemon/config"
)

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
