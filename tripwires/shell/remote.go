// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"strings"
)

// ssh runs its operands, joined, in a shell on another machine.
func (in *interp) ssh(c ctx, s *state, k call, o options) []*state {
	in.external(c, s, k, "ssh")
	args := k.argv[1:]
	// -o may stand several times; ProxyCommand and LocalCommand run here.
	for i, a := range args[:o.at] {
		v := a
		switch {
		case a.Text == "-o" && i+1 < len(args):
			v = args[i+1]
		case strings.HasPrefix(a.Text, "-o"):
			v.Text = a.Text[2:]
		default:
			continue
		}
		n, cmd, _ := strings.Cut(strings.TrimSpace(v.Text), "=")
		if !strings.Contains(v.Text, "=") {
			n, cmd, _ = strings.Cut(strings.TrimSpace(v.Text), " ")
		}
		switch strings.ToLower(strings.TrimSpace(n)) {
		case "proxycommand", "localcommand", "knownhostscommand":
			t := v.val()
			t.s = cmd
			in.runText(c.under("ssh -o"), in.child(c, s), t, textRun{kind: "eval", pos: k.pos, argv: k.argv})
		}
	}
	if o.stop || o.at >= len(args) {
		return []*state{s}
	}
	host := args[o.at]
	cmd := args[o.at+1:]
	if len(cmd) > 0 && cmd[0].Text == "--" {
		cmd = cmd[1:]
	}
	rc := c.under("ssh " + exportMarks(host.Text))
	in.elsewhere(&rc, host.Text)
	if len(cmd) == 0 {
		if s.in.none {
			return []*state{s}
		}
		cmd = []Word{{Text: "sh", Known: true}} // the login shell reads standard input
	}
	n := in.away(s)
	in.runText(rc, n, joinWords(cmd), textRun{kind: "eval", pos: k.pos, argv: k.argv})
	return []*state{s}
}

// elsewhere marks what follows as running on another machine.
func (in *interp) elsewhere(c *ctx, host string) {
	c.remote, c.host = true, exportMarks(host)
	c.redirs, c.env, c.mounts = nil, nil, nil
	c.pipe, c.stage = 0, 0
	c.captured = false
	c.inLoop, c.inFunc, c.sourced = 0, 0, false
	c.argsStdin = false
}

// away is the state of a shell on another machine.
func (in *interp) away(s *state) *state {
	return &state{in: s.in, cwd: unknown, oldpwd: unknown, arg0: unknown, noHome: true}
}

// container follows docker run, docker exec and kubectl exec.
func (in *interp) container(c ctx, s *state, k call, name string) []*state {
	args := k.argv[1:]
	one := []*state{s}
	i := skipOptions(args, 0, " H host c context config l log-level tlscacert tlscert tlskey connection url identity n namespace kubeconfig "+
		"cluster user s server token f file p project-name profile project-directory env-file ")
	if i >= len(args) {
		return one
	}
	verb := args[i].Text
	i++
	if (verb == "container" || verb == "compose") && i < len(args) {
		i = skipOptions(args, i, " f file p project-name profile project-directory env-file ")
		if i >= len(args) {
			return one
		}
		verb = args[i].Text
		i++
	}
	if verb != "run" && verb != "exec" && verb != "create" && verb != "debug" {
		return one
	}
	rc := c.under(name + " " + verb)
	in.elsewhere(&rc, "")
	n := in.away(s)
	var entry []Word
	for ; i < len(args); i++ {
		t := args[i].Text
		if t == "--" && args[i].Known {
			i++
			break
		}
		if len(t) < 2 || t[0] != '-' {
			break
		}
		opt, value, has := strings.Cut(t, "=")
		v := args[i]
		v.Text = value
		if !has && !containerFlag(opt) {
			if len(opt) > 2 && opt[1] != '-' {
				v.Text, opt = opt[2:], opt[:2]
			} else if i++; i < len(args) {
				v = args[i]
			}
		}
		switch opt {
		case "-v", "--volume", "--mount":
			if m, ok := mount(opt, v.Text); ok {
				rc.mounts = append(rc.mounts, m)
			}
		case "-w", "--workdir":
			n.cwd = v.val()
		case "--entrypoint":
			entry = nil
			if v.Text != "" {
				entry = []Word{v}
			}
		case "-e", "--env":
			if en, ev, ok := strings.Cut(v.Text, "="); ok && v.Known {
				rc.env = append(rc.env, Assign{Name: en, Value: Word{Text: ev, Known: true}})
			}
		}
	}
	if i >= len(args) {
		return one
	}
	rc.host = exportMarks(args[i].Text)
	i++
	if name == "kubectl" || name == "oc" {
		for j := i; j < len(args); j++ {
			if args[j].Text == "--" {
				i = j + 1
				break
			}
		}
		if i < len(args) && strings.HasPrefix(args[i].Text, "-") && args[i-1].Text != "--" {
			i = skipOptions(args, i, " c container n namespace ")
		}
	}
	argv := append(entry, args[i:]...)
	if len(argv) > 0 && !strings.HasPrefix(argv[0].Text, "-") {
		in.dispatchProgram(rc, n, call{argv: argv, pos: k.pos})
	}
	return one
}

// skipOptions returns the index of the first operand; valued lists the options that take a value, blank-separated.
func skipOptions(args []Word, i int, valued string) int {
	for ; i < len(args); i++ {
		t := args[i].Text
		if len(t) < 2 || t[0] != '-' {
			return i
		}
		if strings.Contains(valued, " "+strings.TrimLeft(t, "-")+" ") {
			i++
		}
	}
	return i
}

// containerFlag tells the options of docker run and exec that take no value.
func containerFlag(opt string) bool {
	switch opt {
	case "--rm", "--privileged", "--init", "--detach", "--interactive", "--tty", "--no-healthcheck", "--oom-kill-disable", "--publish-all",
		"--read-only", "--sig-proxy", "--disable-content-trust", "--quiet", "--help", "--no-TTY", "--no-deps", "--service-ports", "--build",
		"--stdin", "--tls", "--debug", "--no-hosts", "--replace", "--rmi", "--use-aliases", "--remove-orphans", "--quiet-pull", "--attach-stdin":
		return true
	}
	return len(opt) > 1 && opt[0] == '-' && opt[1] != '-' && strings.Trim(opt[1:], "ditqPT") == ""
}

// mount reads the value of -v HOST:CONTAINER or --mount.
func mount(opt, v string) ([2]string, bool) {
	v = exportMarks(v)
	if opt != "--mount" {
		from, rest, ok := strings.Cut(v, ":")
		to, _, _ := strings.Cut(rest, ":")
		return [2]string{from, to}, ok
	}
	var m [2]string
	for _, f := range strings.Split(v, ",") {
		key, value, _ := strings.Cut(f, "=")
		switch key {
		case "source", "src":
			m[0] = value
		case "target", "dst", "destination":
			m[1] = value
		}
	}
	return m, m[0] != ""
}
