// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// world is one person's machine: a home, a project under git, Tripline installed and running.
type world struct {
	home, source, path string
	project, id        string // id is the session's
	out                io.Writer

	daemon   *exec.Cmd
	handlers map[string][]string // the command line that is registered for each event
	calls    int
	anchor   string // position of the log that the first denial names
}

// files of the project. The test fails until the agent has mended the rounding.
var files = map[string]string{
	"shop/src/cart.sh": "# total CENTS...: the sum, in whole euros\ntotal() {\n\tsum=0\n\tfor c; do sum=$((sum + c)); done\n\techo $((sum / 100))\n}\n",
	"shop/test.sh":     ". ./src/cart.sh\n[ \"$(total 150 149)\" = 3 ] || { echo 'total 150 149: want 3'; exit 1; }\necho ok\n",
	"shop/build.sh":    "mkdir -p build && cp src/cart.sh build/cart\n",
	"shop/build/cart":  "old\n",
	"shop/README.md":   "a shop\n",
	"shop/.gitignore":  "build/\n",
	".gitconfig":       "[user]\n\tname = dev\n\temail = dev@localhost\n[init]\n\tdefaultBranch = main\n",
}

// config holds what would ask the agent's own prompt until a person has decided; the port is any free one.
const config = "gate: hold\nhold: 60s\nmetrics:\n  listen: 127.0.0.1:0\n"

// start makes the project, starts the daemon and registers the hooks.
func (w *world) start(ctx context.Context) error {
	for name, text := range files {
		path := filepath.Join(w.home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		{"init", "-q", "--bare", "../shop.git"}, {"init", "-q"}, {"add", "."}, {"commit", "-qm", "start"},
		{"remote", "add", "origin", "../shop.git"}, {"push", "-q", "origin", "main"},
	} {
		if out, code, err := w.run(ctx, "git", args...); err != nil || code != 0 {
			return fmt.Errorf("git %s: exit code %d %w\n%s", strings.Join(args, " "), code, err, out)
		}
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(w.home, ".config/tripline"), 0o700),
		os.WriteFile(filepath.Join(w.home, ".config/tripline/tripline.yaml"), []byte(config), 0o600)); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(w.home, "triplined.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	d := exec.Command(filepath.Join(w.home, ".local/bin/triplined"))
	d.Env, d.Dir, d.Stderr = w.env(), "/", log
	if err := d.Start(); err != nil {
		return err
	}
	w.daemon = d
	if err := w.ready(ctx); err != nil {
		text, _ := os.ReadFile(log.Name())
		return errors.Join(fmt.Errorf("%w; the daemon said:\n%s", err, text), w.stop())
	}
	return nil
}

// ready waits for the daemon, wires the agent and reads back what is registered.
func (w *world) ready(ctx context.Context) error {
	err := until(ctx, func() bool {
		_, code, err := w.run(ctx, "auditctl", "approvals", "list")
		return err == nil && code == 0
	})
	if err != nil {
		return fmt.Errorf("the daemon does not answer: %w", err)
	}
	if out, code, err := w.run(ctx, "auditctl", "install", "claude", "--yes"); err != nil || code != 0 {
		return fmt.Errorf("auditctl install: exit code %d %w\n%s", code, err, out)
	}
	data, err := os.ReadFile(filepath.Join(w.home, ".claude/settings.json"))
	if err != nil {
		return err
	}
	var settings struct {
		Hooks map[string][]struct {
			Hooks []struct {
				Command string
				Args    []string
			}
		}
	}
	if err := json.Unmarshal(data, &settings); err != nil {
		return err
	}
	w.handlers = map[string][]string{}
	for event, groups := range settings.Hooks {
		if len(groups) != 1 || len(groups[0].Hooks) != 1 {
			return fmt.Errorf("%s has not exactly one hook", event)
		}
		h := groups[0].Hooks[0]
		w.handlers[event] = append([]string{h.Command}, h.Args...)
	}
	return nil
}

// stop ends the daemon that start started, by its process, and waits for it.
func (w *world) stop() error {
	d := w.daemon
	if d == nil {
		return nil
	}
	w.daemon = nil
	_ = d.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(15*time.Second, func() { _ = d.Process.Kill() })
	defer kill.Stop()
	if err := d.Wait(); err != nil {
		return fmt.Errorf("the daemon did not end well: %w", err)
	}
	return nil
}

func (w *world) env() []string {
	return []string{"HOME=" + w.home, "PATH=" + w.path, "LANG=C.UTF-8", "TZ=UTC", "TERM=dumb"}
}

// run runs a program in the project and returns what it printed.
func (w *world) run(ctx context.Context, name string, args ...string) (out string, code int, err error) {
	if name == "auditctl" {
		name = filepath.Join(w.home, ".local/bin/auditctl")
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Dir = w.env(), w.project
	b, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() >= 0 {
		err = nil
	}
	return string(bytes.TrimRight(b, "\n")), cmd.ProcessState.ExitCode(), err
}

// until polls a condition for half a minute at most.
func until(ctx context.Context, ok func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Second, errors.New("not within 30 s"))
	defer cancel()
	for !ok() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}
