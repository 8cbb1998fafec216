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

// codeValue is an argument: a text, or a list of texts.
type codeValue struct {
	known  bool
	text   string // NUL where a part is not known
	list   []string
	isList bool
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

// codeVar is a name that stands for one literal text.
type codeVar struct {
	text string // holds NUL if it is not known
	obj  bool   // a path object
}

// literalVars collects names that are given one literal text and nothing else.
func literalVars(toks []codeToken, lang string) map[string]codeVar {
	vars := map[string]codeVar{}
	for i := 0; i+2 < len(toks); i++ {
		if toks[i].kind != 'n' || toks[i+1].text != "=" || toks[i+1].kind != 'p' || i+3 < len(toks) && toks[i+2].text == "=" {
			continue
		}
		name := strings.TrimLeft(toks[i].text, "$@")
		if _, twice := vars[name]; twice {
			vars[name] = codeVar{text: "\x00"}
			continue
		}
		v, end := readValue(toks, i+2, lang, nil)
		if v.known && !v.isList && end > i+2 {
			vars[name] = codeVar{v.text, toks[i+2].obj}
		} else {
			vars[name] = codeVar{text: "\x00"}
		}
	}
	return vars
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

// maxArgTokens bounds how far the arguments of one call are read, so that calls within calls stay cheap.
const maxArgTokens = 4096

// readArgs reads comma-separated values until the closing token.
func readArgs(toks []codeToken, i int, end, lang string, vars map[string]codeVar) (args []codeValue, text []codeToken) {
	start := i
	toks = toks[:min(len(toks), start+maxArgTokens)]
	for i < len(toks) && len(args) < 256 {
		if toks[i].kind == 'p' && (toks[i].text == end || end == ";" && (toks[i].text == "\n" || toks[i].text == "}" || toks[i].text == ")")) {
			break
		}
		if toks[i].kind == 'p' && (toks[i].text == "," || toks[i].text == "\n") {
			i++
			continue
		}
		v, next := readValue(toks, i, lang, vars)
		// What follows a value up to the comma makes it computed.
		depth := 0
		for ; next < len(toks); next++ {
			t := toks[next]
			if t.kind != 'p' {
				v = codeValue{text: "\x00"}
				continue
			}
			if depth == 0 && (t.text == "," || t.text == end || end == ";" && (t.text == "\n" || t.text == "}")) {
				break
			}
			switch t.text {
			case "(", "[", "{":
				depth++
			case ")", "]", "}":
				depth--
			case "\n":
				continue
			}
			if depth < 0 {
				break
			}
			v = codeValue{text: "\x00"}
		}
		if n := next - 1; !v.known && !v.isList && n > i+1 && toks[n].kind == 's' && toks[n-1].kind == 'p' && strings.Contains("+./", toks[n-1].text) {
			v.text = "\x00" + toks[n].text // what it ends in is known
		}
		args = append(args, v)
		i = next
	}
	return args, toks[min(start, len(toks)):min(i, len(toks))]
}

// readValue reads a text, a sum of texts, a known name, or a list of them.
func readValue(toks []codeToken, i int, lang string, vars map[string]codeVar) (codeValue, int) {
	if i >= len(toks) {
		return codeValue{text: "\x00"}, i
	}
	if toks[i].kind == 'p' && (toks[i].text == "[" || toks[i].text == "(") {
		end := "]"
		if toks[i].text == "(" {
			end = ")"
		}
		v := codeValue{isList: true, known: true}
		j := i + 1
		for j < len(toks) && !(toks[j].kind == 'p' && toks[j].text == end) {
			if toks[j].kind == 'p' && (toks[j].text == "," || toks[j].text == "\n") {
				j++
				continue
			}
			e, next := readText(toks, j, lang, vars)
			if rest := elementEnd(toks, next, end); rest > next || next == j {
				if toks[j].text == "*" || toks[j].text == "." { // a list within the list
					return codeValue{text: "\x00"}, i
				}
				e, next = codeValue{text: "\x00"}, max(rest, j+1)
			}
			v.known = v.known && e.known
			v.list = append(v.list, e.text)
			j = next
		}
		return v, min(j+1, len(toks))
	}
	return readText(toks, i, lang, vars)
}

// elementEnd is the end of what stands between a list's text and the next comma; it is at the comma if nothing does.
func elementEnd(toks []codeToken, j int, end string) int {
	depth := 0
	for ; j < len(toks); j++ {
		if toks[j].kind != 'p' {
			continue
		}
		switch t := toks[j].text; {
		case depth == 0 && (t == "," || t == end):
			for j > 0 && toks[j-1].kind == 'p' && toks[j-1].text == "\n" {
				j--
			}
			return j
		case t == "(" || t == "[" || t == "{":
			depth++
		case t == ")" || t == "]" || t == "}":
			if depth--; depth < 0 {
				return j
			}
		}
	}
	return j
}

// readText reads strings and known names joined by + or . or nothing.
func readText(toks []codeToken, i int, lang string, vars map[string]codeVar) (codeValue, int) {
	var b strings.Builder
	any := false
	for i < len(toks) {
		t := toks[i]
		switch {
		case t.kind == 's':
			b.WriteString(t.text)
		case t.kind == 'n':
			if i+1 < len(toks) && (toks[i+1].text == "(" || toks[i+1].text == "." || toks[i+1].text == "[" || toks[i+1].text == "=") && toks[i+1].kind == 'p' {
				if s, next, ok := expandUser(toks, i); ok {
					b.WriteString(s)
					i = next - 1
					break
				}
				if !any {
					return codeValue{text: "\x00"}, i
				}
				b.WriteByte(0)
				break
			}
			name := strings.TrimLeft(t.text, "$@")
			if v, ok := vars[name]; ok {
				b.WriteString(v.text)
			} else {
				b.WriteByte(0)
			}
		default:
			return codeValue{known: any && !strings.Contains(b.String(), "\x00"), text: b.String()}, i
		}
		any = true
		i++
		if i < len(toks) && toks[i].kind == 'p' && (toks[i].text == "+" || toks[i].text == "." && (lang == "perl" || lang == "php" || lang == "lua")) {
			i++
			for lang == "lua" && i < len(toks) && toks[i].text == "." {
				i++
			}
			continue
		}
		if i < len(toks) && toks[i].kind == 's' && t.kind == 's' && (lang == "python" || lang == "ruby" || lang == "awk") {
			continue
		}
		break
	}
	return codeValue{known: any && !strings.Contains(b.String(), "\x00"), text: b.String()}, i
}

// expandUser reads os.path.expanduser("~/x") as its argument.
func expandUser(toks []codeToken, i int) (string, int, bool) {
	for j := i; j < len(toks) && j < i+6; j++ {
		if toks[j].kind == 'n' && (toks[j].text == "expanduser" || toks[j].text == "expand_path") {
			if j+3 < len(toks) && toks[j+1].text == "(" && toks[j+2].kind == 's' && toks[j+3].text == ")" {
				return toks[j+2].text, j + 4, true
			}
		}
		if toks[j].kind == 's' {
			break
		}
	}
	return "", i, false
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
var pathMethods = map[string]byte{"unlink": 'd', "rmdir": 'd', "write_text": 'w', "write_bytes": 'w', "read_text": 'r', "read_bytes": 'r', "rename": 'm', "replace": 'm', "chmod": 'p'}

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
