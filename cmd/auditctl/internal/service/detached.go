// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// detached is no manager at all: the daemon is a process of its own session, and hooks start it again when it is away.
type detached struct {
	in    Install
	words logTail
	note  string
}

func newDetached(in Install) *detached { return &detached{in: in, words: logTail{path: in.LogFile}} }

// unreached tells of units of ours whose manager this shell does not reach: it may run a daemon at other places.
func (d *detached) unreached(h *Host) *detached {
	path := filepath.Join(userUnits(h.Home, h.Getenv("XDG_CONFIG_HOME")), serviceUnit)
	if _, err := ours(path); err == nil {
		d.note = "systemd was told of Tripline (" + path + "), but this shell does not reach it; a daemon of its own would not be seen from here: use a login session"
	}
	return d
}

func (d *detached) Name() string { return None }

// Start begins a daemon that outlives this process, its terminal and its process group, and takes none of its environment.
func (d *detached) Start(context.Context) (<-chan error, error) {
	if err := os.MkdirAll(filepath.Dir(d.in.LogFile), 0o700); err != nil {
		return nil, err
	}
	// what the daemon says before it has its own log open, and the last words of a crash
	out, err := os.OpenFile(d.in.LogFile, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the daemon's log: %w", err)
	}
	defer out.Close()
	if fi, err := out.Stat(); err != nil || !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("cannot open the daemon's log: %s is no regular file", d.in.LogFile)
	}
	d.words.mark()
	cmd := exec.Command(d.in.Program, append(append([]string{}, d.in.Args...), "--started-by", "person", "--log-file", d.in.LogFile)...)
	cmd.Dir, cmd.Env = "/", []string{}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the daemon: %w", err)
	}
	done := make(chan error, 1)
	go func() { // ends with the daemon, or with this process, which it outlives
		done <- cmd.Wait()
	}()
	return done, nil
}

// Restart is Start: a daemon that runs is ended by whoever knows its process.
func (d *detached) Restart(ctx context.Context) (<-chan error, error) { return d.Start(ctx) }

func (d *detached) Stop(context.Context) error                { return nil }
func (d *detached) Disable(context.Context) ([]string, error) { return nil, nil }
func (d *detached) Where() string                             { return d.in.LogFile }
func (d *detached) LastWords(context.Context) string          { return d.words.read() }

// Notes tells of another manager that may run a daemon.
func (d *detached) Notes() []string {
	if d.note == "" {
		return nil
	}
	return []string{d.note}
}
