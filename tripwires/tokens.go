// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/shell"
)

// tokenPrinters are programs that print secrets which they keep, with the words that make them do so, in order.
var tokenPrinters = map[string][]string{
	"gh": {"auth token"}, "glab": {"auth token"}, "gcloud": {"auth print-access-token", "auth print-identity-token", "auth application-default print-access-token", "secrets versions access"},
	"aws": {"configure export-credentials", "secretsmanager get-secret-value", "ecr get-login-password", "configure get", "sts get-session-token", "sts assume-role"},
	"az":  {"account get-access-token", "keyvault secret show"}, "security": {"find-generic-password", "find-internet-password", "dump-keychain"},
	"secret-tool": {"lookup"}, "pass": {"show"}, "op": {"read", "item get"}, "vault": {"kv get", "read"}, "kubectl": {"get secret", "get secrets"},
	"heroku": {"auth:token"}, "npm": {"token create"}, "doppler": {"secrets"}, "bw": {"get password", "get item"},
}

// judgeTokenPrinter records that a program prints a secret of its own store.
func (x *evaluation) judgeTokenPrinter(c *command) {
	if c.name == "gpg" || c.name == "gpg2" {
		if slices.ContainsFunc(c.args, func(w shell.Word) bool { return strings.HasPrefix(w.Text, "--export-secret") }) {
			x.effect(c, SecretRead, "private-key", "", "private keys would be exported")
		}
		return
	}
	lists := tokenPrinters[c.name]
	if len(lists) == 0 {
		return
	}
	var words []string
	for _, w := range c.args {
		if !strings.HasPrefix(w.Text, "-") {
			words = append(words, w.Text)
		}
	}
	for _, l := range lists {
		want := strings.Fields(l)
		if len(words) < len(want) || !slices.Equal(words[:len(want)], want) {
			continue
		}
		if c.name == "kubectl" && !slices.ContainsFunc(c.args, func(w shell.Word) bool {
			return strings.Contains(w.Text, "json") || strings.Contains(w.Text, "yaml") || strings.Contains(w.Text, "template")
		}) {
			continue // names only
		}
		if l == "configure get" && !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, "secret") || strings.Contains(w, "token") }) || x.loginDownstream(c) {
			continue
		}
		x.effect(c, SecretRead, "token", l, "a secret would be printed")
		return
	}
}

// loginDownstream reports whether what a command prints goes straight into a program that logs in with it.
func (x *evaluation) loginDownstream(c *command) bool {
	return c.Pipe > 0 && slices.ContainsFunc(x.cmds, func(d *command) bool {
		if d.Pipe != c.Pipe || d.Stage != c.Stage+1 || d.Pos.Line != c.Pos.Line {
			return false
		}
		switch d.name {
		case "docker", "podman", "nerdctl", "helm", "skopeo", "crane", "buildah", "oras", "gh":
			return hasWord(d, "login") && hasWord(d, "--password-stdin", "--with-token")
		}
		return false
	})
}

// gitShowsSecret covers REV:PATH of a secret file.
func (x *evaluation) gitShowsSecret(c *command, args []shell.Word) {
	for _, w := range args {
		_, file, ok := strings.Cut(w.Text, ":")
		if !ok || !w.Known || file == "" || strings.Contains(w.Text, "://") {
			continue
		}
		for _, l := range x.locateTarget(c, literal(file)) {
			if form := secretForm(&l); form != "" {
				f := l.finding(SecretRead)
				f.form, f.Program, f.Via, f.cmd = form, c.name, c.Via, c.index
				x.add(f)
			}
		}
	}
}
