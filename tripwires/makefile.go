// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"path"
	"regexp"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/shell"
)

// progMake covers recipes that the call itself brings along: on standard input, as --eval, as another shell. A Makefile that
// is there is the project's own code.
func progMake(x *evaluation, c *command) {
	p := parseArgs(c.args, optSpec{short: "fCIoWE", long: []string{"--file", "--makefile", "--directory", "--eval", "--include-dir", "--old-file", "--assume-old", "--what-if"}})
	at := *c
	for _, w := range p.all("-C", "--directory") {
		at.Cwd = joinCwd(at.Cwd, w.Text)
	}
	if p.has("-n", "--just-print", "--dry-run", "--recon") {
		return
	}
	for _, w := range p.all("--eval", "-E") {
		x.recipes(&at, w.Text)
	}
	for _, w := range p.all("-f", "--file", "--makefile") {
		if w.Text != "-" && w.Text != "/dev/stdin" && w.Text != "/dev/fd/0" {
			continue
		}
		if c.Stdin.Known {
			x.recipes(&at, c.Stdin.Text)
		} else {
			x.opaqueCode(c, "recipes that are not known would run")
		}
	}
	for _, w := range p.operands {
		if name, val, ok := strings.Cut(w.Text, "="); ok && strings.Contains(val, " ") {
			if name = strings.Trim(name, ":?+"); name == "SHELL" || name == "MAKE" {
				x.nested(val, &at, "make")
			}
		}
	}
	x.makesOwn(c, &p)
	x.execute(c)
}

var (
	makeRule  = regexp.MustCompile(`^[^\t#=]*::?[^=]*?;(.*)$`)
	makeShell = regexp.MustCompile(`\$\(shell\s+([^()]*)\)`)
)

// recipes judges the commands of a Makefile's text. Which target is meant is not asked: all of them count.
func (x *evaluation) recipes(c *command, text string) {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\\\n", " "), "\n") {
		for _, m := range makeShell.FindAllStringSubmatch(line, 20) {
			b.WriteString(m[1] + "\n")
		}
		cmd, ok := strings.CutPrefix(line, "\t")
		if !ok {
			m := makeRule.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			cmd = m[1]
		}
		b.WriteString(strings.ReplaceAll(strings.TrimLeft(cmd, "@-+ \t"), "$$", "$") + "\n")
	}
	if b.Len() > 0 {
		x.nested(b.String(), c, "make")
	}
}

// writtenMakefile finds the Makefile that a make will read among the files that the same source wrote.
func (x *evaluation) writtenMakefile(c *command, w *written) (writtenFile, bool) {
	p := parseArgs(c.args, optSpec{short: "fCIoW", long: []string{"--file", "--makefile", "--directory", "--eval"}})
	names := []shell.Word{literal("GNUmakefile"), literal("makefile"), literal("Makefile")}
	if given := p.all("-f", "--file", "--makefile"); len(given) > 0 {
		names = given
	}
	cwd := c.Cwd
	for _, d := range p.all("-C", "--directory") {
		cwd = joinCwd(cwd, d.Text)
	}
	for _, n := range names {
		if f, ok := w.files[x.paths.Abs(cwd.Text, n.Text)]; ok && n.Known && cwd.Known {
			return f, true
		}
	}
	return writtenFile{}, false
}

// copiedProgram remembers that a command puts a program under another name, and says which program a path then is.
func (w *written) copiedProgram(x *evaluation, c *command) {
	switch c.name {
	case "cp", "ln", "install", "mv", "gcp", "gln":
	default:
		return
	}
	p := parseArgs(c.args, optSpec{short: "tSmog", long: []string{"--target-directory", "--suffix", "--mode"}})
	if len(p.operands) != 2 || c.Remote || !p.operands[0].Known || !p.operands[1].Known || !c.Cwd.Known {
		return
	}
	src, dst := p.operands[0].Text, p.operands[1].Text
	name := baseName(src)
	if orig, ok := w.programs[x.paths.Abs(c.Cwd.Text, src)]; ok {
		name = orig
	} else if !strings.Contains(src, "/bin/") && !strings.Contains(src, "/sbin/") {
		return
	}
	if strings.HasSuffix(dst, "/") || dst == "." {
		dst = path.Join(dst, name)
	}
	if w.programs == nil {
		w.programs = map[string]string{}
	}
	w.programs[x.paths.Abs(c.Cwd.Text, dst)] = name
}

// underOtherName judges a program that the same source copied or linked to another name by what it is.
func (x *evaluation) underOtherName(c *command, w *written) {
	if len(w.programs) == 0 || !c.Argv[0].Known || c.Remote {
		return
	}
	t := c.Argv[0].Text
	name, ok := w.programs[x.paths.Abs(c.Cwd.Text, t)]
	if !ok || name == baseName(t) {
		return
	}
	if !strings.Contains(t, "/") && !setsPath(c) {
		return
	}
	argv := append([]shell.Word{literal(name)}, c.args...)
	x.nestedWords(argv, c, baseName(t))
}

// setsPath reports whether the search path is set for a command.
func setsPath(c *command) bool {
	for _, a := range append(c.Env[:len(c.Env):len(c.Env)], c.Exported...) {
		if a.Name == "PATH" {
			return true
		}
	}
	return false
}
