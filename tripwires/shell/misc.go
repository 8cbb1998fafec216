// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"slices"
	"strings"
)

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

// git lists the commands that git starts because the command line says so.
func (in *interp) git(c ctx, s *state, k call) []*state {
	args := k.argv[1:]
	run := func(via string, v val) {
		rc := c.under(via)
		rc.maybe()
		n := in.child(c, s)
		for _, r := range in.runText(rc, n, v, textRun{kind: "eval", pos: k.pos, argv: k.argv}) {
			s.absorb(r)
		}
	}
	config := func(w Word) {
		key, _, _ := strings.Cut(w.Text, "=")
		v := w.val()
		_, v.s, _ = strings.Cut(v.s, "=")
		if code, ok := gitConfigCode(key, v); ok {
			run("git -c", code)
		}
	}
	i := 0
	for ; i < len(args); i++ {
		t := args[i].Text
		if len(t) == 0 || t[0] != '-' {
			break
		}
		switch t {
		case "-c":
			if i++; i < len(args) {
				config(args[i])
			}
		case "-C", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix", "--config-env":
			i++
		}
	}
	if i >= len(args) {
		return []*state{s}
	}
	sub, rest := args[i].Text, args[i+1:]
	switch sub {
	case "bisect":
		if len(rest) > 1 && rest[0].Text == "run" {
			rc := c.under("git bisect run")
			rc.maybe()
			in.dispatchProgram(rc, s.clone(), call{argv: rest[1:], pos: k.pos})
		}
	case "config":
		ops := operands(rest, "f")
		if len(ops) > 0 && ops[0].Text == "set" {
			ops = ops[1:]
		}
		if len(ops) == 2 {
			if code, ok := gitConfigCode(ops[0].Text, ops[1].val()); ok {
				run("git config", code)
			}
		}
	case "submodule", "rebase", "filter-branch", "clone", "fetch", "pull", "push", "difftool", "mergetool", "grep", "ls-remote":
		in.gitOptions(sub, rest, run)
	}
	return []*state{s}
}

// gitOptions finds the code in the options of a subcommand.
func (in *interp) gitOptions(sub string, rest []Word, run func(string, val)) {
	for j, a := range rest {
		opt, _, has := strings.Cut(a.Text, "=")
		v := a.val()
		if has {
			_, v.s, _ = strings.Cut(v.s, "=")
		} else if j+1 < len(rest) {
			v = rest[j+1].val()
		} else {
			v = val{}
		}
		code := false
		switch sub {
		case "submodule":
			if a.Text == "foreach" {
				ops := operands(rest[j+1:], "")
				if len(ops) > 0 {
					run("git submodule foreach", joinWords(ops))
				}
				return
			}
		case "rebase":
			code = opt == "-x" || opt == "--exec"
		case "filter-branch":
			code = strings.HasSuffix(opt, "-filter")
		case "clone", "fetch", "pull", "push", "ls-remote":
			code = opt == "--upload-pack" || opt == "-u" && (sub == "clone") || opt == "--receive-pack" || opt == "--exec"
			if strings.HasPrefix(a.Text, "ext::") {
				v, code = a.val(), true
				v.s = strings.TrimPrefix(v.s, "ext::")
			}
			if (opt == "-c" || opt == "--config") && sub == "clone" && j+1 < len(rest) {
				key, _, _ := strings.Cut(rest[j+1].Text, "=")
				cv := rest[j+1].val()
				_, cv.s, _ = strings.Cut(cv.s, "=")
				if t, ok := gitConfigCode(key, cv); ok {
					run("git -c", t)
				}
			}
		case "difftool", "mergetool":
			code = opt == "-x" || opt == "--extcmd"
		case "grep":
			if strings.HasPrefix(a.Text, "-O") && len(a.Text) > 2 {
				v, code = a.val(), true
				v.s = v.s[2:]
			}
			if has && opt == "--open-files-in-pager" {
				code = true
			}
		}
		if code && v.s != "" {
			run("git "+sub, v)
		}
	}
}

// gitConfigCode tells whether a configuration value is code that git runs.
func gitConfigCode(key string, v val) (val, bool) {
	key = strings.ToLower(key)
	if strings.HasPrefix(key, "alias.") || strings.HasPrefix(key, "credential.") && strings.HasSuffix(key, "helper") {
		if !strings.HasPrefix(v.s, "!") {
			return val{}, false
		}
		v.s = v.s[1:]
		return v, true
	}
	switch key {
	case "core.pager", "core.editor", "core.sshcommand", "core.askpass", "core.fsmonitor", "sequence.editor", "diff.external",
		"gpg.program", "uploadpack.packobjectshook", "core.gitproxy", "interactive.difffilter":
		if v.s == "true" || v.s == "false" || v.s == "" {
			return val{}, false
		}
		return v, true
	}
	for _, suffix := range []string{".textconv", ".clean", ".smudge", ".process", ".command", ".driver", ".cmd"} {
		if strings.HasSuffix(key, suffix) {
			return v, v.s != ""
		}
	}
	if strings.HasPrefix(key, "pager.") && v.s != "true" && v.s != "false" {
		return v, v.s != ""
	}
	return val{}, false
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

// hooks lists the code in options of programs that start other commands.
func (in *interp) hooks(c ctx, s *state, k call, name string) {
	run := func(v val) {
		rc := c.under(name)
		rc.maybe()
		n := in.child(c, s)
		for _, r := range in.runText(rc, n, v, textRun{kind: "eval", pos: k.pos, argv: k.argv}) {
			s.absorb(r)
		}
	}
	var opts, prefixes []string
	switch name {
	case "tar", "gtar", "bsdtar":
		prefixes = []string{"--checkpoint-action=exec=", "--to-command=", "--use-compress-program=", "--info-script=", "--new-volume-script=",
			"--rsh-command="}
		opts = []string{"-I", "-F", "--to-command", "--use-compress-program", "--info-script"}
	case "rsync":
		prefixes = []string{"--rsh="}
		opts = []string{"-e", "--rsh"}
	case "zip":
		opts = []string{"-TT", "--unzip-command"}
	case "man":
		opts = []string{"-P", "--pager", "-H"}
	case "sort":
		prefixes = []string{"--compress-program="}
	case "nmap", "ncat", "nc", "netcat":
		opts = []string{"-e", "-c", "--exec", "--sh-exec"}
	case "hyperfine", "nodemon", "concurrently", "watchexec", "chokidar":
		opts = []string{"-p", "--prepare", "-x", "--exec", "-c", "--command"}
		if name != "nodemon" {
			for _, w := range operands(k.argv[1:], "wrmMsnpcxef") {
				run(w.val())
			}
		}
	default:
		return
	}
	for i, a := range k.argv[1:] {
		for _, p := range prefixes {
			if strings.HasPrefix(a.Text, p) {
				v := a.val()
				v.s = v.s[len(p):]
				run(v)
			}
		}
		if slices.Contains(opts, a.Text) && a.Known && i+2 < len(k.argv) {
			run(k.argv[i+2].val())
		}
	}
}

// runner lists the command that a project tool starts in its environment: poetry run, bundle exec and the like.
func (in *interp) runner(c ctx, s *state, k call, name string) []*state {
	one := []*state{s}
	verb := "run"
	switch name {
	case "poetry", "pipenv", "pdm", "hatch", "rye", "conda", "mamba", "micromamba", "doppler", "infisical", "op", "toolbox", "rustup", "uv":
	case "bundle", "aws-vault", "chamber", "asdf", "rtx", "mise", "direnv", "pnpm", "yarn", "rbenv", "pyenv", "nodenv":
		verb = "exec"
	case "flatpak-spawn", "distrobox-host-exec", "host-spawn":
		verb = ""
	case "nix-shell", "sg", "vagrant":
		for i, a := range k.argv {
			if (a.Text == "--run" || a.Text == "--command" || a.Text == "-c") && i+1 < len(k.argv) {
				return in.runWords(c.under(name), s, k, k.argv[i+1:i+2])
			}
		}
		return one
	default:
		return one
	}
	args := k.argv[1:]
	if verb != "" {
		if len(args) == 0 || args[0].Text != verb {
			return one
		}
		args = args[1:]
	}
	at := skipOptions(args, 0, " n name p prefix with e env E extra group python ")
	for i, a := range args {
		if a.Text == "--" {
			at = i + 1
			break
		}
	}
	if (name == "direnv" || name == "rustup") && at == 0 {
		at = 1 // the directory, or the toolchain
	}
	if at < len(args) {
		return in.dispatchProgram(c.under(strings.TrimSpace(name+" "+verb)), s, call{argv: args[at:], redirs: k.redirs, pos: k.pos})
	}
	return one
}

// runsAsCommand tells the variables whose value other programs run as a command.
func runsAsCommand(name string) bool {
	switch name {
	case "EDITOR", "VISUAL", "PAGER", "MANPAGER", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_PAGER", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF",
		"GIT_ASKPASS", "SSH_ASKPASS", "SUDO_ASKPASS", "SUDO_EDITOR", "PROMPT_COMMAND", "LESSOPEN", "LESSCLOSE", "BASH_ENV", "ENV", "BROWSER",
		"GIT_PROXY_COMMAND", "RSYNC_RSH", "CVS_RSH", "FCEDIT", "PS0", "PS1", "PS2", "PS4":
		return true
	}
	return false
}

// envCommand lists the command in such a variable. A plain name, such as vim, is none.
func (in *interp) envCommand(c ctx, s *state, a Assign) {
	v := a.Value.val()
	rc := c.under("$" + a.Name)
	rc.env = nil
	rc.maybe()
	switch a.Name {
	case "BASH_ENV", "ENV":
		if v.s != "" {
			in.runScript(rc, s.clone(), a.Value, call{pos: a.Value.Pos}, 0, true)
		}
		return
	case "PS0", "PS1", "PS2", "PS4":
		if !strings.Contains(v.s, "$(") && !strings.Contains(v.s, "`") {
			return
		}
		v.s = ": \"" + strings.ReplaceAll(v.s, `"`, "") + `"`
	case "LESSOPEN", "LESSCLOSE":
		v.s = strings.TrimLeft(v.s, "|-")
	}
	if !strings.ContainsAny(v.s, " \t\n;&|`$(") {
		return
	}
	in.runText(rc, s.clone(), v, textRun{kind: "eval", pos: a.Value.Pos})
}
