// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"path"
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/shell"
)

// archivers are programs that take whole directories with what is in them.
var archivers = wordSet("tar", "gtar", "bsdtar", "zip", "7z", "7za", "7zz", "rar", "cp", "gcp", "rsync", "scp", "pax", "ditto", "restic", "borg")

// wellKnownKeys are the names under which a home holds keys, for searches that would find them. The slice is a table.
var wellKnownKeys = []string{".ssh/id_rsa", ".ssh/id_ed25519", ".ssh/id_ecdsa", ".aws/credentials"}

// takesHome reports the copying or packing of a whole home directory: its keys go along.
func (x *evaluation) takesHome(c *command, w shell.Word) {
	if !archivers[c.name] || c.Remote || !w.Known || w.Glob || slices.ContainsFunc(c.args, func(a shell.Word) bool { return strings.Contains(a.Text, "exclude") || a.Text == "-x" }) {
		return
	}
	switch c.name {
	case "tar", "gtar", "bsdtar":
		if !packs(c) {
			return
		}
	case "cp", "gcp", "zip", "scp":
		if !parsedRecursive(c) {
			return
		}
	case "rsync":
		if !parsedRecursive(c) && !slices.ContainsFunc(c.args, func(a shell.Word) bool { return a.Text == "-a" || strings.HasPrefix(a.Text, "-a") }) {
			return
		}
	}
	abs := x.paths.Abs(c.Cwd.Text, w.Text)
	if abs == "" || abs == x.root {
		return
	}
	if slices.ContainsFunc(x.homes, func(h string) bool { return within(abs, h) }) {
		x.effect(c, SecretRead, "private-key", w.Text, "a whole home directory goes along, with its keys")
	}
}

// packs reports whether a tar makes an archive.
func packs(c *command) bool {
	for i, w := range c.args {
		t := w.Text
		if t == "--create" || t == "--append" || t == "--update" {
			return true
		}
		if i == 0 && !strings.HasPrefix(t, "-") || len(t) > 1 && t[0] == '-' && t[1] != '-' {
			if strings.ContainsAny(t, "cru") {
				return true
			}
		}
	}
	return false
}

func parsedRecursive(c *command) bool {
	return slices.ContainsFunc(c.args, func(w shell.Word) bool {
		t := w.Text
		return t == "--recursive" || t == "--archive" || len(t) > 1 && t[0] == '-' && t[1] != '-' && strings.ContainsAny(t, "rRa")
	})
}

// judgeSecretInputs reports secrets that reach a command by another way than its words: a file that a remote command is fed,
// what a find in front of xargs finds, a file of arguments.
func (x *evaluation) judgeSecretInputs(c *command, content bool) {
	viaXargs := slices.Contains(c.Via, "xargs")
	for _, r := range c.Redirs {
		if r.Op != "<" {
			continue
		}
		if c.name == "ssh" || slices.ContainsFunc(c.Via, func(v string) bool { return strings.HasPrefix(v, "ssh") }) {
			x.sendFile(c, r.Target, c.Host)
		} else if viaXargs && !content {
			x.readFile(c, r.Target, true, true)
		}
	}
	if !viaXargs || !content || c.Remote {
		return
	}
	if u := x.findUpstream(c); u != nil {
		x.findReads(c, planFind(u.args, len(u.args)))
	}
}

// findReads reports the reading of what find finds: the places where it starts, and keys that its tests would let through.
func (x *evaluation) findReads(c *command, plan findPlan) {
	for _, w := range plan.starts {
		x.readFile(c, w, true, false)
		start := ""
		if ls := x.locateTarget(c, w); len(ls) > 0 && len(ls[0].abs) > 0 && ls[0].certain {
			start = ls[0].abs[0]
		}
		if start == "" || !plan.narrow {
			continue
		}
		for _, h := range x.homes {
			for _, k := range wellKnownKeys {
				p := path.Join(h, k)
				if !within(start, p) {
					continue
				}
				for _, t := range plan.tests {
					if ok, err := path.Match(t, path.Base(p)); err == nil && ok && strings.Trim(t, "*?.") != "" {
						x.readFile(c, literal(p), true, false)
					}
				}
			}
		}
	}
}

// findChanges judges a command that find starts for everything that it finds, without a test that narrows it: chmod of all
// below / is chmod -R of it, and a shell text runs for the starting point as well.
func (x *evaluation) findChanges(c *command, plan findPlan, argv []shell.Word) {
	if len(argv) == 0 || plan.narrow && !plan.loose || c.Remote {
		return
	}
	switch name := baseName(argv[0].Text); name {
	case "chmod", "chown", "chgrp":
		words := []shell.Word{argv[0], literal("-R")}
		for _, w := range argv[1:] {
			if w.Text == "{}" || w.Text == ";" || w.Text == "+" {
				break
			}
			words = append(words, w)
		}
		x.nestedWords(append(words, plan.starts...), c, "find -exec")
	default:
		if !shells[name] || len(argv) < 3 || argv[1].Text != "-c" {
			return
		}
		for _, start := range plan.starts { // what it starts with is the first that it finds
			words := slices.Clone(argv)
			for i := range words {
				if words[i].Text == ";" || words[i].Text == "+" {
					words = words[:i]
					break
				}
				if words[i].Text == "{}" {
					words[i] = start
				}
			}
			x.nestedWords(words, c, "find -exec")
		}
	}
}

// substituted gives the texts of the process substitutions that stand among a command's words, as far as they are known.
func (x *evaluation) substituted(c *command) []string {
	var out []string
	for _, u := range x.cmds {
		if u.index >= len(x.cmds) || u == c || len(u.Via) == 0 || u.Via[len(u.Via)-1] != "<()" || u.Pos.Line < c.Pos.Line {
			continue
		}
		if t := knownOutput(u); t.Known {
			out = append(out, t.Text)
		}
	}
	return out
}
