// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/paths"
	"github.com/tripline-sh/tripline/tripwires/shell"
)

func progChmod(x *evaluation, c *command) {
	p := parseArgs(c.args, optSpec{long: []string{"--reference", "--from"}})
	ops := p.operands
	// A mode such as -x looks like an option: then every operand is a file.
	modeFlag := c.name == "chmod" && slices.ContainsFunc(p.flags, func(f string) bool { return len(f) == 2 && strings.Contains("rwxst", f[1:]) })
	if !modeFlag && !p.has("--reference") && len(ops) > 0 {
		ops = ops[1:]
	}
	recursive := p.has("-R", "--recursive")
	closes := x.closesAccess(c, p.operand(0), modeFlag)
	for _, w := range ops {
		if c.Remote {
			continue
		}
		for _, l := range x.locateTarget(c, w) {
			if closes && l.res.Holds != "" && l.place != string(paths.Tripline) && (l.place != string(paths.System) || c.name == "chmod") {
				x.tamper(c, &l, "protected files could no longer be reached")
			}
			f := l.finding(PermissionChange)
			f.Recursive, f.Program, f.Via, f.cmd, f.privileged, f.form = recursive, c.name, c.Via, c.index, c.Privileged, c.name
			if recursive {
				x.takesWith(f, &l)
			}
			x.add(f)
		}
	}
}

// closesAccess reports whether a change of a directory's mode or owner may keep its owner out of it.
func (x *evaluation) closesAccess(c *command, mode string, flag bool) bool {
	switch c.name {
	case "chmod", "gchmod":
	case "chown", "gchown":
		owner, _, _ := strings.Cut(mode, ":")
		own := slices.ContainsFunc(x.homes, func(h string) bool { return baseName(h) == owner })
		return !own && owner != "" && !strings.Contains(owner, "\x00")
	case "chattr", "chflags", "setfacl":
		return true
	default:
		return false
	}
	if flag {
		return true
	}
	if mode != "" && strings.Trim(mode, "01234567") == "" {
		return len(mode) < 3 || mode[len(mode)-3] != '7'
	}
	for part := range strings.SplitSeq(mode, ",") {
		who, _, _ := strings.Cut(strings.NewReplacer("-", "+", "=", "+").Replace(part), "+")
		if who != "" && !strings.ContainsAny(who, "ua") {
			continue
		}
		if _, what, minus := strings.Cut(part, "-"); minus && what != "" || strings.Contains(part, "=") && !strings.Contains(strings.ToLower(part), "rwx") {
			return true
		}
	}
	return strings.Contains(mode, "\x00")
}

func progMkfs(x *evaluation, c *command) {
	if hasWord(c, "-n", "-N", "--help", "-V", "--version") && !strings.HasPrefix(c.name, "mkfs.") {
		return
	}
	x.effect(c, DeviceWrite, "mkfs", lastText(c.args), "a file system is made; what was there is lost")
}

func progDiskTool(x *evaluation, c *command) {
	if hasWord(c, "-l", "--list", "print", "-n", "--no-act", "--help", "-V", "--version", "info", "list", "-d", "--dump", "-s") && c.name != "wipefs" {
		return
	}
	if c.name == "wipefs" && !hasWord(c, "-a", "--all", "-o", "--offset", "-af", "-fa") {
		return
	}
	if c.name == "diskutil" && !slices.ContainsFunc(c.args, func(w shell.Word) bool {
		t := strings.ToLower(w.Text)
		return strings.HasPrefix(t, "erase") || strings.HasPrefix(t, "partition") || strings.HasPrefix(t, "zero") || strings.HasPrefix(t, "secureerase")
	}) {
		x.execute(c)
		return
	}
	x.effect(c, DeviceWrite, "partition", lastText(c.args), "partitions or signatures of a disk are changed")
}

func progKill(x *evaluation, c *command) {
	if hasWord(c, "-l", "-L", "--list") {
		return
	}
	ops := c.args
	if c.name == "kill" {
		ops = killOperands(c.args)
	} else {
		ops = slices.DeleteFunc(slices.Clone(ops), func(w shell.Word) bool { return strings.HasPrefix(w.Text, "-") })
	}
	if len(ops) == 0 {
		ops = []shell.Word{{}}
	}
	for _, w := range ops {
		form := ""
		if c.name == "kill" && (w.Text == "1" || w.Text == "-1" && len(c.args) > 1) {
			form = "kill-all"
		}
		f := finding{Effect: Effect{Kind: ProcessKill, Target: w.Text, Program: c.name, Via: c.Via}, form: form, cmd: c.index, privileged: c.Privileged}
		if !w.Known && w.Text != "" {
			f.Certainty = Uncertain
		}
		x.add(f)
	}
}

func progShutdown(x *evaluation, c *command) {
	if hasWord(c, "--help", "-c", "--show") || c.name == "shutdown" && len(c.args) == 0 {
		return
	}
	x.effect(c, ProcessKill, "shutdown", "", "the machine is stopped")
}

func progCrontab(x *evaluation, c *command) {
	p := parseArgs(c.args, optSpec{short: "u"})
	if p.has("-l") {
		return
	}
	note := "scheduled jobs are changed"
	if p.has("-r") {
		note = "every scheduled job is removed"
	}
	x.effect(c, Persistence, "crontab", "", note)
}

func progAt(x *evaluation, c *command) {
	if hasWord(c, "-l", "-V", "-c", "-q") {
		return
	}
	if c.Stdin.Known {
		x.nested(c.Stdin.Text, c, c.name)
	}
	x.effect(c, Persistence, "at", "", "a job is scheduled")
}

func progSystemctl(x *evaluation, c *command) {
	p := parseArgs(c.args, optSpec{short: "HMtpnso", long: []string{"--type", "--property", "--host", "--machine", "--lines", "--state", "--output"}})
	switch p.operand(0) {
	case "enable", "link", "edit", "set-default", "preset", "reenable", "add-wants", "add-requires", "set-property", "revert":
		x.effect(c, Persistence, "unit", p.operand(1), "a unit starts by itself from now on")
	case "disable", "mask":
		x.effect(c, Persistence, "unit-off", p.operand(1), "a unit no longer starts by itself")
	case "stop", "kill", "restart", "reload-or-restart", "try-restart", "isolate":
		x.effect(c, ProcessKill, "unit", p.operand(1), "")
	case "poweroff", "reboot", "halt", "kexec", "suspend", "hibernate", "emergency", "rescue", "soft-reboot":
		x.effect(c, ProcessKill, "shutdown", "", "the machine is stopped")
	case "start", "daemon-reload", "reset-failed":
		x.execute(c)
	}
}

func progLaunchctl(x *evaluation, c *command) {
	if len(c.args) == 0 {
		return
	}
	switch c.args[0].Text {
	case "load", "bootstrap", "enable", "submit", "setenv", "config":
		x.effect(c, Persistence, "unit", lastText(c.args), "a job starts by itself from now on")
	case "unload", "bootout", "disable", "remove", "kill", "stop", "kickstart":
		x.effect(c, ProcessKill, "unit", lastText(c.args), "")
	}
}

func progHistory(x *evaluation, c *command) {
	p := parseArgs(c.args, optSpec{short: "d"})
	if p.has("-c", "-d", "-w") && p.has("-c", "-d") || len(c.args) > 0 && c.args[0].Text == "clear" {
		x.effect(c, HistoryWipe, "history", "", "the record of the shell's commands is removed")
	}
}

// progSet covers set +o history.
func progSet(x *evaluation, c *command) {
	for i, w := range c.args {
		if w.Text == "+o" && i+1 < len(c.args) && c.args[i+1].Text == "history" {
			x.effect(c, HistoryWipe, "histfile", "", "the shell's commands are no longer recorded")
		}
	}
}

// progSystemdRun covers systemd-run with a timer.
func progSystemdRun(x *evaluation, c *command) {
	for _, w := range c.args {
		if strings.HasPrefix(w.Text, "--on-") || strings.HasPrefix(w.Text, "--timer-property") {
			x.effect(c, Persistence, "unit", "", "a job is scheduled")
			return
		}
	}
	x.execute(c)
}

// progUnset covers unset HISTFILE.
func progUnset(x *evaluation, c *command) {
	if hasWord(c, "HISTFILE", "HISTSIZE", "PROMPT_COMMAND") {
		x.effect(c, HistoryWipe, "histfile", "", "the shell's commands are no longer recorded")
	}
}

func progJournalctl(x *evaluation, c *command) {
	for _, w := range c.args {
		if strings.HasPrefix(w.Text, "--vacuum") || w.Text == "--rotate" {
			x.effect(c, HistoryWipe, "journal", "", "records of the system's journal are removed")
			return
		}
	}
}

// judgeEnvironment looks at assignments that change what later commands do or what is recorded of them.
func (x *evaluation) judgeEnvironment(c *command) {
	for _, a := range c.Env {
		switch a.Name {
		case "HISTFILE", "HISTSIZE", "HISTFILESIZE":
			if a.Value.Known && (a.Value.Text == "/dev/null" || a.Value.Text == "" || a.Value.Text == "0") {
				x.effect(c, HistoryWipe, "histfile", "", "the shell's commands are no longer recorded")
			}
		}
	}
}

// progPrivilege covers what gives a shell of another user without saying what it will do.
func progPrivilege(x *evaluation, c *command) {
	if hasWord(c, "--help", "-V", "--version", "-v", "-k", "-K", "-l", "--list", "--validate", "-nv") && c.name != "su" {
		return
	}
	x.doubt("what would run as another user is not known")
	x.effect(c, Privilege, "shell", "", "a shell of another user, with no command that could be judged")
}

func progVisudo(x *evaluation, c *command) {
	x.effect(c, Privilege, "accounts", lastText(c.args), "who may do what on this machine is changed")
}

// progShell covers a shell that is started without a command: what would be typed into it is never seen.
func progShell(x *evaluation, c *command) {
	if !c.StdinNone || c.Remote || len(parseArgs(c.args, optSpec{short: "oO", long: []string{"--rcfile", "--init-file"}}).operands) > 0 || hasWord(c, "-c", "--version", "--help") {
		return
	}
	switch {
	case c.Privileged:
		x.doubt("what would run as another user is not known")
		x.effect(c, Privilege, "shell", "", "a shell of another user, with no command that could be judged")
	case x.call.Tool == "exec_command":
		x.unknown("stdin-shell", "a shell would wait for text that is not seen here", c.Via)
	}
}

// progMount covers mounts over what is protected.
func progMount(x *evaluation, c *command) {
	for _, w := range c.args {
		if strings.HasPrefix(w.Text, "-") || c.Remote {
			continue
		}
		for _, l := range x.locate(c, w) {
			if l.place == string(paths.Tripline) || l.res.Holds != "" && l.place != string(paths.System) && c.name == "mount" {
				x.effect(c, SelfTamper, "mount", w.Text, "something else would stand in its place")
				return
			}
		}
	}
	x.execute(c)
}

// progScreen covers screen, which starts the words after its options.
func progScreen(x *evaluation, c *command) {
	p := parseArgs(c.args, optSpec{short: "cehpsStTX", posix: true})
	if len(p.operands) > 0 && knownWords(p.operands) {
		x.nestedArgv(wordTexts(p.operands), c, c.name)
	}
	x.execute(c)
}
