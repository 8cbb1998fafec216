// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"slices"
	"strings"
)

// spec says how a wrapper's command line is read up to the command that it starts.
type spec struct {
	short   string // one-letter options that take a value
	long    string // long options that take a value, blank-separated
	skip    int    // operands before the command
	assigns bool   // NAME=value words may stand before the command
	none    string // options with which there is no command to start
	flags   string // one-letter options that take no value
	words   string // long options that take no value
}

// options is a wrapper's command line, taken apart.
type options struct {
	given map[string]Word // value by option, without dashes; of a flag the empty word
	assig []Word          // NAME=value words
	skip  []Word          // operands before the command
	at    int             // index of the command; len(args) if there is none
	stop  bool            // an option of spec.none was given
	lost  bool            // the last option is not known: the word behind it may be its value and not the command
}

func (sp spec) read(args []Word) options {
	o := options{given: map[string]Word{}}
	i := 0
	for ; i < len(args); i++ {
		a := args[i].Text
		if args[i].Known && a == "--" {
			i++
			break
		}
		if len(a) < 2 || a[0] != '-' {
			if a == "-" && sp.assigns {
				o.given["i"] = Word{}
				continue
			}
			break
		}
		o.lost = false
		if strings.HasPrefix(a, "--") {
			name, value, has := strings.Cut(strings.TrimLeft(a, "-"), "=")
			switch {
			case has:
				v := args[i]
				v.Text = value
				o.given[name] = v
			case sp.takesValue(name) && i+1 < len(args):
				i++
				o.given[name] = args[i]
			default:
				o.given[name] = Word{}
				o.lost = !slices.Contains(strings.Fields(sp.words), name)
			}
			continue
		}
		for j := 1; j < len(a); j++ {
			f := a[j : j+1]
			if strings.Contains(sp.short, f) {
				if j+1 < len(a) {
					v := args[i]
					v.Text = strings.TrimPrefix(a[j+1:], "=")
					o.given[f] = v
				} else if i++; i < len(args) {
					o.given[f] = args[i]
				}
				break
			}
			o.given[f] = Word{}
			o.lost = j == len(a)-1 && !strings.Contains(sp.flags, f)
		}
	}
	if i > 0 && i <= len(args) && args[i-1].Text == "--" {
		o.lost = false
	}
	for n := 0; n < sp.skip && i < len(args); n++ {
		o.skip = append(o.skip, args[i])
		i++
	}
	for ; sp.assigns && i < len(args); i++ {
		name, _, ok := strings.Cut(args[i].Text, "=")
		if !ok || strings.Contains(name, "/") {
			break
		}
		o.assig = append(o.assig, args[i])
	}
	o.at = min(i, len(args))
	for _, n := range strings.Fields(sp.none) {
		if _, ok := o.given[n]; ok {
			o.stop = true
		}
	}
	return o
}

// takesValue tells whether a long option, perhaps shortened, has its value in the next word.
func (sp spec) takesValue(name string) bool {
	hits := 0
	for _, l := range strings.Fields(sp.long) {
		if l == name {
			return true
		}
		if len(name) >= 2 && strings.HasPrefix(l, name) {
			hits++
		}
	}
	return hits == 1
}

// has returns the value of the first of the names that was given.
func (o options) has(names ...string) (Word, bool) {
	for _, n := range names {
		if w, ok := o.given[n]; ok {
			return w, true
		}
	}
	return Word{}, false
}

// wrapperSpec knows the programs that start the command in their operands and change nothing else about it.
func wrapperSpec(name string) (spec, bool) {
	switch name {
	case "sudo":
		return spec{flags: "ABbEHiNnPSs", words: "askpass background preserve-env set-home login non-interactive preserve-groups stdin shell", short: "CDghpRrTtUu", long: "close-from chdir group host prompt chroot role command-timeout type other-user user",
			assigns: true, none: "l list v validate K remove-timestamp e edit V version help"}, true
	case "doas":
		return spec{flags: "ns", short: "Cu", none: "L C"}, true
	case "pkexec":
		return spec{long: "user", none: "version help"}, true
	case "run0":
		return spec{short: "uganD", long: "unit property description slice user group nice chdir setenv background machine",
			none: "version help"}, true
	case "please":
		return spec{short: "adtu", long: "allowenv dir token user target"}, true
	case "env", "genv":
		return spec{flags: "i0v", words: "ignore-environment null debug block-signal default-signal ignore-signal", short: "uCSPa", long: "unset chdir split-string argv0", assigns: true, none: "version help"}, true
	case "nice":
		return spec{flags: "0123456789", short: "n", long: "adjustment", none: "version help"}, true
	case "ionice":
		return spec{flags: "t", words: "ignore", short: "cnpPu", long: "class classdata pid pgid uid", none: "p pid P pgid u uid"}, true
	case "nohup":
		return spec{none: "version help"}, true
	case "setsid":
		return spec{flags: "cfw", words: "ctty fork wait", none: "V version h help"}, true
	case "timeout", "gtimeout":
		return spec{flags: "v", words: "foreground preserve-status verbose", short: "ks", long: "kill-after signal", skip: 1, none: "version help"}, true
	case "time", "gtime":
		return spec{flags: "apvqV", words: "append portability verbose quiet", short: "fo", long: "format output", none: "V version help"}, true
	case "stdbuf":
		return spec{short: "ioe", long: "input output error", none: "version help"}, true
	case "unbuffer", "caffeinate", "catchsegv", "proxychains", "proxychains4", "torsocks", "fakeroot", "eatmydata", "dbus-run-session",
		"chronic", "winpty", "linux32", "linux64", "i386", "x86_64", "setarch", "arch":
		return spec{short: "twlfbs"}, true
	case "chrt":
		return spec{flags: "abdfiorGR", words: "all-tasks batch deadline fifo idle other rr reset-on-fork", short: "TPD", long: "sched-runtime sched-period sched-deadline", skip: 1, none: "p pid m max V version h help"}, true
	case "taskset":
		return spec{flags: "ac", words: "all-tasks cpu-list", skip: 1, none: "p pid V version h help"}, true
	case "choom":
		return spec{short: "np", long: "adjust pid", none: "p pid V version h help"}, true
	case "prlimit":
		return spec{short: "po", long: "pid output", none: "p pid V version h help"}, true
	case "cpulimit":
		return spec{short: "lpe", long: "limit pid exe", none: "p pid"}, true
	case "chroot":
		return spec{long: "groups userspec", skip: 1, none: "version help"}, true
	case "unshare":
		return spec{flags: "muinpUCTrfc", words: "mount uts ipc net pid user cgroup time fork map-root-user map-current-user kill-child mount-proc keep-caps", short: "SGRwl", long: "setuid setgid root wd map-user map-group map-users map-groups propagation setgroups monotonic boottime",
			none: "V version h help"}, true
	case "nsenter":
		return spec{flags: "amuinpUCTFZ", words: "all mount uts ipc net pid user cgroup time preserve-credentials no-fork", short: "tSGW", long: "target setuid setgid wdns", none: "V version h help"}, true
	case "setpriv":
		return spec{long: "ruid euid reuid rgid egid regid groups inh-caps ambient-caps bounding-set securebits pdeathsig selinux-label apparmor-profile",
			none: "d dump"}, true
	case "firejail", "catatonit", "dumb-init", "tini":
		return spec{short: "pe"}, true
	case "strace":
		return spec{flags: "cCdDfFhiknqrtTvVwxyYzZ", short: "aeoOpPsSuEIbXU", long: "attach output trace env user", none: "p attach V version h help"}, true
	case "ltrace":
		return spec{short: "aAeFlnopsuwxX", none: "p V h"}, true
	case "valgrind", "xvfb-run", "rlwrap", "dbus-launch", "dotenv", "grc", "nocache", "numactl", "catsegv":
		return spec{short: "nsefpCNm", flags: "abcdilqrtvwx"}, true
	case "gosu", "su-exec", "setuidgid", "faketime", "runcon":
		return spec{skip: 1}, true
	case "watch":
		return spec{flags: "bcdegrtwx", words: "beep color differences errexit chgexit no-title no-wrap exec", short: "nq", long: "interval equexit", none: "v version h help"}, true
	case "entr":
		return spec{flags: "acdnprsz"}, true
	case "systemd-run":
		return spec{flags: "GtqSPr", words: "user system scope pty quiet wait collect no-block same-dir shell pipe remain-after-exit no-ask-password send-sighup", short: "HMupEd", long: "host machine unit property description slice uid gid nice working-directory setenv service-type " +
			"on-active on-boot on-startup on-unit-active on-unit-inactive on-calendar path-property socket-property timer-property job-mode background",
			none: "version help"}, true
	case "systemd-inhibit":
		return spec{long: "what who why mode", none: "list"}, true
	case "tripline-hook": // where nobody listens, it starts what stands behind the agent, the event and --
		return spec{short: "suqton", skip: 2}, true
	case "flock":
		return spec{flags: "sxnuoFv", words: "shared exclusive nonblock unlock close no-fork verbose", short: "wEc", long: "timeout wait conflict-exit-code command", skip: 1}, true
	case "script", "gscript":
		return spec{short: "cIOBTmEo", long: "command log-in log-out log-io log-timing logging-format echo output-limit"}, true
	case "parallel":
		return spec{flags: "0kqtuvmX", words: "null keep-order quote verbose ungroup dry-run bar eta no-notice will-cite lb line-buffer tag", short: "jaIdnNLPSsCE", long: "jobs arg-file colsep delimiter max-args max-replace-args sshlogin timeout delay retries joblog " +
			"results workdir tmpdir load memfree nice tagstring tempdir basefile return max-procs wd halt sshloginfile env",
			none: "version help citation"}, true
	case "xargs", "gxargs":
		return spec{flags: "0rtpxo", words: "null no-run-if-empty verbose interactive exit open-tty", short: "aEdIJLnPRsS", long: "arg-file delimiter replace-str max-args max-procs max-chars max-lines", none: "version help"}, true
	case "ssh":
		return spec{flags: "46AaCfGgKkMNnqsTtVvXxYy", short: "BbcDEeFIiJLlmOopQRSWwP", none: "V Q O"}, true
	case "ssh-agent":
		return spec{short: "aEPtO", none: "k s c"}, true
	}
	return spec{}, false
}
