// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tripline-sh/tripline/tripwires/view"
)

// foldedText renders folded tokens, strings in quotes.
func foldedText(lang, src string) string {
	var b strings.Builder
	for _, t := range foldTokens(lang, lexCode(lang, src), "/home/dev") {
		switch {
		case t.kind == 's':
			b.WriteString("'" + strings.ReplaceAll(t.text, "\x00", "?") + "'")
		case t.text != "\n":
			b.WriteString(t.text)
		}
		if t.kind == 'n' {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

func TestNamesStandForWhatTheyAreBoundTo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ lang, src, want string }{
		{"python", "import os as o; o.remove(f)", "os .remove (f )"},
		{"python", "from os import system as s, path; s('x')", "os .system ('x')"},
		{"python", "from shutil import (\n rmtree as z,\n)\nz(d)", "shutil .rmtree (d )"},
		{"python", "s = os.system; s('x')", "os .system ('x')"},
		{"python", "s = os.system; s = f; s('x')", "f ;s ('x')"},
		{"python", "getattr(os, 'sys' + 'tem')('x')", "os .system ('x')"},
		{"python", "__import__('shutil').rmtree(d)", "shutil .rmtree (d )"},
		{"python", "os.path.join(os.environ['HOME'], 'a', \"b\")", "'/home/dev/a/b'"},
		{"python", "(Path.home() / 'a' / 'b').write_text('{}')", "'/home/dev/a/b'.write_text ('{}')"},
		{"python", "Path('~/a').expanduser().read_text()", "'~/a'.read_text ()"},
		{"python", "f\"{Path.home()}/a\"", "'/home/dev/a'"},
		{"python", "import numpy as os2; os2.x()", "os2 .x ()"},
		{"js", "const {a: b, c} = require('node:fs'); b(); c()", "fs .a ();fs .c ()"},
		{"js", "import {exec as x} from 'child_process'; x('y')", "child_process .exec ('y')"},
		{"js", "import * as c from \"fs\"; c.rm(d)", "fs .rm (d )"},
		{"js", "require('fs')['rm' + 'Sync'](d)", "fs .rmSync (d )"},
		{"js", "const r = promisify(require('child_process').exec); r('y')", "child_process .exec ('y')"},
		{"js", "f(process.env.HOME + '/a')", "f ('/home/dev/a')"},
		{"js", "f(`${os.homedir()}/a`)", "f ('/home/dev/a')"},
		{"js", "const x = require('left-pad'); x('y')", "x ('y')"},
		{"ruby", "Kernel.send(:system, 'x')", "Kernel .system ('x')"},
		{"ruby", "f(File.join(Dir.home, 'a'))", "f ('/home/dev/a')"},
		{"perl", `f("$ENV{HOME}/a")`, "f ('/home/dev/a')"},
		{"php", `f(getenv("HOME") . "/a")`, "f ('/home/dev/a')"},
	} {
		if got := foldedText(c.lang, c.src); !strings.HasSuffix(got, c.want) {
			t.Errorf("%s %q folds to %q, want it to end in %q", c.lang, c.src, got, c.want)
		}
	}
}

func TestSedProgramsAreReadForWhatTheyRunAndWrite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ src, want string }{
		{"s/a/b/g", ""},
		{"s/a/rm x/e", "e:rm x"},
		{`s/a/rm \/x/e`, "e:rm /x"},
		{"s|a|b|gw out", "w:out"},
		{"/x/w out", "w:out"},
		{"1,$w out\np", "w:out"},
		{"1e date", "e:date"},
		{"1{p;e date\n}", "e:date"},
		{"s/e/w/;y/abc/xyz/;s/w/e/", ""},
		{"/w out/d;\\|e x|d", ""},
		{"a e date", ""},
		{"b end; :end; p", ""},
	} {
		var got []string
		for _, a := range sedActions(c.src) {
			got = append(got, string(a.kind)+":"+a.text)
		}
		if strings.Join(got, ",") != c.want {
			t.Errorf("sed %q: %q, want %q", c.src, got, c.want)
		}
	}
}

func TestCallsWithinCallsAreReadInBoundedTime(t *testing.T) {
	t.Parallel()
	e, m := newEngine(t, Options{}), view.NewMemory()
	for name, src := range map[string]string{
		"calls":   strings.Repeat("f(", 5000) + strings.Repeat(")", 5000),
		"lists":   "os.remove(" + strings.Repeat("[", 7000),
		"sums":    "x = " + strings.Repeat("'a'+", 3000) + "'b'",
		"imports": strings.Repeat("import os as o;", 1000),
	} {
		d := bash(t, e, m, "python3 - <<'E'\n"+src+"\nE\n")
		if d.Rule == "engine.panic" {
			t.Errorf("%s: %s", name, d.Reason)
		}
	}
}

// FuzzFoldTokens looks for program texts that the lexer or the folder cannot take, or that grow beyond what they hold.
func FuzzFoldTokens(f *testing.F) {
	langs := []string{"python", "js", "perl", "ruby", "php", "lua", "awk", "go", "r", "tcl"}
	for i, s := range []string{"import os as o; o.remove('a')", "const {a: b} = require('fs'); b[\"c\"](d)", "open(F, \"|sh\"); print F \"$ENV{HOME}\"", "Kernel.send(:system, \"x\")",
		"array_map(\"unlink\", glob('/x'));", "local e = os.execute; e('x')", "BEGIN{print \"x\" | \"sh\"}", "exec.Command(\"rm\", \"-rf\")", "unlink('a')", "getattr(os, 'a' 'b')(",
		"(((Path('a') / 'b')))", "import (\n,,,\n)", "x = y = z = os.system", "}}}}]]])))", "const {", "[\"a\"]"} {
		f.Add(i%len(langs), s)
	}
	f.Fuzz(func(t *testing.T, n int, src string) {
		lang := langs[uint(n)%uint(len(langs))]
		toks := lexCode(lang, src)
		out := foldTokens(lang, toks, "/home/dev")
		if len(out) > 16*len(toks)+16 {
			t.Errorf("%d tokens became %d", len(toks), len(out))
		}
		vars := literalVars(out, lang)
		for i := range out {
			if out[i].kind == 'n' {
				callAt(out, i, lang, vars)
			}
		}
		sedActions(src)
		for _, st := range psStatements(src) {
			if len(st) == 0 {
				t.Error("an empty statement")
			}
			for _, w := range st {
				if utf8.ValidString(src) && len(w) > len(src) {
					t.Errorf("a word %q longer than its text", w)
				}
			}
		}
	})
}
