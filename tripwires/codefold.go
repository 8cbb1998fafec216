// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"path"
	"strings"
)

// homeMark stands in a string for the home directory, where a language puts it in by itself ("$ENV{HOME}/x").
const homeMark = "\x01"

// maxFoldArgs bounds how far back the folder looks for the start of a call.
const maxFoldArgs = 48

// folder rewrites the tokens of a program text so that the scanner sees what names stand for: imports under other names,
// modules that are asked for by text, members that are named by text, the home directory, and paths that are put together.
type folder struct {
	lang  string
	home  string
	alias map[string][]codeToken
	texts map[string]string // names that were last given a literal text
	out   []codeToken
}

// foldTokens returns the rewritten tokens. home is what the text's own home directory is, "" if it is not known.
func foldTokens(lang string, toks []codeToken, home string) []codeToken {
	f := &folder{lang: lang, home: home, alias: map[string][]codeToken{}, texts: map[string]string{}, out: make([]codeToken, 0, len(toks))}
	for i := 0; i < len(toks); i++ {
		t := toks[i]
		if strings.Contains(t.text, homeMark) && t.kind != 'p' {
			t.text = strings.ReplaceAll(t.text, homeMark, home)
		}
		if lang == "ruby" && t.kind == 'n' && (t.text == "send" || t.text == "public_send" || t.text == "__send__") {
			if name, next, ok := rubySend(toks, i); ok {
				f.out = append(f.out, codeToken{kind: 'n', text: name, line: t.line}, codeToken{kind: 'p', text: "(", line: t.line})
				i = next - 1
				continue
			}
		}
		f.push(toks, i, t)
	}
	f.bind()
	return f.out
}

// rubySend reads send(:name, ...): the call of a method that is named by a symbol or a text.
func rubySend(toks []codeToken, i int) (name string, next int, ok bool) {
	j := i + 1
	if j < len(toks) && toks[j].text == "(" {
		j++
	}
	if j < len(toks) && toks[j].text == ":" {
		j++
	}
	if j+1 >= len(toks) || toks[j].kind == 'p' || toks[j+1].text != "," {
		return "", 0, false
	}
	return toks[j].text, j + 2, true
}

func (f *folder) push(toks []codeToken, i int, t codeToken) {
	if t.kind == 'p' && strings.ContainsAny(t.text, "\n;,)}") {
		f.bind()
	}
	if t.kind == 'n' && !f.ends(".") {
		assigned := i+1 < len(toks) && toks[i+1].text == "=" && (i+2 >= len(toks) || toks[i+2].text != "=" && toks[i+2].text != ">")
		if target := f.alias[t.text]; target != nil {
			if !assigned {
				for _, a := range target {
					a.line = t.line
					f.out = append(f.out, a)
				}
				f.member()
				return
			}
			if !f.ends("(") && !f.ends(",") {
				delete(f.alias, t.text)
			}
		}
	}
	f.out = append(f.out, t)
	switch {
	case t.kind == 's':
		f.text()
	case t.kind == 'n':
		f.member()
	case t.text == ")":
		f.call()
	case t.text == "]":
		f.index()
	case t.text == "}" && f.lang == "perl" && f.tail("$ENV", "{", "HOME", "}"):
		f.replace(4, f.textToken(f.home, false))
	}
}

// ends reports whether the last token is this piece of punctuation.
func (f *folder) ends(p string) bool {
	n := len(f.out)
	return n > 0 && f.out[n-1].kind == 'p' && f.out[n-1].text == p
}

// tail reports whether the last tokens have these texts.
func (f *folder) tail(texts ...string) bool {
	n := len(f.out) - len(texts)
	if n < 0 {
		return false
	}
	for i, t := range texts {
		if f.out[n+i].text != t {
			return false
		}
	}
	return true
}

// replace puts tokens in the place of the last n.
func (f *folder) replace(n int, with ...codeToken) {
	line := f.out[len(f.out)-n].line
	f.out = f.out[:len(f.out)-n]
	for _, t := range with {
		t.line = line
		f.out = append(f.out, t)
	}
}

func (f *folder) textToken(s string, obj bool) codeToken {
	return codeToken{kind: 's', text: s, obj: obj}
}

// text folds a text into what stands in front of it: "a" + "b", Path("a") / "b", and a module's name after from.
func (f *folder) text() {
	n := len(f.out)
	if n >= 2 && f.lang == "python" && f.out[n-2].kind == 's' {
		f.replace(2, f.textToken(f.out[n-2].text+f.out[n-1].text, false))
		n--
	}
	if n >= 3 && f.out[n-2].kind == 'p' && f.out[n-3].kind == 's' {
		a, op, b := f.out[n-3], f.out[n-2].text, f.out[n-1]
		dot := op == "." && (f.lang == "perl" || f.lang == "php")
		switch {
		case op == "/" && a.obj:
			f.replace(3, f.textToken(joinPath(a.text, b.text), true))
		case op == "+" && !a.obj && f.lang != "awk", dot:
			f.replace(3, f.textToken(a.text+b.text, false))
		case op == "+" && a.obj && f.lang == "ruby":
			f.replace(3, f.textToken(joinPath(a.text, b.text), true))
		}
		return
	}
	if f.lang == "js" && n >= 2 && f.out[n-2].kind == 'n' && f.out[n-2].text == "from" {
		f.jsImport()
	}
}

// member folds a member that stands for the home directory.
func (f *folder) member() {
	switch {
	case f.home == "":
	case f.tail("process", ".", "env", ".", "HOME"), f.tail("Bun", ".", "env", ".", "HOME"), f.tail("process", ".", "env", ".", "USERPROFILE"):
		f.replace(5, f.textToken(f.home, false))
		f.text()
	case f.lang == "ruby" && f.tail("Dir", ".", "home"):
		f.replace(3, f.textToken(f.home, false))
	}
}

// index folds X["name"]: a variable of the environment, or a member that is named by a text.
func (f *folder) index() {
	n := len(f.out)
	if n >= 4 && f.out[n-2].kind == 'n' {
		if s, ok := f.texts[f.out[n-2].text]; ok && f.out[n-3].text == "[" {
			f.out[n-2] = codeToken{kind: 's', text: s, line: f.out[n-2].line}
		}
	}
	if n < 4 || f.out[n-2].kind != 's' || f.out[n-3].text != "[" || f.out[n-3].kind != 'p' {
		return
	}
	key, line := f.out[n-2].text, f.out[n-2].line
	name, start := dottedBefore(f.out, n-3)
	if key == "HOME" && f.home != "" {
		switch name {
		case "os.environ", "environ", "ENV", "process.env", "Bun.env", "$_SERVER", "$_ENV":
			f.replace(n-start, f.textToken(f.home, false))
			f.text()
			return
		}
	}
	if obj, ok := strings.CutSuffix(name, ".__dict__"); ok && f.lang == "python" && isIdentifier(key) {
		f.replace(n-start, nameTokens(obj+"."+key)...)
		return
	}
	if f.lang == "js" && isIdentifier(key) && (name != "" || f.out[n-4].text == ")") {
		f.replace(3, codeToken{kind: 'p', text: ".", line: line}, codeToken{kind: 'n', text: key, line: line})
		f.member()
	}
}

// call folds a call whose arguments are texts: paths that are put together, modules that are asked for, members by name.
func (f *folder) call() {
	n := len(f.out)
	open := n - 2
	for depth := 0; open >= 0 && n-open < maxFoldArgs; open-- {
		t := f.out[open]
		if t.kind != 'p' {
			continue
		}
		if t.text == ")" {
			depth++
		} else if t.text == "(" {
			if depth == 0 {
				break
			}
			depth--
		}
	}
	if open < 0 || f.out[open].text != "(" {
		return
	}
	args, plain := textArgs(f.out[open+1 : n-1])
	name, start := dottedBefore(f.out, open)
	if name == "" {
		// (Path.home() / "x").write_text(...): the brackets around a text mean nothing.
		if plain && len(args) == 1 && (open == 0 || f.out[open-1].kind == 'p' && f.out[open-1].text != ")" && f.out[open-1].text != "]") {
			f.replace(n-open, f.textToken(args[0], f.out[open+1].obj))
			f.text()
			return
		}
		if plain && open >= 3 && f.out[open-1].kind == 'n' && f.out[open-2].text == "." && f.out[open-3].obj {
			f.pathMethod(open, args)
		}
		return
	}
	if s, obj, ok := f.fold(name, args, plain); ok {
		f.replace(n-start, f.textToken(s, obj))
		f.text()
		return
	}
	if with := f.foldName(name, args, plain, open); with != nil {
		f.replace(n-start, with...)
		f.member()
	}
}

// pathMethod folds the methods of a path object that give another path.
func (f *folder) pathMethod(open int, args []string) {
	n := len(f.out)
	base := f.out[open-3].text
	switch f.out[open-1].text {
	case "expanduser", "resolve", "absolute", "expand_path":
	case "joinpath", "join":
		base = joinPath(append([]string{base}, args...)...)
	default:
		return
	}
	f.replace(n-open+3, f.textToken(base, true))
}

// fold gives the text that a call of a known function has as its value.
func (f *folder) fold(name string, args []string, plain bool) (s string, obj, ok bool) {
	base := name[strings.LastIndexByte(name, '.')+1:]
	homeOf := func() bool {
		switch name {
		case "Path.home", "pathlib.Path.home", "os.homedir", "homedir", "Dir.home", "node.os.homedir":
			return len(args) == 0
		case "os.getenv", "os.environ.get", "getenv", "ENV.fetch", "environ.get", "os.Getenv", "Deno.env.get":
			return len(args) > 0 && args[0] == "HOME"
		}
		return false
	}
	switch {
	case !plain:
	case f.home != "" && homeOf():
		return f.home, strings.HasPrefix(name, "Path.") || strings.HasPrefix(name, "pathlib."), true
	case len(args) == 0:
	default:
		switch name {
		case "Path", "pathlib.Path", "PurePath", "PosixPath", "pathlib.PosixPath", "pathlib.PurePath", "Pathname", "Pathname.new":
			return joinPath(args...), true, true
		case "os.path.join", "path.join", "path.resolve", "File.join", "posixpath.join", "filepath.Join", "path.posix.join":
			return joinPath(args...), false, true
		case "os.path.expanduser", "os.path.abspath", "os.path.realpath", "os.path.normpath", "File.expand_path", "path.normalize", "os.fspath", "os.path.expandvars":
			return args[0], false, true
		case "str", "String", "join", "expanduser":
			if base == "join" {
				return joinPath(args...), false, len(args) > 1
			}
			return args[0], false, len(args) == 1
		}
	}
	return "", false, false
}

// foldName gives the name that a call of a known function has as its value: a module, or a member of one.
func (f *folder) foldName(name string, args []string, plain bool, open int) []codeToken {
	switch name {
	case "require", "import", "__import__", "importlib.import_module", "import_module", "process.mainModule.require", "module.require":
		if plain && len(args) == 1 {
			if m := moduleName(f.lang, args[0]); m != "" {
				return nameTokens(m)
			}
		}
	case "getattr":
		n := len(f.out)
		in := f.out[open+1 : n-1]
		if len(in) >= 3 && in[len(in)-1].kind == 's' && in[len(in)-2].text == "," {
			if obj, start := dottedBefore(in, len(in)-2); obj != "" && start == 0 && isIdentifier(in[len(in)-1].text) {
				return nameTokens(obj + "." + in[len(in)-1].text)
			}
		}
	case "vars":
		n := len(f.out)
		if obj, start := dottedBefore(f.out[open+1:n-1], n-2-open); obj != "" && start == 0 {
			return nameTokens(obj + ".__dict__")
		}
	case "promisify", "util.promisify":
		n := len(f.out)
		if obj, start := dottedBefore(f.out[open+1:n-1], n-2-open); obj != "" && start == 0 {
			return nameTokens(obj)
		}
	}
	return nil
}

// nameTokens are the tokens of a dotted name.
func nameTokens(name string) []codeToken {
	var out []codeToken
	for i, part := range strings.Split(name, ".") {
		if i > 0 {
			out = append(out, codeToken{kind: 'p', text: "."})
		}
		out = append(out, codeToken{kind: 'n', text: part})
	}
	return out
}

// dottedBefore reads the dotted name that ends in front of token end: a.b.c. The name is "" if none stands there.
func dottedBefore(toks []codeToken, end int) (name string, start int) {
	i := end - 1
	if i < 0 || toks[i].kind != 'n' {
		return "", end
	}
	parts := []string{toks[i].text}
	for len(parts) < 8 && i >= 2 && toks[i-1].kind == 'p' && toks[i-1].text == "." {
		if toks[i-2].kind != 'n' {
			return "", end // a member of something computed
		}
		i -= 2
		parts = append([]string{toks[i].text}, parts...)
	}
	return strings.Join(parts, "."), i
}

// textArgs reads tokens as texts separated by commas.
func textArgs(toks []codeToken) (args []string, ok bool) {
	want := true
	for _, t := range toks {
		switch {
		case t.kind == 'p' && t.text == "\n":
		case want && t.kind == 's':
			args = append(args, t.text)
			want = false
		case !want && t.kind == 'p' && t.text == ",":
			want = true
		default:
			return nil, false
		}
	}
	return args, true
}

// joinPath joins as os.path.join does: an absolute part starts anew.
func joinPath(parts ...string) string {
	out := ""
	for _, p := range parts {
		switch {
		case out == "" || strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~"):
			out = p
		case strings.Contains(out, "\x00") || strings.Contains(p, "\x00"):
			out = strings.TrimSuffix(out, "/") + "/" + p
		default:
			out = path.Join(out, p)
		}
	}
	return out
}

func isIdentifier(s string) bool {
	for i := 0; i < len(s); i++ {
		if !isWordByte(s[i]) && s[i] != '$' {
			return false
		}
	}
	return s != "" && (s[0] < '0' || s[0] > '9')
}
