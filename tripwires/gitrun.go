// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/shell"
)

// gitSetting is one setting that a call gives git for this run only, by whatever way.
type gitSetting struct {
	key, val string // key in lower case
	known    bool
	option   bool // given with -c: the shell analysis has run what it runs
}

// gitEnvironment reads the settings that come in variables: GIT_CONFIG_COUNT with its keys and values, GIT_CONFIG_PARAMETERS.
func gitEnvironment(c *command) []gitSetting {
	keys, vals := map[string]string{}, map[string]shell.Word{}
	var out []gitSetting
	for _, a := range append(slices.Clone(c.Exported), c.Env...) {
		switch {
		case strings.HasPrefix(a.Name, "GIT_CONFIG_KEY_"):
			keys[a.Name[len("GIT_CONFIG_KEY_"):]] = a.Value.Text
		case strings.HasPrefix(a.Name, "GIT_CONFIG_VALUE_"):
			vals[a.Name[len("GIT_CONFIG_VALUE_"):]] = a.Value
		case a.Name == "GIT_CONFIG_PARAMETERS":
			for _, part := range strings.Split(a.Value.Text, "'") {
				if key, val, ok := strings.Cut(part, "="); ok && key != "" {
					out = append(out, gitSetting{key: strings.ToLower(key), val: val, known: a.Value.Known})
				}
			}
		}
	}
	for n, k := range keys {
		out = append(out, gitSetting{key: strings.ToLower(k), val: vals[n].Text, known: vals[n].Known})
	}
	slices.SortFunc(out, func(a, b gitSetting) int { return strings.Compare(a.key+a.val, b.key+b.val) })
	return out
}

// gitFromVariable reads --config-env=KEY=VARIABLE.
func gitFromVariable(c *command, spec string) gitSetting {
	key, name, _ := strings.Cut(spec, "=")
	s := gitSetting{key: strings.ToLower(key)}
	for _, a := range append(slices.Clone(c.Exported), c.Env...) {
		if a.Name == name {
			s.val, s.known = a.Value.Text, a.Value.Known
		}
	}
	return s
}

// gitRunsSettings judges what git runs because of such settings. It returns the aliases among them.
func (x *evaluation) gitRunsSettings(c *command, settings []gitSetting, aliases map[string]string) {
	for _, s := range settings {
		name, alias := strings.CutPrefix(s.key, "alias.")
		runs := alias || gitRuns(s.key) || s.key == "core.hookspath" || s.key == "credential.helper"
		switch {
		case s.option || !runs:
		case !s.known:
			x.opaqueCode(c, "git would run a command from a variable that is not known")
		case alias && strings.HasPrefix(s.val, "!"):
			x.nested(s.val[1:], c, "git alias")
			aliases[name] = s.val
		case alias:
			aliases[name] = s.val
		case strings.ContainsAny(s.val, " ;|&$`"):
			x.nested(strings.TrimPrefix(s.val, "!"), c, "git "+s.key)
		}
	}
}

// gitSetBefore finds the alias that an earlier git config of the same source made.
func (x *evaluation) gitSetBefore(c *command, verb string) (string, bool) {
	for _, u := range x.cmds {
		if u.name != "git" || u.index >= c.index {
			continue
		}
		for i, w := range u.args {
			if strings.EqualFold(w.Text, "alias."+verb) && i+1 < len(u.args) && hasWord(u, "config") {
				return u.args[i+1].Text, true
			}
		}
	}
	return "", false
}

// gitRemoteHelpers judges ext:: addresses, which are commands, and options that name the program of the other side.
func (x *evaluation) gitRemoteHelpers(c *command, verb string, args []shell.Word) {
	for i, w := range args {
		if rest, ok := strings.CutPrefix(w.Text, "ext::"); ok {
			var argv []string
			for _, f := range strings.Split(strings.ReplaceAll(rest, "% ", "\x01"), " ") {
				argv = append(argv, strings.NewReplacer("\x01", " ", "%%", "%").Replace(f))
			}
			x.nestedArgv(argv, c, "git ext::")
		}
		name, val, eq := strings.Cut(w.Text, "=")
		switch name {
		case "--exec", "--upload-pack", "--receive-pack", "--sendmail-cmd", "--smtp-server":
			if !eq && i+1 < len(args) {
				val = args[i+1].Text
			}
			if strings.ContainsAny(val, " ;|&$`") {
				x.nested(val, c, "git "+name)
			}
		}
	}
	if verb == "remote" || verb == "config" {
		for _, w := range args {
			if !w.Known && secretName(w.Var) && strings.Contains(w.Text, "://") {
				x.effect(c, NetworkSend, "secret-variable", "", "a secret would be stored in an address, and sent with every push")
			}
		}
	}
}
