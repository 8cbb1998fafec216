// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/paths"
	"github.com/tripline-sh/tripline/tripwires/shell"
)

// Bounds of a Makefile that is read for what it does to Tripline.
const (
	maxMakefile = 256 << 10
	maxRecipe   = 16 << 10 // a line of a recipe, expanded
	maxTargets  = 50
)

var (
	makeTarget = regexp.MustCompile(`^([^\t#=:][^#=:]*)::?([^=;]*)(?:;(.*))?$`)
	makeSet    = regexp.MustCompile(`^([A-Za-z0-9_.-]+)[ \t]*[:?]{0,2}=[ \t]*(.*)$`)
	makeUse    = regexp.MustCompile(`\$[({]([A-Za-z0-9_.-]+)[)}]`)
)

// makefile is what is understood of a Makefile: enough to say what a target runs where that is written out.
type makefile struct {
	first string
	vars  map[string]string
	needs map[string][]string
	runs  map[string][]string
}

func readMakefile(text string) makefile {
	m := makefile{vars: map[string]string{"MAKE": "make"}, needs: map[string][]string{}, runs: map[string][]string{}}
	var names []string
	for line := range strings.SplitSeq(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\\\n", " "), "\n") {
		if cmd, ok := strings.CutPrefix(line, "\t"); ok {
			for _, n := range names {
				m.runs[n] = append(m.runs[n], cmd)
			}
			continue
		}
		if strings.TrimSpace(line) == "" || line[0] == '#' {
			continue
		}
		names = nil
		if v := makeSet.FindStringSubmatch(line); v != nil {
			m.vars[v[1]] = strings.TrimSpace(v[2])
			continue
		}
		r := makeTarget.FindStringSubmatch(line)
		if r == nil {
			continue
		}
		names = strings.Fields(r[1])
		for _, n := range names {
			if m.first == "" && !strings.HasPrefix(n, ".") {
				m.first = n
			}
			m.needs[n] = append(m.needs[n], strings.Fields(strings.ReplaceAll(r[2], "|", " "))...)
			if strings.TrimSpace(r[3]) != "" {
				m.runs[n] = append(m.runs[n], r[3])
			}
		}
	}
	return m
}

// commands are the lines that the targets run, with variables that the file sets replaced.
func (m *makefile) commands(targets []string) string {
	var b strings.Builder
	seen := map[string]bool{}
	for i := 0; i < len(targets) && i < maxTargets; i++ {
		t := targets[i]
		if seen[t] {
			continue
		}
		seen[t] = true
		targets = append(targets, m.needs[t]...)
		for _, line := range m.runs[t] {
			if line = m.expand(line); b.Len()+len(line) < maxMakefile {
				b.WriteString(strings.ReplaceAll(strings.TrimLeft(line, "@-+ \t"), "$$", "$") + "\n")
			}
		}
	}
	return b.String()
}

// expand replaces the variables that the file sets, those within their values too; others come from the environment.
func (m *makefile) expand(line string) string {
	room := maxRecipe
	for range 3 {
		if len(line) > maxRecipe {
			return ""
		}
		line = makeUse.ReplaceAllStringFunc(line, func(use string) string {
			v, ok := m.vars[makeUse.FindStringSubmatch(use)[1]]
			if room -= len(v); !ok || room < 0 {
				return use
			}
			return v
		})
	}
	return makeUse.ReplaceAllString(line, "$${$1}")
}

// makesOwn holds the floor for the targets of a Makefile that is there. What else they do is the project's own business.
func (x *evaluation) makesOwn(c *command, p *parsedArgs) {
	if c.Remote || !c.Cwd.Known || p.has("-n", "--just-print", "--dry-run", "--recon", "-q", "--question") {
		return
	}
	at := *c
	for _, d := range p.all("-C", "--directory") {
		at.Cwd = joinCwd(at.Cwd, d.Text)
	}
	names := []shell.Word{literal("GNUmakefile"), literal("makefile"), literal("Makefile")}
	if given := p.all("-f", "--file", "--makefile"); len(given) > 0 {
		names = given
	}
	for _, n := range names {
		file := x.paths.Abs(at.Cwd.Text, n.Text)
		if file == "" || !n.Known || !at.Cwd.Known || strings.HasPrefix(file, "/dev/") || strings.HasPrefix(file, "/proc/") {
			continue
		}
		text, err := x.view.ReadFile(path.Clean(file), maxMakefile)
		if err != nil {
			continue
		}
		m := readMakefile(string(text))
		var targets []string
		for _, w := range p.operands {
			if name, value, set := strings.Cut(w.Text, "="); set {
				m.vars[strings.Trim(name, ":?+")] = value
			} else {
				targets = append(targets, w.Text)
			}
		}
		if len(targets) == 0 && m.first != "" {
			targets = []string{m.first}
		}
		if src := m.commands(targets); src != "" {
			x.onlyOwn(func() { x.nested(src, &at, "make") })
		}
		return
	}
}

// onlyOwn keeps, of what judge adds, what concerns Tripline itself.
func (x *evaluation) onlyOwn(judge func()) {
	doubts, first, cmds := len(x.uncertain), len(x.findings), len(x.cmds)
	judge()
	x.uncertain = x.uncertain[:min(doubts, len(x.uncertain))]
	first = min(first, len(x.findings))
	kept := x.findings[:first:first]
	for _, f := range x.findings[first:] {
		if f.Certainty == Certain && (f.Kind == SelfTamper || f.Place == string(paths.Tripline) && f.Kind.mutates() && f.Kind != Execute && f.Kind != Unknown) {
			kept = append(kept, f)
		}
	}
	if len(kept) == first {
		x.cmds = x.cmds[:min(cmds, len(x.cmds))] // nothing speaks of them
	}
	x.findings = slices.Clip(kept)
}
