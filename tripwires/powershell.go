// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"regexp"
	"strings"
)

// toolPowerShell is a first cut: it knows the plain deletion verbs, and asks for what would run text.
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
	x.cmds = append(x.cmds, c)
	for _, st := range psStatements(src) {
		x.psStatement(c, st)
	}
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

// psStatements splits PowerShell text into statements of words; quotes are taken off. A pipe starts a new statement.
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
		if len(cur) > 0 {
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

var psAssign = regexp.MustCompile(`^\$[\w:]+$`)

func (x *evaluation) psStatement(c *command, words []string) {
	if len(words) > 1 && psAssign.MatchString(words[0]) && strings.HasSuffix(words[1], "=") {
		words = words[2:]
	}
	if len(words) == 0 {
		return
	}
	name := strings.TrimSuffix(strings.ToLower(words[0][strings.LastIndexAny(words[0], `\/`)+1:]), ".exe")
	args := words[1:]
	switch name {
	case "remove-item", "ri", "rm", "del", "rd", "rmdir", "erase", "remove-itemproperty", "clear-content", "clc":
		x.psRemove(c, name, args)
	case "cmd":
		for i, a := range args {
			if l := strings.ToLower(a); l == "/c" || l == "/k" {
				rest := args[i+1:]
				if len(rest) == 1 {
					rest = strings.Fields(rest[0])
				}
				if len(rest) > 0 {
					x.psStatement(c, rest)
				}
				return
			}
		}
	case "powershell", "pwsh":
		for i, a := range args {
			l := strings.ToLower(a)
			if strings.HasPrefix(l, "-e") && l != "-executionpolicy" && !strings.HasPrefix(l, "-ex") {
				x.unknown("hidden", "an encoded command would run", c.Via)
				return
			}
			if strings.HasPrefix("-command", l) && len(l) > 1 && i+1 < len(args) {
				for _, st := range psStatements(strings.Join(args[i+1:], " ")) {
					x.psStatement(c, st)
				}
				return
			}
		}
	case "iex", "invoke-expression":
		x.unknown("eval", "a text would run as PowerShell code", c.Via)
	case "format-volume", "clear-disk", "initialize-disk", "remove-partition", "diskpart", "format":
		x.effect(c, DeviceWrite, "mkfs", joinWords(args), "a disk is erased")
	case "stop-computer", "restart-computer":
		x.effect(c, ProcessKill, "shutdown", "", "the machine is stopped")
	case "auditctl", "tripline":
		for _, a := range args {
			if ourVerbs[strings.ToLower(a)] {
				x.effect(c, SelfTamper, "verb", name, "")
				return
			}
		}
	case "git":
		x.nestedArgv(append([]string{"git"}, args...), c, "PowerShell")
	}
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
		f := finding{Effect: Effect{Kind: Delete, Target: t, Recursive: recursive, Forced: forced, Program: name, Via: c.Via, Certainty: Certain}, cmd: c.index, form: "powershell"}
		switch {
		case strings.HasPrefix(t, "/") || strings.HasPrefix(t, "~") || !strings.ContainsAny(t, `$:\?`):
			if p := strings.TrimSuffix(t, "/"); p == "~" || strings.HasPrefix(t, "~/") {
				t = x.codePath(t).Text
			}
			w := literal(t)
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
