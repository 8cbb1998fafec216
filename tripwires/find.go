// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"path"
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/paths"
	"github.com/tripline-sh/tripline/tripwires/shell"
)

// findPlan is what a find expression would delete: where it starts, and whether a test in front of the action narrows it.
type findPlan struct {
	starts []shell.Word
	tests  []string // name and path patterns in front of the action
	narrow bool     // a name or path test, not negated, or -empty
	loose  bool     // an -o, a negation, or a pattern that matches everything
}

// planFind reads find's words up to the action at index end.
func planFind(args []shell.Word, end int) findPlan {
	var p findPlan
	i := 0
	for i < len(args) { // options before the starting points
		t := args[i].Text
		if t == "-H" || t == "-L" || t == "-P" || strings.HasPrefix(t, "-O") {
			i++
		} else if t == "-D" || t == "-f" {
			i += 2
		} else {
			break
		}
	}
	for i < len(args) && !isFindExpression(args[i].Text) {
		p.starts = append(p.starts, args[i])
		i++
	}
	if len(p.starts) == 0 {
		p.starts = []shell.Word{literal(".")}
	}
	negated := false
	for ; i < min(end, len(args)); i++ {
		switch args[i].Text {
		case "!", "-not":
			negated = true
			continue
		case "-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex", "-lname":
			if i+1 < len(args) {
				pat := args[i+1].Text
				switch {
				case negated, strings.Trim(strings.Trim(pat, "*"), "./?") == "" || !args[i+1].Known:
					p.loose = p.loose || !negated
				default:
					p.narrow = true
					p.tests = append(p.tests, pat)
				}
				i++
			}
		case "-empty":
			if !negated {
				p.narrow = true
				p.tests = append(p.tests, "-empty")
			}
		case "-o", "-or", ",":
			// Each side of an "or" needs a test of its own; two names joined by it are one narrow set.
		}
		negated = false
	}
	return p
}

func isFindExpression(t string) bool {
	return strings.HasPrefix(t, "-") && t != "-" || t == "(" || t == ")" || t == "!" || t == ","
}

// foundByFind reports whether find starts the command itself, with what it finds as arguments.
func foundByFind(c *command) bool {
	i := slices.IndexFunc(c.Via, func(v string) bool { return strings.HasPrefix(v, "find -") || strings.HasPrefix(v, "fd -") })
	return i >= 0 && !slices.ContainsFunc(c.Via[i:], func(v string) bool { return strings.HasSuffix(v, " -c") || v == "xargs" })
}

// findActions start a command for what is found.
var findActions = wordSet("-exec", "-execdir", "-ok", "-okdir")

// removers are programs that delete their operands, with what their options mean.
func removerOf(argv []shell.Word) (removal, bool) {
	for i, w := range argv {
		if w.Text == ";" || w.Text == "+" {
			break
		}
		switch baseName(w.Text) {
		case "rm":
			p := parseArgs(argv[i+1:], optSpec{})
			return removal{recursive: true, forced: p.has("-f", "--force"), form: "find"}, true
		case "unlink", "shred", "srm", "rmdir", "truncate":
			return removal{recursive: true, form: "find"}, true
		case "sudo", "doas", "env", "nice", "ionice", "command", "busybox", "time":
			continue
		}
		if !strings.HasPrefix(w.Text, "-") {
			break
		}
	}
	return removal{}, false
}

// progFind covers find's own deletion, and the deletion by commands that it starts for what it finds.
func progFind(x *evaluation, c *command) {
	for i, w := range c.args {
		if findActions[w.Text] {
			plan := planFind(c.args, i)
			if how, ok := removerOf(c.args[i+1:]); ok {
				x.findRemove(c, plan, how)
			} else if i+1 < len(c.args) {
				if !notReaders[baseName(c.args[i+1].Text)] {
					x.findReads(c, plan)
				}
				x.findChanges(c, plan, c.args[i+1:])
			}
			continue
		}
		switch w.Text {
		case "-delete":
			x.findRemove(c, planFind(c.args, i), removal{recursive: true, forced: true, form: "find"})
		case "-fprint", "-fprint0", "-fls", "-fprintf":
			if i+1 < len(c.args) {
				x.writeFile(c, c.args[i+1], Write, false)
			}
		}
	}
}

// findUpstream returns the find that feeds a command through a pipe and xargs.
func (x *evaluation) findUpstream(c *command) *command {
	if c.Pipe == 0 || !slices.Contains(c.Via, "xargs") && !slices.Contains(c.Via, "parallel") {
		return nil
	}
	for _, u := range x.cmds {
		if u.Pipe == c.Pipe && u.Stage < c.Stage && (u.name == "find" || u.name == "gfind") {
			return u
		}
	}
	return nil
}

// findRemove records what find deletes. Without a test its starting points go; with one, what it finds in them.
func (x *evaluation) findRemove(c *command, p findPlan, how removal) {
	if c.Remote {
		for _, w := range p.starts {
			x.removeRemote(c, w, how)
		}
		return
	}
	for _, w := range p.starts {
		for _, l := range x.locateTarget(c, w) {
			f := l.finding(Delete)
			f.Program, f.Via, f.cmd, f.privileged, f.linked, f.form = c.name, c.Via, c.index, c.Privileged, c.LinkedBefore, how.form
			f.Recursive, f.Forced = how.recursive, how.forced
			inside := l.place == string(paths.Project) || l.place == string(paths.ProjectRoot) && x.isRoot(&l)
			if p.narrow && !p.loose && inside {
				f.Place, f.Forced, f.Recursive = string(paths.Project), false, true
				f.Note = "files that match " + shorten(joinWords(p.tests), 80)
				f.regenerable = l.regenerable
				switch {
				case regenerableKinds(p.tests, false):
					f.Recursive, f.regenerable = false, true
				case regenerableKinds(p.tests, true):
					f.Forced, f.regenerable = how.forced, true
				}
				l.res.Holds = ""
			} else if p.narrow && l.place == string(paths.Project) {
				f.Forced = false
			} else if p.narrow && !p.loose && l.certain && (l.res.Path == "/tmp" || l.res.Path == "/var/tmp") {
				f.Place = string(paths.Temp) // what it finds lies strictly inside
			}
			x.addDelete(f, &l)
		}
	}
}

// isRoot reports whether a target is the project's root itself and not above it or in its .git.
func (x *evaluation) isRoot(l *located) bool {
	return x.root != "" && len(l.abs) > 0 && (l.abs[0] == x.root || slices.Contains(l.abs, x.root)) && !within(path.Join(x.root, ".git"), l.abs[0])
}

// regenerableKinds reports whether every name test is for files, or with dirs also for directories, that tools make again.
func regenerableKinds(tests []string, dirs bool) bool {
	if len(tests) == 0 {
		return false
	}
	for _, t := range tests {
		base := baseName(t)
		if dirs && paths.BuildDir(base) {
			continue
		}
		switch strings.TrimLeft(base, "*") {
		case ".pyc", ".pyo", ".py[co]", ".py[cod]", ".o", ".obj", ".class", "~", ".swp", ".swo", ".DS_Store", ".tmp", ".bak~", ".gcda", ".gcno", ".gcov", ".d.ts.map", ".tsbuildinfo", ".coverage", "Thumbs.db", "-empty", ".orig", ".rej":
		default:
			return false
		}
	}
	return true
}

// progFd covers fd -x rm and the like.
func progFd(x *evaluation, c *command) {
	for i, w := range c.args {
		if w.Text != "-x" && w.Text != "--exec" && w.Text != "-X" && w.Text != "--exec-batch" {
			continue
		}
		how, ok := removerOf(c.args[i+1:])
		if !ok {
			return
		}
		p := parseArgs(c.args[:i], optSpec{short: "eEtdgSoc", long: []string{"--extension", "--exclude", "--type", "--max-depth"}})
		plan := findPlan{starts: []shell.Word{literal(".")}}
		if pat := p.operand(0); strings.Trim(pat, ".*") != "" {
			plan.narrow, plan.tests = true, []string{pat}
		}
		for _, e := range p.all("-e", "--extension") {
			plan.narrow, plan.tests = true, append(plan.tests, "*."+e.Text)
		}
		if len(p.operands) > 1 {
			plan.starts = p.operands[1:]
		}
		x.findRemove(c, plan, how)
		return
	}
}
