// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// render shows an analysis in one line a thing, for tables.
func render(a Analysis) string {
	var lines []string
	for _, c := range a.Commands {
		lines = append(lines, renderCommand(c))
	}
	for _, o := range a.Opaque {
		s := "!" + o.Kind
		for _, f := range []struct {
			on   bool
			name string
		}{{o.Download, "download"}, {o.Partial, "partial"}, {o.Absent, "absent"}, {o.Remote, "remote"}} {
			if f.on {
				s += " " + f.name
			}
		}
		if o.Script != "" {
			s += " in " + strings.TrimPrefix(o.Script, "/home/dev/shop/")
		}
		lines = append(lines, s)
	}
	for _, f := range []struct {
		on   bool
		name string
	}{{a.Unparsable, "!unparsable"}, {a.TooBig, "!too-big"}, {a.ForkBomb, "!fork-bomb"}, {a.Truncated, "!truncated"}} {
		if f.on {
			lines = append(lines, f.name)
		}
	}
	return strings.Join(lines, "\n")
}

func renderCommand(c Command) string {
	var parts []string
	for _, e := range c.Env {
		op := "="
		if e.Append {
			op = "+="
		}
		parts = append(parts, e.Name+op+renderWord(e.Value))
	}
	for _, w := range c.Argv {
		parts = append(parts, renderWord(w))
	}
	for _, r := range c.Redirs {
		t := renderWord(r.Target)
		if r.Op == "<<" {
			t = fmt.Sprintf("%q", r.Body.Text)
		}
		parts = append(parts, r.FD+r.Op+t)
	}
	s := strings.Join(parts, " ")
	if !c.Cwd.Known || c.Cwd.Text != "/home/dev/shop" {
		s += " @" + renderWord(Word{Text: c.Cwd.Text, Known: c.Cwd.Known})
	}
	if c.Script != "" {
		s += " in " + strings.TrimPrefix(c.Script, "/home/dev/shop/")
	}
	if len(c.Via) > 0 {
		s += " via " + strings.Join(c.Via, ",")
	}
	for _, f := range []struct {
		on   bool
		name string
	}{{c.ArgsFromStdin, "+stdin-args"}, {c.Remote, "+remote"}, {c.NoExec, "+noexec"}, {c.Zsh, "+zsh"}, {c.LinkedBefore, "+linked"}} {
		if f.on {
			s += " " + f.name
		}
	}
	return s
}

// renderWord shows a word: ? for unknown parts, and a mark in front of what is not plain.
func renderWord(w Word) string {
	t := strings.ReplaceAll(w.Text, "\x00", "?")
	if strings.ContainsAny(t, " \t\n'\"") || t == "" {
		t = fmt.Sprintf("%q", t)
	}
	switch {
	case w.Temp:
		t = "temp:" + strings.TrimPrefix(t, TempPrefix)
	case w.Hidden:
		t = "hidden:" + t
	case w.Download:
		t = "download:" + t
	case w.Unset:
		t = "unset:" + t
	case w.Flat:
		t = "flat:" + t
	case w.Glob:
		t = "glob:" + t
	case !w.Known:
		t = "unknown:" + t
	}
	return t
}

// testOptions is the place in which the tables run.
func testOptions() Options {
	return Options{Cwd: "/home/dev/shop", Home: "/home/dev", User: "dev"}
}

// scriptOptions is testOptions with a few scripts in the project.
func scriptOptions() Options {
	o := testOptions()
	o.ReadScript = func(p string) (string, error) {
		switch p {
		case "/home/dev/shop/deploy.sh":
			return "#!/bin/bash\nrm -rf \"$1\"/x\n", nil
		case "/home/dev/shop/tool":
			return "#!/usr/bin/env python3\nimport os\n", nil
		case "/home/dev/shop/loop.sh":
			return "./loop.sh & ./loop.sh &\n", nil
		case "/home/dev/shop/fifo.sh":
			return "", errors.New("not a regular file")
		}
		return "", fs.ErrNotExist
	}
	return o
}
