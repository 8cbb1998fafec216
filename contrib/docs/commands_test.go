// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// commands are the commands of auditctl, each with its own ones, as its source makes them: a function that makes a
// cobra.Command and adds what other functions return. A text that such a function is given is the command's name.
func commands(t *testing.T) map[string][]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "cmd/auditctl/internal/ctl/*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no source of auditctl: %v", err)
	}
	s := source{names: map[string]string{}, added: map[string][]maker{}}
	for _, path := range paths {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				s.read(fn)
			}
		}
	}
	out := map[string][]string{}
	for _, list := range s.added {
		if !slices.ContainsFunc(list, func(m maker) bool { return m.fn == "query" }) { // not the root
			continue
		}
		for _, m := range list {
			sub := []string{}
			for _, own := range s.added[m.fn] {
				sub = append(sub, s.name(own))
			}
			out[s.name(m)] = sub
		}
	}
	return out
}

// maker is a call of a function that makes a command; text is what it is given, "" if nothing.
type maker struct{ fn, text string }

// source is what the functions of auditctl do, by their names.
type source struct {
	names map[string]string  // the command that a function makes
	added map[string][]maker // the commands that it adds to that
}

func (s *source) name(m maker) string {
	if m.text != "" {
		return m.text
	}
	return s.names[m.fn]
}

func (s *source) read(fn *ast.FuncDecl) {
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Use" {
				s.names[fn.Name.Name], _, _ = strings.Cut(text(n.Value), " ")
			}
		case *ast.CallExpr:
			if sel, ok := n.Fun.(*ast.SelectorExpr); !ok || sel.Sel.Name != "AddCommand" {
				return true
			}
			for _, arg := range n.Args {
				call, ok := arg.(*ast.CallExpr)
				if !ok {
					continue
				}
				if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
					m := maker{fn: sel.Sel.Name}
					if len(call.Args) > 0 {
						m.text = text(call.Args[0])
					}
					s.added[fn.Name.Name] = append(s.added[fn.Name.Name], m)
				}
			}
		}
		return true
	})
}

// text is the value of a text in the source, "" for anything else.
func text(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	s, err := strconv.Unquote(lit.Value)
	if err != nil {
		return ""
	}
	return s
}

func TestCommandsInDocumentsExist(t *testing.T) {
	t.Parallel()
	known := commands(t)
	known["completion"] = []string{"bash", "zsh", "fish", "powershell"} // cobra's own
	if len(known) < 8 {
		t.Fatalf("found %d commands in the source", len(known))
	}
	command := regexp.MustCompile("(?:^|[\\s`(|])auditctl +([a-z]+)(?: +([a-z]+))?")
	for _, path := range slices.Concat(documents, wiring) {
		for i, line := range strings.Split(read(t, path), "\n") {
			for _, code := range codeOf(line) {
				for _, m := range command.FindAllStringSubmatch(code, -1) {
					sub, ok := known[m[1]]
					if !ok {
						t.Errorf("%s:%d: auditctl has no command %q", path, i+1, m[1])
						continue
					}
					if len(sub) > 0 && m[2] != "" && !slices.Contains(sub, m[2]) {
						t.Errorf("%s:%d: auditctl %s has no command %q", path, i+1, m[1], m[2])
					}
				}
			}
		}
	}
}

// codeOf returns what of a line is code: what stands between backticks, or the whole of a line that begins with the program.
func codeOf(line string) []string {
	if strings.HasPrefix(line, "auditctl ") {
		code, _, _ := strings.Cut(line, " # ")
		return []string{code}
	}
	var out []string
	for i, part := range strings.Split(line, "`") {
		if i%2 == 1 {
			out = append(out, part)
		}
	}
	return out
}

// starters are the only places from which programs are started, with the reason: files, and packages with all their files.
var starters = map[string]string{
	"hooks/client/sys/start.go":      "the hook starts the daemon whose absolute path a person's install wrote behind --",
	"cmd/auditctl/internal/service/": "auditctl start|stop|restart|purge run the system's service manager, and start the daemon beside them",
	"cmd/auditctl/internal/doctor/":  "auditctl doctor runs the hook of our own install, with a canary",
}

// The daemon runs no program, and auditctl none of the project, and no git. Beside starters, only tests, the benchmark and the demo
// import os/exec.
func TestNoProgramIsStarted(t *testing.T) {
	t.Parallel()
	checked := 0
	used := map[string]bool{}
	goFiles(t, func(path string, src []byte) {
		if strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/contrib/") {
			return
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, src, parser.ImportsOnly)
		if err != nil {
			t.Error(err)
			return
		}
		checked++
		var how []string
		for _, imp := range f.Imports {
			if imp.Path.Value == `"os/exec"` {
				how = append(how, "imports os/exec")
			}
		}
		for _, call := range []string{"os.StartProcess(", "syscall.ForkExec(", "syscall.Exec(", "unix.Exec(", "syscall.StartProcess(", "SYS_EXECVE"} {
			if strings.Contains(string(src), call) {
				how = append(how, "calls "+strings.TrimSuffix(call, "("))
			}
		}
		if len(how) == 0 {
			return
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			t.Error(err)
			return
		}
		for _, place := range []string{rel, filepath.Dir(rel) + "/"} {
			if starters[place] != "" {
				used[place] = true
				return
			}
		}
		t.Errorf("%s %s", path, strings.Join(how, ", "))
	})
	if checked < 100 {
		t.Errorf("looked at %d files only", checked)
	}
	for place := range starters {
		if !used[place] {
			t.Errorf("%s starts nothing: take it off the list", place)
		}
	}
}
