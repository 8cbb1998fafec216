// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/doctor"
	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/daemon/control"
	"github.com/tripline-sh/tripline/hooks/install"
)

// look gathers what status, doctor and agents are about. Nothing is changed.
func (a *app) look(ctx context.Context) (*doctor.Facts, error) {
	p, err := a.places()
	if err != nil {
		return nil, err
	}
	path, err := a.settingsPath("claude", p)
	if err != nil {
		return nil, err
	}
	cwd, _ := a.Getwd() // a directory that is gone has no settings
	return doctor.Gather(ctx, doctor.Inputs{
		Self: a.paste(), Exe: a.Exe, Version: a.version, UID: os.Getuid(), Now: a.Now(), Getenv: a.Getenv, Cwd: cwd, Places: p,
		Hook: install.Options{
			Path: path, Owner: os.Getuid(), Binary: filepath.Join(filepath.Dir(a.Exe), "tripline-hook"),
			Socket: p.HookSocket, Spool: p.SpoolDir, ServerUID: os.Getuid(), Daemon: a.onDemand(p),
		},
		Client: &control.Client{Socket: p.ControlSocket}, AgentVars: agentVariables[:],
	}), nil
}

// onDemand is the command line by which a hook starts the daemon. Unlike hookDaemon it asks no service manager: looking runs
// nothing.
func (a *app) onDemand(p config.Places) []string {
	return append([]string{a.daemonProgram(), "--on-demand"}, p.ShortDirs().Args()...)
}

// screenWidth is how many columns a screen for people takes at most.
const screenWidth = 100

func (a *app) screenWidth() int {
	if a.Width >= 40 && a.Width < screenWidth {
		return a.Width
	}
	return screenWidth
}

// rows writes lines of a label and a text, which is wrapped beside it.
type rows struct {
	w     io.Writer
	width int // of the screen
	label int // of the labels, the space behind them included
}

// add writes one row. The label may be coloured; paint does it.
func (r rows) add(label, text string, paint func(string) string) {
	pad := strings.Repeat(" ", max(r.label-runewidth.StringWidth(label), 1))
	if paint != nil {
		label = paint(label)
	}
	for i, line := range wrap(show.Line(text, 4000), r.width-r.label) {
		if i == 0 {
			fmt.Fprintf(r.w, "%s%s%s\n", label, pad, line)
		} else {
			fmt.Fprintf(r.w, "%s%s\n", strings.Repeat(" ", r.label), line)
		}
	}
}

// command writes a line that people can paste; it is never wrapped.
func (r rows) command(line string) {
	fmt.Fprintf(r.w, "%s%s\n", strings.Repeat(" ", r.label), show.Line(line, 4000))
}

// wrap breaks a text at its spaces into lines of at most width columns; a longer word is broken, too.
func wrap(text string, width int) []string {
	var lines []string
	line, used := "", 0
	flush := func() {
		lines = append(lines, line)
		line, used = "", 0
	}
	for _, word := range strings.Fields(text) {
		n := runewidth.StringWidth(word)
		if used > 0 && used+1+n > width {
			flush()
		}
		for n > width {
			head := runewidth.Truncate(word, width, "")
			if head == "" { // a character that is wider than the line
				break
			}
			line = head
			flush()
			word = word[len(head):]
			n = runewidth.StringWidth(word)
		}
		if used > 0 {
			line, used = line+" ", used+1
		}
		line, used = line+word, used+n
	}
	if used > 0 || len(lines) == 0 {
		flush()
	}
	return lines
}

// findings writes what was found, the worst first, each with the command that mends it.
func (a *app) findings(w io.Writer, found []doctor.Finding, evidence bool) {
	r := rows{w: w, width: a.screenWidth(), label: 9}
	for _, f := range found {
		r.add(string(f.Severity), f.Text, a.severityPaint(f.Severity))
		if evidence && f.Evidence != "" {
			r.add("", "seen: "+f.Evidence, nil)
		}
		if f.Command != "" {
			r.command(f.Command)
		}
	}
}

// severityPaint colours a word by its severity, where colours are wanted.
func (a *app) severityPaint(s doctor.Severity) func(string) string {
	color := map[doctor.Severity]string{doctor.Problem: red, doctor.Warning: yellow, doctor.OK: green}[s]
	if color == "" || !a.color() {
		return nil
	}
	return func(text string) string { return color + text + reset }
}

// has reports whether anything of a severity was found.
func has(found []doctor.Finding, s doctor.Severity) bool {
	for _, f := range found {
		if f.Severity == s {
			return true
		}
	}
	return false
}
