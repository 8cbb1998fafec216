// SPDX-License-Identifier: Apache-2.0

package shell

import "slices"

// su starts a shell of another user; -c gives it a text.
func (in *interp) su(c ctx, s *state, k call, name string) []*state {
	sp := spec{short: "cCgGsTuw", long: "command session-command group supp-group shell user whitelist-environment", none: "version help V h"}
	args := k.argv[1:]
	var rest []Word
	// Options may stand behind the user's name.
	o := sp.read(args)
	_, direct := o.has("u", "user")
	if direct = direct && name == "runuser"; direct {
		rest = args[o.at:] // no shell
	}
	for at := o.at; at < len(args) && !direct; {
		if args[at].Text != "-" {
			rest = append(rest, args[at])
		}
		more := sp.read(args[at+1:])
		for n, v := range more.given {
			o.given[n] = v
		}
		at += 1 + more.at
	}
	rc := c.under(name)
	rc.priv = true
	if w, ok := o.has("c", "command", "session-command"); ok {
		return in.runWords(rc, s, k, []Word{w})
	}
	if direct && len(rest) > 0 {
		return in.dispatchProgram(rc, s, call{argv: rest, redirs: k.redirs, pos: k.pos, noFunc: true})
	}
	in.external(c, s, k, name)
	if !s.in.none {
		n := in.child(c, s)
		return in.fromChild(s, in.shellStdin(rc, n, k, name, 0))
	}
	return []*state{s}
}

// multiplexer lists the commands that tmux and screen type or start.
func (in *interp) multiplexer(c ctx, s *state, k call, name string) []*state {
	args := k.argv[1:]
	run := func(words []Word) {
		if len(words) == 0 {
			return
		}
		rc := c.under(name)
		rc.background = true
		n := in.child(c, s)
		rc.env = nil
		for _, r := range in.runText(rc, n, joinWords(words), textRun{kind: "eval", pos: k.pos, argv: k.argv}) {
			s.absorb(r)
		}
	}
	if name == "screen" {
		for i, a := range args {
			if a.Text == "stuff" && i+1 < len(args) {
				run(args[i+1 : i+2])
				return []*state{s}
			}
		}
		if i := skipOptions(args, 0, " S c e h p s t T X "); i < len(args) {
			if !slices.ContainsFunc(args, func(w Word) bool { return w.Text == "-X" || w.Text == "-r" || w.Text == "-ls" }) {
				in.dispatchProgram(c.under(name), in.child(c, s), call{argv: args[i:], pos: k.pos})
			}
		}
		return []*state{s}
	}
	for len(args) > 0 {
		end := slices.IndexFunc(args, func(w Word) bool { return w.Text == ";" })
		cmd := args
		if end >= 0 {
			cmd, args = args[:end], args[end+1:]
		} else {
			args = nil
		}
		i := skipOptions(cmd, 0, " L S f c ")
		if i >= len(cmd) {
			continue
		}
		rest := cmd[i+1:]
		switch cmd[i].Text {
		case "send-keys", "send":
			var keys []Word
			for _, w := range rest[min(skipOptions(rest, 0, " t N "), len(rest)):] {
				switch w.Text {
				case "Enter", "C-m", "C-j", "KPEnter":
				default:
					keys = append(keys, w)
				}
			}
			run(keys)
		case "new-session", "new", "new-window", "neww", "split-window", "splitw", "respawn-pane", "respawnp", "respawn-window", "respawnw",
			"run-shell", "run", "pipe-pane", "pipep", "popup", "display-popup", "if-shell", "if":
			switch cmd[i].Text {
			case "run-shell", "if-shell", "run", "if":
				at := min(skipOptions(rest, 0, " t d c "), len(rest))
				run(rest[at:min(at+1, len(rest))])
			case "popup", "display-popup":
				run(rest[min(skipOptions(rest, 0, " b c d e h s S t T w x y "), len(rest)):])
			default:
				run(rest[min(skipOptions(rest, 0, " t s n c e x y F l p f "), len(rest)):])
			}
		}
	}
	return []*state{s}
}

// at runs standard input, or a file, later.
func (in *interp) at(c ctx, s *state, k call, name string) []*state {
	o := spec{short: "qftv", none: "l r d c V"}.read(k.argv[1:])
	rc := c.under(name)
	rc.background = true
	n := in.child(c, s)
	if o.stop {
		return []*state{s}
	}
	if f, ok := o.has("f"); ok {
		in.runScript(rc, n, f, k, 0, true)
	} else if !s.in.none {
		in.runText(rc, n, s.in.v, textRun{kind: "stdin-shell", pos: k.pos, argv: k.argv})
	}
	return []*state{s}
}

// scriptCommand is script -c TEXT, and script FILE COMMAND... of BSD.
func (in *interp) scriptCommand(c ctx, s *state, k call, name string, o options) []*state {
	if w, ok := o.has("c", "command"); ok {
		return in.runWords(c.under(name), s, k, []Word{w})
	}
	in.external(c, s, k, name)
	args := k.argv[1:]
	if o.at+1 < len(args) {
		return in.dispatchProgram(c.under(name), s, k.from(o.at+2))
	}
	if !s.in.none {
		n := in.child(c, s)
		return in.fromChild(s, in.shellStdin(c.under(name), n, k, name, 0))
	}
	return []*state{s}
}
