// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"strings"

	"github.com/tripline-sh/tripline/tripwires/paths"
	"github.com/tripline-sh/tripline/tripwires/shell"
)

// judgeRedirections adds what a command's redirections read and write.
func (x *evaluation) judgeRedirections(c *command) {
	for _, r := range c.Redirs {
		switch r.Op {
		case ">", ">|", "&>", ">&", "<>", ">>", "&>>":
			if isDescriptor(r) {
				continue
			}
			if host, ok := networkDevice(r.Target.Text); ok {
				x.networkRedirect(c, host)
				continue
			}
			if r.Op == "<>" {
				x.writeFile(c, r.Target, Write, true)
				continue
			}
			if r.Op == ">>" || r.Op == "&>>" {
				x.writeFile(c, r.Target, Append, true)
			} else if x.printsNothing(c) {
				x.writeFile(c, r.Target, Empty, true)
			} else {
				x.writeFile(c, r.Target, Write, true)
			}
		case "<":
			if host, ok := networkDevice(r.Target.Text); ok {
				x.networkRedirect(c, host)
				continue
			}
			x.readFile(c, r.Target, !notReaders[c.name] || c.name == "read" || c.name == "tee", true)
		}
	}
}

// isDescriptor reports whether a redirection only joins file descriptors, as in 2>&1.
func isDescriptor(r shell.Redir) bool {
	t := strings.TrimSuffix(r.Target.Text, "-")
	return r.Op == ">&" && r.Target.Known && strings.Trim(t, "0123456789") == ""
}

// printsNothing reports whether a command writes nothing to its output, so that redirecting it empties the file.
func (x *evaluation) printsNothing(c *command) bool {
	switch c.name {
	case "", ":", "true", "false", "exec":
		return true
	case "cat":
		return len(c.args) == 1 && c.args[0].Text == "/dev/null"
	case "printf":
		return len(c.args) == 0 || len(c.args) == 1 && c.args[0].Known && c.args[0].Text == ""
	case "echo":
		return len(c.args) == 1 && c.args[0].Text == "-n"
	}
	return false
}

// networkDevice reports whether a redirection's file is bash's own network file.
func networkDevice(t string) (host string, ok bool) {
	for _, p := range []string{"/dev/tcp/", "/dev/udp/"} {
		if rest, found := strings.CutPrefix(t, p); found {
			host, _, _ = strings.Cut(rest, "/")
			return host, true
		}
	}
	return "", false
}

func (x *evaluation) networkRedirect(c *command, host string) {
	form := "socket"
	if shells[c.name] || c.name == "exec" {
		form = "reverse-shell"
	}
	x.add(finding{Effect: Effect{Kind: NetworkSend, Target: host, Program: c.name, Via: c.Via}, form: form, host: host, cmd: c.index, redir: true})
}

var shells = wordSet("sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "busybox", "csh", "tcsh", "rbash", "yash")

// writeFile adds a change of a file's content: Write, Append, Empty or Overwrite.
func (x *evaluation) writeFile(c *command, w shell.Word, kind EffectKind, redir bool) {
	if c.Remote {
		host, ok := c.mounted(w)
		if !ok || !belowMount(c, w) {
			return
		}
		w = host
	}
	for _, l := range x.locateTarget(c, w) {
		if l.res.Sink {
			continue
		}
		f := l.finding(kind)
		f.Program, f.Via, f.cmd, f.redir, f.privileged = c.name, c.Via, c.index, redir, c.Privileged
		if !l.certain {
			x.doubt("what would be written could not be told")
		}
		if out := knownOutput(c); redir && kind == Write && l.res.Settings && out.Known && c.writesOnce() {
			x.settingsContent(f, &l, func([]byte) ([]byte, bool) { return []byte(out.Text), true })
			continue
		}
		x.addWrite(f, &l)
	}
}

// writesOnce reports whether a command's output goes to one plain file and nothing else is done with it.
func (c *command) writesOnce() bool {
	files := 0
	for _, r := range c.Redirs {
		switch r.Op {
		case ">", ">|":
			if r.FD != "" && r.FD != "1" {
				return false
			}
			files++
		case "<<", "<<-", "<<<":
		default:
			return false
		}
	}
	return files == 1 && c.Pipe == 0
}

// belowMount reports whether the word lies below a mount; a write above one does not reach the host.
func belowMount(c *command, w shell.Word) bool {
	for _, m := range c.Mounts {
		if within(strings.TrimSuffix(m[1], "/"), w.Text) {
			return true
		}
	}
	return false
}

// addWrite records a write and what else it means: to settings, to start files, to secrets.
func (x *evaluation) addWrite(f finding, l *located) {
	if (f.Kind == Empty || f.Kind == Overwrite) && l.certain && !l.res.Exists && !l.res.Denied && l.place != string(paths.Device) {
		if f.Kind == Empty && f.form == "truncate" || l.place == string(paths.Project) || l.place == string(paths.Outside) || l.place == string(paths.Temp) {
			f.Kind = Write // nothing is there to lose
		}
	}
	if l.res.Settings {
		x.settingsWrite(&f, l)
		return
	}
	if l.place == string(paths.Device) && f.Kind != Delete {
		f.Kind = DeviceWrite
	}
	if l.res.Credentials && strings.HasPrefix(baseName(l.res.Path), "authorized_keys") {
		f.form = "authorized-keys"
	}
	switch s := l.res.Sensitive; s {
	case "shell-start", "crontab", "unit", "history", "env-file":
		extra := f
		extra.Kind, extra.form = Persistence, s
		switch {
		case s == "history" && f.Kind != Append:
			extra.Kind = HistoryWipe
		case s == "history":
			extra.form = ""
		case s == "env-file":
			extra.Kind = f.Kind
			f.form = s
		}
		if s != "env-file" && extra.form != "" {
			x.add(extra)
		}
	}
	if inGitHooks(l) {
		extra := f
		extra.Kind, extra.form = Persistence, "git-hook"
		x.add(extra)
	}
	x.add(f)
}

// inGitHooks reports whether a file is one that git runs, or that tells git what to run.
func inGitHooks(l *located) bool {
	for _, p := range l.abs {
		if _, rest, ok := strings.Cut(p, "/.git/"); ok && (strings.HasPrefix(rest, "hooks/") || rest == "config") {
			return true
		}
	}
	return false
}

// readFile adds the reading of a file. content says whether what is in it is shown or passed on.
func (x *evaluation) readFile(c *command, w shell.Word, content, redir bool) {
	if c.Remote {
		host, ok := c.mounted(w)
		if !ok || !belowMount(c, w) {
			return
		}
		w = host
	}
	if !w.Known && w.Hidden {
		x.doubt("the name of what is read is hidden by an encoding")
		x.add(finding{Effect: Effect{Kind: Read, Target: w.Text, Program: c.name, Via: c.Via, Place: placeUnknown, Certainty: Uncertain,
			Note: "the name is hidden by an encoding"}, form: "hidden", cmd: c.index, redir: redir})
		return
	}
	for _, l := range x.locateTarget(c, w) {
		if !l.certain || l.res.Sink {
			continue
		}
		f := l.finding(Read)
		f.Program, f.Via, f.cmd, f.redir = c.name, c.Via, c.index, redir
		f.quiet = !content || !redir && !shownReaders[c.name]
		if content {
			if form := secretForm(&l); form != "" {
				f.Kind, f.form, f.quiet = SecretRead, form, false
			}
		}
		x.add(f)
	}
}

// shownReaders are programs whose operands are files that they read: worth showing as effects. Of the others only secrets show.
var shownReaders = wordSet("cat", "bat", "batcat", "head", "tail", "less", "more", "grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "sort", "uniq",
	"cut", "diff", "cmp", "comm", "join", "paste", "fold", "nl", "tac", "rev", "strings", "xxd", "od", "hexdump", "hd", "base64", "base32", "jq", "yq", "cp", "tar",
	"zip", "scp", "rsync", "sed", "awk", "gawk", "gzip", "bzip2", "xz", "zstd", "zcat", "openssl", "objdump")
