// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"net/url"
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/shell"
)

var networkClient = wordSet("curl", "wget", "wget2", "http", "https", "xh", "nc", "ncat", "netcat", "nc.openbsd", "nc.traditional", "socat",
	"telnet", "ftp", "lftp", "sftp", "scp", "rsync", "ssh", "mail", "mailx", "sendmail", "openssl", "aria2c", "rclone", "websocat", "gh", "aws", "gsutil")

// sendsStdin reports whether a command sends what is piped into it to the network.
func sendsStdin(c *command) bool {
	switch c.name {
	case "nc", "ncat", "netcat", "nc.openbsd", "nc.traditional", "socat", "telnet", "websocat", "mail", "mailx", "sendmail":
		return !localSocket(c)
	case "curl":
		return slices.ContainsFunc(c.args, func(w shell.Word) bool {
			t := w.Text
			return t == "@-" || t == "-T-" || strings.HasSuffix(t, "=@-") || strings.HasSuffix(t, "=<-") || t == "-" || t == "." || strings.HasPrefix(t, "-d@-") ||
				t == "-F-" || t == "@/dev/stdin"
		})
	case "wget", "wget2":
		return slices.ContainsFunc(c.args, func(w shell.Word) bool {
			return strings.HasPrefix(w.Text, "--post-file") || strings.HasPrefix(w.Text, "--body-file")
		})
	case "http", "https", "xh":
		return true
	case "ssh":
		return true
	case "openssl":
		return hasWord(c, "s_client")
	case "gh":
		return hasWord(c, "gist") && hasWord(c, "create")
	case "aws", "gsutil":
		return hasWord(c, "cp") && hasWord(c, "-")
	}
	for _, r := range c.Redirs {
		if _, ok := networkDevice(r.Target.Text); ok {
			return true
		}
	}
	return slices.ContainsFunc(c.Via, func(v string) bool { return strings.HasPrefix(v, "ssh") })
}

// localSocket reports whether a netcat or socat speaks to a Unix socket or to this machine.
func localSocket(c *command) bool {
	for _, w := range c.args {
		switch t := w.Text; {
		case t == "localhost" || t == "127.0.0.1" || t == "::1", strings.HasPrefix(t, "UNIX-CONNECT:"), strings.HasPrefix(t, "unix:"):
			return true
		}
	}
	return false
}

// listens reports whether a command joins standard input and output to a socket.
func listens(c *command) bool {
	switch c.name {
	case "nc", "ncat", "netcat", "nc.openbsd", "nc.traditional", "socat", "telnet", "openssl":
		return true
	}
	return false
}

// uploads reports whether a command sends a body to the network.
func uploads(c *command) bool {
	if c.name == "curl" {
		p := parseArgs(c.args, curlOptions)
		return p.has("-d", "--data", "--data-binary", "--data-raw", "--data-ascii", "--data-urlencode", "--json", "-F", "--form", "--form-string", "-T", "--upload-file") ||
			slices.ContainsFunc(p.operands, func(w shell.Word) bool { return !w.Known && strings.Contains(w.Text, "?") })
	}
	if c.name == "wget" || c.name == "wget2" {
		return slices.ContainsFunc(c.args, func(w shell.Word) bool {
			return strings.HasPrefix(w.Text, "--post-") || strings.HasPrefix(w.Text, "--body-") || strings.Contains(w.Text, "?") && !w.Known
		})
	}
	return networkClient[c.name]
}

var curlOptions = optSpec{short: "AbcCdDeEFHhKmoPQrtTuUwxXyYz", long: []string{"--data", "--data-binary", "--data-raw", "--data-ascii", "--data-urlencode",
	"--json", "--form", "--form-string", "--upload-file", "--header", "--request", "--output", "--user", "--user-agent", "--cookie", "--cookie-jar",
	"--referer", "--max-time", "--connect-timeout", "--retry", "--proxy", "--cacert", "--cert", "--key", "--config", "--url", "--write-out",
	"--output-dir", "--resolve", "--interface", "--retry-delay", "--limit-rate", "--range", "--unix-socket", "--abstract-unix-socket", "--netrc-file", "--oauth2-bearer"}}

func progCurl(x *evaluation, c *command) {
	p := parseArgs(c.args, curlOptions)
	host := ""
	for _, w := range append(p.operands, p.all("--url")...) {
		if h := urlHost(w.Text); h != "" {
			host = h
		}
	}
	for _, w := range p.all("-o", "--output") {
		if w.Text != "-" {
			x.writeFile(curlDir(c, &p), w, Write, false)
		}
	}
	x.curlFiles(c, &p, host)
	switch method, _ := p.value("-X", "--request"); {
	case strings.EqualFold(method.Text, "DELETE") && host != "" && (!localHost(host) || databasePort(p.operands)):
		x.add(finding{Effect: Effect{Kind: InfraDestroy, Target: host, Program: c.name, Via: c.Via, Note: "something on another machine is deleted"}, form: "http-delete", host: host, cmd: c.index})
	case uploads(c):
		x.add(finding{Effect: Effect{Kind: NetworkSend, Target: host, Program: c.name, Via: c.Via}, form: "upload", host: host, cmd: c.index})
	default:
		x.add(finding{Effect: Effect{Kind: Read, Target: host, Program: c.name, Via: c.Via, Note: "reads from the network"}, form: "network", host: host, cmd: c.index})
	}
	for _, w := range append(p.all("-d", "--data", "--data-binary", "--data-raw", "--data-ascii", "--data-urlencode", "--json", "-F", "--form", "--form-string"), p.operands...) {
		if !w.Known && secretName(w.Var) {
			x.add(finding{Effect: Effect{Kind: NetworkSend, Target: host, Program: c.name, Via: c.Via, Note: "a variable named like a secret would be sent to the network"},
				form: "secret-variable", host: host, cmd: c.index})
		}
	}
	// A secret file that is sent, not only read.
	for _, w := range p.all("-d", "--data", "--data-binary", "--data-ascii", "--data-urlencode", "--json", "-F", "--form", "-T", "--upload-file") {
		t := w.Text
		if i := strings.LastIndexByte(t, '@'); i >= 0 {
			t = t[i+1:]
		} else if !slices.ContainsFunc(p.all("-T", "--upload-file"), func(u shell.Word) bool { return u.Text == w.Text }) {
			continue
		}
		t, _, _ = strings.Cut(t, ";")
		x.sendFile(c, subWord(w, t), host)
	}
}

// curlDir is the command with the directory in which curl writes.
func curlDir(c *command, p *parsedArgs) *command {
	dir, ok := p.value("--output-dir")
	if !ok {
		return c
	}
	at := *c
	at.Cwd = joinCwd(at.Cwd, dir.Text)
	return &at
}

// curlFiles judges the files that curl reads and writes without saying so in the usual way: -O, file:// and -K.
func (x *evaluation) curlFiles(c *command, p *parsedArgs, host string) {
	for _, w := range append(slices.Clone(p.operands), p.all("--url")...) {
		if file, ok := strings.CutPrefix(w.Text, "file://"); ok {
			x.readFile(c, subWord(w, strings.TrimPrefix(file, "localhost")), true, false)
			continue
		}
		if u, err := url.Parse(w.Text); err == nil && w.Known && p.has("-O", "--remote-name", "--remote-name-all") {
			if base := baseName(u.Path); base != "" {
				x.writeFile(curlDir(c, p), literal(base), Write, false)
			}
		}
	}
	for _, w := range p.all("-K", "--config") {
		texts := x.substituted(c)
		if w.Text == "-" && c.Stdin.Known {
			texts = append(texts, c.Stdin.Text)
		}
		for _, t := range texts {
			for line := range strings.SplitSeq(t, "\n") {
				if i := strings.IndexByte(line, '@'); i >= 0 {
					x.sendFile(c, literal(strings.Trim(line[i+1:], `"' `)), host)
				}
			}
		}
	}
}

// databasePort reports whether an address names a port on which databases take requests: what is deleted there is data.
func databasePort(words []shell.Word) bool {
	return slices.ContainsFunc(words, func(w shell.Word) bool {
		t := w.Text
		if !strings.Contains(t, "://") {
			t = "http://" + t
		}
		u, err := url.Parse(strings.ReplaceAll(t, "\x00", "_"))
		if err != nil {
			return false
		}
		switch u.Port() {
		case "9200", "9201", "9243", "8086", "5984", "6333", "7700", "8108", "8529", "7474", "8123", "2379", "8500", "8200":
			return true
		}
		return false
	})
}

// sendFile reports a secret file that a command sends.
func (x *evaluation) sendFile(c *command, w shell.Word, host string) {
	if !w.Known || w.Text == "-" || w.Text == "" {
		return
	}
	if strings.HasPrefix(w.Text, "~/") && len(x.homes) > 0 {
		w.Text = x.homes[0] + w.Text[1:]
	}
	for _, l := range x.locateTarget(c, w) {
		if form := secretForm(&l); form != "" {
			f := l.finding(NetworkSend)
			f.form, f.Program, f.Via, f.cmd, f.host, f.Note = "secret", c.name, c.Via, c.index, host, "a secret would be sent to the network"
			x.add(f)
		}
	}
}

func localHost(h string) bool {
	return h == "localhost" || strings.HasSuffix(h, ".localhost") || strings.HasPrefix(h, "127.") || h == "::1" || h == "0.0.0.0" || h == "host.docker.internal"
}

func urlHost(t string) string {
	if !strings.Contains(t, "://") {
		t = "http://" + t
	}
	u, err := url.Parse(strings.ReplaceAll(t, "\x00", "_"))
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

func progWget(x *evaluation, c *command) {
	p := parseArgs(c.args, optSpec{short: "OPoaeiBtTwQUDIXARlp", long: []string{"--output-document", "--directory-prefix", "--post-file", "--post-data", "--body-file", "--body-data", "--header", "--user-agent"}})
	host := ""
	for _, w := range p.operands {
		if h := urlHost(w.Text); h != "" {
			host = h
		}
	}
	if out, ok := p.value("-O", "--output-document"); ok && out.Text != "-" {
		x.writeFile(c, out, Write, false)
	}
	if dir, ok := p.value("-P", "--directory-prefix"); ok {
		at := *c
		at.Cwd = joinCwd(at.Cwd, dir.Text)
		for _, w := range p.operands {
			if u, err := url.Parse(w.Text); err == nil && baseName(u.Path) != "" {
				x.writeFile(&at, literal(baseName(u.Path)), Write, false)
			}
		}
	}
	kind, form := Read, "network"
	if uploads(c) {
		kind, form = NetworkSend, "upload"
	}
	x.add(finding{Effect: Effect{Kind: kind, Target: host, Program: c.name, Via: c.Via}, form: form, host: host, cmd: c.index})
	for _, w := range p.all("--post-file", "--body-file") {
		x.sendFile(c, w, host)
	}
}

func progNetcat(x *evaluation, c *command) {
	p := parseArgs(c.args, optSpec{short: "ecpsiIwqTxXPmMOgGV", long: []string{"--exec", "--sh-exec", "--lua-exec"}})
	if p.has("--exec", "--sh-exec", "--lua-exec") || p.has("-e", "-c") && len(p.all("-e", "-c")) > 0 {
		x.effect(c, NetworkSend, "reverse-shell", p.operand(0), "a program would be joined to the network")
		return
	}
	x.effect(c, NetworkSend, "socket", p.operand(0), "")
}

func progSocat(x *evaluation, c *command) {
	exec, net := false, false
	for _, w := range c.args {
		t := strings.ToUpper(w.Text)
		exec = exec || strings.HasPrefix(t, "EXEC:") || strings.HasPrefix(t, "SYSTEM:") || strings.HasPrefix(t, "SHELL:")
		net = net || strings.HasPrefix(t, "TCP") || strings.HasPrefix(t, "UDP") || strings.HasPrefix(t, "OPENSSL") || strings.HasPrefix(t, "SSL")
	}
	if exec && net {
		x.effect(c, NetworkSend, "reverse-shell", "", "a program would be joined to the network")
		return
	}
	x.effect(c, NetworkSend, "socket", "", "")
}

// remoteSpec reports whether a word is host:path.
func remoteSpec(t string) (host string, ok bool) {
	i := strings.IndexByte(t, ':')
	if i <= 0 || strings.Contains(t[:i], "/") {
		return "", false
	}
	host = t[:i]
	if j := strings.LastIndexByte(host, '@'); j >= 0 {
		host = host[j+1:]
	}
	return host, true
}

func progScp(x *evaluation, c *command) {
	p := parseArgs(c.args, optSpec{short: "cDFiJloPSXb"})
	for _, w := range p.all("-S", "-D") {
		if strings.ContainsAny(w.Text, " ;|&$`") {
			x.nestedWord(w, c, c.name+" -S")
		}
	}
	for _, w := range p.all("-o") {
		at := strings.IndexAny(w.Text, "= ")
		if at < 0 {
			continue
		}
		name, val := w.Text[:at], strings.TrimLeft(w.Text[at:], "= ")
		if (strings.EqualFold(name, "ProxyCommand") || strings.EqualFold(name, "LocalCommand") || strings.EqualFold(name, "KnownHostsCommand")) && val != "none" {
			x.nested(val, c, c.name+" -o")
		}
	}
	if p.has("-b") {
		for _, t := range append(x.substituted(c), c.Stdin.Text) {
			for line := range strings.SplitSeq(t, "\n") {
				if f := strings.Fields(line); len(f) > 1 && (f[0] == "put" || f[0] == "mput" || f[0] == "reput") {
					x.sendFile(c, literal(f[1]), p.operand(0))
				}
			}
		}
	}
	x.transfer(c, p.operands)
}

// transfer judges copies to or from another machine.
func (x *evaluation) transfer(c *command, words []shell.Word) {
	if len(words) == 0 {
		return
	}
	last := words[len(words)-1]
	host, remote := remoteSpec(last.Text)
	if strings.HasPrefix(last.Text, "rsync://") {
		host, remote = urlHost(last.Text), true
	}
	if !remote {
		for _, w := range words[:len(words)-1] {
			x.copyOver(c, w, last, false)
		}
		return
	}
	x.add(finding{Effect: Effect{Kind: NetworkSend, Target: host, Program: c.name, Via: c.Via}, form: "upload", host: host, cmd: c.index})
	for _, w := range words[:len(words)-1] {
		x.sendFile(c, w, host)
	}
}

func progRsync(x *evaluation, c *command) {
	p := parseArgs(c.args, optSpec{short: "efBMT", long: []string{"--rsh", "--exclude", "--include", "--filter", "--exclude-from", "--include-from", "--files-from",
		"--log-file", "--port", "--password-file", "--bwlimit", "--partial-dir", "--backup-dir", "--chmod", "--chown", "--out-format", "--max-delete", "--rsync-path"}})
	dry := p.has("-n", "--dry-run")
	if p.has("--remove-source-files") && !dry && len(p.operands) > 1 {
		for _, w := range p.operands[:len(p.operands)-1] {
			if _, remote := remoteSpec(w.Text); !remote {
				x.remove(c, w, removal{recursive: true, form: "rsync", note: "sources are removed after the copy"})
			}
		}
	}
	deletes := false
	for _, f := range p.flags {
		deletes = deletes || strings.HasPrefix(f, "--del") && f != "--delay-updates"
	}
	if deletes && !dry && len(p.operands) > 1 {
		dst := p.operands[len(p.operands)-1]
		if host, remote := remoteSpec(dst.Text); remote {
			x.effect(c, Delete, "remote", host, "what the source lacks is deleted on another machine")
		} else {
			x.remove(c, dst, removal{recursive: true, form: "rsync", note: "what the source lacks is deleted"})
		}
	}
	if dry {
		return
	}
	if host, remote := remoteSpec(lastText(p.operands)); remote {
		x.add(finding{Effect: Effect{Kind: NetworkSend, Target: host, Program: c.name, Via: c.Via}, form: "upload", host: host, cmd: c.index})
		for _, w := range p.operands[:len(p.operands)-1] {
			x.sendFile(c, w, host)
		}
		return
	}
	x.execute(c)
}

func lastText(words []shell.Word) string {
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1].Text
}
