// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"path"
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/shell"
)

// Bounds of what one source gives other names.
const (
	maxNames = 256
	maxHops  = 8
)

// names remembers what the commands of one call give a second name, since a later command may use it: links, and copies of
// programs.
type names struct {
	links    map[string]string // a link's path, to what it leads to
	programs map[string]string // a path, to the name of the program that lies there
	path     bool              // the search path for programs was changed
}

// noteNames remembers the names that a command makes.
func (x *evaluation) noteNames(c *command, all []*command) {
	if c.Remote {
		return
	}
	for _, a := range c.Env {
		x.names.path = x.names.path || a.Name == "PATH"
	}
	switch c.name {
	case "export", "declare", "typeset":
		x.names.path = x.names.path || slices.ContainsFunc(c.args, func(w shell.Word) bool { return strings.HasPrefix(w.Text, "PATH=") })
		return
	case "ln", "gln", "link", "cp", "gcp", "mv", "gmv", "install", "ginstall", "mount":
	default:
		return
	}
	if !c.Cwd.Known {
		return
	}
	p := parseArgs(c.args, optSpec{short: "tSgmo", long: []string{"--target-directory", "--suffix", "--mode", "--owner", "--group"}})
	sources, dst, dir := targets(&p)
	if dst.Text == "" || !dst.Known {
		return
	}
	dir = (dir || x.isDirectory(c, dst)) && !p.has("-T", "--no-target-directory")
	for _, src := range sources {
		to := x.paths.Abs(c.Cwd.Text, into(src, dst, dir).Text)
		if to == "" || len(x.names.links)+len(x.names.programs) > maxNames {
			continue
		}
		if name := x.programIn(c, src, all); name != "" {
			if x.names.programs == nil {
				x.names.programs = map[string]string{}
			}
			x.names.programs[to] = name
		}
		linked := c.name == "ln" || c.name == "gln" || c.name == "link" || c.name == "mount" && p.has("--bind", "--rbind", "-B", "-R") ||
			strings.HasSuffix(c.name, "cp") && p.has("-l", "-s", "--link", "--symbolic-link")
		if !linked || !src.Known {
			continue
		}
		base := c.Cwd.Text
		if p.has("-s", "--symbolic", "--symbolic-link") {
			base = path.Dir(to) // what a symbolic link says counts from where it lies
		}
		if from := x.paths.Abs(base, src.Text); from != "" && from != to {
			if x.names.links == nil {
				x.names.links = map[string]string{}
			}
			x.names.links[to] = from
			x.located = nil // what a path means may have changed
		}
	}
}

// through follows the links that earlier commands of the same call made; same is true if there is none on the path. A link at
// the very end is followed only if follow is set.
func (x *evaluation) through(abs string, follow bool) (to string, same bool) {
	same = true
	for range maxHops {
		hit := ""
		for end := len(abs); end > 0; end = strings.LastIndexByte(abs[:end], '/') {
			if _, ok := x.names.links[abs[:end]]; ok && (follow || end < len(abs)) {
				hit = abs[:end]
				break
			}
		}
		if hit == "" {
			break
		}
		abs, same = path.Clean(x.names.links[hit]+abs[len(hit):]), false
	}
	return abs, same
}

// programIn returns the name of the program that a word names, if that is one of the machine's or of ours.
func (x *evaluation) programIn(c *command, w shell.Word, all []*command) string {
	if w.Known {
		name := baseName(w.Text)
		if known := x.names.programs[x.paths.Abs(c.Cwd.Text, w.Text)]; known != "" {
			return known
		}
		switch path.Base(path.Dir(w.Text)) {
		case "bin", "sbin":
			return name
		}
		return ""
	}
	if strings.Trim(w.Text, "\x00") != "" {
		return ""
	}
	// $(which rm): the command of the substitution stands before the one that uses its output.
	for i := slices.Index(all, c) - 1; i >= 0 && slices.Contains(all[i].Via, "$()"); i-- {
		u := all[i]
		switch u.name {
		case "which", "command", "type", "whence", "realpath", "readlink":
		default:
			continue
		}
		if last := lastText(u.args); last != "" && !strings.HasPrefix(last, "-") {
			return baseName(last)
		}
	}
	return ""
}

// realName returns the program that a command starts under a name that the same call gave it, "" if there is none.
func (x *evaluation) realName(c *command) string {
	if len(x.names.programs) == 0 && len(x.names.links) == 0 || len(c.Argv) == 0 || !c.Argv[0].Known || c.Remote {
		return ""
	}
	t := c.Argv[0].Text
	if !strings.Contains(t, "/") {
		for p, name := range x.names.programs {
			if path.Base(p) == t && name != t && (x.names.path || path.Base(path.Dir(p)) == "bin") {
				return name
			}
		}
		return ""
	}
	if !c.Cwd.Known {
		return ""
	}
	abs := x.paths.Abs(c.Cwd.Text, t)
	for range maxHops {
		if name := x.names.programs[abs]; name != "" {
			return name
		}
		to, same := x.through(abs, true)
		if same {
			return ""
		}
		abs = to
	}
	return ""
}

// judgeRenamed judges a command under the name of the program that it really starts, and reports whether it did.
func (x *evaluation) judgeRenamed(c *command) bool {
	name := x.realName(c)
	if name == "" || name == c.name {
		return false
	}
	x.trace("%s is %s under another name", shorten(c.Argv[0].Text, 80), shorten(name, 40))
	if knownWords(c.args) {
		x.nestedArgv(append([]string{name}, wordTexts(c.args)...), c, shorten(c.name, 40))
		return true
	}
	c.name = name
	c.Argv = slices.Clone(c.Argv)
	c.Argv[0] = literal(name)
	return false
}
