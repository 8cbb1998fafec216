// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// builtin runs what the shell itself does; false: it is no builtin.
func (in *interp) builtin(c ctx, s *state, k call) ([]*state, bool) {
	name := k.argv[0].Text
	args := k.argv[1:]
	list := func() { in.emit(c, s, Command{Argv: k.argv, Redirs: k.redirs, Pos: k.pos}) }
	one := []*state{s}
	if evaluatesNames(name) {
		in.namesWithCode(c, s, k)
	}
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
		if many := slices.ContainsFunc(s.params[:max(0, min(n, len(s.params)))], func(v val) bool { return v.f&fMany != 0 }); many {
			s.params, s.open = nil, true
		} else if n > 0 && n <= len(s.params) {
			s.params = s.params[n:]
		} else if n > len(s.params) && s.open {
			s.params = nil
		}
		s.status = statusOK
	case "unset":
		list()
		function := false
		for _, a := range args {
			switch {
			case strings.HasPrefix(a.Text, "-"):
				function = strings.Contains(a.Text, "f")
			case function:
				delete(s.funcs, a.Text)
			default:
				in.unset(s, a)
			}
		}
		s.status = statusOK
	case "read":
		list()
		in.read(c, s, args)
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
	case "test", "[":
		list()
		s.status = testWords(name, args)
	case "bind", "complete", "enable", "shopt", "ulimit", "umask", "wait", "jobs", "fg", "bg", "disown", "type", "whence", "times",
		"compgen", "dirs", "history", "fc", "suspend", "caller", "which", "where", "setopt", "unsetopt", "autoload",
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

func (in *interp) unset(s *state, w Word) {
	switch {
	case !w.Known:
		s.forget()
	case validName(w.Text):
		s.setVar(w.Text, variable{}) // a function of that name may stay
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
	tr := trap{text: args[0].val(), call: k}
	s.traps = append(slices.Clip(s.traps), tr)
	if !s.setLater(tr.text) {
		in.runTrap(c, s, tr)
	}
	s.status = statusOK
}

// trapVariable is a word that is nothing but one quoted variable: empty as long as that is not set.
var trapVariable = regexp.MustCompile(`(^|\s)"\$(?:\{(\w+)\}|(\w+))"`)

// setLater tells that a trap's text takes nothing but whole words from variables which the source has not set so far. Where
// it goes off before they are, these words are empty; with the values of the end it is listed when the shell ends.
func (s *state) setLater(text val) bool {
	if !text.known() {
		return false
	}
	for _, at := range trapVariable.FindAllStringIndex(text.s, 20) {
		if at[1] < len(text.s) && !strings.ContainsRune(" \t\n;&|)", rune(text.s[at[1]])) {
			return false // the variable is part of a longer word
		}
	}
	ms := trapVariable.FindAllStringSubmatch(text.s, 20)
	for _, m := range ms {
		if _, ok := s.vars[m[2]+m[3]]; ok {
			return false
		}
	}
	return len(ms) > 0 && !strings.ContainsAny(trapVariable.ReplaceAllString(text.s, "$1"), "$`")
}

// trap is the text of a trap and where it was set.
type trap struct {
	text val
	call call
}

// runTrap lists what a trap would start if it went off in the state s.
func (in *interp) runTrap(c ctx, s *state, tr trap) {
	rc := c.under("trap")
	rc.maybe()
	old := in.nestedIn
	sub := s.clone()
	sub.stop, sub.traps = running, nil
	for _, r := range in.runText(rc, sub, tr.text, textRun{kind: "eval", pos: tr.call.pos, argv: tr.call.argv}) {
		s.absorb(r)
	}
	in.nestedIn = old
}

// runTraps lists the traps once more for the states in which a shell ends.
func (in *interp) runTraps(c ctx, states []*state) []*state {
	for _, s := range states {
		for _, tr := range s.traps {
			in.runTrap(c, s, tr)
		}
	}
	return states
}

// evaluatesNames tells the builtins that evaluate the subscript in a name: read 'a[$(cmd)]' runs cmd.
func evaluatesNames(name string) bool {
	switch name {
	case "read", "unset", "test", "[", "printf", "declare", "typeset", "local", "export", "readonly", "let", "mapfile", "getopts", "wait":
		return true
	}
	return false
}

// namesWithCode runs the code in subscripts of such names.
func (in *interp) namesWithCode(c ctx, s *state, k call) {
	for i, a := range k.argv[1:] {
		at := strings.IndexByte(a.Text, '[')
		if at <= 0 || !validName(a.Text[:at]) || !strings.ContainsAny(a.Text[at:], "$`") {
			continue
		}
		if name := k.argv[0].Text; (name == "test" || name == "[") && (i == 0 || k.argv[i].Text != "-v" && k.argv[i].Text != "-R") {
			continue
		}
		if name := k.argv[0].Text; name == "printf" && (i == 0 || k.argv[i].Text != "-v") {
			continue
		}
		v := a.val()
		v.s = v.s[at+1:]
		if end := strings.LastIndexByte(v.s, ']'); end >= 0 {
			v.s = v.s[:end]
		}
		v.s = ": " + v.s
		in.runText(c.under("subscript"), s.clone(), v, textRun{kind: "eval", pos: k.pos, argv: k.argv})
	}
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
