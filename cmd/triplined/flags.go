// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/tripline-sh/tripline/daemon"
	"github.com/tripline-sh/tripline/daemon/config"
)

// options are a command line.
type options struct {
	overrides map[string]string // configuration keys that were given: they win over the file
	version   bool
	onDemand  bool
	logFile   string
	startedBy string
	dirs      config.Dirs
}

// starters are who may keep a daemon running.
var starters = [...]string{"systemd", "launchd", "person", "hook"}

// parseFlags reads the command line: each configuration key is a flag with dashes. Only keys that were given override
// the file; TRIPLINE_METRICS_LISTEN is as good as its flag, which wins.
func parseFlags(args []string, getenv func(string) string, stdout io.Writer) (*options, error) {
	o := &options{overrides: make(map[string]string)}
	if v := getenv("TRIPLINE_METRICS_LISTEN"); v != "" {
		o.overrides["metrics.listen"] = v
	}
	fs := flag.NewFlagSet("triplined", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.BoolVar(&o.version, "version", false, "print the version and exit")
	fs.BoolVar(&o.onDemand, "on-demand", false, "a hook starts it: end at once, exit code 0, if a person stopped the daemon")
	fs.Func("log-file", "append messages to `FILE`, moved to FILE.1 at a start that finds more than 8 MiB in it\n"+
		"(default standard error; with --on-demand triplined.log in the state directory)", func(v string) error {
		if !filepath.IsAbs(v) {
			return errors.New("not an absolute path")
		}
		o.logFile = v
		return nil
	})
	fs.Func("started-by", "`WHO` keeps it running: systemd, launchd, person or hook, for `auditctl status`", func(v string) error {
		for _, s := range starters {
			if v == s {
				o.startedBy = v
				return nil
			}
		}
		return fmt.Errorf("want one of %s", strings.Join(starters[:], ", "))
	})
	for i, name := range config.DirFlags() {
		text := [...]string{
			"home `DIR` (default that of the password database)",
			"`DIR` of tripline.yaml and rules.d (default .config/tripline in the home directory)",
			"`DIR` of the log, keys and spool (default .local/state/tripline in the home directory)",
			"`DIR` of the sockets (default run in the state directory)",
		}[i]
		fs.Func(name, text, func(v string) error { return o.dirs.Set(name, v) })
	}
	def, checked := config.Default(), config.Default()
	for _, key := range config.Keys() {
		fs.Func(flagName(key), help(key, def.Get(key)), func(v string) error {
			if err := checked.Set(key, v); err != nil {
				return err
			}
			o.overrides[key] = v
			return nil
		})
	}
	err := fs.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage)
		fs.SetOutput(stdout)
		fs.PrintDefaults()
		return nil, err
	}
	if err == nil && fs.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if err == nil && o.onDemand && o.startedBy != "" && o.startedBy != "hook" {
		err = fmt.Errorf("--on-demand is for hooks, but --started-by says %s", o.startedBy)
	}
	if v, ok := o.overrides["metrics.listen"]; err == nil && ok {
		err = checked.Set("metrics.listen", v)
	}
	return o, err
}

// places are those that the flags name. With --on-demand or one of them the environment has no say: it may be empty, or that of
// an agent.
func (o *options) places(getenv func(string) string) (config.Places, error) {
	if o.onDemand || o.dirs != (config.Dirs{}) {
		return o.dirs.Places()
	}
	return config.FindPlaces(getenv)
}

// logPath is where messages go, "" for standard error.
func (o *options) logPath(p config.Places) string {
	if o.logFile == "" && o.onDemand {
		return p.DaemonLog
	}
	return o.logFile
}

// starter is who keeps the daemon running.
func (o *options) starter(manager *daemon.Manager) string {
	switch {
	case o.startedBy != "":
		return o.startedBy
	case o.onDemand:
		return "hook"
	case manager != nil:
		return "systemd"
	}
	return "person"
}

const usage = `Usage: triplined [flags]

Judge and record what coding agents do. Runs in the foreground until SIGINT or SIGTERM.
Flags override tripline.yaml. TRIPLINE_HOME moves everything below one directory;
TRIPLINE_METRICS_LISTEN sets --metrics-listen. With --home, --config-dir, --state-dir, --run-dir or
--on-demand, the places come from the flags alone, whatever the environment says.

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
