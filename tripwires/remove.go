// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"path"
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/paths"
	"github.com/tripline-sh/tripline/tripwires/shell"
)

// removal is how a program would delete its targets.
type removal struct {
	recursive, forced bool
	form              string
	note              string
}

// remove records the deletion of one target. It is judged as if the target existed.
func (x *evaluation) remove(c *command, w shell.Word, how removal) {
	if c.Remote {
		x.removeRemote(c, w, how)
		return
	}
	if !w.Known && (foundByFind(c) || x.findUpstream(c) != nil) {
		return // what find looks for says what these are
	}
	for _, l := range x.locate(c, w) {
		f := l.finding(Delete)
		f.Recursive, f.Forced, f.form, f.Note = how.recursive, how.forced, how.form, how.note
		f.Program, f.Via, f.cmd, f.privileged, f.linked = c.name, c.Via, c.index, c.Privileged, c.LinkedBefore
		x.addDelete(f, &l)
	}
}

// addDelete records a deletion and what else it means. A recursive one takes what is protected below its target with it.
func (x *evaluation) addDelete(f finding, l *located) {
	if f.Recursive || f.form == "move" {
		x.takesWith(f, l)
	}
	if !l.certain {
		x.doubt("what would be deleted could not be told")
	}
	if l.res.Sensitive == "history" {
		extra := f
		extra.Kind, extra.form = HistoryWipe, "history"
		x.add(extra)
	}
	x.add(f)
}

// takesWith adds what is protected below a target to an effect that reaches all of it.
func (x *evaluation) takesWith(f finding, l *located) {
	if l.res.Holds == "" || l.place == string(paths.Tripline) || l.place == string(paths.HomeRoot) && f.form != "move" {
		return
	}
	inner := x.at(f.Target, l.res.Holds, false)
	f.Place, f.credentials, f.abs, f.shallow, f.quiet = inner.place, inner.res.Credentials, inner.abs, false, true
	f.Note = "protected files lie below it"
	x.add(f)
}

// removeRest records a deletion whose targets come from data that is not known (xargs).
func (x *evaluation) removeRest(c *command, how removal) {
	if up := x.findUpstream(c); up != nil {
		found := how
		found.recursive = true
		x.findRemove(c, planFind(up.args, len(up.args)), found)
		return
	}
	if !c.ArgsFromStdin {
		return
	}
	f := finding{Effect: Effect{Kind: Delete, Target: "?", Recursive: how.recursive, Forced: how.forced, Program: c.name, Via: c.Via,
		Place: placeUnknown, Certainty: Uncertain, Note: "the targets come from data"}, form: how.form, cmd: c.index, privileged: c.Privileged}
	x.doubt("what would be deleted comes from data")
	x.add(f)
}

// removeRemote judges a deletion on another machine or in a container by what its path says alone.
func (x *evaluation) removeRemote(c *command, w shell.Word, how removal) {
	if host, ok := c.mounted(w); ok {
		local := *c
		local.Remote = false
		x.remove(&local, host, how)
		return
	}
	f := finding{Effect: Effect{Kind: Delete, Target: w.Text, Recursive: how.recursive, Forced: how.forced, Program: c.name, Via: c.Via,
		Certainty: Certain, Note: "on another machine or in a container"}, form: "remote", cmd: c.index}
	if !w.Known {
		f.Certainty = Uncertain
	}
	t := path.Clean("/" + strings.TrimSuffix(strings.TrimSuffix(w.Text, "*"), "/"))
	if slices.ContainsFunc(c.Via, isContainer) {
		f.form = "container"
	} else if w.Known && strings.HasPrefix(w.Text, "/") && (strings.Count(t, "/") <= 1) || strings.HasPrefix(w.Text, "~") && strings.Count(strings.TrimSuffix(w.Text, "/"), "/") == 0 {
		f.form = "remote-root"
	}
	x.add(f)
}

// isContainer reports whether a wrapper starts something short-lived whose own files do not matter.
func isContainer(via string) bool {
	return strings.HasPrefix(via, "docker run") || strings.HasPrefix(via, "podman run") || strings.HasPrefix(via, "nerdctl run")
}

// mounted maps a path inside a container to the host's path, if it lies below a mount.
func (c *command) mounted(w shell.Word) (shell.Word, bool) {
	if !strings.HasPrefix(w.Text, "/") {
		if w.Known && c.Cwd.Known {
			w.Text = path.Join(c.Cwd.Text, w.Text)
		} else {
			return w, false
		}
	}
	p := w.Text
	best := -1
	for i, m := range c.Mounts {
		inside := path.Clean(m[1])
		if within(inside, path.Clean(p)) && (best < 0 || len(inside) > len(path.Clean(c.Mounts[best][1]))) {
			best = i
		}
	}
	if best < 0 {
		// A deletion above a mount takes the mount with it.
		for _, m := range c.Mounts {
			if within(path.Clean(p), path.Clean(m[1])) {
				w.Text, w.Known = m[0], m[0] != ""
				return w, true
			}
		}
		return w, false
	}
	rest := strings.TrimPrefix(path.Clean(p), path.Clean(c.Mounts[best][1]))
	w.Text = path.Join(c.Mounts[best][0], rest)
	if strings.HasSuffix(p, "/*") && !strings.HasSuffix(w.Text, "/*") {
		w.Text += "/*"
	}
	w.GlobText = ""
	if w.Glob {
		w.GlobText = w.Text
	}
	return w, true
}

func progRm(x *evaluation, c *command) {
	p := parseArgs(c.args, optSpec{})
	if p.has("--help", "--version") && len(p.operands) == 0 {
		return
	}
	how := removal{
		recursive: p.has("-r", "-R", "--recursive"),
		forced:    p.has("-f", "--force"),
		form:      "rm",
	}
	options := false // an unknown word in front may be options
	for i, w := range p.operands {
		x.remove(c, w, how)
		if options && !how.recursive && w.Known && x.isDirectory(c, w) {
			x.unknown("target", "unknown words in front of a directory may make this recursive", c.Via)
		}
		options = options || !w.Known && w.Split && strings.HasPrefix(w.Text, "\x00") && (!p.dashdash || i < p.after)
	}
	x.removeRest(c, how)
}

func progUnlink(x *evaluation, c *command) {
	p := parseArgs(c.args, optSpec{short: "ns", long: []string{"--iterations", "--size", "--random-source"}})
	how := removal{form: c.name, forced: c.name == "shred", recursive: (c.name == "srm" || c.name == "wipe") && p.has("-r", "-R", "--recursive")}
	if c.name == "rmdir" {
		how.form, how.note = "rmdir", "only if it is empty"
	}
	for _, w := range p.operands {
		x.remove(c, w, how)
	}
	x.removeRest(c, how)
}

// progTrash covers the programs that move to a trash can: they can be undone, as long as what undoes it is still there.
func progTrash(x *evaluation, c *command) {
	p := parseArgs(c.args, optSpec{})
	for _, w := range p.operands {
		how := removal{form: "trash", note: "moved to the trash"}
		for _, l := range x.locate(c, w) {
			switch l.place {
			case string(paths.HomeRoot), string(paths.ProjectRoot), string(paths.System):
				how.recursive = how.recursive || l.directory || !l.res.Exists // a whole directory goes with its name
			}
		}
		x.remove(c, w, how)
	}
}
