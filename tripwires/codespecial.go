// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/shell"
)

// openSpec judges perl's and ruby's open, whose text may be a command: open(F, "|cmd"), open(F, "-|", cmd, args), open("|cmd").
func (x *evaluation) openSpec(c *command, lang string, call codeCall, toks []codeToken) {
	args := call.args
	if lang == "perl" {
		if len(args) == 0 {
			return
		}
		args = args[1:] // the handle
	}
	if len(args) == 0 {
		return
	}
	spec := strings.TrimSpace(args[0].text)
	if lang == "perl" && len(args) > 1 {
		switch mode := strings.TrimSpace(spec); {
		case mode == "|-" || mode == "-|":
			if len(args) == 2 {
				x.pipeFrom(c, args[1], toks)
			} else {
				x.codeArgv(c, args[1:])
			}
		case strings.HasPrefix(mode, "<"):
			x.codeRead(c, args[1])
		case strings.HasPrefix(mode, ">") || strings.HasPrefix(mode, "+"):
			x.codeWrite(c, args[1], Write)
		}
		return
	}
	rest := func(s string) codeValue {
		s = strings.TrimSpace(s)
		return codeValue{known: !strings.Contains(s, "\x00"), text: s}
	}
	switch {
	case strings.HasPrefix(spec, "|"):
		x.pipeFrom(c, rest(spec[1:]), toks)
	case lang == "perl" && strings.HasSuffix(spec, "|"):
		x.codeShell(c, rest(strings.TrimSuffix(spec, "|")))
	case lang == "ruby" && len(args) > 1 && strings.ContainsAny(args[1].text, "wa+"):
		x.codeWrite(c, args[0], Write)
	case lang == "perl" && strings.HasPrefix(spec, ">"):
		x.codeWrite(c, rest(strings.TrimLeft(spec, ">&= ")), Write)
	case lang == "perl" && strings.HasPrefix(spec, "+<"):
		x.codeWrite(c, rest(spec[2:]), Write)
	default:
		x.codeRead(c, rest(strings.TrimPrefix(spec, "<")))
	}
}

// pipeFrom judges a command that the program text feeds. Where it is a shell, what is printed to it runs: the texts behind
// each print are judged.
func (x *evaluation) pipeFrom(c *command, v codeValue, toks []codeToken) {
	if !v.known || !bareShell(v.text) {
		x.codeShell(c, v)
		return
	}
	found := false
	for i, t := range toks {
		if x.sources >= maxSources {
			found = false // more than is followed
			break
		}
		if t.kind != 'n' || t.text != "print" && t.text != "printf" && t.text != "puts" && t.text != "say" && t.text != "write" {
			continue
		}
		for j := i + 1; j < len(toks) && j < i+8 && toks[j].text != ";" && toks[j].text != "\n"; j++ {
			if toks[j].kind == 's' {
				found = true
				x.codeShell(c, codeValue{known: !strings.Contains(toks[j].text, "\x00"), text: toks[j].text})
			}
		}
	}
	if !found {
		x.opaqueCode(c, "a program text feeds a shell with text that is computed")
	}
}

// bareShell reports whether a command is a shell that reads what it runs from standard input.
func bareShell(cmd string) bool {
	f := strings.Fields(cmd)
	if len(f) == 0 || !shells[baseName(f[0])] {
		return false
	}
	return !slices.ContainsFunc(f[1:], func(s string) bool { return !strings.HasPrefix(s, "-") || strings.HasPrefix(s, "-c") })
}

// awkPipes covers awk's pipes and files: print | "cmd", "cmd" | getline, print > "file", getline < "file".
func (x *evaluation) awkPipes(c *command, toks []codeToken, i int, vars map[string]codeVar) {
	t := toks[i]
	known := codeValue{known: !strings.Contains(t.text, "\x00"), text: t.text}
	if t.kind == 'n' {
		v, ok := vars[t.text]
		if !ok {
			return
		}
		known = codeValue{known: !strings.Contains(v.text, "\x00"), text: v.text}
	}
	j := i - 1
	if j >= 0 && toks[j].kind == 'p' && toks[j].text == "&" {
		j--
	}
	before := ""
	if j >= 0 && toks[j].kind == 'p' {
		before = toks[j].text
	}
	next := i + 1
	if next+1 < len(toks) && toks[next].text == "|" && toks[next+1].text == "&" {
		next++
	}
	switch {
	case strings.HasPrefix(known.text, "/inet"):
		if before == "|" || next+1 < len(toks) && toks[next].text == "&" {
			x.effect(c, NetworkSend, "socket", "", "")
		}
	case before == "|" && toks[i-1].kind == 'p':
		x.awkFeeds(c, toks, j, known)
	case next+1 < len(toks) && (toks[next].text == "|" || toks[next].text == "&") && toks[next+1].text == "getline":
		x.codeShell(c, known)
	case before == ">" && t.kind == 's' && strings.ContainsAny(t.text, "/."):
		x.writeFile(c, literal(t.text), Write, false)
	case before == "<" && slices.ContainsFunc(toks[max(0, i-4):i], func(t codeToken) bool { return t.text == "getline" }):
		x.codeRead(c, known)
	}
}

// awkFeeds judges print ... | cmd, where the bar is token bar.
func (x *evaluation) awkFeeds(c *command, toks []codeToken, bar int, cmd codeValue) {
	if !cmd.known || !bareShell(cmd.text) {
		x.codeShell(c, cmd)
		return
	}
	text, computed := "", false
	for i := bar - 1; i >= 0 && bar-i < 100; i-- {
		t := toks[i]
		if t.kind == 'n' && (t.text == "print" || t.text == "printf") {
			break
		}
		switch {
		case t.kind == 's' && strings.Contains(t.text, "%"):
		case t.kind == 's':
			text = t.text + text
		case t.kind == 'n' || t.text == "$":
			computed = true
			text = "\x00" + text
		}
	}
	if text != "" && !computed {
		x.codeShell(c, codeValue{known: true, text: text})
		return
	}
	x.opaqueCode(c, "a program text feeds a shell with text that is computed")
}

// awkSocket reports whether an awk program joins a command to the network.
func (x *evaluation) awkSocket(c *command, toks []codeToken) {
	inet := slices.ContainsFunc(toks, func(t codeToken) bool { return t.kind == 's' && strings.HasPrefix(t.text, "/inet") })
	if !inet {
		return
	}
	for i := 2; i+1 < len(toks); i++ {
		if toks[i].text == "getline" && toks[i-1].text == "&" && i >= 3 && toks[i-2].text == "|" {
			x.effect(c, NetworkSend, "reverse-shell", "", "a program would be joined to the network")
			return
		}
	}
}

// codeWrite judges the writing of a file whose name may be known in part only.
func (x *evaluation) codeWrite(c *command, v codeValue, kind EffectKind) {
	if v.known {
		x.writeFile(c, x.codePath(v.text), kind, false)
		return
	}
	x.guardedSuffix(c, v)
}

func (x *evaluation) codeRead(c *command, v codeValue) {
	if v.known {
		x.readFile(c, x.codePath(v.text), true, false)
		return
	}
	if remoteSecret("/" + tailOf(v.text)) {
		x.opaqueCode(c, "a program text reads a key whose directory is computed")
	}
}

// tailOf is what is known of the end of a text.
func tailOf(s string) string { return s[strings.LastIndexByte(s, 0)+1:] }

// guardedSuffix asks where a computed name ends as those of agents' settings, of keys and of our own files do.
func (x *evaluation) guardedSuffix(c *command, v codeValue) {
	tail := tailOf(v.text)
	for _, s := range guardedTails {
		if strings.Contains(tail, s) {
			x.opaqueCode(c, "a program text changes a guarded file whose directory is computed")
			return
		}
	}
}

// guardedTails are parts of names that are guarded wherever they lie. The slice is a table and is never written.
var guardedTails = []string{".claude/settings", ".codex/hooks", ".codex/config.toml", ".gemini/settings", ".cursor/hooks", ".copilot/", ".ssh/", ".aws/credentials",
	"tripline/", "tripline-hook", daemonName, ".config/tripline", ".bashrc", ".zshrc", ".bash_profile", ".profile"}

// takesFunctions are functions that call what they are handed.
var takesFunctions = wordSet("map", "forEach", "for_each", "filter", "submit", "imap", "starmap", "imap_unordered", "apply", "apply_async", "call", "partial", "Thread", "Process",
	"Timer", "run_in_executor", "to_thread", "setTimeout", "setImmediate", "register", "array_map", "array_walk", "call_user_func", "call_user_func_array", "each", "pool")

// handedOver judges a function that is handed to another one, which will call it: map(os.remove, names).
func (x *evaluation) handedOver(c *command, lang string, toks []codeToken, i int, vars map[string]codeVar) {
	t := toks[i]
	if i+1 >= len(toks) || toks[i+1].kind != 'p' || toks[i+1].text != "," && toks[i+1].text != ")" {
		return
	}
	name, start := dottedBefore(toks, i+1)
	if t.kind == 's' {
		name, start = t.text, i
		if lang != "php" || !isIdentifier(name) {
			return
		}
	} else if !strings.Contains(name, ".") {
		return
	}
	at := start - 1
	if at >= 2 && toks[at].text == "=" && toks[at].kind == 'p' { // Thread(target=os.system, ...)
		at -= 2
	}
	for at > 0 && start-at < 12 && toks[at].text != "(" {
		at--
	}
	if at < 1 || toks[at].text != "(" || toks[at-1].kind != 'n' || !takesFunctions[toks[at-1].text] {
		return
	}
	base := name[strings.LastIndexByte(name, '.')+1:]
	call := codeCall{name: name, base: base, args: []codeValue{{known: true, text: "x"}}}
	act, ok := codeActions(lang, call)
	if !ok || !strings.ContainsRune("dsve", rune(act.kind)) {
		return
	}
	if toks[i+1].text == "," {
		j := i + 2
		for j+1 < len(toks) && toks[j].kind == 'n' && toks[j+1].text == "=" {
			j += 2
		}
		if v, _ := readValue(toks, j, lang, vars); v.known {
			texts := v.list
			if !v.isList {
				texts = []string{v.text}
			}
			for _, s := range texts {
				call.args = []codeValue{{known: true, text: s}}
				x.codeAct(c, lang, call, act)
			}
			return
		}
	}
	x.opaqueCode(c, "what a program text does to a list of things is computed")
}

// judgeScriptFile scans a script that an interpreter is about to run, as it is on disk. Only what it destroys for certain
// counts: what it computes is a program's own business, as that of any program.
func (x *evaluation) judgeScriptFile(c *command, lang string, file shell.Word) {
	if c.Remote || !file.Known || !c.Cwd.Known && !strings.HasPrefix(file.Text, "/") {
		return
	}
	abs := x.paths.Abs(c.Cwd.Text, file.Text)
	if abs == "" || strings.HasPrefix(abs, "/usr/") || strings.HasPrefix(abs, "/dev/") || strings.HasPrefix(abs, "/proc/") {
		return
	}
	src, err := x.readScript(abs)
	if err != nil {
		return
	}
	if lang == "" {
		line, _, _ := strings.Cut(src, "\n")
		if lang = shebangLanguage(line); lang == "" {
			return
		}
	}
	doubts, first, cmds := len(x.uncertain), len(x.findings), len(x.cmds)
	x.scanCode(c.under("script "+shorten(file.Text, 60)), lang, src)
	x.uncertain = x.uncertain[:min(doubts, len(x.uncertain))]
	kept := x.findings[:min(first, len(x.findings))]
	for _, f := range x.findings[min(first, len(x.findings)):] {
		if f.Certainty == Certain && scriptCounts[f.Kind] && !f.regenerable {
			kept = append(kept, f)
		}
	}
	if len(kept) == first {
		x.cmds = x.cmds[:cmds] // nothing speaks of them
	}
	x.findings = kept
}

// scriptCounts are the effects of a script file that count.
var scriptCounts = map[EffectKind]bool{Delete: true, Empty: true, Overwrite: true, Write: true, Append: true, DeviceWrite: true, SelfTamper: true, AgentUnguarded: true,
	ProcessKill: true, Persistence: true, HistoryWipe: true, ResourceExhaust: true, VCSDiscard: true, VCSRewriteRemote: true, InfraDestroy: true}

// shebangLanguage is the language of the interpreter that a script's first line names, "" if it is none that is scanned.
func shebangLanguage(line string) string {
	rest, ok := strings.CutPrefix(line, "#!")
	if !ok {
		return ""
	}
	for _, f := range strings.Fields(rest) {
		if base := baseName(f); base != "env" && !strings.HasPrefix(f, "-") && !strings.Contains(f, "=") {
			return languageOf(base)
		}
	}
	return ""
}
