// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"regexp"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/shell"
)

// maxLiterals is how many texts of a program are tried as commands.
const maxLiterals = 20

// runningValue reports whether token i ends the name of a function that runs or deletes, used as a value and not called:
// what calls it later is not followed.
func runningValue(lang string, toks []codeToken, i int) bool {
	if lang == "python" || lang == "js" || lang == "lua" {
		if i+1 < len(toks) && toks[i+1].kind == 'p' && (toks[i+1].text == "(" || toks[i+1].text == "=") {
			return false
		}
		name, _ := dottedBefore(toks, i+1)
		parts := strings.Split(name, ".")
		if len(parts) < 2 || !bindable(lang, name) {
			return false
		}
		// fn.call(null, ...) and fn.bind(null) are the function itself.
		for n := len(parts); n >= max(2, len(parts)-1); n-- {
			call := codeCall{name: strings.Join(parts[:n], "."), base: parts[n-1], args: []codeValue{{known: true, text: "x"}}}
			if act, ok := codeActions(lang, call); ok && strings.ContainsRune("sv", rune(act.kind)) {
				return true
			}
		}
	}
	return false
}

// literalsRun judges the texts of a program as commands and keeps those that would be denied: something in the program runs
// commands in a way that is not followed.
func (x *evaluation) literalsRun(c *command, texts []string) {
	for _, t := range texts[:min(len(texts), maxLiterals)] {
		if !strings.ContainsAny(t, "{}%") { // a pattern that is filled in later
			x.suspect(c, t)
		}
	}
	if len(texts) > 1 && len(texts) <= maxLiterals {
		x.onlyIfDenied(func() { x.nestedArgv(texts, c, "exec") })
	}
}

func stringsOf(toks []codeToken) []string {
	var out []string
	for _, t := range toks {
		if t.kind == 's' && t.text != "" && !strings.Contains(t.text, "\x00") {
			out = append(out, t.text)
		}
	}
	return out
}

var (
	foreignRuns   = regexp.MustCompile("(?i)\\b(run|cmd|system|exec|execute|spawn|callCommand|readProcess|getRuntime|ProcessBuilder|process|shell|popen|sh|rm|rmtree|rm_rf)\\b|`|\\.!")
	foreignString = regexp.MustCompile("\"((?:[^\"\\\\]|\\\\.)*)\"|'((?:[^'\\\\]|\\\\.)*)'|`([^`]*)`")
)

// progForeign covers the interpreters of languages that the scanner does not read: where a text has a word for running
// something, its literals are judged as commands.
func progForeign(x *evaluation, c *command) {
	var texts []string
	if c.Stdin.Known {
		texts = append(texts, c.Stdin.Text)
	}
	for i, w := range c.args {
		switch w.Text {
		case "-e", "-E", "--eval", "-eval", "-c", "--code", "-r", "--run", "-x", "--execute":
			if i+1 < len(c.args) {
				texts = append(texts, c.args[i+1].Text)
			}
		}
	}
	for _, t := range texts {
		code := foreignString.ReplaceAllStringFunc(t, func(s string) string {
			if s[0] == '`' {
				return s
			}
			return s[:1] // what a text mentions is no code
		})
		if !foreignRuns.MatchString(code) {
			continue
		}
		var literals []string
		for _, m := range foreignString.FindAllStringSubmatch(t, maxLiterals) {
			if s := m[1] + m[2] + m[3]; s != "" {
				literals = append(literals, s)
			}
		}
		x.literalsRun(c, literals)
	}
	x.execute(c)
}

// listNamed reads the list of an argument that is given by name: {args: ["-rf"]}.
func listNamed(call codeCall, name, lang string) (codeValue, bool) {
	for i := 0; i+2 < len(call.text); i++ {
		if call.text[i].text == name && (call.text[i+1].text == ":" || call.text[i+1].text == "=") {
			v, _ := readValue(call.text, i+2, lang, nil)
			return v, v.isList
		}
	}
	return codeValue{}, false
}

// progPreview covers searchers that run a command for each file.
func progPreview(x *evaluation, c *command) {
	for i, w := range c.args {
		name, val, eq := strings.Cut(w.Text, "=")
		switch name {
		case "--pre", "--preview", "--hostname-bin":
			if eq {
				x.nestedWord(subWord(w, val), c, c.name)
			} else if i+1 < len(c.args) {
				x.nestedWord(shell.Word{Text: c.args[i+1].Text, Known: c.args[i+1].Known}, c, c.name)
			}
		}
	}
}
