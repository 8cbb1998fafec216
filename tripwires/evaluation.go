// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/gitfile"
	"github.com/tripline-sh/tripline/tripwires/paths"
	"github.com/tripline-sh/tripline/tripwires/shell"
	"github.com/tripline-sh/tripline/tripwires/view"
)

// Bounds of one decision.
const (
	maxEffects  = 200
	maxFindings = 4000
	maxSteps    = 200
	maxNested   = 6  // shell text within interpreter text within shell text
	maxSources  = 60 // analyses of one call
)

// evaluation is the state of one call's judgement. It is used by one goroutine.
type evaluation struct {
	eng  *Engine
	ctx  context.Context
	call Call
	view view.Reader

	paths *paths.Classifier
	root  string // project root
	homes []string

	trees *gitfile.Trees // nil until asked for

	shell                       bool // a shell command was judged
	unmapped                    bool // no table knows the tool
	cmds                        []*command
	findings                    []finding
	uncertain                   []string // what could not be told
	steps                       []string
	located                     map[locateKey]located
	scanned                     map[string]bool // commands that run a file of the same source whose text was scanned
	looked                      int             // paths that were looked at
	meter                       meter
	lookups                     map[*command]bool   // by the first command of a source: whether it asks for the daemon
	names                       names               // second names that the call gives to things
	preciousNames, guardedNames map[string][]string // by directory, once asked for
	beyond                      bool                // the call does more than is looked at
	classes                     map[class]bool      // of the findings, once there are too many to keep
	depth                       int
	sources                     int
}

// command is one simple command with what the tables need of it.
type command struct {
	shell.Command
	index int
	texts []string // the words' texts
	bare  []string // for programs with global options before the verb (git -C DIR push): the words without them
	name  string   // program name without directory, lower-cased suffixes such as python3.11 kept
	args  []shell.Word
}

// plain reports whether the command is nothing but its words: no environment, no wrapper that changes what it means, nothing
// unknown. Only such a command can be covered by an allow rule.
func (c *command) plain() bool {
	if len(c.Env) > 0 || c.Remote || c.ArgsFromStdin || c.Privileged || len(c.Argv) == 0 || c.Zsh {
		return false
	}
	for _, v := range c.Via {
		switch v {
		case "timeout", "nice", "time", "nohup", "command", "stdbuf", "ionice":
		default:
			return false
		}
	}
	for _, w := range c.Argv {
		if !w.Known {
			return false
		}
	}
	return true
}

// add records an effect.
func (x *evaluation) add(f finding) {
	if f.Certainty == "" {
		f.Certainty = Certain
	}
	if len(x.findings) >= maxFindings && !x.firstOfItsClass(&f) {
		x.beyondBounds("the call has more effects than can be listed")
		return
	}
	f.Target = strings.ReplaceAll(f.Target, "\x00", "?")
	x.findings = append(x.findings, f)
}

// firstOfItsClass reports whether no finding of the same class was kept: however many came before, the worst ones count.
func (x *evaluation) firstOfItsClass(f *finding) bool {
	if x.classes == nil {
		x.classes = map[class]bool{}
		for i := range x.findings {
			x.classes[x.findings[i].class()] = true
		}
	}
	k := f.class()
	if x.classes[k] || len(x.findings) >= 2*maxFindings {
		return false
	}
	x.classes[k] = true
	return true
}

// doubt records something that could not be told.
func (x *evaluation) doubt(why string) {
	for _, u := range x.uncertain {
		if u == why {
			return
		}
	}
	if len(x.uncertain) < 20 {
		x.uncertain = append(x.uncertain, why)
	}
}

// unknown records that something would run that could not be read.
func (x *evaluation) unknown(form, why string, via []string) {
	x.doubt(why)
	x.add(finding{Effect: Effect{Kind: Unknown, Via: via, Certainty: Uncertain, Note: why}, form: form, cmd: -1})
}

func (x *evaluation) trace(format string, args ...any) {
	if len(x.steps) < maxSteps {
		x.steps = append(x.steps, fmt.Sprintf(format, args...))
	}
}

func baseName(s string) string { return s[strings.LastIndexByte(s, '/')+1:] }

func joinWords(words []string) string { return strings.Join(words, " ") }

// within reports whether path is dir or below it. Both are absolute and clean.
func within(dir, path string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// expandHome gives the directories that a path of a rule means: "~" is each known home.
func (x *evaluation) expandHome(p string) []string {
	rest, ok := strings.CutPrefix(p, "~")
	if !ok {
		return []string{path.Clean(p)}
	}
	var out []string
	for _, h := range x.homes {
		out = append(out, path.Join(h, rest))
	}
	return out
}

// pathPatterns gives the absolute patterns that a path of a Read, Write or Edit pattern means: "./p" and "p/q" count from the
// project's root, "~/p" from each known home, "/p" is absolute, and a name without a slash is meant at any depth.
func (x *evaluation) pathPatterns(p string) []string {
	switch {
	case strings.HasPrefix(p, "/"):
		return []string{path.Clean(p)}
	case p == "~" || strings.HasPrefix(p, "~/"):
		return x.expandHome(p)
	case x.root == "":
		return nil
	case !strings.Contains(p, "/"):
		return []string{path.Join(escapePath(x.root), "**", p)}
	}
	return []string{path.Join(escapePath(x.root), p)}
}
