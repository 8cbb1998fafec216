// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func isShell(name string) bool {
	switch strings.TrimPrefix(name, "-") {
	case "sh", "bash", "zsh", "dash", "ksh", "ksh93", "mksh", "ash", "fish", "rbash", "yash", "pdksh":
		return true
	}
	return false
}

// child makes the state in which a new shell starts: it sees exported variables only.
func (in *interp) child(c ctx, s *state) *state {
	n := s.clone()
	for name, v := range n.vars {
		if !v.exported {
			delete(n.vars, name)
		}
	}
	for _, a := range c.env {
		n.setVar(a.Name, variable{v: a.Value.val(), set: true, exported: true})
	}
	n.params, n.open, n.arg0 = nil, false, unknown
	n.saves, n.dirs, n.aliases, n.traps = nil, nil, nil, nil
	return n
}

// runShell is sh, bash and the like: -c TEXT, FILE, or standard input.
func (in *interp) runShell(c ctx, s *state, k call, name string) []*state {
	name = strings.TrimPrefix(name, "-")
	a := shellArgs(k.argv[1:])
	lang := syntax.LangBash
	if name == "zsh" {
		lang = syntax.LangZsh
	}
	n := in.child(c, s)
	rc := c
	rc.noExec = c.noExec || a.noExec
	rc.redirs = append(slices.Clip(c.redirs), k.redirs...)
	rc.inLoop, rc.inFunc, rc.sourced = 0, 0, false
	rc.argsStdin = false
	opaque := Opaque{Pos: k.pos, Argv: k.argv}
	for _, f := range a.rcFiles {
		in.runScript(rc.under(name+" --rcfile"), n, f, k, lang, true)
	}
	var states []*state
	switch {
	case a.help:
		in.emit(c, s, Command{Argv: k.argv, Redirs: k.redirs, Pos: k.pos})
		return []*state{s}
	case a.command && len(a.rest) == 0:
		if c.argsStdin {
			opaque.Kind, opaque.Why, opaque.Download = "eval", "a text that is not known would run as shell code", s.in.v.f&fDownload != 0
			in.block(c, opaque)
		}
		return []*state{s}
	case a.command:
		ps := a.rest[1:]
		if len(ps) > 0 {
			n.arg0 = ps[0].val()
			ps = ps[1:]
		}
		in.setParams(c, n, ps)
		run := textRun{kind: "eval", pos: k.pos, argv: k.argv, lang: lang, found: c.found}
		if a.rest[0].Split {
			run.found = false
		}
		states = in.runText(rc.under(name+" -c"), n, a.rest[0].val(), run)
	case len(a.rest) > 0 && !a.stdin:
		in.emit(c, s, Command{Argv: k.argv, Redirs: k.redirs, Pos: k.pos})
		n.arg0 = a.rest[0].val()
		in.setParams(c, n, a.rest[1:])
		f := a.rest[0]
		if f.Text == "-" || f.Text == "/dev/stdin" || f.Text == "/proc/self/fd/0" {
			states = in.shellStdin(rc, n, k, name, lang)
			break
		}
		states = in.runScript(rc.under(name+" FILE"), n, f, k, lang, true)
	case c.argsStdin:
		opaque.Kind, opaque.Why = "script", "the script's name is not known"
		in.block(c, opaque)
		return []*state{s}
	default:
		in.setParams(c, n, a.rest)
		states = in.shellStdin(rc, n, k, name, lang)
	}
	return in.fromChild(s, in.runTraps(rc, states))
}

// fromChild takes over what a child process leaves: files and output.
func (in *interp) fromChild(s *state, states []*state) []*state {
	var outs []val
	for _, r := range states {
		s.absorb(r)
		outs = append(outs, r.out)
	}
	s.out = mergeAll(outs, s.out)
	s.status = statusUnknown
	return []*state{s}
}

// shellStdin runs standard input as a script.
func (in *interp) shellStdin(c ctx, s *state, k call, name string, lang syntax.LangVariant) []*state {
	if s.in.none {
		in.emit(c, s, Command{Argv: k.argv, Pos: k.pos}) // an interactive shell
		return []*state{s}
	}
	v := s.in.v
	r := textRun{kind: "stdin-shell", pos: k.pos, argv: k.argv, lang: lang}
	if v.path != "" {
		return in.runScript(c.under(name), s, Word{Text: v.path, Known: true}, k, lang, true)
	}
	s.in = stream{v: unknown}
	return in.runText(c.under(name), s, v, r)
}

// shellOptions is what a shell's command line says.
type shellOptions struct {
	command, stdin, noExec, help bool
	rcFiles                      []Word
	rest                         []Word
}

func shellArgs(args []Word) (o shellOptions) {
	i := 0
	for ; i < len(args); i++ {
		a := args[i].Text
		if !args[i].Known || len(a) < 2 || a[0] != '-' && a[0] != '+' {
			break
		}
		if a == "--" {
			i++
			break
		}
		if strings.HasPrefix(a, "--") {
			name, value, has := strings.Cut(a, "=")
			switch name {
			case "--rcfile", "--init-file":
				if has {
					o.rcFiles = append(o.rcFiles, Word{Text: value, Known: true})
				} else if i++; i < len(args) {
					o.rcFiles = append(o.rcFiles, args[i])
				}
			case "--command":
				o.command = true
				if has {
					o.rest = append(o.rest, Word{Text: value, Known: true, Quoted: true})
				}
			case "--no-execute":
				o.noExec = true
			case "--version", "--help":
				o.help = true
			}
			continue
		}
		for _, f := range a[1:] {
			switch f {
			case 'c':
				o.command = o.command || a[0] == '-'
			case 's':
				o.stdin = o.stdin || a[0] == '-'
			case 'n':
				o.noExec = a[0] == '-'
			case 'o', 'O':
				if i+1 < len(args) {
					i++
					if args[i].Text == "noexec" {
						o.noExec = a[0] == '-'
					}
				}
			}
		}
	}
	o.rest = append(o.rest, args[min(i, len(args)):]...)
	if o.stdin && !o.command {
		return o
	}
	if !o.command && len(o.rest) == 0 {
		o.stdin = true
	}
	return o
}
