// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/shell"
)

// endsDaemon reports whether a program that ends processes would end the daemon: by its name, by a pattern that matches it, by
// its user, or by a process id that another command of the same source looks up.
func (x *evaluation) endsDaemon(c *command, all []*command) bool {
	switch c.name {
	case "kill":
		return namesDaemon(c.args) || killsAll(c.args) || x.looksUpDaemon(all) && !listsSignals(c)
	case "killall5":
		return !hasWord(c, "-0", "-18")
	case "pkill":
		return x.pkillHits(c)
	case "killall":
		return x.killallHits(c)
	case "skill", "snice":
		p := parseArgs(c.args, optSpec{short: "ucpt", long: []string{"--user", "--command", "--pid", "--tty"}})
		return namesDaemon(c.args) || p.has("-u", "--user") && len(p.all("-c", "--command")) == 0
	case "xargs", "parallel":
		return endsProcesses(c.args) && x.looksUpDaemon(all)
	}
	return false
}

func listsSignals(c *command) bool { return hasWord(c, "-l", "-L", "--list", "-0") }

// endsProcesses reports whether the words after xargs start a program that ends processes.
func endsProcesses(args []shell.Word) bool {
	return slices.ContainsFunc(args, func(w shell.Word) bool { return baseName(w.Text) == "kill" })
}

// killOperands are the process ids of a kill command: what is neither its signal nor an option.
func killOperands(args []shell.Word) []shell.Word {
	for i := 0; i < len(args); i++ {
		switch t := args[i].Text; {
		case t == "--":
			return args[i+1:]
		case t == "-s" || t == "-n" || t == "--signal" || t == "-q" || t == "--queue":
			i++
		case strings.HasPrefix(t, "--"), i == 0 && len(args) > 1 && strings.HasPrefix(t, "-"): // -9, -KILL
		default:
			return args[i:]
		}
	}
	return nil
}

// killsAll reports whether one of kill's operands stands for every process that may be reached.
func killsAll(args []shell.Word) bool {
	ops := killOperands(args)
	return slices.ContainsFunc(ops, func(w shell.Word) bool { return w.Text == "-1" }) && len(args) > 1
}

func namesDaemon(args []shell.Word) bool {
	return slices.ContainsFunc(args, func(w shell.Word) bool {
		return strings.Contains(w.Text, "tripline") || strings.Contains(w.Text, "[t]ripl")
	})
}

// commandLines are how the daemon may look in a list of processes.
func (x *evaluation) commandLines() []string {
	out := []string{daemonName, "/usr/bin/" + daemonName, "/usr/local/bin/" + daemonName}
	for _, h := range x.homes {
		dirs := " --home=" + h + " --config-dir=" + h + "/.config/tripline --state-dir=" + h + "/.local/state/tripline --run-dir="
		for _, run := range []string{h + "/.local/state/tripline/run", "/run/user/1000/tripline"} {
			for _, by := range []string{"--started-by systemd", "--started-by person --log-file " + h + "/.local/state/tripline/triplined.log", "--on-demand"} {
				out = append(out, h+"/.local/bin/"+daemonName+dirs+run+" "+by)
			}
		}
		out = append(out, h+"/.local/bin/"+daemonName+" --on-demand", h+"/.local/bin/"+daemonName+" --config "+h+"/.config/tripline/tripline.yaml")
	}
	return out
}

// matchesAny reports whether an extended regular expression matches one of the texts. One that cannot be read is taken for a
// match if it could be meant for us by its letters.
func matchesAny(pattern string, fold, whole bool, texts ...string) bool {
	if len(pattern) > 1000 {
		return true
	}
	expr := pattern
	if whole {
		expr = "^(?:" + expr + ")$"
	}
	if fold {
		expr = "(?i)" + expr
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return strings.Contains(pattern, "trip")
	}
	return slices.ContainsFunc(texts, re.MatchString)
}

func (x *evaluation) pkillHits(c *command) bool {
	p := parseArgs(signalless(c.args), optSpec{short: "gGPstuUFrd", long: []string{"--pgroup", "--group", "--parent", "--session", "--terminal", "--euid", "--uid",
		"--pidfile", "--ns", "--nslist", "--signal", "--runstates", "--cgroup", "--env", "--queue"}})
	if f, ok := p.value("-F", "--pidfile"); ok {
		return strings.Contains(f.Text, "tripline")
	}
	if p.has("-v", "--inverse") {
		return !slices.ContainsFunc(p.operands, func(w shell.Word) bool { return namesDaemon([]shell.Word{w}) })
	}
	if len(p.operands) == 0 {
		parent, byParent := p.value("-P", "--parent")
		return p.has("-u", "-U", "--euid", "--uid", "-G", "--group") || byParent && (parent.Text == "1" || !parent.Known)
	}
	texts := []string{daemonName}
	if p.has("-f", "--full") {
		texts = x.commandLines()
	}
	return slices.ContainsFunc(p.operands, func(w shell.Word) bool {
		return w.Known && matchesAny(w.Text, p.has("-i", "--ignore-case"), p.has("-x", "--exact"), texts...)
	})
}

func (x *evaluation) killallHits(c *command) bool {
	p := parseArgs(signalless(c.args), optSpec{short: "suyoZnmt", long: []string{"--signal", "--user", "--younger-than", "--older-than", "--context", "--ns"}})
	if len(p.operands) == 0 {
		return p.has("-u", "--user", "-m") && !p.has("-l", "--list")
	}
	expr, fold := p.has("-r", "--regexp", "-m"), p.has("-I", "--ignore-case")
	return slices.ContainsFunc(p.operands, func(w shell.Word) bool {
		if expr {
			return matchesAny(w.Text, fold, false, daemonName)
		}
		return namesDaemon([]shell.Word{w}) || fold && strings.EqualFold(w.Text, daemonName) || baseName(w.Text) == daemonName
	})
}

// signalless drops a leading signal such as -9 or -KILL, whose letters would be taken for options.
func signalless(args []shell.Word) []shell.Word {
	var out []shell.Word
	for _, w := range args {
		if t := w.Text; len(t) > 1 && t[0] == '-' && (t[1] >= '0' && t[1] <= '9' || len(t) > 2 && t[1] >= 'A' && t[1] <= 'Z' && t[2] >= 'A' && t[2] <= 'Z') {
			continue
		}
		out = append(out, w)
	}
	return out
}

// lookers are programs that can tell a process id: by name, by file, by socket.
var lookers = wordSet("pidof", "pgrep", "ps", "grep", "egrep", "fgrep", "rg", "ag", "awk", "gawk", "mawk", "nawk", "sed", "perl", "python", "python3", "lsof", "fuser",
	"ss", "netstat", "cat", "head", "tail", "systemctl", "busctl", "jq", "find", "ls", "readlink", "pstree", "top", "cut", "tr", "<", "xargs", "basename")

// looksUpDaemon reports whether a command of the same source asks for the daemon's process id.
func (x *evaluation) looksUpDaemon(all []*command) bool {
	if len(all) == 0 {
		return false
	}
	if known, ok := x.lookups[all[0]]; ok {
		return known
	}
	found := slices.ContainsFunc(all, x.asksForDaemon)
	if x.lookups == nil {
		x.lookups = map[*command]bool{}
	}
	x.lookups[all[0]] = found
	return found
}

func (x *evaluation) asksForDaemon(c *command) bool {
	for _, r := range c.Redirs {
		if strings.Contains(r.Target.Text, "triplined.lock") || r.Op == "<" && strings.Contains(r.Target.Text, "tripline") {
			return true
		}
	}
	if !lookers[c.name] && languageOf(c.name) == "" {
		return false
	}
	if hasWord(c, "-v", "--invert-match") && c.name != "awk" && strings.HasSuffix(c.name, "grep") {
		return false
	}
	for i, w := range c.args {
		t := w.Text
		if strings.Contains(t, "tripl") || strings.Contains(t, "[t]rip") || strings.Contains(t, "hook.sock") || strings.Contains(t, "control.sock") {
			return true
		}
		switch c.name {
		case "grep", "egrep", "fgrep", "rg", "ag":
			if !patternWord(c, i) {
				continue
			}
		case "awk", "gawk", "mawk", "nawk":
			_, rest, ok := strings.Cut(t, "/")
			t, _, _ = strings.Cut(rest, "/")
			if !ok {
				continue
			}
		case "pgrep":
			if hasFlag(c, 'f', "--full") && w.Known && !strings.HasPrefix(t, "-") && matchesAny(t, hasFlag(c, 'i', "--ignore-case"), false, x.commandLines()...) {
				return true
			}
		case "pidof":
			if matchesGlob(t, daemonName) {
				return true
			}
			continue
		default:
			continue
		}
		if w.Known && strings.Count(strings.Map(letters, t), "")-1 >= 3 && !strings.HasPrefix(t, "-") && matchesAny(t, hasWord(c, "-i"), false, daemonName) {
			return true
		}
	}
	return false
}

// hasFlag reports whether an option is given, alone or among other letters.
func hasFlag(c *command, letter rune, long string) bool {
	return slices.ContainsFunc(c.args, func(w shell.Word) bool {
		return w.Text == long || len(w.Text) > 1 && w.Text[0] == '-' && w.Text[1] != '-' && strings.ContainsRune(w.Text[1:], letter)
	})
}

// letters keeps the letters of a text, for strings.Map.
func letters(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
		return r
	}
	return -1
}

func matchesGlob(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// managers are programs that start and stop services.
var managers = wordSet("systemctl", "service", "launchctl", "rc-service", "loginctl", "systemd-run", "busctl", "dbus-send", "gdbus", "sv", "s6-svc", "supervisorctl",
	"initctl", "invoke-rc.d", "update-rc.d", "chkconfig", "rc-update", "brew")

// stopsUnit reports whether a service manager is told something of our unit, or of what holds it, that is more than a question.
func stopsUnit(c *command) bool {
	switch c.name {
	case "brew":
		return hasWord(c, "services") && !hasWord(c, "list", "info") && (mentions(c.args, "tripline") || hasWord(c, "--all"))
	case "loginctl":
		return hasWord(c, "terminate-user", "kill-user", "terminate-session", "kill-session") || mentions(c.args, "tripline")
	case "busctl", "dbus-send", "gdbus":
		return mentions(c.args, "tripline") && !hasWord(c, "introspect", "status", "tree", "list", "monitor")
	case "launchctl":
		if len(c.args) > 1 && c.args[0].Text == "bootout" && strings.Count(strings.Trim(c.args[1].Text, "/"), "/") <= 1 && !strings.Contains(c.args[1].Text, ".") {
			return true // the whole domain of a user
		}
		return mentions(c.args, "tripline") && !hasWord(c, "print", "list", "blame", "help")
	case "systemctl":
		return stopsSystemdUnit(c)
	}
	return mentions(c.args, "tripline") && !hasWord(c, "status")
}

// systemdQuestions are verbs of systemctl that only tell.
var systemdQuestions = wordSet("", "status", "show", "cat", "is-active", "is-enabled", "is-failed", "list-units", "list-unit-files", "list-dependencies", "list-timers",
	"list-sockets", "list-jobs", "help", "get-default", "show-environment", "whoami", "list-paths", "list-automounts", "list-machines", "is-system-running")

// runtimeVariable are what the runtime of our programs heeds before they begin.
var runtimeVariable = wordSet("GODEBUG", "GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GOTRACEBACK", "NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES")

func stopsSystemdUnit(c *command) bool {
	p := parseArgs(c.args, optSpec{short: "HMtpnso", long: []string{"--type", "--property", "--host", "--machine", "--lines", "--state", "--output", "--signal", "--kill-who",
		"--kill-whom", "--job-mode", "--root", "--what", "--when"}})
	verb := p.operand(0)
	if systemdQuestions[verb] {
		return false
	}
	user := p.has("--user")
	if user && (verb == "exit" || verb == "isolate" || verb == "kexec" || verb == "halt") {
		return true
	}
	for _, w := range p.operands[min(1, len(p.operands)):] {
		t := w.Text
		if name, _, _ := strings.Cut(t, "="); strings.HasSuffix(verb, "-environment") && (strings.HasPrefix(name, "TRIPLINE_") || runtimeVariable[name]) {
			return true // the daemon's next start has it
		}
		for _, unit := range []string{daemonName + ".service", daemonName, daemonName + ".socket", "tripline.service"} {
			if matchesGlob(t, unit) {
				return true
			}
		}
		if strings.Contains(t, "tripline") {
			return true
		}
		switch verb {
		case "stop", "kill", "restart", "try-restart", "reload-or-restart", "disable", "mask", "freeze", "set-property":
			if t == "user.slice" || strings.HasPrefix(t, "user@") || strings.HasPrefix(t, "user-") && strings.HasSuffix(t, ".slice") ||
				user && (t == "default.target" || t == "app.slice" || t == "basic.target" || t == "session.slice") {
				return true // our unit goes with it
			}
		}
	}
	return false
}

// reachesDaemon reports whether a command opens what /proc shows of the daemon's own: its memory, its program, its files.
func (x *evaluation) reachesDaemon(c *command, all []*command) bool {
	for _, w := range c.args {
		rest, ok := strings.CutPrefix(w.Text, "/proc/\x00/")
		if !ok {
			continue
		}
		first, _, _ := strings.Cut(rest, "/")
		switch first {
		case "mem", "exe", "root", "cwd", "environ", "fd", "clear_refs", "oom_score_adj", "oom_adj":
			if c.name != "ls" && c.name != "stat" && c.name != "readlink" && x.looksUpDaemon(all) {
				return true
			}
		}
	}
	return false
}
