// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"path"
	"slices"
	"strings"
)

// program starts a program by its base name. vague: the directory that it is in is not known.
func (in *interp) program(c ctx, s *state, k call, name string, vague bool) []*state {
	switch {
	case isShell(name):
		return in.runShell(c, s, k, name)
	case name == "busybox" || name == "toybox":
		if i := firstOperand(k.argv[1:]); i >= 0 {
			k = k.from(i + 1)
			k.noFunc = true
			if n := k.argv[0].Text; k.argv[0].Known && !strings.Contains(n, "/") {
				return in.program(c.under(name), s, k, n, false) // an applet, not a builtin
			}
			return in.dispatch(c.under(name), s, k)
		}
	case name == "find" || name == "gfind":
		in.external(c, s, k, name)
		return in.find(c, s, k, name)
	case name == "fd" || name == "fdfind":
		in.external(c, s, k, name)
		return in.fd(c, s, k, name)
	case name == "su" || name == "runuser":
		return in.su(c, s, k, name)
	case name == "docker" || name == "podman" || name == "nerdctl" || name == "kubectl" || name == "oc" || name == "docker-compose":
		in.external(c, s, k, name)
		return in.container(c, s, k, name)
	case name == "git":
		in.external(c, s, k, name)
		return in.git(c, s, k)
	case name == "tmux" || name == "screen":
		in.external(c, s, k, name)
		return in.multiplexer(c, s, k, name)
	case name == "at" || name == "batch":
		in.external(c, s, k, name)
		return in.at(c, s, k, name)
	}
	if sp, ok := wrapperSpec(name); ok {
		return in.wrapper(c, s, k, name, sp)
	}
	in.external(c, s, k, name)
	in.hooks(c, s, k, name)
	w := k.argv[0]
	switch {
	case vague:
		if isShellName(name) {
			in.block(c, Opaque{Kind: "script", Why: "the script's name is not known", Pos: k.pos, Argv: k.argv})
		}
	case strings.Contains(w.Text, "/") && !systemProgram(w.Text):
		return in.fileProgram(c, s, k)
	case in.virtualScript(c, s, k, name):
	default:
		if states := in.onPath(c, s, k, name); states != nil {
			return states
		}
		return in.runner(c, s, k, name)
	}
	return []*state{s}
}

// external lists a program and models its output.
func (in *interp) external(c ctx, s *state, k call, name string) {
	in.emit(c, s, Command{Argv: k.argv, Redirs: k.redirs, Pos: k.pos})
	s.status = statusUnknown
	in.output(c, s, k, name)
	in.downloads(s, name, k.argv[1:])
	switch name {
	case "ln", "mount", "link", "bindfs", "sshfs", "mklink":
		s.linked = true
	}
	switch name {
	case "cp", "mv", "install", "ln":
		in.copyFiles(s, k.argv[1:], name)
	case "dd", "sed", "gsed", "perl", "ex", "ed", "patch", "truncate":
		in.changeFiles(s, k.argv[1:], name)
	case "rm":
		for _, a := range k.argv[1:] {
			if p, ok := s.abs(a); ok {
				delete(s.files, p)
			}
		}
	}
}

// systemProgram tells that a path names an installed program, whose file need not be looked at.
func systemProgram(p string) bool {
	switch path.Dir(path.Clean(p)) {
	case "/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin", "/snap/bin":
		return true
	}
	return false
}

// fileProgram looks into a file that is run by its path: it may be a shell script.
func (in *interp) fileProgram(c ctx, s *state, k call) []*state {
	n := in.child(c, s)
	n.arg0 = k.argv[0].val()
	in.setParams(c, n, k.argv[1:])
	rc := c.under(k.argv[0].Text)
	rc.redirs = append(slices.Clip(c.redirs), k.redirs...)
	rc.inLoop, rc.inFunc, rc.sourced, rc.argsStdin = 0, 0, false, false
	out := n.out
	states := in.runScript(rc, n, k.argv[0], k, 0, false)
	if len(states) == 1 && states[0] == n && n.out == out {
		n.out = s.out
	}
	return in.fromChild(s, states)
}

// virtualScript notes an interpreter that runs a file which was written in the same source.
func (in *interp) virtualScript(c ctx, s *state, k call, name string) bool {
	if len(s.files) == 0 || !isInterpreter(name) {
		return false
	}
	for _, a := range k.argv[1:] {
		if len(a.Text) > 0 && a.Text[0] == '-' && a.Known {
			if t := a.Text; t == "-c" || t == "-e" || t == "--eval" || t == "-m" || t == "-p" {
				return false
			}
			continue
		}
		p, ok := s.abs(a)
		if !ok {
			continue
		}
		if f, ok := s.files[p]; ok {
			o := Opaque{Kind: "interpreter", Why: "it runs a file that was written in the same call", Pos: k.pos, Argv: k.argv}
			for _, t := range f.texts {
				o.Download = o.Download || t.f&fDownload != 0
			}
			in.block(c, o)
			return true
		}
	}
	return false
}

// isInterpreter tells programs that run the source file in their arguments.
func isInterpreter(name string) bool {
	base := strings.TrimRight(name, "0123456789.")
	switch base {
	case "python", "pypy", "node", "nodejs", "perl", "ruby", "php", "lua", "luajit", "deno", "bun", "go", "tclsh", "expect", "osascript",
		"Rscript", "julia", "awk", "gawk", "mawk", "nawk", "make", "gmake", "ts-node", "tsx", "pwsh", "powershell", "java", "groovy",
		"scala", "swift", "cargo", "rustc", "gcc", "cc", "g++", "clang", "elixir", "erl", "escript", "guile", "racket", "sbcl", "ocaml",
		"npm", "npx", "just", "task", "nix-shell", "uv", "poetry", "pipx", "jq", "sed":
		return base != "jq" && base != "sed"
	}
	return false
}

func firstOperand(args []Word) int {
	for i, a := range args {
		if !strings.HasPrefix(a.Text, "-") || !a.Known {
			return i
		}
	}
	return -1
}
