// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"encoding/base64"
	"encoding/binary"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/tripline-sh/tripline/tripwires/shell"
)

var (
	psAssign = regexp.MustCompile(`^\$[\w:]+$`)
	// psStatic are calls of .NET that change files: [IO.File]::Delete("x").
	psStatic = regexp.MustCompile(`(?i)\[(?:System\.)?IO\.(File|Directory)\]::(\w+)\(\s*(?:'([^']*)'|"([^"]*)")`)
	psBlock  = regexp.MustCompile(`(?i)\[scriptblock\]::Create\(\s*(?:'([^']*)'|"([^"$]*)")`)
)

// progPowerShell covers powershell and cmd that are started from a shell.
func progPowerShell(x *evaluation, c *command) {
	if !slices.ContainsFunc(c.args, func(w shell.Word) bool { return !w.Known }) {
		x.psStart(c.under(c.name), c.name, wordTexts(c.args))
	} else {
		x.opaqueCode(c, "a command for another shell is computed")
	}
	if c.Stdin.Known {
		x.psRun(c.under(c.name), c.Stdin.Text)
	}
	x.execute(c)
}

// psStart judges the arguments of powershell, pwsh or cmd.
func (x *evaluation) psStart(c *command, name string, args []string) {
	for i, a := range args {
		l := strings.ToLower(a)
		rest := strings.Join(args[i+1:], " ")
		switch {
		case name == "cmd":
			if l == "/c" || l == "/k" || l == "//c" || l == "//k" || l == "/r" {
				x.psRun(c, rest)
				return
			}
		case len(l) > 1 && strings.HasPrefix("-command", l), l == "-commandwithargs", l == "-cwa":
			x.psRun(c, rest)
			return
		case len(l) > 1 && strings.HasPrefix("-encodedcommand", l) || l == "-ec":
			if i+1 < len(args) {
				x.psEncoded(c, args[i+1])
			}
			return
		case !strings.HasPrefix(l, "-"):
			if name == "powershell" && !slices.ContainsFunc(args[:i], func(s string) bool { return strings.HasPrefix(strings.ToLower(s), "-f") }) && !psTakesValue(args[:i]) {
				x.psRun(c, strings.Join(args[i:], " "))
				return
			}
		}
	}
}

// psTakesValue reports whether the option in front of a word has it as its value.
func psTakesValue(before []string) bool {
	if len(before) == 0 {
		return false
	}
	switch l := strings.ToLower(before[len(before)-1]); {
	case l == "-executionpolicy", l == "-ep", l == "-ex", l == "-version", l == "-windowstyle", l == "-w", l == "-inputformat", l == "-outputformat", l == "-workingdirectory", l == "-wd", l == "-configurationname":
		return true
	}
	return false
}

// psEncoded judges a text in base64 of UTF-16.
func (x *evaluation) psEncoded(c *command, enc string) {
	raw, err := base64.StdEncoding.DecodeString(enc)
	if err != nil || len(raw)%2 != 0 || len(raw) > 64<<10 {
		x.unknown("hidden", "an encoded command would run", c.Via)
		return
	}
	units := make([]uint16, len(raw)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(raw[2*i:])
	}
	x.trace("an encoded command was decoded")
	x.psRun(c, string(utf16.Decode(units)))
}

// psRun judges a PowerShell text.
func (x *evaluation) psRun(c *command, src string) {
	if x.depth >= maxNested || x.sources >= maxSources {
		x.unknown("eval", "texts are nested too deeply", c.Via)
		return
	}
	x.depth++
	x.sources++
	defer func() { x.depth-- }()
	for _, m := range psStatic.FindAllStringSubmatch(src, 50) {
		p := m[3] + m[4]
		switch op := strings.ToLower(m[2]); {
		case op == "delete":
			args := []string{p}
			if strings.EqualFold(m[1], "directory") {
				args = append(args, "-recurse", "-force")
			}
			x.psRemove(c, "remove-item", args)
		case op == "move":
			x.moveAway(c, x.psPath(p))
		case strings.HasPrefix(op, "write"), strings.HasPrefix(op, "append"), op == "create", op == "copy", op == "replace":
			x.writeFile(c, x.psPath(p), Write, false)
		case strings.HasPrefix(op, "read"), strings.HasPrefix(op, "open"):
			x.readFile(c, x.psPath(p), true, false)
		}
	}
	for _, m := range psBlock.FindAllStringSubmatch(src, 20) {
		x.psRun(c, m[1]+m[2])
	}
	var prev []string
	for _, st := range psStatements(src) {
		piped := st[0] == "|"
		if piped {
			st = st[1:]
		} else {
			prev = nil
		}
		if len(st) > 0 {
			x.psStatement(c, st, prev)
		}
		prev = st
	}
}

// psHome puts the home directory in where PowerShell's variables name it.
func (x *evaluation) psHome(t string) string {
	if len(x.homes) == 0 {
		return t
	}
	l := strings.ToLower(t)
	for _, v := range []string{"$home", "${home}", "$env:home", "$env:userprofile", "~"} {
		if rest := t[min(len(v), len(t)):]; strings.HasPrefix(l, v) && (rest == "" || rest[0] == '/' || rest[0] == '\\') {
			return x.homes[0] + strings.ReplaceAll(rest, `\`, "/")
		}
	}
	return t
}

// psPath is a path as PowerShell means it.
func (x *evaluation) psPath(t string) shell.Word {
	t = x.psHome(t)
	w := literal(t)
	if strings.ContainsAny(t, "$") {
		w.Known, w.Text = false, "\x00"+tailOf(strings.NewReplacer("$", "\x00").Replace(t))
	}
	return w
}

// psArgs reads the arguments of a cmdlet: named ones by lower-case name, and the others in order.
func psArgs(args []string) (named map[string]string, rest []string) {
	named = map[string]string{}
	for i := 0; i < len(args); i++ {
		l := strings.ToLower(args[i])
		if len(l) < 2 || l[0] != '-' {
			rest = append(rest, args[i])
			continue
		}
		if name, val, ok := strings.Cut(l, ":"); ok {
			named[name] = val
			continue
		}
		named[l] = ""
		switch l {
		case "-path", "-literalpath", "-filepath", "-destination", "-name", "-id", "-value", "-argumentlist", "-args", "-encoding", "-filter", "-include", "-exclude", "-itemtype", "-newname", "-pspath", "-inputobject", "-processname":
			if i+1 < len(args) {
				i++
				named[l] = args[i]
			}
		}
	}
	return named, rest
}

// psFirst is the path that a cmdlet is given, by name or as its first word.
func psFirst(named map[string]string, rest []string) string {
	for _, n := range []string{"-path", "-literalpath", "-filepath", "-pspath"} {
		if v := named[n]; v != "" {
			return v
		}
	}
	if len(rest) > 0 {
		return rest[0]
	}
	return ""
}

// psStatement judges one statement. prev is the statement that is piped into it.
func (x *evaluation) psStatement(c *command, words, prev []string) {
	if len(words) > 1 && psAssign.MatchString(words[0]) && strings.HasSuffix(words[1], "=") {
		words = words[2:]
	}
	for i := 0; i < len(words); i++ {
		if words[i] != ">" {
			continue
		}
		if i+1 < len(words) && !strings.EqualFold(words[i+1], "$null") {
			x.writeFile(c, x.psPath(words[i+1]), Write, true)
		}
		words = append(slices.Clone(words[:i]), words[min(i+2, len(words)):]...)
		i--
	}
	if len(words) == 0 {
		return
	}
	name := strings.TrimSuffix(strings.ToLower(words[0][strings.LastIndexAny(words[0], `\/`)+1:]), ".exe")
	args := words[1:]
	named, rest := psArgs(args)
	switch name {
	case "remove-item", "ri", "rm", "del", "rd", "rmdir", "erase", "remove-itemproperty", "clear-content", "clc":
		x.psRemove(c, name, append(slices.Clone(args), psListed(prev, rest)...))
	case "cmd", "powershell", "pwsh":
		x.psStart(c, name, args)
	case "iex", "invoke-expression":
		if len(args) == 1 && !strings.Contains(args[0], "$") && strings.Contains(args[0], " ") {
			x.psRun(c, args[0])
			return
		}
		x.unknown("eval", "a text would run as PowerShell code", c.Via)
	case "format-volume", "clear-disk", "initialize-disk", "remove-partition", "diskpart", "format":
		x.effect(c, DeviceWrite, "mkfs", joinWords(args), "a disk is erased")
	case "stop-computer", "restart-computer":
		x.effect(c, ProcessKill, "shutdown", "", "the machine is stopped")
	case "stop-process", "spps", "kill", "stop-service", "spsv":
		x.psKill(c, named, rest, prev)
	case "set-content", "sc", "out-file", "add-content", "ac", "tee-object", "export-csv", "new-item", "ni":
		if p := psFirst(named, rest); p != "" && (name != "new-item" && name != "ni" || has(named, "-value") || has(named, "-force")) {
			x.writeFile(c, x.psPath(p), Write, false)
		}
	case "move-item", "mi", "mv", "move", "rename-item", "rni", "ren", "copy-item", "cpi", "cp", "copy":
		x.psMove(c, name, named, rest)
	case "get-content", "gc", "type", "cat", "select-string", "sls", "import-csv":
		p := psFirst(named, rest)
		if name == "select-string" || name == "sls" {
			p = lastOf(rest)
		}
		if p != "" {
			x.readFile(c, x.psPath(p), true, false)
		}
	case "start-process", "saps", "start":
		argv := []string{psFirst(named, rest)}
		if len(rest) > 0 && argv[0] == rest[0] {
			rest = rest[1:]
		}
		for _, n := range []string{"-argumentlist", "-args"} {
			if has(named, n) {
				argv = append(argv, strings.Fields(named[n])...)
			}
		}
		if argv = append(argv, rest...); argv[0] != "" {
			x.psStatement(c, argv, nil)
			x.nestedArgv(argv, c, "Start-Process")
		}
	case "auditctl", "tripline":
		for _, a := range args {
			if ourVerbs[strings.ToLower(a)] {
				x.effect(c, SelfTamper, "verb", name, "")
				return
			}
		}
	case "ls", "dir", "gci", "echo", "write-output", "write-host", "sort", "where", "select", "foreach", "cd", "ps", "wget", "curl", "diff", "tee", "set", "history", "man", "mount", "sleep":
	default:
		if shells[name] || x.eng.programs[name] != nil || languageOf(name) != "" {
			x.nestedArgv(append([]string{name}, args...), c, "PowerShell")
		}
	}
}

func has(m map[string]string, k string) bool { _, ok := m[k]; return ok }

func lastOf(s []string) string {
	if len(s) == 0 {
		return ""
	}
	return s[len(s)-1]
}

// psListed gives what a listing that is piped into a deletion names, and whether it goes down: gci DIR -r | ri -fo.
func psListed(prev, given []string) []string {
	if len(prev) == 0 || len(given) > 0 {
		return nil
	}
	switch strings.ToLower(prev[0]) {
	case "gci", "get-childitem", "ls", "dir", "get-item", "gi":
	default:
		return nil
	}
	named, rest := psArgs(prev[1:])
	if has(named, "-filter") || has(named, "-include") {
		return nil
	}
	out := []string{psFirst(named, rest)}
	if out[0] == "" {
		out[0] = "."
	}
	for n := range named {
		if strings.HasPrefix("-recurse", n) {
			out = append(out, "-recurse")
		}
	}
	return out
}

// psKill judges the end of processes and services as kill and systemctl are.
func (x *evaluation) psKill(c *command, named map[string]string, rest, prev []string) {
	names := slices.Clone(rest)
	for _, n := range []string{"-name", "-processname", "-id"} {
		if named[n] != "" {
			names = append(names, named[n])
		}
	}
	if len(names) == 0 && len(prev) > 1 {
		pn, pr := psArgs(prev[1:])
		names = append(pr, pn["-name"])
	}
	for _, n := range names {
		switch {
		case n == "":
		case strings.Trim(n, "0123456789") == "":
			x.nestedArgv([]string{"kill", n}, c, "PowerShell")
		default:
			x.nestedArgv([]string{"pkill", strings.ReplaceAll(n, "*", ".*")}, c, "PowerShell")
		}
	}
}

// psMove judges moves, copies and renames.
func (x *evaluation) psMove(c *command, name string, named map[string]string, rest []string) {
	src := psFirst(named, rest)
	dst := named["-destination"]
	if dst == "" && len(rest) > 1 {
		dst = rest[1]
	} else if dst == "" && len(rest) == 1 && src != rest[0] {
		dst = rest[0]
	}
	if src == "" {
		return
	}
	moves := !strings.HasPrefix(name, "cop") && name != "cpi" && name != "cp"
	if moves {
		x.moveAway(c, x.psPath(src))
	}
	if strings.HasPrefix(name, "ren") || name == "rni" || dst == "" {
		return
	}
	x.copyOver(c, x.psPath(src), x.psPath(dst), false)
	if !moves {
		x.readFile(c, x.psPath(src), true, false)
	}
}
