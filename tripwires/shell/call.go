// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// call runs a simple command.
func (in *interp) call(c ctx, s *state, x *syntax.CallExpr, rds []*syntax.Redirect) []*state {
	s.ghost = false
	if len(x.Args) > 0 && len(s.aliases) > 0 {
		// Whether aliases count depends on the shell's options: both ways are followed.
		sub := s.clone()
		if states, ok := in.alias(c, sub, x, rds); ok {
			aliases := s.aliases
			s.aliases = nil
			plain := in.call(c, s, x, rds)
			for _, r := range plain {
				r.aliases = aliases
			}
			return settle(append(slices.Clone(states), plain...))
		}
	}
	s.status = statusUnknown
	args := in.fields(c, s, x.Args)
	sub := s.status
	p := in.redirect(c, s, rds)
	k := call{argv: args, redirs: p.redirs, pos: in.pos(x.Pos())}
	if len(x.Args) == 0 && len(x.Assigns) == 0 && len(rds) > 0 {
		k.pos = in.pos(rds[0].Pos())
	}
	if len(args) == 0 {
		s.status = statusOK
		env := in.assigns(c, s, x.Assigns, true)
		if len(x.Args) > 0 {
			s.status = sub
		}
		if p.out != nil {
			in.write(s, p.out.Target, val{}, strings.HasSuffix(p.out.Op, ">>"))
		}
		in.emit(c, s, Command{Env: env, Redirs: p.redirs, Pos: k.pos})
		return []*state{s}
	}
	env := in.assigns(c, s, x.Assigns, false)
	c.env = append(slices.Clip(c.env), env...)
	return in.redirected(c, s, p, func(c ctx, s *state) []*state { return in.dispatch(c, s, k) })
}

// pos is where a node stands in the source; in a text that was computed or read, where the command that runs it stands.
func (in *interp) pos(p syntax.Pos) Pos {
	if in.nestedIn != (Pos{}) {
		return in.nestedIn
	}
	return posOf(p)
}

// assigns expands NAME=value words. They change the shell if keep is set.
func (in *interp) assigns(c ctx, s *state, list []*syntax.Assign, keep bool) []Assign {
	var out []Assign
	for _, a := range list {
		if a.Name == nil {
			continue
		}
		as := in.assignOne(c, s, a, keep)
		out = append(out, as)
		if runsAsCommand(as.Name) {
			in.envCommand(c, s, as)
		}
	}
	return out
}

func (in *interp) assignOne(c ctx, s *state, a *syntax.Assign, keep bool) Assign {
	name := a.Name.Value
	out := Assign{Name: name, Append: a.Append, Value: Word{Known: true}}
	switch {
	case a.Array != nil:
		arr, lost := in.array(c, s, a.Array)
		if !keep {
			break
		}
		old := s.vars[name]
		if a.Append && old.set {
			if !old.isArr {
				old.arr = []val{old.v}
			}
			arr, lost = append(slices.Clip(old.arr), arr...), lost || old.lost
		} else if a.Append {
			lost = true
		}
		s.setVar(name, variable{arr: arr, lost: lost, isArr: true, set: true, v: val{f: orFlags(arr)}})
		out.Value = joinVals(arr, " ").word(Pos{})
		return out
	case a.Index != nil:
		i, ok := in.index(c, s, a.Index)
		v := in.single(c, s, a.Value)
		out.Value = v.word(Pos{})
		if keep {
			s.setElement(name, i, ok && !in.zsh, v, a.Append)
		}
		return out
	}
	v := bounded(in.single(c, s, a.Value))
	if a.Value != nil {
		out.Value = v.word(in.pos(a.Value.Pos()))
	}
	if a.Append {
		old := in.lookup(s, name)
		v = bounded(old.add(v))
	}
	if keep {
		s.assign(name, v)
		if name == "PATH" {
			out.Value = v.word(out.Value.Pos)
		}
	}
	return out
}

func orFlags(vs []val) (f flags) {
	for _, v := range vs {
		f |= v.f &^ (fTemp | fMany)
	}
	return f
}

func (s *state) setElement(name string, i int64, ok bool, v val, appended bool) {
	old := s.vars[name]
	if !ok || old.lost || i < 0 || i > int64(len(old.arr)) || i > 1024 || old.set && !old.isArr || appended {
		s.setVar(name, variable{isArr: true, lost: true, set: true, exported: old.exported, v: val{f: (old.v.f | v.f) &^ fTemp}})
		return
	}
	arr := slices.Clone(old.arr)
	if i == int64(len(arr)) {
		arr = append(arr, v)
	} else {
		arr[i] = v
	}
	s.setVar(name, variable{arr: arr, isArr: true, set: true, exported: old.exported, v: val{f: orFlags(arr)}})
}

// array expands the elements of (a b c).
func (in *interp) array(c ctx, s *state, a *syntax.ArrayExpr) (arr []val, lost bool) {
	for _, e := range a.Elems {
		if e.Index != nil {
			lost = true
			in.index(c, s, e.Index)
		}
		if e.Value == nil {
			continue
		}
		for _, w := range in.expand(c, s, e.Value, nil) {
			v := w.loopVal()
			if w.Split {
				lost = true
				v.f |= fMany
			}
			arr = append(arr, v)
		}
	}
	return arr, lost
}

// alias runs a command whose first word is an alias of this source.
func (in *interp) alias(c ctx, s *state, x *syntax.CallExpr, rds []*syntax.Redirect) ([]*state, bool) {
	name := x.Args[0].Lit()
	body, ok := s.aliases[name]
	if !ok || name == "" || slices.Contains(c.frames, "alias:"+name) || len(c.frames) > MaxDepth {
		return nil, false
	}
	p := parse(body, in.lang())
	if p.err != "" || p.deep || len(p.stmts) == 0 {
		in.block(c, Opaque{Why: "an alias could not be read", Kind: "eval", Pos: in.pos(x.Pos())})
		return nil, false
	}
	c.frames = append(slices.Clip(c.frames), "alias:"+name)
	last := *p.stmts[len(p.stmts)-1]
	if k, ok := last.Cmd.(*syntax.CallExpr); ok {
		joined := *k
		joined.Assigns = append(slices.Clip(x.Assigns), k.Assigns...)
		joined.Args = append(slices.Clip(k.Args), x.Args[1:]...)
		last.Cmd = &joined
	}
	last.Redirs = append(slices.Clip(last.Redirs), rds...)
	stmts := append(slices.Clone(p.stmts[:len(p.stmts)-1]), &last)
	return in.stmts(c, []*state{s}, stmts), true
}

// dispatch starts a command: a function, a builtin, a wrapper, a shell, or a program.
func (in *interp) dispatch(c ctx, s *state, k call) []*state {
	if len(k.argv) == 0 {
		return []*state{s}
	}
	if !in.enter() {
		in.emit(c, s, Command{Argv: k.argv, Redirs: k.redirs, Pos: k.pos})
		return []*state{s}
	}
	defer in.leave()
	if in.steps += stepCost; in.steps > maxSteps {
		in.an.Truncated = true
		return []*state{s}
	}
	if c.wraps > maxVia {
		in.an.Truncated = true
		in.emit(c, s, Command{Argv: k.argv, Redirs: k.redirs, Pos: k.pos})
		in.block(c, Opaque{Kind: "program", Why: "wrappers are nested too deeply", Pos: k.pos})
		return []*state{s}
	}
	w := k.argv[0]
	name := w.Text
	if i := strings.LastIndexByte(name, '/'); !w.Known && !w.Glob && i >= 0 && i+1 < len(name) && !strings.Contains(name[i:], unk) {
		return in.program(c, s, k, name[i+1:], true)
	}
	if !w.Known || w.Glob {
		return in.unknownProgram(c, s, k)
	}
	if name == "" {
		in.emit(c, s, Command{Argv: k.argv, Redirs: k.redirs, Pos: k.pos})
		return []*state{s}
	}
	if strings.Contains(name, "/") {
		return in.program(c, s, k, path.Base(name), false)
	}
	if _, ok := s.funcs[name]; ok && !k.noFunc {
		return in.runFunc(c, s, name, k)
	}
	if states, ok := in.precommand(c, s, k); ok {
		return states
	}
	if states, ok := in.builtin(c, s, k); ok {
		return states
	}
	return in.program(c, s, k, name, false)
}

// unknownProgram lists a command whose program is computed.
func (in *interp) unknownProgram(c ctx, s *state, k call) []*state {
	w := k.argv[0]
	in.emit(c, s, Command{Argv: k.argv, Redirs: k.redirs, Pos: k.pos})
	if w.Text == unk && w.Split && len(k.argv) > 1 && c.empty < 4 {
		// $SUDO rm -rf x: the variable may be empty.
		rc := c
		rc.empty++
		rc.maybe()
		sub := s.clone()
		for _, r := range in.dispatch(rc, sub, k.from(1)) {
			s.absorb(r)
		}
	}
	in.block(c, Opaque{Why: "the program's name is computed", Kind: "program", Pos: k.pos, Argv: k.argv, Download: w.Download})
	s.out = bounded(s.out.add(unknown))
	s.status = statusUnknown
	return []*state{s}
}

// runFunc runs the body of a function.
func (in *interp) runFunc(c ctx, s *state, name string, k call) []*state {
	prefix := "func:" + name + "\x00"
	key := prefix + frameArgs(k.argv)
	depth := 0
	for i, f := range c.frames {
		if !strings.HasPrefix(f, prefix) {
			continue
		}
		depth++
		if i < c.forkMark && c.condMark <= i {
			in.an.ForkBomb = true
			return []*state{s}
		}
		if f == key {
			s.status = statusUnknown
			return []*state{s} // the same call again leads to nothing new
		}
	}
	if depth >= 4 || len(c.frames) >= 4*MaxDepth {
		in.an.Truncated = true
		return []*state{s}
	}
	params, open, arg0 := s.params, s.open, s.arg0
	base := len(s.saves)
	for _, a := range c.env {
		s.save(a.Name)
		s.setVar(a.Name, variable{v: a.Value.val(), set: true, exported: true})
	}
	if len(k.argv) > 0 {
		in.setParams(c, s, k.argv[1:])
	}
	c.env = nil
	c.redirs = append(slices.Clip(c.redirs), k.redirs...)
	c.frames = append(slices.Clip(c.frames), key)
	c.inFunc++
	c.inLoop = 0
	c.argsStdin = false
	states := in.stmt(c, s, s.funcs[name])
	for _, r := range states {
		if r.stop == stopReturn {
			r.stop = running
		}
		r.params, r.open, r.arg0 = params, open, arg0
		r.restore(base)
	}
	return settle(states)
}

// frameArgs tells calls apart; what comes behind an unknown part makes no difference.
func frameArgs(argv []Word) string {
	var sb strings.Builder
	for _, w := range argv[min(1, len(argv)):] {
		if i := strings.IndexAny(w.Text, "\x00*?["); i >= 0 && (!w.Known || w.Glob) {
			sb.WriteString(strings.TrimRight(w.Text[:i], "/") + unk)
		} else {
			sb.WriteString(w.Text)
		}
		sb.WriteByte('\x1f')
	}
	return sb.String()
}

// setParams sets the positional parameters.
func (in *interp) setParams(c ctx, s *state, args []Word) {
	s.params, s.open = nil, c.argsStdin
	for _, w := range args {
		v := w.loopVal()
		if w.Split {
			s.open = true
			v.f |= fMany
		}
		s.params = append(s.params, v)
	}
}

// save remembers a variable that is about to be hidden.
func (s *state) save(name string) {
	old, had := s.vars[name]
	s.saves = append(s.saves, saved{name: name, old: old, had: had})
}

func (s *state) restore(base int) {
	for i := len(s.saves) - 1; i >= base; i-- {
		sv := s.saves[i]
		if sv.had {
			s.setVar(sv.name, sv.old)
		} else {
			delete(s.vars, sv.name)
		}
	}
	s.saves = s.saves[:min(base, len(s.saves))]
}
