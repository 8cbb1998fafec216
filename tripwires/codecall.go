// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"slices"
	"strings"
)

// codeCall is one call in a program text: its dotted name and what is known of its arguments.
type codeCall struct {
	name string // "os.remove", ".unlink" for a method of something computed
	base string // last part
	args []codeValue
	text []codeToken // all tokens of the argument list
	path *codeValue  // of Path("x").method(): the path
}

// scanCode looks for calls that delete, write, read secrets or start programs. It is a scanner, not a reader of the language:
// it knows strings from code, so that a text that only mentions a command passes, and it asks where a call's argument is
// computed.
func (x *evaluation) scanCode(c *command, lang, src string) {
	if x.depth >= maxNested {
		x.opaqueCode(c, "program texts are nested too deeply")
		return
	}
	if len(src) > maxCode {
		x.opaqueCode(c, "the program text is too long to be read")
		return
	}
	x.depth++
	defer func() { x.depth-- }()
	toks := lexCode(lang, src)
	if len(toks) >= maxTokens {
		x.opaqueCode(c, "the program text is too long to be read")
	}
	home := ""
	if len(x.homes) > 0 {
		home = x.homes[0]
	}
	toks = foldTokens(lang, toks, home)
	vars := literalVars(toks, lang)
	inner := c.under(lang)
	for i := range toks {
		t := &toks[i]
		switch {
		case t.kind == 'x':
			x.codeShell(inner, codeValue{known: !strings.Contains(t.text, "\x00"), text: t.text})
		case t.kind == 'n':
			if lang == "awk" {
				x.awkPipes(inner, toks, i, vars)
			}
			if t.text == "$" && lang == "js" && i+1 < len(toks) && toks[i+1].kind == 's' { // a shell template
				x.codeShell(inner, codeValue{known: !strings.Contains(toks[i+1].text, "\x00"), text: toks[i+1].text})
				continue
			}
			call, ok := callAt(toks, i, lang, vars)
			switch {
			case ok && call.base == "open" && (lang == "perl" || lang == "ruby" && (call.name == "open" || call.name == "File.open" || call.name == "Kernel.open")):
				x.openSpec(inner, lang, call, toks)
			case ok:
				x.judgeCall(inner, lang, call)
			default:
				x.handedOver(inner, lang, toks, i, vars)
			}
		case t.kind == 's' && lang == "php":
			x.handedOver(inner, lang, toks, i, vars)
		case t.kind == 's' && lang == "applescript":
			if i > 0 && toks[i-1].text == "script" {
				x.codeShell(inner, codeValue{known: true, text: t.text})
			}
		case t.kind == 's' && lang == "awk":
			x.awkPipes(inner, toks, i, vars)
		}
	}
	if lang == "awk" {
		x.awkSocket(inner, toks)
	}
	for i := range toks {
		if toks[i].kind == 'n' && runningValue(lang, toks, i) {
			x.literalsRun(inner, stringsOf(toks))
			break
		}
	}
	x.judgeExfiltration(inner, toks)
}

// callAt reads the call whose name ends at token i.
func callAt(toks []codeToken, i int, lang string, vars map[string]codeVar) (codeCall, bool) {
	call := codeCall{base: strings.TrimLeft(toks[i].text, "$@")}
	call.name = call.base
	// The names in front: a.b.c, A::b, a->b.
	for j := i - 1; j >= 0; {
		sep := ""
		switch {
		case toks[j].text == "." && toks[j].kind == 'p':
			sep, j = ".", j-1
		case toks[j].text == ":" && j > 0 && toks[j-1].text == ":":
			sep, j = ".", j-2
		case toks[j].text == ">" && j > 0 && toks[j-1].text == "-":
			sep, j = ".", j-2
		}
		if sep == "" {
			break
		}
		if j >= 0 && toks[j].text == "?" {
			j--
		}
		if j < 0 || toks[j].kind != 'n' {
			call.name = "." + call.name
			if j >= 3 && toks[j].text == ")" && toks[j-2].text == "(" && toks[j-3].text == "Path" {
				v, _ := readText(toks, j-1, lang, vars)
				call.path = &v
			} else if j >= 0 && toks[j].obj {
				call.path = &codeValue{known: !strings.Contains(toks[j].text, "\x00"), text: toks[j].text}
			}
			break
		}
		if v, ok := vars[toks[j].text]; ok && v.obj && call.name == call.base {
			call.path = &codeValue{known: !strings.Contains(v.text, "\x00"), text: v.text}
		}
		call.name = strings.TrimLeft(toks[j].text, "$@") + "." + call.name
		j--
	}
	if i > 0 && toks[i-1].kind == 'n' && (toks[i-1].text == "def" || toks[i-1].text == "function" || toks[i-1].text == "sub" || toks[i-1].text == "func") {
		return call, false
	}
	next := i + 1
	if next >= len(toks) {
		return call, false
	}
	if v, ok := vars[call.base]; ok && lang == "php" && strings.HasPrefix(toks[i].text, "$") && isIdentifier(v.text) {
		call.name, call.base = v.text, v.text // $f = "system"; $f(...)
	}
	if toks[next].text == "(" && toks[next].kind == 'p' {
		call.args, call.text = readArgs(toks, next+1, ")", lang, vars)
		return call, true
	}
	// Calls without parentheses: system "x", unlink $f.
	if (lang == "perl" || lang == "ruby" || lang == "lua" || lang == "php" || lang == "tcl") && (toks[next].kind == 's' || toks[next].kind == 'n') && toks[next].line == toks[i].line {
		if lang == "lua" && toks[next].kind == 'n' {
			return call, false
		}
		call.args, call.text = readArgs(toks, next, ";", lang, vars)
		return call, true
	}
	return call, false
}

// judgeCall gives a call its effects.
func (x *evaluation) judgeCall(c *command, lang string, call codeCall) {
	if len(call.args) > 0 && call.args[0].known && sqlCalls[call.base] {
		if form, words := sqlLoss(call.args[0].text); form != "" {
			x.effect(c, DatabaseDestroy, form, words, "")
		}
	}
	if call.path != nil && pathMethods[call.base] != 0 {
		call.args = append([]codeValue{*call.path}, call.args...)
		x.codeAct(c, lang, call, codeAction{kind: pathMethods[call.base]})
		return
	}
	if act, ok := codeActions(lang, call); ok {
		x.codeAct(c, lang, call, act)
	}
}

// sqlCalls are the methods by which programs hand SQL to a database.
var sqlCalls = wordSet("execute", "executescript", "executemany", "query", "raw", "exec", "run", "do", "prepare", "execute_sql", "$executeRawUnsafe", "Exec", "Query")

// pathMethods are the methods of a path object that change or read what it names.
var pathMethods = map[string]byte{"unlink": 'd', "rmdir": 'd', "write_text": 'w', "write_bytes": 'w', "read_text": 'r', "read_bytes": 'r', "rename": 'm', "replace": 'm', "chmod": 'p', "touch": 'c', "mkdir": 'c'}

// codeAct gives an action its effects.
func (x *evaluation) codeAct(c *command, lang string, call codeCall, act codeAction) {
	switch act.kind {
	case 'm':
		if len(call.args) > 0 && call.args[0].known {
			if !act.copies {
				x.moveAway(c, x.codePath(call.args[0].text))
			}
			if len(call.args) > 1 && call.args[1].known {
				x.copyOver(c, x.codePath(call.args[0].text), x.codePath(call.args[1].text), false)
			}
		} else if len(call.args) > 1 {
			x.codeWrite(c, call.args[1], Overwrite)
			x.guardedSuffix(c, call.args[0])
		}
	case 'p':
		if len(call.args) > 0 && call.args[0].known {
			for _, l := range x.locateTarget(c, x.codePath(call.args[0].text)) {
				f := l.finding(PermissionChange)
				f.Program, f.Via, f.cmd = c.name, c.Via, c.index
				x.add(f)
			}
		}
	case 'd':
		x.codeDelete(c, lang, call, act)
	case 's':
		x.codeStart(c, call)
	case 'v':
		argv := call.args[min(act.skip, len(call.args)):]
		x.codeArgv(c, argv)
	case 'e':
		if len(call.args) > 0 {
			if v := call.args[0]; v.known && !v.isList {
				x.scanCode(c, lang, v.text)
			} else if !v.known {
				x.opaqueCode(c, "a program text that is computed would run")
			}
		}
	case 'w':
		if len(call.args) > 0 {
			x.codeWrite(c, call.args[0], Write)
		}
	case 'r':
		if len(call.args) > 0 {
			x.codeRead(c, call.args[0])
		}
	case 'c':
		for _, a := range call.args {
			if a.known && !a.isList {
				x.appears(c, x.codePath(a.text))
			}
			for _, t := range a.list {
				x.appears(c, x.codePath(t))
			}
		}
	}
}

func (x *evaluation) codeDelete(c *command, lang string, call codeCall, act codeAction) {
	recursive := act.recursive || slices.ContainsFunc(call.text, func(t codeToken) bool { return t.kind == 'n' && t.text == "recursive" })
	how := removal{recursive: recursive, forced: recursive, form: lang}
	args := call.args
	if !act.all && len(args) > 1 {
		args = args[:1]
	}
	if len(args) == 0 {
		x.opaqueCode(c, "what a program text deletes is computed")
		return
	}
	for _, a := range args {
		switch {
		case a.isList && a.known:
			for _, t := range a.list {
				x.remove(c, x.codePath(t), how)
			}
		case a.known && a.text != "":
			x.remove(c, x.codePath(a.text), how)
		case !a.known:
			x.opaqueCode(c, "what a program text deletes is computed")
		}
	}
}
