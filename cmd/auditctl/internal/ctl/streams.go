// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// Env is everything that a command takes from outside. Tests make their own.
type Env struct {
	In     io.Reader
	Out    io.Writer // data only
	Err    io.Writer // everything else
	Getenv func(string) string
	Getwd  func() (string, error)
	Now    func() time.Time // in the user's zone
	Exe    string           // path of this program, links not resolved
	Name   string           // the name it was called by
	// InTTY, OutTTY and ErrTTY say which streams are terminals.
	InTTY, OutTTY, ErrTTY bool
	Width                 int // columns of the terminal on Out, 0 if it is none
}

// OSEnv is the environment of this process.
func OSEnv(name string) Env {
	exe, _ := os.Executable()
	e := Env{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Getwd: os.Getwd, Now: time.Now, Exe: exe, Name: name,
		InTTY: term.IsTerminal(int(os.Stdin.Fd())), OutTTY: term.IsTerminal(int(os.Stdout.Fd())), ErrTTY: term.IsTerminal(int(os.Stderr.Fd())),
	}
	if e.OutTTY {
		if w, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil {
			e.Width = w
		}
	}
	return e
}

// color reports whether Out may carry colours.
func (e *Env) color() bool {
	return e.OutTTY && e.Getenv("NO_COLOR") == "" && e.Getenv("TERM") != "dumb"
}

// stickyWriter remembers the first error of a stream, so that commands may print line by line without looking.
type stickyWriter struct {
	w   io.Writer
	err error
}

func (s *stickyWriter) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.w.Write(p)
	s.err = err
	return n, err
}
