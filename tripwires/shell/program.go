// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"maps"
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

// copyFiles follows cp, mv and ln.
func (in *interp) copyFiles(s *state, args []Word, name string) {
	o := spec{short: "tSmog", long: "target-directory suffix mode owner group"}.read(args)
	ops := operands(args, "tSmog")
	to, isDir := o.has("t", "target-directory")
	if !isDir {
		if len(ops) < 2 {
			return
		}
		to, ops = ops[len(ops)-1], ops[:len(ops)-1]
	}
	for _, from := range ops {
		in.copyFile(s, from, to, name == "mv", isDir || len(ops) > 1 || strings.HasSuffix(to.Text, "/"))
	}
}

func (in *interp) copyFile(s *state, from, to Word, move, intoDir bool) {
	src, ok := s.abs(from)
	dst, okTo := s.abs(to)
	if !ok || !okTo {
		return
	}
	f, virtual := s.files[src]
	inside := path.Join(dst, path.Base(src))
	if !virtual {
		// The content of a file that is there: it is read when the copy is run.
		f = file{texts: []val{{s: unk, path: src}}}
		if _, old := s.files[dst]; !old && !isShellName(dst) && !isShellName(src) {
			return
		}
	}
	if !intoDir {
		s.putFile(dst, f)
	}
	if _, old := s.files[inside]; virtual || old || isShellName(inside) {
		s.putFile(inside, f) // the target may be a directory
	}
	if move {
		delete(s.files, src)
	}
}

// changeFiles notes files that a program changes in a way that is not computed.
func (in *interp) changeFiles(s *state, args []Word, name string) {
	inPlace := name != "sed" && name != "gsed" && name != "perl"
	for _, a := range args {
		t := a.Text
		if name == "dd" {
			if out, ok := strings.CutPrefix(t, "of="); ok {
				v := val{s: unk}
				if !s.in.none {
					v = s.in.v
				}
				in.write(s, Word{Text: out, Known: a.Known}, v, false)
			}
			continue
		}
		if len(t) > 1 && t[0] == '-' {
			inPlace = inPlace || strings.HasPrefix(t, "--in-place") || t[1] != '-' && strings.Contains(t, "i")
			continue
		}
		p, ok := s.abs(a)
		if !ok || !inPlace {
			continue
		}
		if _, virtual := s.files[p]; virtual || isShellName(p) {
			s.putFile(p, file{texts: []val{unknown}})
		}
	}
}

// onPath runs a file that this source wrote, if its name is looked up in a PATH that the source set.
func (in *interp) onPath(c ctx, s *state, k call, name string) []*state {
	_, set := s.vars["PATH"]
	for _, a := range c.env {
		set = set || a.Name == "PATH"
	}
	if !set || len(s.files) == 0 {
		return nil
	}
	for _, p := range slices.Sorted(maps.Keys(s.files)) {
		if path.Base(p) == name {
			k.argv = slices.Clone(k.argv)
			k.argv[0].Text = p
			return in.fileProgram(c, s, k)
		}
	}
	return nil
}

// wrapper starts the command in the operands of a program.
func (in *interp) wrapper(c ctx, s *state, k call, name string, sp spec) []*state {
	args := k.argv[1:]
	o := sp.read(args)
	list := func() []*state {
		in.external(c, s, k, name)
		return []*state{s}
	}
	rc := c.under(name)
	switch name {
	case "sudo", "doas", "pkexec", "run0", "please", "sudo-rs":
		rc.priv = true
	case "nohup", "setsid", "systemd-run":
		rc.background = true
	case "xargs", "gxargs":
		return in.xargs(c, s, k, name, o)
	case "parallel":
		return in.parallel(c, s, k, name, o)
	case "ssh":
		return in.ssh(c, s, k, o)
	case "script", "gscript":
		return in.scriptCommand(c, s, k, name, o)
	}
	if o.stop {
		return list()
	}
	for _, a := range o.assig {
		n, _, _ := strings.Cut(a.Text, "=")
		value := a.val()
		_, value.s, _ = strings.Cut(value.s, "=")
		as := Assign{Name: n, Value: value.word(a.Pos)}
		rc.env = append(slices.Clip(rc.env), as)
		if runsAsCommand(n) {
			in.envCommand(rc, s, as)
		}
	}
	cwd, home := s.cwd, s.noHome
	done := func(states []*state) []*state {
		for _, r := range states {
			r.cwd, r.noHome = cwd, home
		}
		return dropGhosts(states)
	}
	switch name {
	case "env", "genv", "sudo", "run0", "systemd-run", "unshare":
		in.envOptions(&rc, s, name, o)
	case "chroot":
		if len(o.skip) > 0 {
			in.enterRoot(&rc, s, o.skip[0])
		}
	}
	if w, ok := o.has("S", "split-string"); ok && name[len(name)-3:] == "env" {
		return done(in.splitString(rc, s, k, w, args[o.at:]))
	}
	if name == "flock" {
		if w, ok := o.has("c", "command"); ok {
			return done(in.runWords(rc, s, k, []Word{w}))
		}
		if o.at < len(args) && (args[o.at].Text == "-c" || args[o.at].Text == "--command") && o.at+1 < len(args) {
			return done(in.runWords(rc, s, k, args[o.at+1:]))
		}
	}
	if _, sh := o.has("s", "i", "shell", "login"); sh && rc.priv && o.at >= len(args) && !s.in.none {
		return done(in.fromChild(s, in.shellStdin(rc, in.child(rc, s), k, "sh", 0)))
	}
	if o.at >= len(args) {
		if c.argsStdin {
			in.block(c, Opaque{Kind: "program", Why: "the program's name is computed", Pos: k.pos, Argv: k.argv})
		}
		return list()
	}
	if name == "sudo" || name == "doas" || name == "pkexec" || name == "run0" {
		if n := args[o.at]; n.Split && n.Text == unk {
			rc.maybe()
		}
	}
	if name == "watch" {
		if _, exec := o.has("x", "exec"); !exec {
			return done(in.runWords(rc, s, k, args[o.at:]))
		}
	}
	n := k.from(o.at + 1)
	n.noFunc = true
	if o.lost && o.at+1 < len(args) && !strings.HasPrefix(args[o.at+1].Text, "-") {
		alt := rc
		alt.maybe()
		in.dispatchProgram(alt, s.clone(), k.from(o.at+2))
	}
	if name == "entr" {
		n.argv = replaceWords(n.argv, "/_", Word{Text: unk})
		if _, sh := o.has("s"); sh {
			return done(in.runWords(rc, s, k, n.argv))
		}
	}
	return done(in.dispatchProgram(rc, s, n))
}

// dispatchProgram starts a command that no shell looks at: builtins and functions do not count.
func (in *interp) dispatchProgram(c ctx, s *state, k call) []*state {
	if len(k.argv) == 0 {
		return []*state{s}
	}
	w := k.argv[0]
	if !w.Known || w.Glob || w.Text == "" || c.wraps > maxVia {
		return in.dispatch(c, s, k)
	}
	if !in.enter() {
		return []*state{s}
	}
	defer in.leave()
	switch w.Text {
	case "echo", "printf", "pwd", "true", "false", "test", "[":
		return in.dispatch(c, s, k)
	}
	return in.program(c, s, k, path.Base(w.Text), false)
}

// runWords runs words that the program joins and gives to a shell.
func (in *interp) runWords(c ctx, s *state, k call, words []Word) []*state {
	c.redirs = append(slices.Clip(c.redirs), k.redirs...)
	n := in.child(c, s)
	c.env = nil
	c.argsStdin = false
	states := in.runText(c, n, joinWords(words), textRun{kind: "eval", pos: k.pos, argv: k.argv, found: c.found})
	return in.fromChild(s, states)
}

// envOptions follows the options that change the directory or the environment of the command.
func (in *interp) envOptions(c *ctx, s *state, name string, o options) {
	dir, ok := Word{}, false
	switch name {
	case "env", "genv":
		dir, ok = o.has("C", "chdir")
	case "sudo", "run0":
		dir, ok = o.has("D", "chdir")
		if r, isRoot := o.has("R", "chroot"); isRoot && name == "sudo" {
			in.enterRoot(c, s, r)
		}
	case "systemd-run":
		dir, ok = o.has("working-directory")
	case "unshare":
		if r, isRoot := o.has("R", "root"); isRoot {
			in.enterRoot(c, s, r)
		}
		dir, ok = o.has("w", "wd")
	}
	if ok {
		s.cwd = in.enterDir(s, dir)
	}
	if _, fresh := o.has("i", "ignore-environment"); fresh && (name == "env" || name == "genv") {
		c.env = slices.DeleteFunc(slices.Clone(c.env), func(a Assign) bool { return true })
		for _, a := range o.assig {
			n, _, _ := strings.Cut(a.Text, "=")
			v := a.val()
			_, v.s, _ = strings.Cut(v.s, "=")
			c.env = append(c.env, Assign{Name: n, Value: v.word(a.Pos)})
		}
		s.noHome = true
	}
}

// enterRoot follows chroot: paths of the command are below another root.
func (in *interp) enterRoot(c *ctx, s *state, dir Word) {
	d := in.enterDir(s, dir)
	if d.known() && path.Clean(d.s) == "/" {
		return
	}
	c.remote, c.host = true, "chroot"
	if d.known() {
		c.mounts = append(slices.Clip(c.mounts), [2]string{d.s, "/"})
	} else {
		c.mounts = append(slices.Clip(c.mounts), [2]string{exportMarks(d.s), "/"})
	}
	s.cwd = text("/")
}

// splitString is env -S TEXT: its words come before the others.
func (in *interp) splitString(c ctx, s *state, k call, w Word, rest []Word) []*state {
	v := w.val()
	if !v.known() {
		in.block(c, Opaque{Kind: "program", Why: "the program's name is computed", Pos: k.pos, Argv: k.argv})
		return []*state{s}
	}
	p := parse(v.s, in.lang())
	words := append([]Word{{Text: "env", Known: true}}, in.splitWords(c, s, p)...)
	k.argv = append(words, rest...)
	return in.wrapper(c, s, k, "env", spec{short: "uC", long: "unset chdir", assigns: true})
}

func replaceWords(ws []Word, mark string, by Word) []Word {
	out := slices.Clone(ws)
	for i, w := range out {
		if strings.Contains(w.Text, mark) {
			out[i] = substituteIn(w, mark, by)
		}
	}
	return out
}

// substituteIn puts a word in place of a mark inside another.
func substituteIn(w Word, mark string, by Word) Word {
	v := w.val()
	b := by.val()
	r := v
	r.s = strings.ReplaceAll(v.s, mark, b.s)
	r.f |= b.f &^ fTemp
	if strings.HasPrefix(v.s, mark) {
		r.f |= b.f & fTemp
	}
	if r.name == "" {
		r.name = b.name
	}
	out := r.word(w.Pos)
	out.Quoted = true
	return out
}
