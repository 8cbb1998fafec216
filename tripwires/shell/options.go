// SPDX-License-Identifier: Apache-2.0

package shell

import "strings"

// spec says how a wrapper's command line is read up to the command that it starts.
type spec struct {
	short   string // one-letter options that take a value
	long    string // long options that take a value, blank-separated
	skip    int    // operands before the command
	assigns bool   // NAME=value words may stand before the command
	none    string // options with which there is no command to start
	single  bool   // long options have one dash
}

// options is a wrapper's command line, taken apart.
type options struct {
	given map[string]Word // value by option, without dashes; of a flag the empty word
	assig []Word          // NAME=value words
	skip  []Word          // operands before the command
	at    int             // index of the command; len(args) if there is none
	stop  bool            // an option of spec.none was given
	lost  bool            // an option is not known, and so perhaps not where the command starts
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
		if strings.HasPrefix(a, "--") || sp.single {
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
		}
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
		return spec{short: "CDghpRrTtUu", long: "close-from chdir group host prompt chroot role command-timeout type other-user user",
			assigns: true, none: "l list v validate K remove-timestamp e edit V version help"}, true
	case "doas":
		return spec{short: "Cu", none: "L C"}, true
	case "pkexec":
		return spec{long: "user", none: "version help"}, true
	case "run0":
		return spec{short: "uganD", long: "unit property description slice user group nice chdir setenv background machine",
			none: "version help"}, true
	case "please":
		return spec{short: "adtu", long: "allowenv dir token user target"}, true
	case "env", "genv":
		return spec{short: "uCSP", long: "unset chdir split-string", assigns: true, none: "version help"}, true
	case "nice":
		return spec{short: "n", long: "adjustment", none: "version help"}, true
	case "ionice":
		return spec{short: "cnpPu", long: "class classdata pid pgid uid", none: "p pid P pgid u uid"}, true
	case "nohup":
		return spec{none: "version help"}, true
	case "setsid":
		return spec{none: "V version h help"}, true
	case "timeout", "gtimeout":
		return spec{short: "ks", long: "kill-after signal", skip: 1, none: "version help"}, true
	case "time", "gtime":
		return spec{short: "fo", long: "format output", none: "V version help"}, true
	case "stdbuf":
		return spec{short: "ioe", long: "input output error", none: "version help"}, true
	case "unbuffer", "caffeinate", "catchsegv", "proxychains", "proxychains4", "torsocks", "fakeroot", "eatmydata", "dbus-run-session",
		"chronic", "winpty", "linux32", "linux64", "i386", "x86_64", "setarch", "arch":
		return spec{short: "twlfbs"}, true
	case "chrt":
		return spec{short: "TPD", long: "sched-runtime sched-period sched-deadline", skip: 1, none: "p pid m max V version h help"}, true
	case "taskset":
		return spec{skip: 1, none: "p pid V version h help"}, true
	case "choom":
		return spec{short: "np", long: "adjust pid", none: "p pid V version h help"}, true
	case "prlimit":
		return spec{short: "po", long: "pid output", none: "p pid V version h help"}, true
	case "cpulimit":
		return spec{short: "lpe", long: "limit pid exe", none: "p pid"}, true
	case "chroot":
		return spec{long: "groups userspec", skip: 1, none: "version help"}, true
	case "unshare":
		return spec{short: "SGRwl", long: "setuid setgid root wd map-user map-group map-users map-groups propagation setgroups monotonic boottime",
			none: "V version h help"}, true
	case "nsenter":
		return spec{short: "tSGW", long: "target setuid setgid wdns", none: "V version h help"}, true
	case "setpriv":
		return spec{long: "ruid euid reuid rgid egid regid groups inh-caps ambient-caps bounding-set securebits pdeathsig selinux-label apparmor-profile",
			none: "d dump"}, true
	case "capsh":
		return spec{}, false
	case "firejail", "bwrap", "catatonit", "dumb-init", "tini":
		return spec{short: "pe"}, true
	case "strace":
		return spec{short: "aeoOpPsSuEIbXU", long: "attach output trace env user", none: "p attach V version h help"}, true
	case "ltrace":
		return spec{short: "aAeFlnopsuwxX", none: "p V h"}, true
	case "perf":
		return spec{}, false
	case "valgrind":
		return spec{}, true
	case "watch":
		return spec{short: "nq", long: "interval equexit", none: "v version h help"}, true
	case "entr":
		return spec{}, true
	case "systemd-run":
		return spec{short: "HMupEd", long: "host machine unit property description slice uid gid nice working-directory setenv service-type " +
			"on-active on-boot on-startup on-unit-active on-unit-inactive on-calendar path-property socket-property timer-property job-mode background",
			none: "version help"}, true
	case "systemd-inhibit":
		return spec{long: "what who why mode", none: "list"}, true
	case "flock":
		return spec{short: "wEc", long: "timeout wait conflict-exit-code command", skip: 1}, true
	case "script", "gscript":
		return spec{short: "cIOBTmEoe", long: "command log-in log-out log-io log-timing logging-format echo output-limit"}, true
	case "parallel":
		return spec{short: "jaIdnNLPSsCE", long: "jobs arg-file colsep delimiter max-args max-replace-args sshlogin timeout delay retries joblog " +
			"results workdir tmpdir load memfree nice tagstring tempdir basefile return max-procs wd halt sshloginfile env",
			none: "version help citation"}, true
	case "xargs", "gxargs":
		return spec{short: "aEdIJLnPRsS", long: "arg-file delimiter replace-str max-args max-procs max-chars max-lines", none: "version help"}, true
	case "ssh":
		return spec{short: "BbcDEeFIiJLlmOopQRSWwP", none: "V Q O"}, true
	case "ssh-agent":
		return spec{short: "aEPtO", none: "k s c"}, true
	}
	return spec{}, false
}
