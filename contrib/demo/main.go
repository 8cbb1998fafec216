// SPDX-License-Identifier: Apache-2.0

// Command demo plays an agent's session through the real hook, daemon and log, and then asks Tripline what happened. It plays
// in HOME, which demo.sh makes for it and throws away; the programs are in HOME/.local/bin.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// patience bounds the whole play.
const patience = 2 * time.Minute

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: demo SOURCE (demo.sh calls it)")
		os.Exit(2)
	}
	home := os.Getenv("HOME")
	if _, err := os.Stat(filepath.Join(home, ".local/bin/triplined")); err != nil || filepath.Dir(home) != "/tmp" {
		fmt.Fprintln(os.Stderr, "demo: HOME is no home that demo.sh made")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := play(ctx, newWorld(home, os.Args[1], os.Getenv("PATH"), os.Stdout)); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1) // what is deferred is only the end of listening to signals
	}
}

// play starts the daemon, plays the session, shows what can be asked afterwards, and ends the daemon, whatever happened.
func play(ctx context.Context, w *world) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := time.Now()
	if err := w.start(ctx); err != nil {
		return err
	}
	defer func() {
		if e := w.stop(); err == nil {
			err = e
		}
	}()
	if err := w.session(ctx); err != nil {
		return err
	}
	if err := w.questions(ctx); err != nil {
		return err
	}
	w.say("\nThat took %.1f s. The home, its log and its daemon go now; `make up` makes them for you.", time.Since(began).Seconds())
	return nil
}

func (w *world) say(format string, args ...any) { fmt.Fprintf(w.out, format+"\n", args...) }

func (w *world) chapter(title string) { fmt.Fprintf(w.out, "\n== %s\n\n", title) }

// newWorld is a person's machine: home, the source of this project for its captures, and where the play is told.
func newWorld(home, source, path string, out io.Writer) *world {
	return &world{home: home, source: source, path: path, out: out, project: filepath.Join(home, "shop"), id: "5e55a9e0-0000-4000-8000-000000000001"}
}
