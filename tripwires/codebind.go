// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"strings"
)

// bind looks whether the tokens so far end in a binding of another name: import a as b, b = os.system,
// const {a: b} = module.
func (f *folder) bind() {
	switch f.lang {
	case "python":
		f.pythonImport()
	case "js", "ruby", "lua", "php":
	default:
		return
	}
	n := len(f.out)
	if n >= 3 && f.out[n-1].kind == 's' && f.out[n-2].text == "=" && f.out[n-2].kind == 'p' && f.out[n-3].kind == 'n' {
		f.texts[f.out[n-3].text] = f.out[n-1].text
	}
	name, start := dottedBefore(f.out, n)
	if name == "" || start < 2 || f.out[start-1].kind != 'p' || f.out[start-1].text != "=" {
		if !(start >= 3 && name != "" && f.out[start-1].text == "await" && f.out[start-2].text == "=") {
			return
		}
		start--
	}
	if !bindable(f.lang, name) {
		return
	}
	left := f.out[start-2]
	switch {
	case left.kind == 'n':
		if left.text != name {
			f.alias[left.text] = nameTokens(name)
		}
	case left.text == "}" && f.lang == "js":
		f.destructure(start-2, name)
	}
}

// destructure reads the names between { and the } at end as members of a module.
func (f *folder) destructure(end int, module string) {
	for i := end - 1; i > 0 && f.out[i].text != "{" && end-i < 200; i-- { // the first token has no { before it
		t := f.out[i]
		if t.kind != 'n' || f.out[i-1].text == "as" && f.out[i-1].kind == 'n' {
			continue
		}
		prev := f.out[i-1].text
		if prev != "{" && prev != "," && prev != "\n" && prev != "type" || i+1 > end {
			continue
		}
		bound := t.text
		if next := f.out[i+1].text; (next == ":" || next == "as") && i+2 < end {
			bound = f.out[i+2].text
		}
		member := t.text
		if j := strings.LastIndexByte(member, '.'); j >= 0 {
			member = member[j+1:]
		}
		f.alias[bound] = nameTokens(module + "." + member)
	}
}

// jsImport reads import x from "m", import * as x from "m", import {a as b} from "m", at their end.
func (f *folder) jsImport() {
	n := len(f.out)
	m := moduleName("js", f.out[n-1].text)
	if m == "" || n < 4 {
		return
	}
	switch last := f.out[n-3]; {
	case last.text == "}":
		f.destructure(n-3, m)
		open := n - 4
		for open > 0 && f.out[open].text != "{" && n-open < 200 {
			open--
		}
		// import whole, {a} from "m"
		if open > 1 && f.out[open].text == "{" && f.out[open-1].text == "," && f.out[open-2].kind == 'n' {
			f.alias[f.out[open-2].text] = nameTokens(m)
		}
	case last.kind == 'n':
		f.alias[last.text] = nameTokens(m)
	}
}

// pythonImport reads the import statement that the tokens end in.
func (f *folder) pythonImport() {
	n := len(f.out)
	at := -1
	for i := n - 1; i >= 0 && n-i < 200; i-- {
		t := f.out[i]
		if t.kind == 'p' && t.text == "\n" && i > 0 && f.out[i-1].kind == 'p' && strings.Contains("(,", f.out[i-1].text) {
			continue // within brackets
		}
		if t.kind == 'p' && (t.text == ";" || t.text == "\n" || t.text == "=") {
			break
		} else if t.kind == 'n' && t.text == "import" {
			at = i
			break
		}
	}
	if at < 0 {
		return
	}
	prefix := ""
	if name, start := dottedBefore(f.out, at); name != "" && start > 0 && f.out[start-1].text == "from" {
		if !bindable("python", name) {
			return
		}
		prefix = name + "."
	}
	for i := at + 1; i < n; {
		if f.out[i].kind != 'n' {
			i++
			continue
		}
		j := i + 1
		for j+1 < n && f.out[j].text == "." && f.out[j+1].kind == 'n' {
			j += 2
		}
		name, _ := dottedBefore(f.out, j)
		bound := name
		if j+1 < n && f.out[j].text == "as" && f.out[j].kind == 'n' {
			bound = f.out[j+1].text
			j += 2
		}
		if bound != prefix+name && bindable("python", prefix+name) && !strings.Contains(bound, ".") {
			f.alias[bound] = nameTokens(prefix + name)
		}
		i = j
	}
}

// bindable reports whether a dotted name is one of a module that the scanner knows, so that another name for it matters.
func bindable(lang, name string) bool {
	root, _, _ := strings.Cut(name, ".")
	switch lang {
	case "python":
		switch root {
		case "os", "subprocess", "shutil", "pathlib", "builtins", "pty", "posix", "importlib", "exec", "eval", "getattr", "open", "asyncio":
			return true
		}
	case "js":
		switch root {
		case "fs", "fse", "child_process", "os", "path", "Bun", "Deno", "execa", "eval", "shell", "util":
			return true
		}
	case "lua":
		return root == "os" || root == "io"
	case "ruby":
		return root == "FileUtils" || root == "File" || root == "Kernel" || root == "IO" || root == "Dir"
	}
	return false
}

// moduleName is the name under which the scanner knows a module.
func moduleName(lang, m string) string {
	if lang == "python" {
		if bindable(lang, m) {
			return m
		}
		return ""
	}
	switch m = strings.TrimPrefix(m, "node:"); m {
	case "fs", "child_process", "os", "path", "util":
		return m
	case "fs/promises":
		return "fs"
	case "path/posix":
		return "path"
	case "fs-extra", "graceful-fs":
		return "fse"
	case "bun":
		return "Bun"
	case "execa":
		return "execa"
	case "shelljs":
		return "shell"
	}
	return ""
}
