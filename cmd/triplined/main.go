// SPDX-License-Identifier: Apache-2.0

// Triplined is Tripline's daemon: it judges what coding agents are about to do, records it, and answers their hooks. It
// runs in the foreground until SIGINT or SIGTERM.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"

	"github.com/rs/zerolog"
	"golang.org/x/term"

	"github.com/tripline-sh/tripline/daemon"
	"github.com/tripline-sh/tripline/daemon/config"
)

// Exit codes.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

func main() {
	signal.Ignore(syscall.SIGPIPE) // whoever read stderr may be gone; that must not end the daemon
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	manager, err := serviceManager()
	if err != nil {
		os.Exit(fail(os.Stderr, err, exitError))
	}
	os.Exit(run(ctx, os.Args[1:], os.Getenv, manager, os.Stdout, os.Stderr))
}

// run is the whole program. It returns the exit code. manager is nil if no service manager started it.
func run(ctx context.Context, args []string, getenv func(string) string, manager *daemon.Manager, stdout, stderr io.Writer) int {
	o, err := parseFlags(args, getenv, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return fail(stderr, err, exitUsage)
	case o.version:
		fmt.Fprintln(stdout, "triplined", versionText())
		return exitOK
	}
	places, err := o.places(getenv)
	if err != nil {
		return fail(stderr, err, exitError)
	}
	if places.TriplineHome != "" {
		fmt.Fprintf(stderr, "triplined: TRIPLINE_HOME is in force: %s\n", places.TriplineHome)
	}
	logger := newLogger(stderr, getenv)
	up := func() {} // once hooks are served
	if path := o.logPath(places); path != "" {
		f, err := openLog(path)
		if err != nil {
			return fail(stderr, err, exitError)
		}
		defer f.Close()
		logger = newLogger(f, getenv)
		_ = debug.SetCrashOutput(f, debug.CrashOptions{}) // else the last words may be lost
		up = func() {
			if err := letGo(stderr, f); err != nil {
				logger.Warn().Err(err).Msg("standard error stays a pipe")
			}
		}
	}
	if err := harden(); err != nil {
		logger.Warn().Err(err).Msg("memory is not protected from this user's other processes")
	}
	d, err := daemon.New(daemon.Options{
		Places:    places,
		Overrides: o.overrides,
		Version:   versionText(),
		Homes:     homes(places),
		OwnPaths:  ownPrograms(),
		Logger:    logger,
		StartedBy: o.starter(manager),
		OnDemand:  o.onDemand,
		Manager:   manager,
	})
	if err == nil {
		err = d.Run(ctx, func() { ready(d, logger); up() })
	}
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, daemon.ErrStopped):
		logger.Info().Str("marker", places.StoppedFile).Msg("not started for a hook: a person stopped the daemon; `auditctl start` starts it")
		return exitOK
	case o.onDemand && daemon.IsRunning(err):
		logger.Info().Msg("not started for a hook: another one was faster")
		return exitError
	}
	if o.logPath(places) != "" {
		logger.Error().Err(err).Msg("the daemon ends")
	}
	return fail(stderr, err, exitError)
}

// ready says once that hooks are served.
func ready(d *daemon.Daemon, logger zerolog.Logger) {
	if key, first := d.GenesisKey(); first {
		logger.Info().Str("genesis_key", key).Msg("a new log was begun; keep this key, `auditctl verify` can check against it")
	}
	a := d.Addrs()
	logger.Info().Int("pid", os.Getpid()).Str("version", versionText()).Str("hook", a.Hook).Str("control", a.Control).Str("metrics", a.Metrics).Msg("ready")
}

// newLogger writes for people on a terminal, and JSON lines otherwise.
func newLogger(to io.Writer, getenv func(string) string) zerolog.Logger {
	if f, ok := to.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		to = zerolog.ConsoleWriter{Out: f, NoColor: getenv("NO_COLOR") != "", TimeFormat: "15:04:05"}
	}
	return zerolog.New(to).Level(zerolog.InfoLevel).With().Timestamp().Logger()
}

// homes is the home directory that this process was started with.
func homes(p config.Places) []string {
	if p.Home == "" {
		return nil
	}
	return []string{p.Home}
}

// ownPrograms are this program and its companions beside it.
func ownPrograms() []string {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	dir := filepath.Dir(self)
	out := []string{self}
	for _, name := range []string{"triplined", "tripline-hook", "auditctl", "tripline"} {
		out = append(out, filepath.Join(dir, name))
	}
	return out
}

// fail prints an error, and a remedy where the error knows one, once.
func fail(stderr io.Writer, err error, code int) int {
	fmt.Fprintf(stderr, "triplined: %v\n", err)
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		fmt.Fprintf(stderr, "triplined: hint: %s\n", hinted.Hint())
	}
	if code == exitUsage {
		fmt.Fprintln(stderr, "triplined: hint: triplined --help lists the flags")
	}
	return code
}
