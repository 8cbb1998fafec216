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
	"strings"
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
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// run is the whole program. It returns the exit code.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	overrides, showVersion, err := parseFlags(args, getenv, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return fail(stderr, err, exitUsage)
	case showVersion:
		fmt.Fprintln(stdout, "triplined", versionText())
		return exitOK
	}
	places, err := config.FindPlaces(getenv)
	if err != nil {
		return fail(stderr, err, exitError)
	}
	if places.TriplineHome != "" {
		fmt.Fprintf(stderr, "triplined: TRIPLINE_HOME is in force: %s\n", places.TriplineHome)
	}
	if err := harden(); err != nil {
		fmt.Fprintf(stderr, "triplined: memory is not protected from this user's other processes: %v\n", err)
	}
	logger := newLogger(stderr, getenv)
	d, err := daemon.New(daemon.Options{
		Places:    places,
		Overrides: overrides,
		Version:   versionText(),
		Homes:     homes(places),
		OwnPaths:  ownPrograms(),
		Logger:    logger,
	})
	if err != nil {
		return fail(stderr, err, exitError)
	}
	if err := d.Run(ctx, func() { ready(d, logger) }); err != nil {
		return fail(stderr, err, exitError)
	}
	return exitOK
}

// ready says once that hooks are served.
func ready(d *daemon.Daemon, logger zerolog.Logger) {
	if key, first := d.GenesisKey(); first {
		logger.Info().Str("genesis_key", key).Msg("a new log was begun; keep this key, `auditctl verify` can check against it")
	}
	a := d.Addrs()
	logger.Info().Int("pid", os.Getpid()).Str("version", versionText()).Str("hook", a.Hook).Str("control", a.Control).Str("metrics", a.Metrics).Msg("ready")
}

// parseFlags reads the command line: each configuration key is a flag with dashes. Only keys that were given override
// the file; TRIPLINE_METRICS_LISTEN is as good as its flag, which wins.
func parseFlags(args []string, getenv func(string) string, stdout io.Writer) (overrides map[string]string, version bool, err error) {
	overrides = make(map[string]string)
	if v := getenv("TRIPLINE_METRICS_LISTEN"); v != "" {
		overrides["metrics.listen"] = v
	}
	fs := flag.NewFlagSet("triplined", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.BoolVar(&version, "version", false, "print the version and exit")
	def, checked := config.Default(), config.Default()
	for _, key := range config.Keys() {
		fs.Func(flagName(key), help(key, def.Get(key)), func(v string) error {
			if err := checked.Set(key, v); err != nil {
				return err
			}
			overrides[key] = v
			return nil
		})
	}
	err = fs.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage)
		fs.SetOutput(stdout)
		fs.PrintDefaults()
		return nil, false, err
	}
	if err == nil && fs.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if v, ok := overrides["metrics.listen"]; err == nil && ok {
		err = checked.Set("metrics.listen", v)
	}
	return overrides, version, err
}

const usage = `Usage: triplined [flags]

Judge and record what coding agents do. Runs in the foreground until SIGINT or SIGTERM.
Flags override tripline.yaml. TRIPLINE_HOME moves everything below one directory;
TRIPLINE_METRICS_LISTEN sets --metrics-listen.

Exit codes: 0 stopped as asked, 1 error, 2 usage.

`

func flagName(key string) string { return strings.NewReplacer(".", "-", "_", "-").Replace(key) }

func help(key, def string) string {
	text := map[string]string{
		"mode":           "`MODE`: guard, ask, plan, auto or observe",
		"profile":        "`PROFILE`: standard, strict or ci",
		"on_down":        "what install tells hooks to do without a daemon, `WORD`: deny or allow",
		"gate":           "default `GATE` of calls that need a person: native or hold",
		"hold":           "how long a held call waits, a `DURATION`",
		"unmapped":       "`VERDICT` on tools that nothing knows: pass, ask or deny",
		"metrics.listen": "`ADDRESS` of the metrics: HOST:PORT on loopback, unix:PATH or off",
		"log.retention":  "`TIME` to keep records: only forever in this version",
	}[key]
	return text + " (default " + def + ")"
}

// newLogger writes for people on a terminal, and JSON lines otherwise.
func newLogger(stderr io.Writer, getenv func(string) string) zerolog.Logger {
	if f, ok := stderr.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		stderr = zerolog.ConsoleWriter{Out: f, NoColor: getenv("NO_COLOR") != "", TimeFormat: "15:04:05"}
	}
	return zerolog.New(stderr).Level(zerolog.InfoLevel).With().Timestamp().Logger()
}

// homes is $HOME as this process was started with it.
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
