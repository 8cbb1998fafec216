// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"path"
	"slices"
	"strings"
)

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
	if name == "tripline-hook" {
		in.external(c, s, k, name)
		if o.at+1 >= len(args) || args[o.at].Text != "--" {
			return []*state{s}
		}
		o.at++
		rc.env = nil
		s.cwd = in.enterDir(s, Word{Text: "/", Known: true})
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
