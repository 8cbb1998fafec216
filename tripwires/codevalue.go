// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"strings"
)

// codeValue is an argument: a text, or a list of texts.
type codeValue struct {
	known  bool
	text   string // NUL where a part is not known
	list   []string
	isList bool
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
