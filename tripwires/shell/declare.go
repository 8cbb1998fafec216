// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// declareWords does export and its like when they come as plain words (command export X=y).
func (in *interp) declareWords(s *state, name string, args []Word, c ctx) {
	s.status = statusOK
	if name == "let" {
		s.forget()
		return
	}
	for _, a := range args {
		n, v, ok := strings.Cut(a.Text, "=")
		switch {
		case strings.HasPrefix(a.Text, "-"):
		case strings.Contains(n, unk):
			s.forget()
		case ok && validName(n):
			value := a.val()
			value.s = v
			in.declareVar(s, name, n, value, c, a.Known || strings.Contains(v, unk))
		}
	}
}

func (in *interp) declareVar(s *state, kind, name string, v val, c ctx, ok bool) {
	if (kind == "local" || kind == "declare" || kind == "typeset") && c.inFunc > 0 {
		s.save(name)
		old := s.vars[name]
		old.ref = false
		s.setVar(name, old)
	}
	if !ok {
		v = v.lost()
	}
	s.assign(name, v)
	if kind == "export" {
		e := s.vars[name]
		e.exported = true
		s.setVar(name, e)
	}
}

// declClause runs export, declare, local, readonly, typeset and nameref.
func (in *interp) declClause(c ctx, s *state, x *syntax.DeclClause) []*state {
	kind := x.Variant.Value
	pos := in.pos(x.Pos())
	cmd := Command{Argv: []Word{{Text: kind, Known: true, Pos: pos}}, Pos: pos}
	opts := ""
	if kind == "nameref" {
		opts = "n"
	}
	for _, a := range x.Args {
		if a.Name == nil {
			for _, w := range in.expand(c, s, a.Value, nil) {
				cmd.Argv = append(cmd.Argv, w)
				switch {
				case strings.HasPrefix(w.Text, "-"):
					opts += w.Text[1:]
				case !w.Known && !strings.Contains(w.Text, "="):
					s.forget()
				default:
					in.declareWords(s, kind, []Word{w}, c)
				}
			}
			continue
		}
		name := a.Name.Value
		if strings.Contains(opts, "f") { // functions, which are seen everywhere
			cmd.Argv = append(cmd.Argv, Word{Text: name, Known: true, Pos: pos})
			continue
		}
		if (kind == "local" || (kind == "declare" || kind == "typeset") && !strings.Contains(opts, "g")) && c.inFunc > 0 {
			s.save(name)
			if !a.Append {
				s.setVar(name, variable{})
			}
		}
		word := Word{Text: name, Known: true, Pos: pos}
		if !a.Naked {
			as := in.assignOne(c, s, a, true)
			cmd.Env = append(cmd.Env, as)
			v := text(name + "=").add(as.Value.val())
			word = v.word(pos)
		}
		cmd.Argv = append(cmd.Argv, word)
		in.attributes(s, name, kind, opts, a.Naked)
	}
	in.emit(c, s, cmd)
	for _, as := range cmd.Env {
		if runsAsCommand(as.Name) {
			in.envCommand(c, s, as)
		}
	}
	s.status = statusOK
	return []*state{s}
}

func (in *interp) attributes(s *state, name, kind, opts string, naked bool) {
	v, ok := s.vars[name]
	if !ok {
		v = variable{v: val{s: unk, f: fUnset, name: name}, set: true}
		if dv, found := in.variable(s, name); found {
			v = dv
		}
		if kind == "export" || naked && opts == "" {
			if kind != "export" {
				return
			}
		}
	}
	if kind == "export" || strings.Contains(opts, "x") {
		v.exported = true
	}
	if strings.Contains(opts, "n") && kind != "export" {
		v.ref = true
	}
	if strings.ContainsAny(opts, "aA") && kind != "export" && !v.isArr {
		v = variable{isArr: true, set: true, lost: true, exported: v.exported}
	}
	if strings.ContainsAny(opts, "ilu") && !v.isArr {
		v.v, v.odd = spoiled(v.v), true // arithmetic or a change of case on each assignment
	}
	s.setVar(name, v)
}
