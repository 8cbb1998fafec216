// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// builtin runs what the shell itself does; false: it is no builtin.
func (in *interp) builtin(c ctx, s *state, k call) ([]*state, bool) {
	name := k.argv[0].Text
	args := k.argv[1:]
	list := func() { in.emit(c, s, Command{Argv: k.argv, Redirs: k.redirs, Pos: k.pos}) }
	one := []*state{s}
	switch name {
	case ":", "true":
		list()
		s.status = statusOK
	case "false":
		list()
		s.status = statusFail
	case "cd", "chdir", "pushd", "popd":
		list()
		return in.chdir(c, s, name, args), true
	case "echo", "printf", "pwd", "print":
		list()
		in.print(c, s, name, args)
	case "eval":
		return in.eval(c, s, k), true
	case "source", ".":
		list()
		return in.sourceFile(c, s, k), true
	case "exit", "return", "break", "continue", "logout", "bye":
		list()
		in.leaveBy(c, s, name, args)
	case "set":
		list()
		in.set(c, s, args)
	case "shift":
		list()
		n := 1
		if len(args) > 0 {
			n, _ = strconv.Atoi(args[0].Text)
			if !args[0].Known {
				s.params, s.open = nil, true
			}
		}
		if n > 0 && n <= len(s.params) {
			s.params = s.params[n:]
		} else if n > len(s.params) && s.open {
			s.params = nil
		}
		s.status = statusOK
	case "unset":
		list()
		for _, a := range args {
			if !strings.HasPrefix(a.Text, "-") {
				in.unset(s, a)
			}
		}
		s.status = statusOK
	case "read":
		list()
		in.read(s, args)
	case "mapfile", "readarray":
		list()
		target := "MAPFILE"
		if n := len(args); n > 0 && args[n-1].Known && validName(args[n-1].Text) {
			target = args[n-1].Text
		}
		s.setVar(target, variable{isArr: true, lost: true, set: true, v: val{f: s.in.v.f &^ fTemp}})
	case "getopts":
		list()
		if len(args) > 1 && args[1].Known {
			s.assign(args[1].Text, val{s: unkFlat})
		}
		s.assign("OPTARG", unknown)
		s.assign("OPTIND", val{s: unkFlat})
		s.status = statusUnknown
	case "export", "readonly", "declare", "typeset", "local", "integer", "float", "let":
		list()
		in.declareWords(s, name, args, c)
	case "alias":
		list()
		in.setAliases(s, args)
	case "unalias":
		list()
		for _, a := range args {
			delete(s.aliases, a.Text)
		}
	case "trap":
		list()
		in.trap(c, s, k)
	case "hash":
		list()
		// hash -p FILE NAME makes NAME run FILE.
		if i := slices.IndexFunc(args, func(w Word) bool { return w.Text == "-p" }); i >= 0 && i+2 < len(args) {
			for _, n := range args[i+2:] {
				s.setAlias(n.Text, quoteWord(args[i+1]))
			}
		}
	case "bind", "complete", "enable", "shopt", "ulimit", "umask", "wait", "jobs", "fg", "bg", "disown", "type", "whence", "times",
		"test", "[", "compgen", "dirs", "history", "fc", "suspend", "caller", "which", "where", "setopt", "unsetopt", "autoload",
		"zmodload", "zle", "bindkey", "zstyle", "compdef", "vared":
		list()
		if name == "compgen" || name == "complete" || name == "bind" {
			in.commandOptions(c, s, k)
		}
		if name == "which" || name == "type" || name == "where" || name == "whence" {
			s.out = bounded(s.out.add(locate(args)))
		} else if name == "history" || name == "fc" || name == "dirs" || name == "jobs" || name == "umask" {
			s.out = s.out.add(unknown)
		}
	default:
		return nil, false
	}
	return one, true
}

// locate is what which and command -v print: where a program is. Only its name counts.
func locate(args []Word) val {
	var names []Word
	for _, a := range args {
		if !strings.HasPrefix(a.Text, "-") {
			names = append(names, a)
		}
	}
	if len(names) != 1 || !names[0].Known || names[0].Text == "" {
		return unknown
	}
	if strings.Contains(names[0].Text, "/") {
		return text(names[0].Text + "\n")
	}
	return text("/usr/bin/" + names[0].Text + "\n")
}

// chdir follows cd. The first state is that it worked; the second, a ghost, that it did not.
func (in *interp) chdir(c ctx, s *state, name string, args []Word) []*state {
	var dirs []Word
	for i, a := range args {
		switch {
		case a.Text == "--":
			dirs = append(dirs, args[i+1:]...)
		case len(a.Text) > 1 && (a.Text[0] == '-' || a.Text[0] == '+') && a.Known && len(dirs) == 0:
			if a.Text[0] == '+' || strings.Trim(a.Text[1:], "0123456789") == "" {
				dirs = append(dirs, Word{Text: unk}) // an entry of the stack
			}
			continue
		default:
			dirs = append(dirs, a)
			continue
		}
		break
	}
	failed := s.clone()
	failed.status, failed.ghost = statusFail, true
	to := unknown
	switch {
	case name == "popd":
		if n := len(s.dirs); n > 0 {
			to = s.dirs[n-1]
			s.dirs = slices.Clip(s.dirs[:n-1])
		}
	case len(dirs) == 0 && name == "pushd":
		if n := len(s.dirs); n > 0 {
			to = s.dirs[n-1]
			s.dirs = append(slices.Clone(s.dirs[:n-1]), s.cwd)
		}
	case len(dirs) == 0:
		to = in.lookup(s, "HOME")
	case len(dirs) > 1 && !in.zsh:
		s.status = statusFail // too many arguments
		return []*state{s}
	case dirs[0].Text == "-" && dirs[0].Known:
		to = s.oldpwd
	default:
		to = in.enterDir(s, dirs[0])
	}
	if name == "pushd" && len(dirs) > 0 {
		s.dirs = append(slices.Clip(s.dirs), s.cwd)
	}
	s.oldpwd, s.cwd = s.cwd, to
	delete(s.vars, "PWD")
	delete(s.vars, "OLDPWD")
	s.status = statusOK
	return []*state{s, failed}
}

// enterDir resolves the operand of cd. Parts that are not known stay in it: cd "$X/build" ends in some build.
func (in *interp) enterDir(s *state, w Word) val {
	v := w.loopVal()
	if v.s == "" {
		return s.cwd
	}
	if _, ok := s.vars["CDPATH"]; ok && !strings.HasPrefix(v.s, "/") && !strings.HasPrefix(v.s, ".") {
		return unknown
	}
	if !v.known() {
		switch {
		case v.s[0] == '/' || v.s[0] < 3:
			return v
		case s.cwd.known() && v.flat():
			return val{s: strings.TrimSuffix(s.cwd.s, "/") + "/" + v.s, f: v.f &^ fTemp, name: v.name}
		}
		return v.lost()
	}
	if v.s[0] == '/' {
		v.s = path.Clean(v.s)
		return v.temp()
	}
	if !s.cwd.known() {
		// Below an unknown directory; climbing out of it is no longer followed.
		rel := path.Clean(v.s)
		if rel == "." {
			return s.cwd
		}
		if strings.HasPrefix(rel, "..") {
			return s.cwd.lost()
		}
		out := s.cwd
		out.s = strings.TrimSuffix(out.s, "/") + "/" + rel
		return out
	}
	out := s.cwd
	out.s = path.Clean(s.cwd.s + "/" + v.s)
	return out.temp()
}

func (in *interp) unset(s *state, w Word) {
	switch {
	case !w.Known:
		s.forget()
	case validName(w.Text):
		s.setVar(w.Text, variable{})
		delete(s.funcs, w.Text)
	default:
		if name, _, ok := strings.Cut(w.Text, "["); ok && validName(name) {
			s.setVar(name, variable{isArr: true, lost: true, set: true})
		}
	}
}

// forget makes every variable unknown: one of them was set, and it is not known which.
func (s *state) forget() {
	for name, v := range s.vars {
		v.v, v.lost, v.set = val{s: unk, name: name}, v.isArr, true
		s.vars[name] = v
	}
}

func (in *interp) leaveBy(c ctx, s *state, name string, args []Word) {
	n := 1
	if len(args) > 0 {
		var err error
		if n, err = strconv.Atoi(args[0].Text); err != nil || len(args) > 1 {
			if name == "break" || name == "continue" || len(args) > 1 {
				s.status = statusUnknown
				return // wrong use: it may go on
			}
			n = 1
		}
	}
	switch name {
	case "exit", "logout", "bye":
		s.stop = stopExit
	case "return":
		if c.inFunc > 0 || c.sourced {
			s.stop = stopReturn
		}
	default:
		if c.inLoop == 0 || n < 1 {
			return
		}
		s.levels = min(n, c.inLoop)
		s.stop = stopBreak
		if name == "continue" {
			s.stop = stopContinue
		}
	}
	s.status = statusUnknown
	if len(args) > 0 && args[0].Known && s.stop == stopReturn {
		s.status = statusFail
		if n == 0 {
			s.status = statusOK
		}
	}
}

func (in *interp) set(c ctx, s *state, args []Word) {
	s.status = statusOK
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a.Text == "--":
			in.setParams(ctx{}, s, args[i+1:])
			return
		case a.Text == "-o" || a.Text == "+o":
			i++
		case a.Text == "-A" && in.zsh && i+1 < len(args):
			s.setVar(args[i+1].Text, variable{isArr: true, lost: true, set: true})
			return
		case a.Known && len(a.Text) > 1 && (a.Text[0] == '-' || a.Text[0] == '+'):
		default:
			in.setParams(ctx{}, s, args[i:])
			return
		}
	}
}

// read sets its variables to the next line of known input, or to unknown text.
func (in *interp) read(s *state, args []Word) {
	var names []string
	raw, plain, array := false, true, false
	for i := 0; i < len(args); i++ {
		a := args[i].Text
		if !args[i].Known {
			s.forget()
			return
		}
		if len(a) < 2 || a[0] != '-' {
			names = append(names, a)
			continue
		}
		for j := 1; j < len(a); j++ {
			switch a[j] {
			case 'r':
				raw = true
			case 'a', 'A':
				array = true
				plain = false
			case 's', 'e', 'q':
			default: // with a value, or something that changes what is read
				plain = false
				if strings.IndexByte("dinNptuk", a[j]) >= 0 {
					if j+1 == len(a) {
						i++
					}
					j = len(a)
				}
			}
		}
	}
	if len(names) == 0 {
		names = []string{"REPLY"}
	}
	s.status = statusUnknown
	line, ok := s.in.v, false
	if plain && !s.in.none && s.in.v.known() && (raw || !strings.Contains(s.in.v.s, `\`)) {
		rest := ""
		line.s, rest, ok = strings.Cut(s.in.v.s, "\n")
		s.in.v.s = rest
		s.status = statusFail
		if ok {
			s.status = statusOK
		}
		ok = true
	}
	for i, name := range names {
		name = strings.SplitN(name, "?", 2)[0]
		if !validName(name) {
			continue
		}
		switch {
		case array:
			s.setVar(name, variable{isArr: true, lost: true, set: true, v: val{f: s.in.v.f &^ fTemp}})
		case !ok:
			s.assign(name, val{s: unk, f: s.in.v.f & (fDownload | fHidden), name: name})
		case i == len(names)-1:
			s.assign(name, text(strings.Trim(line.s, in.blanks(s))))
		default:
			word, rest := cutField(line.s, in.ifs(s))
			line.s = rest
			s.assign(name, text(word))
		}
	}
}

func (in *interp) blanks(s *state) string {
	keep := ""
	for _, b := range []string{" ", "\t"} {
		if strings.Contains(in.ifs(s), b) {
			keep += b
		}
	}
	return keep
}

func cutField(line, ifs string) (word, rest string) {
	line = strings.TrimLeft(line, " \t")
	i := strings.IndexAny(line, ifs)
	if i < 0 || ifs == "" {
		return line, ""
	}
	return line[:i], line[i+1:]
}

// declareWords does export and its like when they come as plain words (command export X=y).
func (in *interp) declareWords(s *state, name string, args []Word, c ctx) {
	s.status = statusOK
	if name == "let" {
		s.forget()
		return
	}
	for _, a := range args {
		n, v, ok := strings.Cut(a.Text, "=")
		switch {
		case strings.HasPrefix(a.Text, "-"):
		case strings.Contains(n, unk):
			s.forget()
		case ok && validName(n):
			value := a.val()
			value.s = v
			in.declareVar(s, name, n, value, c, a.Known || strings.Contains(v, unk))
		}
	}
}

func (in *interp) declareVar(s *state, kind, name string, v val, c ctx, ok bool) {
	if (kind == "local" || kind == "declare" || kind == "typeset") && c.inFunc > 0 {
		s.save(name)
		old := s.vars[name]
		old.ref = false
		s.setVar(name, old)
	}
	if !ok {
		v = v.lost()
	}
	s.assign(name, v)
	if kind == "export" {
		e := s.vars[name]
		e.exported = true
		s.setVar(name, e)
	}
}

// declClause runs export, declare, local, readonly, typeset and nameref.
func (in *interp) declClause(c ctx, s *state, x *syntax.DeclClause) []*state {
	kind := x.Variant.Value
	pos := in.pos(x.Pos())
	cmd := Command{Argv: []Word{{Text: kind, Known: true, Pos: pos}}, Pos: pos}
	opts := ""
	if kind == "nameref" {
		opts = "n"
	}
	for _, a := range x.Args {
		if a.Name == nil {
			for _, w := range in.expand(c, s, a.Value, nil) {
				cmd.Argv = append(cmd.Argv, w)
				switch {
				case strings.HasPrefix(w.Text, "-"):
					opts += w.Text[1:]
				case !w.Known && !strings.Contains(w.Text, "="):
					s.forget()
				default:
					in.declareWords(s, kind, []Word{w}, c)
				}
			}
			continue
		}
		name := a.Name.Value
		function := strings.Contains(opts, "f")
		if function {
			continue
		}
		if (kind == "local" || (kind == "declare" || kind == "typeset") && !strings.Contains(opts, "g")) && c.inFunc > 0 {
			s.save(name)
			if !a.Append {
				s.setVar(name, variable{})
			}
		}
		word := Word{Text: name, Known: true, Pos: pos}
		if !a.Naked {
			as := in.assignOne(c, s, a, true)
			cmd.Env = append(cmd.Env, as)
			v := text(name + "=").add(as.Value.val())
			word = v.word(pos)
		}
		cmd.Argv = append(cmd.Argv, word)
		in.attributes(s, name, kind, opts, a.Naked)
	}
	in.emit(c, s, cmd)
	for _, as := range cmd.Env {
		if runsAsCommand(as.Name) {
			in.envCommand(c, s, as)
		}
	}
	s.status = statusOK
	return []*state{s}
}

func (in *interp) attributes(s *state, name, kind, opts string, naked bool) {
	v, ok := s.vars[name]
	if !ok {
		v = variable{v: val{s: unk, f: fUnset, name: name}, set: true}
		if dv, found := in.variable(s, name); found {
			v = dv
		}
		if kind == "export" || naked && opts == "" {
			if kind != "export" {
				return
			}
		}
	}
	if kind == "export" || strings.Contains(opts, "x") {
		v.exported = true
	}
	if strings.Contains(opts, "n") && kind != "export" {
		v.ref = true
	}
	if strings.ContainsAny(opts, "aA") && kind != "export" && !v.isArr {
		v.isArr, v.set, v.lost = true, true, strings.Contains(opts, "A") || !ok && naked
		v.arr = nil
		if !naked {
			v.lost = true
		}
	}
	if strings.ContainsAny(opts, "ilu") && !v.isArr {
		v.v = spoiled(v.v) // arithmetic or a change of case on each assignment
	}
	s.setVar(name, v)
}

func (s *state) setAlias(name, body string) {
	if s.aliases == nil {
		s.aliases = map[string]string{}
	}
	s.aliases[name] = body
}

func (in *interp) setAliases(s *state, args []Word) {
	s.status = statusOK
	for _, a := range args {
		name, body, ok := strings.Cut(a.Text, "=")
		if !ok || strings.HasPrefix(a.Text, "-") {
			continue
		}
		if !a.Known {
			body = strings.ReplaceAll(body, unk, srcUnknown)
		}
		s.setAlias(name, body)
	}
}

// trap lists the commands of a trap as if they ran here.
func (in *interp) trap(c ctx, s *state, k call) {
	args := k.argv[1:]
	if len(args) > 0 && args[0].Text == "--" {
		args = args[1:]
	}
	if len(args) < 2 || strings.HasPrefix(args[0].Text, "-") || args[0].Text == "" {
		return
	}
	rc := c.under("trap")
	rc.maybe()
	sub := s.clone()
	for _, r := range in.runText(rc, sub, args[0].val(), textRun{kind: "eval", pos: k.pos, argv: k.argv}) {
		s.absorb(r)
	}
	s.status = statusOK
}

// commandOptions runs the texts that complete -C, compgen -C and bind -x take.
func (in *interp) commandOptions(c ctx, s *state, k call) {
	for i, a := range k.argv {
		if (a.Text == "-C" || a.Text == "-x") && i+1 < len(k.argv) {
			t := k.argv[i+1].val()
			if a.Text == "-x" {
				_, t.s, _ = strings.Cut(t.s, ":")
			}
			rc := c.under(k.argv[0].Text)
			rc.maybe()
			in.runText(rc, s.clone(), t, textRun{kind: "eval", pos: k.pos, argv: k.argv})
		}
	}
}
