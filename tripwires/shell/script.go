// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// textRun says how a text is run as source.
type textRun struct {
	kind string // of the Opaque, if it cannot be read
	pos  Pos
	argv []Word
	lang syntax.LangVariant // 0 = the shell that runs now
	max  int                // 0 = MaxSource
	// found: unknown parts are names of files that find or xargs puts in.
	found bool
}

func (in *interp) lang() syntax.LangVariant {
	if in.zsh {
		return syntax.LangZsh
	}
	return syntax.LangBash
}

// runText runs a text as shell source in the state s.
func (in *interp) runText(c ctx, s *state, v val, r textRun) []*state {
	one := []*state{s}
	s.status = statusUnknown
	o := Opaque{Kind: r.kind, Pos: r.pos, Argv: r.argv, Download: v.f&fDownload != 0}
	if r.max == 0 {
		r.max = MaxSource
	}
	switch {
	case strings.Trim(v.s, unkInit+" \n\t;") == "" && strings.Contains(v.s, unkInit):
		return one // set-up code of a known tool
	case v.path != "" && v.s == unk:
		// The content of a file, as in eval "$(cat f)".
		return in.runScript(c, s, Word{Text: v.path, Known: true}, call{argv: r.argv, pos: r.pos}, r.lang, true)
	case !v.known() && strings.Trim(v.s, unkBytes+" \n\t;") == "" || !v.known() && o.Download:
		o.Why = "a text that is not known would run as shell code"
		if o.Download {
			o.Why = "text from the network would run as shell code"
		}
		in.block(c, o)
		return one
	case len(v.s) > r.max:
		o.Why = "the text that would run is too long to be read"
		in.block(c, o)
		return one
	case c.scripts >= MaxDepth:
		o.Why = "shell code is nested too deeply"
		in.block(c, o)
		in.an.Truncated = true
		return one
	}
	if v = v.loose(); !v.known() {
		if strings.ContainsAny(v.s, "\x00\x02") && !r.found {
			o.Why, o.Partial = "parts of the shell code that would run are not known", true
			in.block(c, o)
		}
		v.s = strings.NewReplacer(unk, srcUnknown, unkInit, srcUnknown, unkFlat, srcFlat).Replace(v.s)
	}
	v.s = strings.ReplaceAll(v.s, dataNUL, "")
	if in.bytes += len(v.s); in.bytes > maxTotal {
		in.an.Truncated = true
		o.Why = "too much text would run as shell code"
		in.block(c, o)
		return one
	}
	oldZsh, oldPos := in.zsh, in.nestedIn
	defer func() { in.zsh, in.nestedIn = oldZsh, oldPos }()
	if r.lang != 0 {
		in.zsh = r.lang == syntax.LangZsh
	}
	p := parse(v.s, in.lang())
	if p.err != "" && r.lang == 0 && !in.zsh {
		if z := parse(v.s, syntax.LangZsh); z.err == "" {
			p, in.zsh = z, true
		}
	}
	in.nestedIn = r.pos
	if in.nestedIn == (Pos{}) {
		in.nestedIn = Pos{Line: 1, Col: 1}
	}
	c.scripts++
	if p.deep || p.err != "" {
		o.Why = "the text that would run is not valid shell code"
		if p.deep {
			o.Why = "the text that would run is nested too deeply"
		}
		in.block(c, o)
	}
	return in.stmts(c, one, p.stmts)
}

// eval runs its words, joined, in the shell itself.
func (in *interp) eval(c ctx, s *state, k call) []*state {
	args := k.argv[1:]
	if len(args) > 0 && args[0].Text == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		s.status = statusOK
		return []*state{s}
	}
	t := joinWords(args)
	base := len(s.saves)
	for _, a := range c.env {
		s.save(a.Name)
		s.setVar(a.Name, variable{v: a.Value.val(), set: true, exported: true})
	}
	env := c.env
	c.env = nil
	rc := c.under("eval")
	rc.redirs = append(slices.Clip(c.redirs), k.redirs...)
	states := in.runText(rc, s, t, textRun{kind: "eval", pos: k.pos, argv: k.argv, found: c.found})
	if len(env) > 0 {
		for _, r := range states {
			r.restore(base)
		}
	}
	return states
}

func joinWords(ws []Word) val {
	vs := make([]val, 0, len(ws))
	for _, w := range ws {
		vs = append(vs, w.val())
	}
	return joinVals(vs, " ")
}

// sourceFile is source FILE: the script runs in the shell itself.
func (in *interp) sourceFile(c ctx, s *state, k call) []*state {
	args := k.argv[1:]
	if len(args) > 0 && args[0].Text == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return []*state{s}
	}
	params, open := s.params, s.open
	if len(args) > 1 {
		in.setParams(c, s, args[1:])
	}
	c.sourced = true
	c.redirs = append(slices.Clip(c.redirs), k.redirs...)
	states := in.runScript(c.under("source"), s, args[0], k, 0, true)
	for _, r := range states {
		if r.stop == stopReturn {
			r.stop = running
		}
		if len(args) > 1 {
			r.params, r.open = params, open
		}
	}
	return states
}

// runScript runs the text of a file. shellKnown: it is certain that a shell reads it.
func (in *interp) runScript(c ctx, s *state, file Word, k call, lang syntax.LangVariant, shellKnown bool) []*state {
	o := Opaque{Kind: "script", Pos: k.pos, Argv: k.argv, Why: "the script's name is not known"}
	p, ok := s.abs(file)
	if !ok {
		if shellKnown && !(c.sourced && isSetupName(file)) {
			o.Download = file.Download
			in.block(c, o)
		}
		s.status = statusUnknown
		return []*state{s}
	}
	frame := "script:" + p
	for i, f := range c.frames {
		if f != frame {
			continue
		}
		if i < c.forkMark && c.condMark <= i {
			in.an.ForkBomb = true
		}
		return []*state{s} // it runs already
	}
	c.frames = append(slices.Clip(c.frames), frame)
	texts, err := in.scriptTexts(s, p)
	if p == "/dev/stdin" || p == "/dev/fd/0" || p == "/proc/self/fd/0" {
		texts, err = []val{s.in.v.orUnknown(s.in.none)}, nil
	}
	if err != nil {
		o.Why = "the script could not be read"
		o.Absent = errors.Is(err, fs.ErrNotExist)
		if (shellKnown || isShellName(p)) && !(o.Absent && c.sourced && path.Base(p) == "activate") {
			in.block(c, o)
		}
		s.status = statusUnknown
		return []*state{s}
	}
	_, virtual := s.files[p]
	if c.script = p; virtual || strings.HasPrefix(p, "/dev/") {
		c.script = ""
	}
	var out []*state
	for i, t := range texts {
		st := s
		if i < len(texts)-1 {
			st = s.clone()
		}
		if !shellKnown && !isShellScript(t, p) {
			if virtual {
				o.Kind, o.Why, o.Download = "interpreter", "it runs a file that was written in the same call", t.f&fDownload != 0
				in.block(c, o)
			}
			out = append(out, st)
			continue
		}
		if l := langOf(t.s); l != 0 && lang == 0 && !c.sourced {
			lang = l
		}
		r := textRun{kind: "script", pos: k.pos, argv: k.argv, lang: lang, max: MaxScript}
		out = append(out, in.runText(c, st, t, r)...)
	}
	return settle(out)
}

// scriptTexts returns what the file may hold.
func (in *interp) scriptTexts(s *state, p string) ([]val, error) {
	f, ok := s.files[p]
	if !ok || f.base {
		if in.o.ReadScript == nil {
			if ok {
				return in.after(unknown, f), nil
			}
			return nil, errNoReader
		}
		src, err := in.o.ReadScript(p)
		switch {
		case err == nil:
			if !ok {
				return []val{text(cleanSource(src))}, nil
			}
			return in.after(text(cleanSource(src)), f), nil
		case ok && errors.Is(err, fs.ErrNotExist):
			return in.after(val{}, f), nil
		case ok:
			return in.after(unknown, f), nil
		}
		return nil, err
	}
	texts := slices.Clone(f.texts)
	for i, t := range texts {
		if t.path == "" || t.path == p || in.o.ReadScript == nil {
			continue
		}
		// A copy of a file that is there.
		src, err := in.o.ReadScript(t.path)
		if err != nil {
			return nil, err
		}
		texts[i] = text(cleanSource(src))
	}
	return texts, nil
}

var errNoReader = errors.New("no reader for scripts")

func (in *interp) after(base val, f file) []val {
	out := make([]val, 0, len(f.texts))
	for _, t := range f.texts {
		out = append(out, base.add(t))
	}
	return out
}

// isSetupName tells the scripts of known tools that shells source from a directory which the environment names.
func isSetupName(w Word) bool {
	dir, base, _ := strings.Cut(w.Text, "/")
	return dir == unk && w.Unset && (base == "nvm.sh" || base == "bin/activate" || base == "bin/sdkman-init.sh" || base == "env")
}

func isShellName(p string) bool {
	for _, ext := range []string{".sh", ".bash", ".zsh", ".ksh"} {
		if strings.HasSuffix(p, ext) {
			return true
		}
	}
	return false
}

// isShellScript tells whether the system or a shell would run the text as shell source.
func isShellScript(t val, p string) bool {
	if t.f&fDownload != 0 && !t.known() {
		return true
	}
	line, _, _ := strings.Cut(t.s, "\n")
	if prog, ok := strings.CutPrefix(line, "#!"); ok {
		return shebangShell(prog) != ""
	}
	if strings.HasPrefix(t.s, "\x7fELF") || strings.HasPrefix(t.s, "\xcf\xfa\xed\xfe") || strings.HasPrefix(t.s, "MZ") {
		return false
	}
	return true // without a #! line a shell runs it itself
}

// shebangShell returns the shell that a #! line names, "" if it names none.
func shebangShell(line string) string {
	for i, f := range strings.Fields(line) {
		name := f[strings.LastIndexByte(f, '/')+1:]
		if isShell(name) {
			return name
		}
		if i == 0 && name != "env" || i > 0 && !strings.HasPrefix(f, "-") {
			break
		}
	}
	return ""
}

func langOf(src string) syntax.LangVariant {
	line, _, _ := strings.Cut(src, "\n")
	if prog, ok := strings.CutPrefix(line, "#!"); ok && shebangShell(prog) == "zsh" {
		return syntax.LangZsh
	}
	return 0
}
