// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"path"
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/paths"
	"github.com/tripline-sh/tripline/tripwires/shell"
)

// placeUnknown is the place of a target that could not be told.
const placeUnknown = "unknown"

// maxLocated bounds the paths that one decision looks up. Those beyond are judged by their text.
const maxLocated = 2000

// located is what is known of one path operand: the worst of what it may mean.
type located struct {
	text        string // as written
	res         paths.Result
	place       string
	certain     bool
	directory   bool // a directory now
	regenerable bool
	recoverable bool
	abs         []string
}

// finding starts an effect on this target.
func (l *located) finding(k EffectKind) finding {
	f := finding{Effect: Effect{Kind: k, Target: l.text, Place: l.place, Certainty: Certain}, abs: l.abs, cmd: -1,
		credentials: l.res.Credentials, shallow: l.res.SystemTop, regenerable: l.regenerable, recoverable: l.recoverable,
		exists: l.res.Exists || l.res.Denied}
	if !l.certain {
		f.Certainty = Uncertain
	}
	return f
}

// locate finds what a word of a command that takes names (rm, mv) stands for. It returns nothing for a word that is no path.
func (x *evaluation) locate(c *command, w shell.Word) []located { return x.locateAs(c, w, false) }

// locateTarget is locate for a program that opens what it is given, links followed.
func (x *evaluation) locateTarget(c *command, w shell.Word) []located { return x.locateAs(c, w, true) }

func (x *evaluation) locateAs(c *command, w shell.Word, open bool) []located {
	if w.Text == "" {
		return nil
	}
	cwd, cwdKnown := x.call.Cwd, true
	if c != nil {
		cwd, cwdKnown = c.Cwd.Text, c.Cwd.Known
	}
	key := locateKey{cwd, w.Text, w.GlobText, w.Var, cwdKnown, w.Known, w.Flat, open}
	if l, ok := x.located[key]; ok {
		return []located{l}
	}
	l := x.locateOne(w, cwd, cwdKnown, open)
	if l.res.Deep {
		x.unknown("target", "a path is longer than is followed", nil)
	}
	if x.located == nil {
		x.located = map[locateKey]located{}
	}
	x.located[key] = l
	return []located{l}
}

// locateKey is what the place of a word depends on within one decision.
type locateKey struct {
	cwd, text, glob, variable   string
	cwdKnown, known, flat, open bool
}

func (x *evaluation) locateOne(w shell.Word, cwd string, cwdKnown, open bool) located {
	text := w.Text
	if !w.Known && !w.Flat || !cwdKnown && !strings.HasPrefix(text, "/") {
		return x.unresolved(w)
	}
	pattern := ""
	switch {
	case !w.Known: // flat: each unknown part is a piece of a name
		pattern = strings.ReplaceAll(escapeGlob(w), "\x00", "*")
	case w.Glob:
		pattern = w.GlobText
	}
	if pattern == "" {
		abs := x.paths.Abs(cwd, text)
		if abs == "" {
			return x.unresolved(w)
		}
		return x.at(text, abs, open || paths.Follows(text))
	}
	if !strings.HasPrefix(pattern, "/") {
		pattern = escapePath(cwd) + "/" + pattern
	}
	return x.worst(text, x.expand(pattern), open)
}

// unresolved is a target that could not be told. What is certain is the directory in front of the unknown part: below a
// system directory, anything is the system's.
func (x *evaluation) unresolved(w shell.Word) located {
	l := located{text: w.Text, place: placeUnknown}
	if w.Text == "\x00" && w.Var == "TRIPLINE_HOME" { // all of an install
		l.place, l.certain = string(paths.Tripline), true
		return l
	}
	if rest, ok := strings.CutPrefix(w.Text, "\x00/"); ok && !strings.ContainsAny(rest, "\x00") && x.ownVariable(w.Var, rest) {
		l.place, l.certain = string(paths.Tripline), true
		return l
	}
	known, _, _ := strings.Cut(w.Text, "\x00")
	if i := strings.LastIndexByte(known, '/'); i > 0 && known[0] == '/' && !strings.Contains(w.Text, "..") {
		if r := x.paths.ChildPlace(path.Clean(known[:i])); r.Place == paths.System {
			l.place = string(r.Place)
		}
	}
	return l
}

// ownVariable reports whether a path below the directory that a well-known variable names is ours wherever that is.
func (x *evaluation) ownVariable(name, rest string) bool {
	switch name {
	case "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CACHE_HOME":
		first, _, _ := strings.Cut(path.Clean(rest), "/")
		return first == "tripline"
	}
	return strings.HasPrefix(name, "TRIPLINE_")
}

// at judges one path, as it is now and as the links that the same call makes before would have it: the worse counts.
func (x *evaluation) at(text, abs string, follow bool) located {
	l := x.now(text, abs, follow)
	if len(x.names.links) > 0 {
		if to, same := x.through(path.Clean(abs), follow); !same {
			if other := x.now(text, to, follow); worseTarget(&other, &l) {
				other.abs = append(other.abs, l.abs...)
				return other
			}
		}
	}
	return l
}

// now judges one path as the machine has it.
func (x *evaluation) now(text, abs string, follow bool) located {
	x.looked++
	l := located{text: text, certain: true, abs: []string{path.Clean(abs)}}
	switch {
	case x.looked > maxLocated || x.meter.out:
		x.beyondBounds("the call names more files than can be looked at")
		l.res = x.paths.Text(abs)
	case follow:
		l.res = x.paths.Place(abs)
	default:
		l.res = x.paths.PlaceName(abs)
	}
	l.place = string(l.res.Place)
	if l.res.Path != "" && l.res.Path != l.abs[0] {
		l.abs = append(l.abs, l.res.Path)
	}
	l.directory = l.res.Exists && l.res.Info.Mode.IsDir()
	if l.res.Place == paths.Project {
		l.regenerable = l.res.BuildDir && x.regenerable(l.res)
		l.recoverable = l.res.Exists && !l.directory && x.restorable(l.res)
	}
	return l
}

// worst joins the candidates of a pattern to the one that counts.
func (x *evaluation) worst(text string, candidates []string, open bool) located {
	var best located
	for i, abs := range candidates {
		follow := open
		bare := strings.HasSuffix(abs, "/") // a bare glob: its directory
		l := x.at(text, strings.TrimSuffix(abs, "/"), follow || bare)
		if abs == "/" {
			l = x.at(text, "/", true)
		}
		if i == 0 || worseTarget(&l, &best) {
			best = l
		}
	}
	best.text = text
	return best
}

// worseTarget reports whether losing a is worse than losing b.
func worseTarget(a, b *located) bool {
	if a.place != b.place {
		return slices.Index(placeOrder, a.place) > slices.Index(placeOrder, b.place)
	}
	score := func(l *located) int {
		n := 0
		if l.res.Credentials {
			n += 16
		}
		if l.res.SystemTop {
			n += 8
		}
		if !l.regenerable {
			n += 4
		}
		if l.res.Exists && !l.recoverable {
			n += 2
		}
		if l.res.Holds != "" {
			n++
		}
		return n
	}
	return score(a) > score(b)
}

// placeOrder lists the places from the least to the most severe.
var placeOrder = []string{"temp", "project", "outside-project", "system", "project-root", "home-root", "device", "tripline"}

// escapeGlob makes a word's text a pattern in which its literal characters stand for themselves.
func escapeGlob(w shell.Word) string {
	if w.Glob {
		return w.GlobText
	}
	return escapePath(w.Text)
}

func escapePath(s string) string {
	if !strings.ContainsAny(s, `*?[]{}\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if strings.IndexByte(`*?[]{}\`, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
