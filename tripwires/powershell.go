// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"regexp"
	"strings"
)

// toolPowerShell knows the cmdlets that delete, write, read and start, by their names and aliases, and asks for what would
// run text that is not known.
func toolPowerShell(x *evaluation, in inputObject) {
	src, ok := in.text("command")
	if !ok {
		x.undecodable("the command is missing or is not text")
		return
	}
	x.shell = true
	if len(src) > 16<<10 {
		x.unknown("too-big", "the command is too large to be read", nil)
		return
	}
	c := &command{name: "powershell", index: 0}
	c.Via = []string{"PowerShell"}
	c.Cwd.Text, c.Cwd.Known = x.call.Cwd, x.call.Cwd != ""
	x.cmds = append(x.cmds, c)
	x.psRun(c, src)
	if !x.foundDanger() {
		x.execute(c)
	}
}

func (x *evaluation) foundDanger() bool {
	for i := range x.findings {
		if x.findings[i].Kind != Execute {
			return true
		}
	}
	return false
}

// psStatements splits PowerShell text into statements of words; quotes are taken off. A pipe starts a new statement, whose first
// word is then "|". A redirection is a word ">" or ">>".
func psStatements(src string) [][]string {
	var out [][]string
	var cur []string
	var b strings.Builder
	word := false
	endWord := func() {
		if word {
			cur = append(cur, b.String())
		}
		b.Reset()
		word = false
	}
	end := func() {
		endWord()
		if len(cur) > 0 && !(len(cur) == 1 && cur[0] == "|") {
			out = append(out, cur)
		}
		cur = nil
	}
	for i := 0; i < len(src); i++ {
		c := src[i]
		switch {
		case c == '\'' || c == '"':
			word = true
			for i++; i < len(src) && src[i] != c; i++ {
				if src[i] == '`' && c == '"' && i+1 < len(src) {
					i++
				}
				b.WriteByte(src[i])
			}
		case c == '`' && i+1 < len(src):
			i++
			if src[i] != '\n' {
				b.WriteByte(src[i])
				word = true
			}
		case c == '#' && !word:
			for i+1 < len(src) && src[i+1] != '\n' {
				i++
			}
		case strings.IndexByte(";\n|&{}()", c) >= 0:
			end()
			if c == '|' {
				cur = []string{"|"}
			}
		case c == '>':
			endWord()
			if i+1 < len(src) && src[i+1] == '>' {
				i++
			}
			cur = append(cur, ">")
		case c == ' ' || c == '\t' || c == '\r' || c == ',':
			endWord()
		default:
			b.WriteByte(c)
			word = true
		}
	}
	end()
	return out
}

// psRemove judges a deletion. The first cut knows no places of other systems: a drive's root or a directory below it is
// denied when it goes with its content, everything else asks.
func (x *evaluation) psRemove(c *command, name string, args []string) {
	recursive, forced := false, false
	var targets []string
	for i := 0; i < len(args); i++ {
		l := strings.ToLower(args[i])
		switch {
		case l == "/s":
			recursive = true
		case l == "/q", l == "/f":
			forced = true
		case len(l) > 1 && l[0] == '-':
			flag, val, _ := strings.Cut(l, ":")
			off := val == "$false"
			switch {
			case strings.HasPrefix("-recurse", flag):
				recursive = recursive || !off
			case len(flag) > 2 && strings.HasPrefix("-force", flag):
				forced = forced || !off
			case strings.HasPrefix("-whatif", flag) && len(flag) > 1 && !off:
				return
			}
		case strings.HasPrefix(l, "/") && len(l) == 2:
		default:
			targets = append(targets, args[i])
		}
	}
	if len(targets) == 0 {
		targets = []string{"?"}
	}
	for _, t := range targets {
		t = x.psHome(t)
		f := finding{Effect: Effect{Kind: Delete, Target: t, Recursive: recursive, Forced: forced, Program: name, Via: c.Via, Certainty: Certain}, cmd: c.index, form: "powershell"}
		switch {
		case strings.HasPrefix(t, "/") || strings.HasPrefix(t, "~") || !strings.ContainsAny(t, `$:\?`):
			w := x.psPath(t)
			t = w.Text
			if strings.ContainsAny(t, "*[") {
				w.Glob, w.GlobText = true, t
			}
			for _, l := range x.locate(nil, w) {
				g := l.finding(Delete)
				g.Recursive, g.Forced, g.Program, g.Via, g.cmd, g.form = recursive, forced, name, c.Via, c.index, "powershell"
				x.addDelete(g, &l)
			}
			continue
		case drivePath.MatchString(t):
			f.form = "drive"
			if strings.Count(strings.Trim(strings.ReplaceAll(t, "/", `\`), `\*`), `\`) > 1 {
				f.form, f.Place, f.Certainty = "powershell", placeUnknown, Uncertain
			}
		default:
			f.Place, f.Certainty = placeUnknown, Uncertain
		}
		if f.Certainty == Uncertain && recursive {
			x.doubt("what would be deleted could not be told")
		}
		x.add(f)
	}
}

var drivePath = regexp.MustCompile(`^[A-Za-z]:|^\\\\`)
