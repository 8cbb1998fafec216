// SPDX-License-Identifier: Apache-2.0

package shell

import "strings"

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
