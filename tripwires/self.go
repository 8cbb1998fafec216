// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/paths"
	"github.com/tripline-sh/tripline/tripwires/shell"
)

// ourVerbs are the sub-commands of auditctl that change state: they are a person's, never an agent's. What starts the daemon,
// asks, tests or shows something is everybody's.
var ourVerbs = wordSet("stop", "restart", "install", "uninstall", "purge", "trust", "relax", "new", "reload", "approve", "deny", "remember", "revoke", "import", "rewind")

// ourGroups are words that may stand before such a verb.
var ourGroups = wordSet("rules", "approvals", "grants", "approval", "rule", "grant", "config", "daemon", "log")

// ciVerbs are the verbs of the group ci: they make and end an install of their own.
var ciVerbs = wordSet("start", "finish")

const daemonName = "triplined"

// selfProtected adds an effect if the command acts on Tripline itself by other means than its files, which places cover.
func (x *evaluation) selfProtected(c *command, all []*command) bool {
	form := ""
	switch {
	case c.name == daemonName: // before it counts as a file of ours: only its flags are a person's
		if len(c.args) > 0 && !hasWord(c, "--help", "--version", "-h", "version") {
			form = "daemon"
		}
	case x.isOurTool(c):
		if x.ourVerb(c) {
			form = "verb"
		}
	case c.name == "go" && runsOurVerb(x, c):
		form = "verb"
	case c.name == "claude" && len(c.args) > 2 && c.args[0].Text == "config" && c.args[1].Text != "get" && c.args[1].Text != "list" && mentions(c.args, "ook"):
		form = "settings"
	case x.endsDaemon(c, all):
		form = "kill"
	case managers[c.name]:
		if stopsUnit(c) {
			form = "unit"
		}
	case tracers[c.name]:
		if mentions(c.args, "triplined", "tripline") || x.looksUpDaemon(all) {
			form = "trace"
		}
	}
	if form == "" && talksToSocket(c) {
		form = "socket"
	}
	if form == "" && x.reachesDaemon(c, all) {
		form = "trace"
	}
	if form == "" && trustedVariable(c) {
		form = "environment"
	}
	if form == "" && x.copiesOurTool(c) {
		form = "copy"
	}
	if form == "" {
		return false
	}
	x.effect(c, SelfTamper, form, c.name, "")
	return true
}

// tracers are programs that reach into another process.
var tracers = wordSet("prlimit", "gdb", "strace", "ltrace", "ptrace", "renice", "taskset", "chrt", "ionice", "reptyr", "criu", "lldb", "bpftrace", "perf", "nsenter", "cpulimit", "timeout", "choom")

// isOurTool reports whether the program is auditctl under one of its names, by path, or as a copy among the install's own
// files.
func (x *evaluation) isOurTool(c *command) bool {
	if len(c.Argv) == 0 {
		return false
	}
	if c.name == "auditctl" || c.name == "tripline" {
		return true
	}
	t := c.Argv[0].Text
	if !strings.Contains(t, "/") || !c.Argv[0].Known {
		return false
	}
	for _, l := range x.locateTarget(c, c.Argv[0]) {
		if l.place == string(paths.Tripline) && !l.res.Settings && c.name != "tripline-hook" {
			return true
		}
		for _, p := range l.abs {
			if b := baseName(p); b == "auditctl" || b == "tripline" {
				return true
			}
		}
	}
	return false
}

// ourVerb reports whether the words after auditctl change state. explain takes a command after it, which is only text.
func (x *evaluation) ourVerb(c *command) bool {
	if asksForHelp(c) {
		return false
	}
	ci := false
	for i := 0; i < len(c.args); i++ {
		w := c.args[i]
		switch {
		case !w.Known, w.Glob: // a file of the name of a verb may lie there
			return true
		case w.Text == "--":
			continue
		case strings.HasPrefix(w.Text, "-"):
			// Without knowing every option, the next word may be its value or the verb: look at both.
			continue
		case ourVerbs[w.Text], ci && ciVerbs[w.Text]:
			return true
		case w.Text == "ci":
			ci = true
			continue
		case ourGroups[w.Text]:
			continue
		case i > 0 && strings.HasPrefix(c.args[i-1].Text, "-") && !strings.Contains(c.args[i-1].Text, "="):
			continue
		}
		return false
	}
	return false
}

// asksForHelp reports whether nothing but words stands before a last --help, which then is no option's value.
func asksForHelp(c *command) bool {
	last := len(c.args) - 1
	if last < 0 || !c.args[last].Known || c.args[last].Text != "--help" && c.args[last].Text != "-h" {
		return false
	}
	return !slices.ContainsFunc(c.args[:last], func(w shell.Word) bool { return !w.Known || w.Glob || strings.HasPrefix(w.Text, "-") })
}

// runsOurVerb reports whether go run builds our tool and gives it a verb that changes state.
func runsOurVerb(x *evaluation, c *command) bool {
	i := slices.IndexFunc(c.args, func(w shell.Word) bool {
		base, _, _ := strings.Cut(baseName(w.Text), "@")
		return base == "auditctl"
	})
	if i < 0 || !hasWord(c, "run") {
		return false
	}
	sub := *c
	sub.args = c.args[i+1:]
	return x.ourVerb(&sub)
}

// copiers are programs that could give one of our programs a second name.
var copiers = wordSet("cp", "gcp", "install", "rsync", "cat", "dd", "base64", "xxd", "tar", "zip", "cpio", "scp", "pax", "tee", "objcopy")

// copiesOurTool reports whether a command copies one of our installed programs: the copy would be another way to its verbs.
func (x *evaluation) copiesOurTool(c *command) bool {
	if !copiers[c.name] || c.Remote {
		return false
	}
	for _, w := range c.args {
		t := strings.TrimPrefix(w.Text, "if=")
		switch baseName(t) {
		case "auditctl", "tripline", daemonName, "tripline-hook":
		default:
			continue
		}
		for _, l := range x.locateTarget(c, subWord(w, t)) {
			if l.place == string(paths.Tripline) {
				return true
			}
		}
	}
	return false
}

func mentions(args []shell.Word, names ...string) bool {
	return slices.ContainsFunc(args, func(w shell.Word) bool {
		return slices.ContainsFunc(names, func(n string) bool { return strings.Contains(w.Text, n) })
	})
}

// talksToSocket reports whether a command opens one of our sockets.
func talksToSocket(c *command) bool {
	switch c.name {
	case "ls", "stat", "file", "echo", "printf", "test", "[", "grep", "rg", "find", "git", "ss", "lsof", "cat", "head":
		return false
	}
	for _, w := range c.args {
		t := w.Text
		if (strings.Contains(t, "control.sock") || strings.Contains(t, "hook.sock")) && (strings.Contains(t, "tripline") || networkClient[c.name] || interpreters[c.name] != "") {
			return true
		}
	}
	return false
}

// trustedVariable reports whether a command would make auditctl or an agent's hook look at another home of ours.
func trustedVariable(c *command) bool {
	if c.name != "auditctl" && c.name != "tripline" && c.name != daemonName && c.name != "tripline-hook" {
		return false
	}
	return c.name == daemonName && slices.ContainsFunc(c.Env, func(a shell.Assign) bool { return strings.HasPrefix(a.Name, "TRIPLINE_") })
}
