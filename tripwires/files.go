// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"path"
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/paths"
	"github.com/tripline-sh/tripline/tripwires/shell"
)

func progMv(x *evaluation, c *command) {
	p := parseArgs(c.args, optSpec{short: "tS", long: []string{"--target-directory", "--suffix"}})
	sources, dst, dir := targets(&p)
	for _, w := range sources {
		x.moveAway(c, w)
		if dst.Text != "" && !p.has("-n", "--no-clobber", "-u") {
			x.copyOver(c, w, dst, dir)
			x.overTree(c, w, dst, dir, p.has("-T", "--no-target-directory"))
		}
	}
}

func progCp(x *evaluation, c *command) {
	p := parseArgs(c.args, optSpec{short: "tS", long: []string{"--target-directory", "--suffix"}})
	sources, dst, dir := targets(&p)
	if dst.Text == "" || p.has("-n", "--no-clobber") {
		return
	}
	recursive := p.has("-r", "-R", "-a", "--recursive", "--archive")
	for _, w := range sources {
		x.copyOver(c, w, dst, dir)
		if recursive {
			x.overTree(c, w, dst, dir, p.has("-T", "--no-target-directory"))
		}
	}
}

func progInstall(x *evaluation, c *command) {
	p := parseArgs(c.args, optSpec{short: "gmotS", long: []string{"--target-directory", "--suffix", "--mode", "--owner", "--group"}})
	if p.has("-d", "--directory") {
		return
	}
	sources, dst, dir := targets(&p)
	for _, w := range sources {
		if dst.Text != "" {
			x.copyOver(c, w, dst, dir)
		}
	}
}

func progLn(x *evaluation, c *command) {
	p := parseArgs(c.args, optSpec{short: "tS", long: []string{"--target-directory", "--suffix"}})
	if len(p.operands) < 2 && !p.has("-t", "--target-directory") {
		return
	}
	sources, dst, dir := targets(&p)
	for _, w := range sources {
		// A new name for something of ours is a way around the protection of its old name.
		for _, l := range x.locate(c, w) {
			if l.place == string(paths.Tripline) {
				x.effect(c, SelfTamper, "link", w.Text, "a second name for what is protected")
			}
		}
		if p.has("-T", "-n", "--no-target-directory", "--no-dereference") {
			x.overTree(c, w, dst, false, true)
		}
		if dst.Text != "" && p.has("-f", "--force") {
			x.copyOver(c, w, dst, dir)
		} else if dst.Text != "" {
			x.writeFile(c, into(w, dst, dir || x.isDirectory(c, dst)), Write, false)
		}
	}
}

// targets splits operands into sources and destination; dir is set when the destination is surely a directory.
func targets(p *parsedArgs) (sources []shell.Word, dst shell.Word, dir bool) {
	if t, ok := p.value("-t", "--target-directory"); ok {
		return p.operands, t, true
	}
	if len(p.operands) < 2 {
		return p.operands, shell.Word{}, false
	}
	n := len(p.operands) - 1
	return p.operands[:n], p.operands[n], n > 1 || strings.HasSuffix(p.operands[n].Text, "/")
}

// moveAway judges what is lost at the place that something is moved from.
func (x *evaluation) moveAway(c *command, w shell.Word) {
	if c.Remote {
		return
	}
	for _, l := range x.locate(c, w) {
		switch paths.Place(l.place) {
		case paths.Project, paths.Temp, paths.Outside, placeUnknown:
			if l.res.Holds == "" || paths.Place(l.place) != paths.Outside {
				continue
			}
		}
		f := l.finding(Delete)
		f.Program, f.Via, f.cmd, f.form, f.privileged, f.Note = c.name, c.Via, c.index, "move", c.Privileged, "moved away"
		x.addDelete(f, &l)
	}
}

// copyOver judges the file that a copy or a move puts something over.
func (x *evaluation) copyOver(c *command, src, dst shell.Word, dir bool) {
	if names := x.globbed(c, src); len(names) > 0 && !c.Remote { // what the pattern stands for lies where it looks
		for _, name := range names {
			x.writeFile(c, into(literal(name), dst, true), Overwrite, false)
		}
		return
	}
	if src.Glob || dir || x.isDirectory(c, dst) {
		dst = into(src, dst, true)
	}
	x.writeFile(c, dst, Overwrite, false)
}

// globbed lists the names that a pattern's last part stands for: those that are there, and an ordinary one. It returns nothing
// for a pattern that says something of the names, or that looks in several directories.
func (x *evaluation) globbed(c *command, src shell.Word) []string {
	dir, last := path.Split(src.GlobText)
	if !src.Glob || !bareGlob(last) || strings.ContainsAny(dir, "*?[") || !c.Cwd.Known {
		return nil
	}
	abs := x.paths.Abs(c.Cwd.Text, unescape(dir)+".")
	names := x.listed(abs, last)
	return append([]string{ordinaryName}, names[:min(len(names), maxCandidates)]...)
}

// overTree judges a tree, or a link to one, that is put over a directory: what is protected there goes, or is written over.
func (x *evaluation) overTree(c *command, src, dst shell.Word, dir, exact bool) {
	if c.Remote {
		return
	}
	whole := src.Glob && bareGlob(baseName(src.GlobText)) || baseName(src.Text) == "."
	if !exact && !whole && (dir || x.isDirectory(c, dst)) {
		dst = into(src, dst, true)
	}
	for _, l := range x.locateTarget(c, dst) {
		if l.res.Holds == "" || l.place == string(paths.Tripline) || l.place == string(paths.System) {
			continue
		}
		if exact || !whole || x.holdsDirectly(&l) && !ownBin(&l) {
			x.tamper(c, &l, "protected files lie below what would be replaced")
		}
	}
}

// ownBin reports whether a directory is one where programs of every kind lie beside ours.
func ownBin(l *located) bool { return path.Base(l.abs[0]) == "bin" }

// isDirectory reports whether a word names a directory now.
func (x *evaluation) isDirectory(c *command, w shell.Word) bool {
	if !w.Known || c.Remote {
		return false
	}
	if t := strings.TrimSuffix(w.Text, "/"); t == "." || t == ".." || strings.HasSuffix(t, "/.") || strings.HasSuffix(t, "/..") {
		return true
	}
	for _, l := range x.locateTarget(c, w) {
		return l.directory || l.res.Holds != "" // what holds something is a directory, be it there yet or not
	}
	return false
}

// into is the file that src becomes inside the directory dst.
func into(src, dst shell.Word, dir bool) shell.Word {
	if !dir {
		return dst
	}
	out := dst
	out.Text = path.Join(dst.Text, path.Base(src.Text))
	out.Known = dst.Known && src.Known
	out.Flat = (dst.Known || dst.Flat) && (src.Known || src.Flat)
	if dst.Glob || src.Glob {
		out.Glob = true
		out.GlobText = path.Join(escapeGlob(dst), path.Base(escapeGlob(src)))
	}
	return out
}

func progDd(x *evaluation, c *command) {
	for _, w := range c.args {
		if out, ok := strings.CutPrefix(w.Text, "of="); ok {
			x.writeFile(c, subWord(w, out), Overwrite, false)
			if !w.Known && !w.Flat && !w.Temp {
				x.unknown("target", "what dd writes to could not be told", c.Via)
			}
			for _, l := range x.locateTarget(c, subWord(w, out)) {
				if l.place == string(paths.Device) {
					x.effect(c, DeviceWrite, "raw", l.text, "")
				}
			}
		}
	}
}

func progTee(x *evaluation, c *command) {
	p := parseArgs(c.args, optSpec{})
	kind := Write
	if p.has("-a", "--append") {
		kind = Append
	} else if slices.ContainsFunc(c.Redirs, func(r shell.Redir) bool { return r.Op == "<" && r.Target.Text == "/dev/null" }) {
		kind = Empty
	}
	for _, w := range p.operands {
		x.writeFile(c, w, kind, false)
	}
}

func progTruncate(x *evaluation, c *command) {
	p := parseArgs(c.args, optSpec{short: "sr", long: []string{"--size", "--reference"}})
	kind := Empty
	if v, ok := p.value("-s", "--size"); ok && strings.HasPrefix(v.Text, "+") {
		kind = Append
	}
	for _, w := range p.operands {
		x.writeFile(c, w, kind, false)
	}
}

func progSed(x *evaluation, c *command) {
	p := parseArgs(c.args, optSpec{short: "efl", long: []string{"--expression", "--file", "--line-length"}})
	inPlace := p.has("--in-place")
	for _, f := range p.flags {
		inPlace = inPlace || f == "-i"
	}
	files := p.operands
	scripts := p.all("-e", "--expression")
	if len(scripts) == 0 && !p.has("-f", "--file") && len(files) > 0 {
		scripts, files = files[:1], files[1:]
	}
	for _, s := range scripts {
		x.sedScript(c, s)
	}
	if !inPlace {
		return
	}
	for _, w := range files {
		if w.Text == "" {
			continue
		}
		x.writeFile(c, w, Write, false)
	}
}

// sedScript looks for what a sed program writes or runs.
func (x *evaluation) sedScript(c *command, s shell.Word) {
	for part := range strings.FieldsFuncSeq(s.Text, func(r rune) bool { return r == ';' || r == '\n' || r == '}' || r == '{' }) {
		part = strings.TrimSpace(part)
		if rest, ok := strings.CutPrefix(strings.TrimLeft(part, "0123456789,$ "), "w "); ok {
			x.writeFile(c, literal(strings.TrimSpace(rest)), Write, false)
		}
		if rest, ok := strings.CutPrefix(strings.TrimLeft(part, "0123456789,$ "), "e "); ok {
			x.nested(strings.TrimSpace(rest), c, "sed e")
		}
	}
}

func progTouch(x *evaluation, c *command) {
	p := parseArgs(c.args, optSpec{short: "drt", long: []string{"--date", "--reference"}})
	for _, w := range p.operands {
		for _, l := range x.locateTarget(c, w) {
			if x.appearsAmongOwn(c, &l) {
				continue
			}
			if l.res.Sensitive != "" || l.place == string(paths.Tripline) {
				continue // an empty or re-dated file changes nothing there
			}
			f := l.finding(Append)
			f.Program, f.Via, f.cmd, f.privileged, f.form = c.name, c.Via, c.index, c.Privileged, "touch"
			x.add(f)
		}
	}
}

// appears judges what makes an empty file, a directory, a FIFO: harmless, except where a name says something by being there.
func (x *evaluation) appears(c *command, w shell.Word) {
	for _, l := range x.locateTarget(c, w) {
		x.appearsAmongOwn(c, &l)
	}
}

func (x *evaluation) appearsAmongOwn(c *command, l *located) bool {
	if l.place != string(paths.Tripline) || l.res.Settings || l.res.Exists || l.res.Denied {
		return false
	}
	x.tamper(c, l, "something would be there that was not, which may say something, or stand in the way, by that alone")
	return true
}

func progMkdir(x *evaluation, c *command) {
	p := parseArgs(c.args, optSpec{short: "m", long: []string{"--mode"}})
	for _, w := range p.operands {
		x.appears(c, w)
	}
	x.execute(c)
}

// removeArchived judges what tar deletes once it is in the archive: each operand counts from the last -C before it.
func (x *evaluation) removeArchived(c *command, operands []shell.Word) {
	at := *c
	for i := 0; i < len(c.args) && len(operands) > 0; i++ {
		t := c.args[i].Text
		dir, glued := strings.CutPrefix(t, "--directory=")
		switch {
		case glued:
			at.Cwd = joinCwd(at.Cwd, dir)
		case (t == "-C" || t == "--directory") && i+1 < len(c.args):
			i++
			at.Cwd = joinCwd(at.Cwd, c.args[i].Text)
		case strings.HasPrefix(t, "-C") && len(t) > 2:
			at.Cwd = joinCwd(at.Cwd, t[2:])
		case t == operands[0].Text:
			x.remove(&at, operands[0], removal{recursive: true, form: "tar", note: "removed after archiving"})
			operands = operands[1:]
		}
	}
}

func progTar(x *evaluation, c *command) {
	if c.Remote {
		x.execute(c)
		return
	}
	args := c.args
	mode := ""
	if len(args) > 0 && !strings.HasPrefix(args[0].Text, "-") {
		mode = args[0].Text
	}
	p := parseArgs(args, optSpec{short: "fCTXbgHIKLNVF", long: []string{"--file", "--directory", "--exclude", "--checkpoint-action", "--to-command", "--use-compress-program", "--transform"}})
	for _, w := range p.all("--checkpoint-action") {
		if cmd, ok := strings.CutPrefix(w.Text, "exec="); ok {
			x.nested(cmd, c, "tar")
		}
	}
	for _, w := range p.all("--to-command", "--use-compress-program", "-I", "-F") {
		x.nested(w.Text, c, "tar")
	}
	if p.has("--remove-files") {
		x.removeArchived(c, p.operands)
	}
	create := strings.Contains(mode, "c") || p.has("-c", "--create")
	if create {
		if f, ok := p.value("-f", "--file"); ok && f.Text != "-" {
			x.writeFile(c, f, Overwrite, false)
		}
		return
	}
	// What is unpacked into a place that is not ours to write goes over what is there.
	for _, w := range p.all("-C", "--directory") {
		for _, l := range x.locateTarget(c, w) {
			if l.place == string(paths.System) || l.place == string(paths.HomeRoot) && l.res.Credentials || l.place == string(paths.Tripline) {
				f := l.finding(Overwrite)
				f.Program, f.Via, f.cmd, f.privileged = c.name, c.Via, c.index, c.Privileged
				x.add(f)
			}
		}
	}
	x.execute(c)
}
