// SPDX-License-Identifier: Apache-2.0

// Package service keeps the daemon running through what this machine has: systemd's user manager with socket activation,
// launchd, or, where neither answers, a detached process of our own. It starts programs of the system (systemctl, launchctl,
// journalctl) and the daemon, nothing else.
package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// Names of the managers, as the daemon reports them.
const (
	Systemd = "systemd"
	Launchd = "launchd"
	None    = "none"
)

// ErrForeign is wrapped by errors about a file in the way that we did not write.
var ErrForeign = errors.New("this file is not ours")

// Install is what a manager runs.
type Install struct {
	Program       string   // absolute path of triplined
	Args          []string // flags that tell it every place: it gets no environment of the caller
	HookSocket    string   // absolute
	ControlSocket string   // absolute
	LogFile       string   // absolute; where the daemon's messages go if the manager keeps no log of its own
	Private       bool     // everything was moved by TRIPLINE_HOME: a throw-away install, which no manager of the user is told of
}

// Host is the machine as the managers see it. Tests make their own.
type Host struct {
	OS        string              // as runtime.GOOS
	Home      string              // absolute; "" = there is none
	Getenv    func(string) string // PATH, USER, the XDG variables and the address of the bus are read
	UID       int
	Booted    string // a directory that is there exactly if systemd runs the machine
	LingerDir string // holds a file for each user whose manager outlives the last logout
}

// ThisHost is the machine that this process runs on.
func ThisHost(goos, home string, getenv func(string) string) Host {
	return Host{OS: goos, Home: home, Getenv: getenv, UID: os.Getuid(), Booted: "/run/systemd/system", LingerDir: "/var/lib/systemd/linger"}
}

// Manager starts and stops the daemon of one user. Its calls are bounded by their context and by limits of their own.
type Manager interface {
	// Name is Systemd, Launchd or None.
	Name() string
	// Start asks for the daemon to run. It changes what the machine knows of it only as far as that differs, and does nothing
	// to a daemon that runs. Done tells when a daemon that is a child of this process ends; nil for other managers.
	Start(ctx context.Context) (done <-chan error, err error)
	// Restart is Start, but a daemon that the manager runs is ended and begun anew. Hooks that call meanwhile wait if the
	// manager holds their socket.
	Restart(ctx context.Context) (done <-chan error, err error)
	// Stop ends the daemon as far as this manager runs it, the sockets that would start it again included.
	Stop(ctx context.Context) error
	// Disable takes out what Start left on the machine, and names it. Files that are not ours stay.
	Disable(ctx context.Context) (removed []string, err error)
	// Where says in words for a person where the daemon's messages are; "" if there are none.
	Where() string
	// LastWords returns the daemon's newest messages since Start was called, at most some twenty lines; "" if there are none.
	LastWords(ctx context.Context) string
	// Notes are what a person should know of this manager on this machine.
	Notes() []string
}

// Detect finds the manager that answers on this machine, and says why it is not one that could be expected. The presence of
// a program alone proves nothing: containers have systemctl.
func Detect(ctx context.Context, h Host, in Install) (m Manager, why string, err error) {
	if err := in.check(); err != nil {
		return nil, "", err
	}
	if in.Private {
		return newDetached(in), "TRIPLINE_HOME is in force, and the user's service manager is left out of that", nil
	}
	switch h.OS {
	case "darwin":
		l, why := findLaunchd(ctx, h, in)
		if l == nil {
			return newDetached(in), why, nil
		}
		return l, "", nil
	case "linux":
		s, why := findSystemd(ctx, h, in)
		if s == nil {
			return newDetached(in).unreached(&h), why, nil
		}
		return s, "", nil
	}
	return newDetached(in), "no service manager of " + h.OS + " is known", nil
}

// check refuses what could not be written into a unit as it is.
func (in *Install) check() error {
	for _, s := range append([]string{in.Program, in.HookSocket, in.ControlSocket, in.LogFile}, in.Args...) {
		if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return fmt.Errorf("%q holds control characters: no service manager could be told of it", s)
		}
	}
	for _, p := range []string{in.Program, in.HookSocket, in.ControlSocket, in.LogFile} {
		if !filepath.IsAbs(p) {
			return fmt.Errorf("%q is not an absolute path", p)
		}
	}
	return nil
}
