// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"slices"
	"strings"
)

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
		if strings.Contains(v.s, "$(") || strings.Contains(v.s, "`") { // it is expanded before it is opened
			v.s = ": \"" + strings.ReplaceAll(v.s, `"`, "") + `"`
			in.runText(rc, s.clone(), v, textRun{kind: "eval", pos: a.Value.Pos})
		} else if v.s != "" {
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
