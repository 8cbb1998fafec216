// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"regexp"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/shell"
)

// progVim covers vi and its kin: commands that are given as options or on standard input may start a shell.
func progVim(x *evaluation, c *command) {
	for i := 0; i < len(c.args); i++ {
		t := c.args[i].Text
		value := func() (shell.Word, bool) {
			if i+1 >= len(c.args) {
				return shell.Word{}, false
			}
			i++
			return c.args[i], true
		}
		switch {
		case strings.HasPrefix(t, "+") && len(t) > 1:
			x.vimCommand(c, t[1:])
		case t == "--cmd", len(t) > 1 && t[0] == '-' && t[1] != '-' && t[len(t)-1] == 'c':
			if w, ok := value(); ok {
				x.vimCommand(c, w.Text)
			}
		case t == "-S" || t == "-l" || t == "-u" || t == "-s":
			if w, ok := value(); ok && (!w.Known || strings.HasPrefix(w.Text, "/dev/fd/") || strings.HasPrefix(w.Text, "/proc/")) {
				x.editorScript(c, t)
			}
		}
	}
	if c.Stdin.Known {
		for line := range strings.SplitSeq(c.Stdin.Text, "\n") {
			x.vimCommand(c, line)
		}
	}
	x.execute(c)
}

// editorScript judges a script that comes out of a process substitution.
func (x *evaluation) editorScript(c *command, option string) {
	texts := x.substituted(c)
	if len(texts) == 0 {
		x.opaqueCode(c, "an editor would run a script that is not known")
	}
	for _, t := range texts {
		if option == "-l" {
			x.scanCode(c, "lua", t)
			continue
		}
		for line := range strings.SplitSeq(t, "\n") {
			x.vimCommand(c, line)
		}
	}
}

var (
	vimBang     = regexp.MustCompile(`^(?:[%0-9,$.'<>a-z+-]*|r(?:ead)?\s*|w(?:rite)?\s+|te(?:rminal)?\s+)!(.*)$`)
	vimSystem   = regexp.MustCompile(`\b(?:system|systemlist|jobstart|job_start|termopen)\(\s*(?:'([^']*)'|"((?:[^"\\]|\\.)*)")`)
	vimDelete   = regexp.MustCompile(`\bdelete\(\s*(?:'([^']*)'|"([^"]*)")\s*(,)?`)
	vimWrites   = regexp.MustCompile(`\bwritefile\([^)]*,\s*(?:'([^']*)'|"([^"]*)")`)
	vimSave     = regexp.MustCompile(`(?:^|\|)[ :%0-9,$.'<>+-]*(?:w|wr|wri|writ|write|wq|x|xit|exi|exit|sav|saveas|up|update)!?[ \t]+(?:>>[ \t]*)?([^|!\s%#+][^|%#]*)`)
	vimLanguage = regexp.MustCompile(`^(lua|py|py3|python|python3|pyx|perl|ruby)\s+(.*)$`)
)

// vimCommand judges one command of vi's command line.
func (x *evaluation) vimCommand(c *command, text string) {
	text = strings.TrimSpace(text)
	for cut := true; cut; {
		cut = false
		text = strings.TrimLeft(text, ": ")
		for _, p := range []string{"silent!", "silent", "sil!", "sil", "noautocmd", "noa", "exe", "execute", "call", "verbose"} {
			if rest, ok := strings.CutPrefix(text, p+" "); ok {
				text, cut = strings.TrimLeft(rest, `: `), true
				if strings.HasPrefix(p, "exe") {
					text = strings.Trim(text, `"'`)
				}
			}
		}
	}
	switch {
	case vimBang.MatchString(text):
		if cmd := vimBang.FindStringSubmatch(text)[1]; strings.TrimSpace(cmd) != "" && !strings.HasPrefix(text, "q!") && !strings.HasPrefix(text, "wq!") {
			x.nested(cmd, c, c.name)
		}
	case vimLanguage.MatchString(text):
		m := vimLanguage.FindStringSubmatch(text)
		lang := "python"
		if m[1] == "lua" || m[1] == "perl" || m[1] == "ruby" {
			lang = m[1]
		}
		x.scanCode(c, lang, m[2])
	}
	for _, m := range vimSave.FindAllStringSubmatch(text, 20) {
		x.writeFile(c, x.codePath(strings.TrimSpace(m[1])), Write, false)
	}
	for _, m := range vimSystem.FindAllStringSubmatch(text, 20) {
		x.nested(m[1]+m[2], c, c.name)
	}
	for _, m := range vimDelete.FindAllStringSubmatch(text, 20) {
		x.remove(c, x.codePath(m[1]+m[2]), removal{recursive: m[3] != "", forced: m[3] != "", form: c.name})
	}
	for _, m := range vimWrites.FindAllStringSubmatch(text, 20) {
		x.writeFile(c, x.codePath(m[1]+m[2]), Write, false)
	}
}

var edSave = regexp.MustCompile(`^[ 0-9,$.;%+-]*[wW]q?[ \t]+([^!\s].*)$`)

var edBang = regexp.MustCompile(`^[0-9,$.+-]*[rwe]? ?!(.*)$`)

// progEd covers ed, whose commands come on standard input.
func progEd(x *evaluation, c *command) {
	if c.Stdin.Known {
		for line := range strings.SplitSeq(c.Stdin.Text, "\n") {
			if m := edBang.FindStringSubmatch(line); m != nil && m[1] != "" {
				x.nested(m[1], c, c.name)
			}
			if m := edSave.FindStringSubmatch(line); m != nil {
				x.writeFile(c, x.codePath(strings.TrimSpace(m[1])), Write, false)
			}
		}
	}
	x.execute(c)
}

// progDebugger covers debuggers whose command line has commands for a shell.
func progDebugger(x *evaluation, c *command) {
	judge := func(text string) {
		text = strings.TrimSpace(text)
		if rest, ok := strings.CutPrefix(text, "!"); ok {
			x.nested(rest, c, c.name)
		}
		for _, p := range []string{"platform shell ", "platform shell -h -- ", "shell ", "pipe | "} {
			if rest, ok := strings.CutPrefix(text, p); ok {
				x.nested(rest, c, c.name)
				return
			}
		}
		for _, p := range []string{"python ", "script ", "py ", "pi ", "python-interactive "} {
			if rest, ok := strings.CutPrefix(text, p); ok {
				x.scanCode(c, "python", rest)
				return
			}
		}
	}
	for i, w := range c.args {
		switch w.Text {
		case "-ex", "--ex", "-iex", "-eval-command", "--eval-command", "-o", "-O", "-k", "--one-line", "--one-line-before-file", "--init-eval-command":
			if i+1 < len(c.args) {
				judge(c.args[i+1].Text)
			}
		default:
			for _, p := range []string{"-ex=", "--ex=", "--eval-command=", "-iex=", "--one-line="} {
				if rest, ok := strings.CutPrefix(w.Text, p); ok {
					judge(rest)
				}
			}
		}
	}
	if c.Stdin.Known {
		for line := range strings.SplitSeq(c.Stdin.Text, "\n") {
			judge(line)
		}
	}
	x.execute(c)
}

var (
	lispShell  = regexp.MustCompile(`\((?:async-)?(?:shell-command(?:-to-string)?|system|uiop:run-program|run-shell-command|ext:shell|ext:run-shell-command|shell)\s+"((?:[^"\\]|\\.)*)"`)
	lispArgv   = regexp.MustCompile(`\((?:system\*|call-process|start-process|make-process|process-lines|call-process-region|sb-ext:run-program|ext:run-program)\s([^()]*)`)
	lispDelete = regexp.MustCompile(`\((delete-directory|delete-file|delete-directory-recursively|delete-file-recursively|delete-directory/files)\s+(?:\(expand-file-name\s+)?"((?:[^"\\]|\\.)*)"`)
	lispWrite  = regexp.MustCompile(`\((?:write-file|write-region\s+[^()]*?|rename-file\s+"[^"]*"|copy-file\s+"[^"]*")\s+"((?:[^"\\]|\\.)*)"`)
	lispString = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`)
)

// progLisp covers editors and interpreters that evaluate Lisp.
func progLisp(x *evaluation, c *command) {
	var texts []string
	if c.Stdin.Known {
		texts = append(texts, c.Stdin.Text)
	}
	for i, w := range c.args {
		switch name, val, eq := strings.Cut(w.Text, "="); name {
		case "--eval", "-eval", "--execute", "-c", "-e", "-x":
			if eq {
				texts = append(texts, val)
			} else if i+1 < len(c.args) {
				texts = append(texts, c.args[i+1].Text)
			}
		}
	}
	unquote := strings.NewReplacer(`\"`, `"`, `\\`, `\`)
	for _, t := range texts {
		for _, m := range lispShell.FindAllStringSubmatch(t, 50) {
			x.nested(unquote.Replace(m[1]), c, c.name)
		}
		for _, m := range lispArgv.FindAllStringSubmatch(t, 50) {
			var argv []string
			for _, s := range lispString.FindAllStringSubmatch(m[1], 50) {
				argv = append(argv, unquote.Replace(s[1]))
			}
			if len(argv) > 0 {
				x.nestedArgv(argv, c, c.name)
			}
		}
		for _, m := range lispDelete.FindAllStringSubmatch(t, 50) {
			dir := strings.Contains(m[1], "directory") || strings.Contains(m[1], "recursively")
			x.remove(c, x.codePath(unquote.Replace(m[2])), removal{recursive: dir, forced: dir, form: c.name})
		}
		for _, m := range lispWrite.FindAllStringSubmatch(t, 50) {
			x.writeFile(c, x.codePath(unquote.Replace(m[1])), Write, false)
		}
	}
	x.execute(c)
}

var tclDelete = regexp.MustCompile(`^file\s+delete\s+((?:-force\s+|--\s+)*)(.*)$`)

// progTcl covers Tcl and expect: exec, spawn and system start programs.
func progTcl(x *evaluation, c *command) {
	var texts []string
	if c.Stdin.Known {
		texts = append(texts, c.Stdin.Text)
	}
	for i, w := range c.args {
		if i > 0 && c.args[i-1].Text == "-c" {
			texts = append(texts, w.Text)
		}
	}
	for _, t := range texts {
		for part := range strings.FieldsFuncSeq(t, func(r rune) bool { return strings.ContainsRune(";\n[]{}", r) }) {
			part = strings.TrimSpace(part)
			for _, p := range []string{"exec ", "spawn ", "system ", "eval exec ", "open \"|", "open |", "open {|"} {
				if rest, ok := strings.CutPrefix(part, p); ok {
					x.nested(strings.TrimSuffix(strings.TrimSpace(rest), `"`), c, c.name)
				}
			}
			if m := tclDelete.FindStringSubmatch(part); m != nil {
				for _, f := range strings.Fields(m[2]) {
					x.remove(c, x.codePath(strings.Trim(f, `"`)), removal{recursive: true, forced: m[1] != "", form: c.name})
				}
			}
		}
	}
	x.execute(c)
}
