// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"path"
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/shell"
)

// secretForm says which kind of secret a file holds, "" if none is known: "private-key", "cloud-credentials", "env-file".
func secretForm(l *located) string {
	forms := make([]string, 0, 2)
	for _, p := range l.abs {
		forms = append(forms, secretPath(p, l))
	}
	for _, want := range []string{"private-key", "cloud-credentials", "env-file", "key-file"} {
		if slices.Contains(forms, want) {
			return want
		}
	}
	return ""
}

func secretPath(p string, l *located) string {
	base := path.Base(p)
	if l.res.Sensitive == "env-file" {
		return "env-file"
	}
	if publicName(base) {
		return ""
	}
	if l.res.Sensitive == "secret-file" {
		if strings.HasPrefix(base, "id_") {
			return "private-key"
		}
		return "cloud-credentials"
	}
	if inPublicSSH(p) {
		return ""
	}
	if l.res.Credentials {
		dir, name := credentialDir(p)
		switch dir {
		case ".ssh":
			return "private-key"
		case ".gnupg":
			if name == "" || strings.HasPrefix(name, "private-keys") || strings.HasPrefix(name, "secring") {
				return "private-key"
			}
			return ""
		case ".aws":
			if name == "config" {
				return ""
			}
			return "cloud-credentials"
		case ".kube":
			if name == "" || strings.HasPrefix(name, "config") {
				return "cloud-credentials"
			}
			return ""
		case ".docker":
			if name == "" || name == "config.json" {
				return "cloud-credentials"
			}
			return ""
		case "gcloud":
			if strings.HasPrefix(name, "configurations") || strings.HasPrefix(name, "logs") || name == "active_config" {
				return ""
			}
			return "cloud-credentials"
		}
	}
	switch {
	case strings.HasSuffix(p, "/.claude/.credentials.json"), strings.HasSuffix(p, "/.codex/auth.json"),
		strings.HasSuffix(p, "/.gemini/oauth_creds.json"), strings.HasSuffix(p, "/.config/gcloud"):
		return "cloud-credentials"
	case keyFile(base), base == ".npmrc" && l.place != "project", strings.HasPrefix(p, "/proc/") && base == "environ":
		return "key-file"
	}
	return ""
}

// publicName reports whether a name is that of the public half of something, or of a list of hosts.
func publicName(base string) bool {
	return strings.HasSuffix(base, ".pub")
}

func inPublicSSH(p string) bool {
	if path.Base(path.Dir(p)) != ".ssh" {
		return false
	}
	switch base := path.Base(p); base {
	case "config", "known_hosts", "known_hosts.old", "authorized_keys", "environment", "rc":
		return true
	}
	return false
}

// keyFile reports whether a name outside the known places is that of a private key.
func keyFile(base string) bool {
	for _, s := range []string{"privkey.pem", "-key.pem", "_key.pem", ".key", "_rsa", "_ed25519", ".p12", ".pfx", ".jks", ".keystore"} {
		if strings.HasSuffix(base, s) {
			return true
		}
	}
	return false
}

// credentialDir splits a path below a home's credentials: ".ssh", "id_rsa".
func credentialDir(p string) (dir, name string) {
	for _, d := range []string{".ssh", ".gnupg", ".aws", ".kube", ".docker", "gcloud"} {
		if i := strings.LastIndex(p, "/"+d); i >= 0 {
			rest := p[i+1+len(d):]
			if rest == "" || rest[0] == '/' {
				return d, strings.TrimPrefix(rest, "/")
			}
		}
	}
	return "", ""
}

// judgeSecretOperands reports secrets among the words of a command that would show, copy or send what is in them. Any
// program that is not known to leave the content alone counts.
func (x *evaluation) judgeSecretOperands(c *command) {
	if c.Remote && !notReaders[c.name] && !slices.ContainsFunc(c.Via, isContainer) {
		for _, w := range c.args {
			if remoteSecret(w.Text) {
				x.effect(c, SecretRead, "private-key", w.Text, "on another machine")
			}
		}
	}
	if c.Remote && len(c.Mounts) == 0 {
		return
	}
	content := !notReaders[c.name]
	if c.name == "git" {
		content = hasWord(c, "--no-index", "hash-object")
	}
	x.judgeSecretInputs(c, content)
	at := c
	for i, w := range c.args {
		if archivers[c.name] && i > 0 && (c.args[i-1].Text == "-C" || c.args[i-1].Text == "--directory" || c.args[i-1].Text == "--cd") {
			moved := *c
			moved.Cwd = joinCwd(at.Cwd, w.Text)
			at = &moved
			continue
		}
		t := w.Text
		if !w.Known {
			if w.Hidden && content && !patternWord(c, i) {
				x.readFile(c, w, true, false)
			}
			continue
		}
		if patternWord(c, i) {
			continue
		}
		for _, cut := range []string{"=@", "@", "="} {
			if _, rest, ok := strings.Cut(t, cut); ok && strings.ContainsAny(rest, "/.") {
				t = rest
				break
			}
		}
		if strings.HasPrefix(t, "-") || !pathLike(t) {
			continue
		}
		if i > 0 && takesIdentity(c, c.args[i-1].Text) {
			continue
		}
		if name, _, ok := strings.Cut(w.Text, "="); ok && takesIdentity(c, name) {
			continue
		}
		if i == len(c.args)-1 && writesLast[c.name] && len(c.args) > 1 {
			continue
		}
		w = subWord(w, t)
		if strings.HasPrefix(t, "~/") && len(x.homes) > 0 {
			w.Text = path.Join(x.homes[0], t[2:])
		}
		x.readFile(at, w, content, false)
		if content {
			x.takesHome(at, w)
		}
	}
}

// remoteSecret reports whether a path names a key or credential on any machine, by its text alone.
func remoteSecret(p string) bool {
	if publicName(p) {
		return false
	}
	return strings.Contains(p, ".ssh/id_") || strings.HasSuffix(p, ".aws/credentials") || p == "/etc/shadow" || strings.HasSuffix(p, ".kube/config")
}

// takesIdentity reports whether an option hands a key to the program that it is for, which uses it and does not show it.
func takesIdentity(c *command, option string) bool {
	switch option {
	case "-key", "-inkey", "-CAkey":
		return c.name == "openssl"
	case "--env-file", "--env-file-if-exists", "--dotenv":
		return true
	case "-i", "--identity", "--identity-file", "--private-key", "--key", "--key-file", "--client-key", "--ssh-key", "--kubeconfig", "--private-key-file":
		if c.name == "scp" || c.name == "sftp" {
			return option == "-i"
		}
		return !shownReaders[c.name] && languageOf(c.name) == ""
	}
	return false
}

// writesLast are programs whose last operand is where they write.
var writesLast = wordSet("cp", "mv", "ln", "install", "rsync", "scp", "gcp", "gmv", "gln", "mkfifo", "split", "touch", "mkdir")

// pathLike reports whether a word could name a file.
func pathLike(t string) bool {
	return t != "" && len(t) < 4096 && !strings.ContainsAny(t, "\n") && !strings.Contains(t, "://")
}

// patternWord reports whether word i of a search or filter program is its pattern and no file.
func patternWord(c *command, i int) bool {
	switch c.name {
	case "grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "sed", "awk", "gawk", "mawk", "nawk", "jq", "yq", "perl", "ruby", "python", "python3", "node":
	default:
		return false
	}
	script := map[string]string{"sed": "ef", "awk": "fvF", "gawk": "fvF", "mawk": "fvF", "nawk": "fvF"}[c.name]
	for j, w := range c.args {
		t := w.Text
		if t == "-e" || t == "--regexp" || t == "-c" || t == "-E" || strings.HasPrefix(t, "--regexp=") {
			return j+1 == i
		}
		if strings.HasPrefix(t, "-") && len(t) > 1 {
			if len(t) == 2 && strings.Contains("ABCmdgtT"+script, t[1:]) && c.name != "jq" && c.name != "perl" {
				if j+1 == i {
					return t[1] != 'f'
				}
			}
			continue
		}
		if j > 0 {
			if p := c.args[j-1].Text; len(p) == 2 && p[0] == '-' && strings.Contains("ABCmgtTfvF", p[1:]) {
				continue
			}
		}
		return j == i && c.name != "python" && c.name != "python3" && c.name != "node"
	}
	return false
}

// judgePipes looks at whole pipelines: secrets and the environment that run into a network client, shells joined to sockets.
func (x *evaluation) judgePipes(cmds []*command) {
	for _, c := range cmds {
		if c.Pipe == 0 || c.Stage == 0 || !sendsStdin(c) {
			continue
		}
		for _, up := range cmds {
			if up.Pipe != c.Pipe || up.Stage >= c.Stage {
				continue
			}
			if what := x.leaks(up); what != "" {
				x.effect(c, NetworkSend, "secret", c.Host, what+" would be sent to the network")
			} else if printsSecretVariable(up) && !slices.Contains(c.Via, "ssh") {
				x.effect(c, NetworkSend, "secret-variable", "", "a variable named like a secret would be sent to the network")
			}
			if (shells[up.name] && hasWord(up, "-i")) && listens(c) {
				x.effect(c, NetworkSend, "reverse-shell", "", "a shell would be joined to the network")
			}
		}
	}
	for _, c := range cmds {
		for _, r := range c.Redirs {
			if host, ok := networkDevice(r.Target.Text); ok && strings.HasPrefix(r.Op, ">") && x.leaks(c) != "" {
				x.effect(c, NetworkSend, "secret", host, x.leaks(c)+" would be sent to the network")
			}
		}
		if !networkClient[c.name] {
			continue
		}
		for _, in := range cmds {
			// curl -d "$(env)": the substitution's commands come before the command that uses them.
			if in != c && slices.Contains(in.Via, "$()") && dumpsEnvironment(in) && uploads(c) {
				x.effect(c, NetworkSend, "secret", "", "the environment would be sent to the network")
			}
		}
	}
}

// secretName reports whether a variable's name says that it holds a secret.
func secretName(name string) bool {
	name = strings.ToUpper(name)
	for _, part := range []string{"SECRET", "TOKEN", "PASSWORD", "PASSWD", "API_KEY", "APIKEY", "PRIVATE_KEY", "CREDENTIAL", "ACCESS_KEY"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// printsSecretVariable reports whether a command puts a variable that is named like a secret on its output.
func printsSecretVariable(c *command) bool {
	switch c.name {
	case "echo", "printf", "printenv", "cat":
	default:
		return false
	}
	return slices.ContainsFunc(c.args, func(w shell.Word) bool { return secretName(w.Var) || c.name == "printenv" && secretName(w.Text) })
}

// leaks says which secret a command puts on its output, "" if none is known.
func (x *evaluation) leaks(c *command) string {
	if dumpsEnvironment(c) {
		return "the environment"
	}
	for i := range x.findings {
		if f := &x.findings[i]; f.cmd == c.index && f.Kind == SecretRead {
			return "a secret"
		}
	}
	return ""
}

// dumpsEnvironment reports whether a command prints the variables of its environment.
func dumpsEnvironment(c *command) bool {
	switch c.name {
	case "printenv":
		return true
	case "env":
		return len(c.args) == 0
	case "export", "declare", "typeset":
		return len(c.args) == 0 || len(c.args) == 1 && (c.args[0].Text == "-p" || c.args[0].Text == "-x")
	case "set":
		return len(c.args) == 0
	}
	for _, a := range c.args {
		if strings.HasPrefix(a.Text, "/proc/") && strings.HasSuffix(a.Text, "/environ") {
			return true
		}
	}
	return false
}

func hasWord(c *command, words ...string) bool {
	return slices.ContainsFunc(c.args, func(w shell.Word) bool { return w.Known && slices.Contains(words, w.Text) })
}
