// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"regexp"
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/tripwires/shell"
)

// runnerTable lists the programs that run what their arguments say in a way of their own. The words may be commands of an
// editor, of a debugger, of a build tool; what they start is judged as if it were written out.
func runnerTable() map[string]program {
	t := map[string]program{}
	add := func(p program, names ...string) {
		for _, n := range names {
			t[n] = p
		}
	}
	add(progVim, "vim", "vi", "nvim", "ex", "view", "gvim", "mvim", "nvi", "vimdiff", "rvim", "vim.tiny", "vim.basic")
	add(progEd, "ed", "red")
	add(progDebugger, "gdb", "lldb", "gdb-multiarch", "rust-gdb", "rust-lldb", "cgdb")
	add(progPager, "less", "more", "man")
	add(progLisp, "emacs", "emacsclient", "guile", "sbcl", "clisp")
	add(progTcl, "tclsh", "wish", "expect", "jimsh")
	add(progCalculator, "dc", "m4", "gm4")
	add(progMake, "make", "gmake", "bmake", "remake")
	add(progCompiler, "gcc", "g++", "cc", "c++", "clang", "clang++")
	add(progTail, "bwrap", "nsjail", "firejail", "volta", "fnm", "watchexec", "nix", "nix-shell", "xterm", "gnome-terminal", "konsole", "kitty", "alacritty", "foot",
		"xfce4-terminal", "wezterm", "urxvt", "rxvt", "st", "ld.so", "ld-linux-x86-64.so.2", "ld-linux.so.2", "ld-linux-aarch64.so.1", "ld-musl-x86_64.so.1", "proot", "fakechroot", "cage",
		"dbus-run-session", "xvfb-run", "unbuffer", "hyperfine", "reptyr", "criu", "qemu-x86_64", "qemu-aarch64")
	add(progRemoteTail, "lxc", "incus", "multipass", "adb", "pdsh", "salt", "ansible", "nsenter", "machinectl", "limactl", "colima", "wsl", "toolbox", "distrobox", "clush", "pssh", "parallel-ssh")
	add(progPowerShell, "powershell", "pwsh", "pwsh-preview", "cmd")
	add(progEvalOption, "split", "sort", "zip", "ctags", "zargs")
	add(progSQL, "cqlsh", "influx", "clickhouse", "clickhouse-local", "trino", "presto", "beeline", "impala-shell", "spark-sql", "vsql", "mssql-cli", "mysqlsh")
	add(progORM, "sequelize", "sequelize-cli", "typeorm", "knex", "alembic", "drizzle-kit", "flask", "diesel", "sqlx", "typeorm-ts-node-commonjs")
	add(progGio, "gio")
	add(progForeign, "julia", "elixir", "iex", "erl", "ghc", "runghc", "stack", "groovy", "scala", "jshell", "kotlin", "crystal", "nim", "ocaml", "swift", "raku", "janet", "fennel", "bb", "clojure", "clj", "csi", "dotnet-script", "escript", "racket", "gforth", "octave")
	add(progPreview, "rg", "fzf", "sk")
	add(progSevenZip, "7z", "7za", "7zz", "7zr")
	return t
}

// destroyers are programs whose appearance at the end of another program's words says what those words are.
var destroyers = wordSet("rm", "grm", "dd", "shred", "truncate", "wipefs", "blkdiscard", "unlink", "rmdir", "srm", "chmod", "chown", "mkswap")

// destructiveTail finds where a known destructive command starts among a program's words: rm -rf X, dd of=X, mkfs.ext4 /dev/X.
func destructiveTail(argv []shell.Word) int {
	for i := 1; i < len(argv); i++ {
		if !argv[i].Known {
			continue
		}
		name := baseName(argv[i].Text)
		if !destroyers[name] && !strings.HasPrefix(name, "mkfs") || name != argv[i].Text && !strings.HasPrefix(argv[i].Text, "/") {
			if shells[name] && i+1 < len(argv) && strings.HasPrefix(argv[i+1].Text, "-") && strings.HasSuffix(argv[i+1].Text, "c") && !strings.HasPrefix(argv[i+1].Text, "--") {
				return i
			}
			continue
		}
		for _, w := range argv[i+1:] {
			t := w.Text
			switch {
			case (name == "chmod" || name == "chown") && (t == "-R" || t == "--recursive" || strings.HasPrefix(t, "-") && strings.Contains(t, "R")),
				name == "dd" && strings.HasPrefix(t, "of="),
				name != "chmod" && name != "chown" && name != "dd" && (strings.HasPrefix(t, "/") || strings.HasPrefix(t, "~")),
				(name == "rm" || name == "grm") && (t == "--recursive" || len(t) > 1 && t[0] == '-' && t[1] != '-' && strings.ContainsAny(t, "rR")):
				return i
			}
		}
	}
	return -1
}

// textOnly are programs whose words are text for people: what they mention does not run.
var textOnly = wordSet("notify-send", "logger", "say", "wall", "espeak", "cowsay", "figlet", "banner", "zenity", "xmessage", "whiptail", "dialog", "gum", "toilet", "lolcat",
	"boxes", "slackcat", "jira", "linear", "tea", "hub", "todo", "task", "llm", "terminal-notifier", "tr", "sd", "ast-grep", "sg", "semgrep", "comby", "gitlint", "commitlint", "cz", "pandoc", "glow", "mdcat",
	"http", "https", "xh", "grpcurl", "websocat", "mosquitto_pub", "kcat", "hey", "wrk", "ab", "vegeta", "oha", "svn", "hg", "jj", "brew", "apt", "apt-get", "dnf", "yum", "pacman", "apk", "zypper", "snap", "flatpak", "conda", "pip", "pip3", "gem")

// progUnlisted covers a program that no table knows. Where its last words are a destructive command, or an option that takes
// a command holds one that would be denied, it is judged as if it ran; a script is scanned.
func progUnlisted(x *evaluation, c *command) {
	if notReaders[c.name] || textOnly[c.name] {
		x.execute(c)
		return
	}
	if strings.Contains(c.Argv[0].Text, "/") && c.Argv[0].Known {
		x.judgeScriptFile(c, "", c.Argv[0])
	}
	if i := destructiveTail(c.Argv); i > 0 {
		x.nestedWords(c.Argv[i:], c, c.name)
	}
	x.commandOptions(c)
	x.execute(c)
}

// commandOption reports whether an option's name says that its value is a command.
func commandOption(t string) (value string, inline, ok bool) {
	name, val, eq := strings.Cut(t, "=")
	switch strings.ToLower(name) {
	case "-c", "-e", "-x", "-exec", "--exec", "--command", "--cmd", "--eval", "--run", "--execute", "--shell-command", "--script", "--on-change", "--hook", "-ex", "-r":
		return val, eq && val != "", true
	}
	return "", false, false
}

// commandOptions judges the values of options that take a command. Only what would be denied by itself counts, since the
// program and its option are not known.
func (x *evaluation) commandOptions(c *command) {
	for i := 0; i < len(c.args); i++ {
		val, inline, ok := commandOption(c.args[i].Text)
		switch {
		case !ok:
		case inline:
			x.suspect(c, val)
		case i+1 < len(c.args) && c.args[i+1].Known:
			x.suspect(c, c.args[i+1].Text)
		}
	}
}

// suspect judges a text that may be a command, and keeps what it finds only where that would be denied.
func (x *evaluation) suspect(c *command, text string) {
	if !strings.Contains(text, " ") {
		return
	}
	x.onlyIfDenied(func() { x.nested(text, c, c.name) })
}

// onlyIfDenied keeps what judge adds only if the rules deny it.
func (x *evaluation) onlyIfDenied(judge func()) {
	findings, cmds, uncertain := x.findings, x.cmds, x.uncertain
	x.findings = nil
	judge()
	found := x.findings
	verdict := event.Pass
	for _, o := range x.judge() {
		if o.Layer != string(LayerBuiltin) && !o.Floor {
			continue
		}
		verdict = event.Stricter(verdict, o.Verdict)
	}
	if verdict == event.Deny {
		x.findings = append(findings, found...)
		return
	}
	x.findings, x.cmds, x.uncertain = findings, cmds, uncertain
}

// nestedWord judges a word as a shell text.
func (x *evaluation) nestedWord(w shell.Word, c *command, via string) {
	if w.Known {
		x.nested(w.Text, c, via)
		return
	}
	if strings.Trim(w.Text, "\x00 ") == "" {
		x.opaqueCode(c, "a command that is not known would run")
		return
	}
	x.codeShell(c, codeValue{text: w.Text})
}

// progTail covers programs that start the words behind their options.
func progTail(x *evaluation, c *command) {
	if tail := commandTail(c); len(tail) > 0 {
		x.nestedWords(tail, c, c.name)
	}
	x.commandOptions(c)
	x.execute(c)
}

// commandTail finds the command among the words of a program that starts one: what follows "--", an option that takes it,
// or the first words of a program that a table knows.
func commandTail(c *command) []shell.Word {
	for i, w := range c.args {
		switch w.Text {
		case "--", "-e", "--command", "-x", "--exec":
			if i+1 < len(c.args) && (len(c.args) > i+2 || !strings.Contains(c.args[i+1].Text, " ")) {
				return c.args[i+1:]
			}
		case "run", "exec", "shell":
			if i == 0 && c.name != "nix" && len(c.args) > 1 && !strings.HasPrefix(c.args[1].Text, "-") {
				if c.name == "multipass" || c.name == "lxc" || c.name == "incus" {
					break
				}
				return c.args[1:]
			}
		}
	}
	for i, w := range c.args {
		if w.Text == "--command" || w.Text == "-c" || strings.HasPrefix(w.Text, "--") {
			continue
		}
		name := baseName(w.Text)
		if w.Known && (destroyers[name] || shells[name] || strings.HasPrefix(name, "mkfs") || languageOf(name) != "") && i+1 < len(c.args) {
			return c.args[i:]
		}
	}
	return nil
}

// progRemoteTail is progTail for programs that start it on another machine or in a container.
func progRemoteTail(x *evaluation, c *command) {
	at := *c
	at.Remote = true
	if c.name != "wsl" {
		at.Host = c.name
	} else {
		at.Remote = false
	}
	switch c.name {
	case "ansible":
		p := parseArgs(c.args, optSpec{short: "maiuelftIPcMk", long: []string{"--module-name", "--args", "--inventory", "--user", "--extra-vars", "--limit", "--forks"}})
		if m, ok := p.value("-m", "--module-name"); !ok || m.Text == "shell" || m.Text == "command" || m.Text == "raw" || strings.HasSuffix(m.Text, ".shell") || strings.HasSuffix(m.Text, ".command") || strings.HasSuffix(m.Text, ".raw") {
			for _, w := range p.all("-a", "--args") {
				x.nestedWord(w, &at, "ansible")
			}
		}
	case "salt":
		for i, w := range c.args {
			if (w.Text == "cmd.run" || w.Text == "cmd.shell" || w.Text == "cmd.run_all") && i+1 < len(c.args) {
				x.nestedWord(c.args[i+1], &at, "salt")
			}
		}
	default:
		tail := commandTail(c)
		if len(tail) == 1 && strings.Contains(tail[0].Text, " ") {
			x.nestedWord(tail[0], &at, c.name)
		} else if len(tail) > 0 {
			x.nestedWords(tail, &at, c.name)
		}
	}
	x.remoteTool(c)
	x.execute(c)
}

// remoteTool covers what these programs do to the machines that they keep.
func (x *evaluation) remoteTool(c *command) {
	p := parseArgs(c.args, optSpec{})
	switch verb := p.operand(0); {
	case (c.name == "lxc" || c.name == "incus" || c.name == "multipass" || c.name == "limactl" || c.name == "colima" || c.name == "distrobox" || c.name == "toolbox") && (verb == "delete" || verb == "rm" || verb == "purge"),
		c.name == "wsl" && p.has("--unregister"):
		x.effect(c, InfraDestroy, "destroy", c.name+" "+verb, "a machine and its data are deleted")
	}
}

// progEvalOption covers programs of which one option is a command.
func progEvalOption(x *evaluation, c *command) {
	switch c.name {
	case "split", "sort", "zip":
		p := parseArgs(c.args, optSpec{long: []string{"--filter", "--compress-program", "--unzip-command"}})
		for _, w := range p.all("--filter", "--compress-program", "--unzip-command") {
			x.nestedWord(w, c, c.name)
		}
		if c.name == "zip" {
			x.zipMoves(c)
		}
	case "zargs": // zargs -- ARGS -- CMD
		var parts [3][]shell.Word
		n := 0
		for _, w := range c.args {
			if w.Text == "--" && n < 2 {
				n++
				continue
			}
			parts[n] = append(parts[n], w)
		}
		if n == 2 && len(parts[2]) > 0 {
			x.nestedWords(append(slices.Clone(parts[2]), parts[1]...), c, "zargs")
		}
	}
	if !harmless[c.name] {
		x.execute(c)
	}
}

// zipMoves covers zip -m, which deletes what it has put away.
func (x *evaluation) zipMoves(c *command) {
	p := parseArgs(c.args, optSpec{short: "bntxiP", long: []string{"--temp-path", "--exclude", "--include", "--password"}})
	if !p.has("-m", "--move") || len(p.operands) < 2 {
		return
	}
	for _, w := range p.operands[1:] {
		x.remove(c, w, removal{recursive: p.has("-r", "--recurse-paths"), forced: true, form: "zip", note: "removed after archiving"})
	}
}

// progCompiler covers a compiler that is told to start another program in front of its own.
func progCompiler(x *evaluation, c *command) {
	for i, w := range c.args {
		if w.Text == "-wrapper" && i+1 < len(c.args) && c.args[i+1].Known {
			x.nestedArgv(strings.Split(c.args[i+1].Text, ","), c, c.name)
		}
	}
	x.execute(c)
}

// progPager covers pagers that run a command at their start.
func progPager(x *evaluation, c *command) {
	for i, w := range c.args {
		if rest, ok := strings.CutPrefix(w.Text, "+!"); ok {
			x.nested(rest, c, c.name)
		}
		if (w.Text == "-P" || w.Text == "--pager") && c.name == "man" && i+1 < len(c.args) {
			x.nestedWord(c.args[i+1], c, c.name)
		}
	}
}

var macroCall = regexp.MustCompile("e?syscmd\\(`?([^)']*)'?\\)")

// progCalculator covers dc, which runs lines that start with !, and m4, which has a macro for it.
func progCalculator(x *evaluation, c *command) {
	var texts []string
	if c.Stdin.Known {
		texts = append(texts, c.Stdin.Text)
	}
	for i, w := range c.args {
		if i > 0 && (c.args[i-1].Text == "-e" || c.args[i-1].Text == "--expression") {
			texts = append(texts, w.Text)
		}
	}
	for _, t := range texts {
		if c.name == "dc" {
			x.bangLines(c, t)
			continue
		}
		for _, m := range macroCall.FindAllStringSubmatch(t, 20) {
			x.nested(m[1], c, c.name)
		}
	}
	if !harmless[c.name] {
		x.execute(c)
	}
}

// bangLines judges the lines of a text that start with an exclamation mark.
func (x *evaluation) bangLines(c *command, text string) {
	for line := range strings.SplitSeq(text, "\n") {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "!"); ok && rest != "" {
			x.nested(rest, c, c.name)
		}
	}
}
