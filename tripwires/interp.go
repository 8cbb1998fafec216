// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"path"
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/shell"
)

// interpreters names the language of each interpreter; a version at the end of a name is dropped first.
var interpreters = map[string]string{
	"python": "python", "pypy": "python", "ipython": "python", "perl": "perl", "ruby": "ruby", "irb": "ruby",
	"node": "js", "nodejs": "js", "deno": "js", "bun": "js", "tsx": "js", "ts-node": "js", "php": "php", "lua": "lua", "luajit": "lua",
	"awk": "awk", "gawk": "awk", "mawk": "awk", "nawk": "awk", "rscript": "r", "Rscript": "r", "osascript": "applescript", "tclsh": "tcl", "groovy": "js",
}

// languageOf returns the language of an interpreter's program name, "" if it is none.
func languageOf(name string) string {
	if l := interpreters[name]; l != "" {
		return l
	}
	base := strings.TrimRight(name, "0123456789.")
	base = strings.TrimSuffix(base, "-")
	return interpreters[base]
}

// codeFlags are the options that take a program text, by language.
var codeFlags = map[string][]string{
	"python": {"-c"}, "perl": {"-e", "-E"}, "ruby": {"-e"}, "js": {"-e", "-p", "--eval", "--print", "-pe"}, "php": {"-r", "-B", "-E", "-R"},
	"lua": {"-e"}, "r": {"-e"}, "applescript": {"-e"},
}

// progInterpreter judges what an interpreter is told to run: one-liners, standard input, files written in the same call.
func progInterpreter(x *evaluation, c *command) {
	lang := languageOf(c.name)
	if lang == "awk" {
		progAwk(x, c)
		return
	}
	texts, file, module := interpreterArgs(c, lang)
	for _, t := range texts {
		x.judgeCode(c, lang, t)
	}
	if lang == "perl" || lang == "ruby" {
		x.inPlaceEdit(c, texts)
	}
	if len(texts) == 0 && file == "" && !module {
		x.interpreterStdin(c, lang)
	}
	if base := baseName(file); base == "artisan" || base == "rails" || base == "rake" || base == "manage.py" && hasWord(c, "flush", "reset_db") {
		if base == "manage.py" {
			x.effect(c, DatabaseDestroy, "flush", "manage.py", "")
		} else {
			progFramework(x, c)
			return
		}
	}
	if file != "" && len(texts) == 0 {
		x.judgeScriptFile(c, lang, literal(file))
	}
	x.execute(c)
}

// interpreterArgs finds program texts among the arguments, or the file that is run.
func interpreterArgs(c *command, lang string) (texts []shell.Word, file string, module bool) {
	flags := codeFlags[lang]
	for i := 0; i < len(c.args); i++ {
		t := c.args[i].Text
		switch {
		case lang == "js" && i == 0 && (t == "eval" || t == "run") && (c.name == "deno" || c.name == "bun"):
			if t == "eval" && len(c.args) > 1 {
				return append(texts, c.args[len(c.args)-1]), "", false
			}
			if len(c.args) > 1 {
				return texts, lastText(c.args), true
			}
		case slices.Contains(flags, t) && i+1 < len(c.args):
			i++
			texts = append(texts, c.args[i])
			if lang == "python" { // what follows are the program's own arguments
				return texts, "", false
			}
		case lang == "js" && (strings.HasPrefix(t, "--eval=") || strings.HasPrefix(t, "--print=")):
			_, v, _ := strings.Cut(t, "=")
			texts = append(texts, subWord(c.args[i], v))
		case lang == "python" && t == "-m", t == "--version", t == "-V", t == "-v", t == "--help", t == "-h", lang == "php" && (t == "-S" || t == "-l"):
			return texts, "", true
		case len(t) > 2 && t[0] == '-' && t[1] != '-' && clusterCode(lang, t):
			if i+1 < len(c.args) && (t[len(t)-1] == 'e' || t[len(t)-1] == 'E' || t[len(t)-1] == 'c') {
				i++
				texts = append(texts, c.args[i])
				if lang == "python" {
					return texts, "", false
				}
			} else if j := strings.IndexAny(t, "ec"); j > 0 {
				texts = append(texts, subWord(c.args[i], t[j+1:]))
			}
		case t == "-":
			return texts, "", false
		case strings.HasPrefix(t, "-"):
			if lang == "python" && (t == "-W" || t == "-X") || lang == "js" && (t == "-r" || t == "--require" || t == "--import" || t == "--loader") ||
				(lang == "perl" || lang == "ruby") && (t == "-I" || t == "-r") {
				i++
			}
		default:
			if t == "" {
				continue
			}
			return texts, t, false
		}
	}
	return texts, "", false
}

// clusterCode reports whether a cluster of short options takes a program text: perl -pie, python -Ic.
func clusterCode(lang, t string) bool {
	switch lang {
	case "perl":
		i := strings.IndexAny(t, "eE")
		return i > 0 && !strings.ContainsAny(t[:i], "iMmIxFC") || i > 0 && (i == len(t)-1) && !strings.ContainsAny(t[:i], "MmIxFC")
	case "ruby":
		i := strings.IndexByte(t, 'e')
		return i > 0 && !strings.ContainsAny(t[:i], "IrCFE")
	case "python":
		i := strings.IndexByte(t, 'c')
		return i > 0 && !strings.ContainsAny(t[:i], "WXm")
	}
	return false
}

// inPlaceEdit covers perl -i and ruby -i: the files after the program text are rewritten.
func (x *evaluation) inPlaceEdit(c *command, texts []shell.Word) {
	inPlace := false
	for _, w := range c.args {
		t := w.Text
		if len(t) > 1 && t[0] == '-' && t[1] != '-' && !slices.ContainsFunc(texts, func(s shell.Word) bool { return s.Text == t }) &&
			strings.IndexByte(t, 'i') > 0 && !strings.ContainsAny(t[:strings.IndexByte(t, 'i')], "MmIrx") {
			inPlace = true
		}
	}
	if !inPlace || len(texts) == 0 {
		return
	}
	last := texts[len(texts)-1].Text
	after := false
	for _, w := range c.args {
		if after && !strings.HasPrefix(w.Text, "-") {
			x.writeFile(c, w, Write, false)
		}
		after = after || w.Text == last
	}
}

// interpreterStdin judges a program text that comes on standard input.
func (x *evaluation) interpreterStdin(c *command, lang string) {
	switch {
	case c.StdinNone:
	case c.Stdin.Known:
		x.judgeCode(c, lang, c.Stdin)
	case c.Stdin.Download || x.downloadUpstream(c):
		x.effect(c, ExecuteDownload, "pipe", "", "text from the network would run as a program")
	default:
		x.opaqueCode(c, "a program text that is not known would run")
	}
}

// downloadUpstream reports whether a network client stands earlier in the same pipeline.
func (x *evaluation) downloadUpstream(c *command) bool {
	return slices.ContainsFunc(x.cmds, func(u *command) bool {
		return c.Pipe > 0 && u.Pipe == c.Pipe && u.Stage < c.Stage && (u.name == "curl" || u.name == "wget" || u.name == "http" || u.name == "xh" || u.name == "aria2c")
	})
}

func (x *evaluation) opaqueCode(c *command, why string) {
	x.doubt(why)
	x.add(finding{Effect: Effect{Kind: Unknown, Program: c.name, Via: c.Via, Certainty: Uncertain, Note: why}, form: "interpreter", cmd: c.index})
}

// judgeCode scans a program text.
func (x *evaluation) judgeCode(c *command, lang string, w shell.Word) {
	if w.Download {
		x.effect(c, ExecuteDownload, "eval", "", "text from the network would run as a program")
		return
	}
	if w.Hidden && !w.Known {
		x.opaqueCode(c, "the program text is hidden by an encoding")
		return
	}
	if !w.Known && strings.Trim(w.Text, "\x00 \n\t;") == "" {
		x.opaqueCode(c, "a program text that is not known would run")
		return
	}
	x.scanCode(c, lang, w.Text)
}

func progAwk(x *evaluation, c *command) {
	p := parseArgs(c.args, optSpec{short: "fvFi", long: []string{"--file", "--assign", "--field-separator", "--include"}, posix: true})
	if !p.has("-f", "--file") && len(p.operands) > 0 {
		x.judgeCode(c, "awk", p.operands[0])
		if inc, ok := p.value("-i", "--include"); ok && inc.Text == "inplace" {
			for _, w := range p.operands[1:] {
				x.writeFile(c, w, Write, false)
			}
		}
	}
}

// written remembers the files that earlier commands of the same source wrote, and what.
type written struct {
	files    map[string]writtenFile
	programs map[string]string // programs that were put under another name, by path
}

type writtenFile struct {
	text     shell.Word // Known if the content is
	download bool
	secret   bool // it holds the environment or a secret
}

// note remembers what a command writes.
func (w *written) note(x *evaluation, c *command) {
	put := func(target shell.Word, f writtenFile) {
		if abs := x.paths.Abs(c.Cwd.Text, target.Text); abs != "" && target.Known && c.Cwd.Known && !c.Remote {
			if w.files == nil {
				w.files = map[string]writtenFile{}
			}
			w.files[abs] = f
		}
	}
	w.copiedProgram(x, c)
	fetches := c.name == "curl" || c.name == "wget"
	for _, r := range c.Redirs {
		switch r.Op {
		case ">", ">|", "&>", ">>", "&>>":
			put(r.Target, writtenFile{text: knownOutput(c), download: fetches || x.downloadUpstream(c), secret: x.leaks(c) != ""})
		}
	}
	switch c.name {
	case "curl":
		p := parseArgs(c.args, curlOptions)
		for _, o := range p.all("-o", "--output") {
			put(o, writtenFile{download: true})
		}
	case "wget":
		p := parseArgs(c.args, optSpec{short: "OP", long: []string{"--output-document"}})
		for _, o := range p.all("-O", "--output-document") {
			put(o, writtenFile{download: true})
		}
	case "tee":
		p := parseArgs(c.args, optSpec{})
		for _, o := range p.operands {
			put(o, writtenFile{text: c.Stdin, download: x.downloadUpstream(c), secret: x.leaksUpstream(c)})
		}
	}
}

// knownOutput is what a command prints, as far as it is plain: cat of a known text, echo and printf of known words.
func knownOutput(c *command) shell.Word {
	switch c.name {
	case "cat":
		if len(c.args) == 0 || len(c.args) == 1 && c.args[0].Text == "-" {
			return c.Stdin
		}
	case "echo":
		if knownWords(c.args) && (len(c.args) == 0 || !strings.HasPrefix(c.args[0].Text, "-")) {
			return literal(joinWords(wordTexts(c.args)) + "\n")
		}
	case "printf":
		if len(c.args) == 2 && c.args[0].Text == "%s" && c.args[1].Known {
			return literal(c.args[1].Text)
		}
		if len(c.args) == 2 && c.args[0].Text == `%s\n` && c.args[1].Known {
			return literal(c.args[1].Text + "\n")
		}
		if len(c.args) == 1 && c.args[0].Known && !strings.Contains(c.args[0].Text, "%") {
			return literal(strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(c.args[0].Text))
		}
	}
	return shell.Word{}
}

// judgeWrittenBefore looks at programs that run a file which the same source wrote: its text is known, or it is asked for.
func (x *evaluation) judgeWrittenBefore(c *command, w *written) {
	x.underOtherName(c, w)
	if len(w.files) == 0 || harmless[c.name] || c.Remote {
		return
	}
	if c.name == "make" || c.name == "gmake" {
		if f, ok := x.writtenMakefile(c, w); ok && f.text.Known {
			x.recipes(c, f.text.Text)
		} else if ok && f.download {
			x.effect(c, ExecuteDownload, "file", "Makefile", "a file from the network would run")
		} else if ok {
			x.opaqueCode(c, "a file that the same command wrote would run")
		}
		return
	}
	if networkClient[c.name] {
		x.sendsWritten(c, w)
	}
	runs := languageOf(c.name)
	switch c.name {
	case "go", "cargo", "npx", "tsx", "ts-node", "java", "dotnet", "swift", "kotlin", "scala", "uv", "pipx", "rustc", "gcc", "cc", "clang", "g++":
		if runs == "" {
			runs = "go"
		}
	}
	if runs == "" || runs == "awk" {
		return
	}
	for i, a := range c.args {
		if !a.Known || strings.HasPrefix(a.Text, "-") || i > 0 && slices.Contains(codeFlags[runs], c.args[i-1].Text) {
			continue
		}
		f, ok := w.files[x.paths.Abs(c.Cwd.Text, a.Text)]
		if !ok || i > 3 {
			continue
		}
		switch {
		case f.download:
			x.effect(c, ExecuteDownload, "file", a.Text, "a file from the network would run")
		case f.text.Known && (runs != "go" || languageOfFile(a.Text) != ""):
			lang := runs
			if l := languageOfFile(a.Text); l != "" {
				lang = l
			}
			x.scanCode(c, lang, f.text.Text)
			if x.scanned == nil {
				x.scanned = map[string]bool{}
			}
			x.scanned[joinWords(c.texts)] = true
		default:
			x.opaqueCode(c, "a file that the same command wrote would run")
		}
	}
}

// languageOfFile is the language that a file's name says it is written in, "" if it is none that is scanned.
func languageOfFile(name string) string {
	switch path.Ext(name) {
	case ".go":
		return "go"
	case ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx":
		return "js"
	case ".py":
		return "python"
	case ".rb":
		return "ruby"
	case ".pl":
		return "perl"
	case ".php":
		return "php"
	case ".lua":
		return "lua"
	}
	return ""
}

// leaksUpstream reports whether an earlier command of the same pipeline prints a secret.
func (x *evaluation) leaksUpstream(c *command) bool {
	return slices.ContainsFunc(x.cmds, func(u *command) bool {
		return c.Pipe > 0 && u.Pipe == c.Pipe && u.Stage < c.Stage && x.leaks(u) != ""
	})
}

// sendsWritten judges a network client that sends a file into which the same source put the environment or a secret.
func (x *evaluation) sendsWritten(c *command, w *written) {
	for i, a := range c.args {
		t := a.Text
		switch j := strings.LastIndexByte(t, '@'); {
		case j >= 0 && c.name != "scp" && c.name != "rsync":
			t = t[j+1:]
		case strings.HasPrefix(t, "--post-file="), strings.HasPrefix(t, "--body-file="), strings.HasPrefix(t, "--upload-file="):
			_, t, _ = strings.Cut(t, "=")
		case i > 0 && (c.args[i-1].Text == "-T" || c.args[i-1].Text == "--upload-file" || c.args[i-1].Text == "--post-file"), c.name != "curl" && c.name != "wget":
		default:
			continue
		}
		t, _, _ = strings.Cut(t, ";")
		if f, ok := w.files[x.paths.Abs(c.Cwd.Text, t)]; ok && f.secret && a.Known {
			x.effect(c, NetworkSend, "secret", c.Host, "a secret would be sent to the network")
		}
	}
	for _, r := range c.Redirs {
		if f, ok := w.files[x.paths.Abs(c.Cwd.Text, r.Target.Text)]; ok && f.secret && r.Op == "<" {
			x.effect(c, NetworkSend, "secret", c.Host, "a secret would be sent to the network")
		}
	}
}
