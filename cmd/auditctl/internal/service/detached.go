// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// detached is no manager at all: the daemon is a process of its own session, and hooks start it again when it is away.
type detached struct {
	in    Install
	words logTail
	early *early
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
	// What keeps it from coming up must reach a person also where no file can be written. The daemon puts its log in the place of this
	// pipe as soon as it serves.
	said, stderr, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("cannot start the daemon: %w", err)
	}
	defer stderr.Close()
	cmd.Stdout, cmd.Stderr = out, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		said.Close()
		return nil, fmt.Errorf("cannot start the daemon: %w", err)
	}
	e := listen(said)
	d.early = e
	done := make(chan error, 1)
	go func() { // ends with the daemon, or with this process, which it outlives
		err := cmd.Wait()
		select {
		case <-e.end:
		case <-time.After(lastWordsTime): // somebody else has the pipe
		}
		done <- err
	}()
	return done, nil
}

// lastWordsTime bounds the wait for what a daemon that has ended said.
const lastWordsTime = time.Second

// Restart is Start: a daemon that runs is ended by whoever knows its process.
func (d *detached) Restart(ctx context.Context) (<-chan error, error) { return d.Start(ctx) }

func (d *detached) Stop(context.Context) error                { return nil }
func (d *detached) Disable(context.Context) ([]string, error) { return nil, nil }
func (d *detached) Where() string                             { return written(d.in.LogFile) }

// LastWords are those of the log, and what was said beside it before the daemon served.
func (d *detached) LastWords(context.Context) string {
	words := d.words.read()
	if d.early != nil {
		words = strings.TrimPrefix(words+"\n"+d.early.text(), "\n")
	}
	return tail(words)
}

// Notes tells of another manager that may run a daemon.
func (d *detached) Notes() []string {
	if d.note == "" {
		return nil
	}
	return []string{d.note}
}
