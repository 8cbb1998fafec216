// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"regexp"
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/shell"
)

var jsonString = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`)

// infraRuns judges the commands that cloud tools start on machines of theirs: heroku run, fly ssh console -C, gcloud compute
// ssh --command, aws ssm send-command.
func (x *evaluation) infraRuns(c *command) {
	at := *c
	at.Remote, at.Host = true, c.name
	value := func(names ...string) {
		for i, w := range c.args {
			name, val, eq := strings.Cut(w.Text, "=")
			switch {
			case !slices.Contains(names, name):
			case eq:
				x.nestedWord(subWord(w, val), &at, c.name)
			case i+1 < len(c.args):
				x.nestedWord(c.args[i+1], &at, c.name)
			}
		}
	}
	switch c.name {
	case "gcloud", "az":
		if hasWord(c, "ssh", "run-command", "vm") {
			value("--command", "--scripts")
		}
	case "fly", "flyctl":
		if hasWord(c, "console", "exec") {
			value("-C", "--command")
		}
	case "heroku":
		if len(c.args) > 1 && (c.args[0].Text == "run" || c.args[0].Text == "run:detached" || c.args[0].Text == "run:inside") {
			rest := slices.Clone(c.args[1:])
			for len(rest) > 0 && strings.HasPrefix(rest[0].Text, "-") {
				if n := rest[0].Text; (n == "-a" || n == "--app" || n == "-s" || n == "--size" || n == "-r") && len(rest) > 1 {
					rest = rest[1:]
				}
				rest = rest[1:]
			}
			switch {
			case len(rest) == 1 && rest[0].Known && strings.Contains(rest[0].Text, " "):
				x.nested(rest[0].Text, &at, c.name)
			case len(rest) > 0:
				x.nestedWords(rest, &at, c.name)
			}
		}
	case "aws":
		if !hasWord(c, "send-command") {
			return
		}
		for _, w := range c.args {
			if strings.Contains(w.Text, "commands") {
				for _, m := range jsonString.FindAllStringSubmatch(w.Text, 50) {
					if m[1] != "commands" {
						x.nested(strings.ReplaceAll(m[1], `\"`, `"`), &at, "aws ssm")
					}
				}
			}
		}
	}
}

// infraFiles judges the files that such tools copy: keys that leave, and guarded files that are written.
func (x *evaluation) infraFiles(c *command) {
	p := parseArgs(c.args, infraValueFlags)
	verb, rest := p.operand(0), p.operands
	if len(rest) > 0 {
		rest = rest[1:]
	}
	if len(rest) > 0 && (verb == "storage" || verb == "compute" || verb == "container") {
		verb, rest = rest[0].Text, rest[1:]
	}
	switch {
	case c.name == "gh" && verb == "gist", c.name == "gh" && verb == "release" && len(rest) > 1 && rest[0].Text == "upload":
		for _, w := range rest {
			x.sendFile(c, w, "github.com")
		}
	case verb == "cp" || verb == "scp" || verb == "copy" || verb == "copyto":
		for i, w := range rest {
			if _, remote := remoteSpec(w.Text); remote || strings.Contains(w.Text, "://") || w.Text == "-" {
				continue
			}
			if i == len(rest)-1 && len(rest) > 1 {
				x.writeInto(c, w, rest[i-1].Text)
			} else {
				x.sendFile(c, w, c.name)
			}
		}
	}
}

// writeInto judges a copy from elsewhere to here; into a directory it keeps its name.
func (x *evaluation) writeInto(c *command, dst shell.Word, src string) {
	if base := baseName(strings.TrimSuffix(src, "/")); base != "" && dst.Known && (strings.HasSuffix(dst.Text, "/") || dst.Text == "." || dst.Text == ".." || x.isDirectory(c, dst)) {
		if i := strings.LastIndexByte(base, ':'); i >= 0 {
			base = base[i+1:]
		}
		dst = subWord(dst, strings.TrimSuffix(dst.Text, "/")+"/"+base)
	}
	x.writeFile(c, dst, Write, false)
}

// progORM covers the tools that keep a database's tables: their resets lose data.
func progORM(x *evaluation, c *command) {
	p := parseArgs(c.args, optSpec{posix: false})
	for i, w := range p.operands {
		next := p.operand(i + 1)
		loss := false
		switch w.Text {
		case "db:drop", "schema:drop", "db:migrate:undo:all", "migration:revert-all", "db:drop:all", "drop", "drop-all", "wipe":
			loss = w.Text != "drop" || c.name != "sequelize"
		case "migrate:rollback", "rollback":
			loss = p.has("--all")
		case "downgrade":
			loss = c.name == "alembic" || c.name == "flask"
			loss = loss && (next == "base" || c.name == "alembic" && strings.HasPrefix(next, "-"))
		case "reset", "fresh", "database:drop", "database:reset":
			loss = true
		case "push":
			loss = p.has("--force")
		}
		if loss {
			x.effect(c, DatabaseDestroy, "drop", joinWords([]string{c.name, w.Text}), "")
			return
		}
	}
	x.execute(c)
}

// progGio covers gio trash, which moves files away.
func progGio(x *evaluation, c *command) {
	p := parseArgs(c.args, optSpec{})
	if verb := p.operand(0); (verb == "trash" || verb == "remove") && !p.has("--list", "--empty", "--restore") {
		for _, w := range p.operands[1:] {
			x.remove(c, w, removal{recursive: true, forced: true, form: "gio"})
		}
		return
	}
	x.execute(c)
}

// progSevenZip covers archives whose sources are deleted once they are in.
func progSevenZip(x *evaluation, c *command) {
	p := parseSingleDash(c.args)
	if !slices.ContainsFunc(c.args, func(w shell.Word) bool { return w.Text == "-sdel" }) || len(p.operands) < 3 {
		x.execute(c)
		return
	}
	for _, w := range p.operands[2:] {
		x.remove(c, w, removal{recursive: true, forced: true, form: "7z", note: "removed after archiving"})
	}
}
