// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// enter counts one level of recursion; false means that it is too deep or too much was done.
func (in *interp) enter() bool {
	if in.depth >= maxDepth {
		in.an.Truncated = true
		return false
	}
	in.depth++
	return true
}

func (in *interp) leave() { in.depth-- }

// stmts runs a list in each of the states and returns the states after it.
func (in *interp) stmts(c ctx, states []*state, list []*syntax.Stmt) []*state {
	var ended []*state
	for i, st := range list {
		if i > 0 {
			states = dropGhosts(states)
		}
		var next []*state
		for _, s := range states {
			for _, n := range in.stmt(c, s, st) {
				if n.stop != running {
					ended = append(ended, n)
				} else {
					next = append(next, n)
				}
			}
		}
		states = settle(next)
		ended = settle(ended)
		if len(states) == 0 {
			break
		}
		if len(ended) > 0 {
			c.maybe()
		}
	}
	return append(states, ended...)
}

// dropGhosts forgets failures that nothing looked at.
func dropGhosts(states []*state) []*state {
	if !slices.ContainsFunc(states, func(s *state) bool { return s.ghost }) {
		return states
	}
	live := slices.DeleteFunc(slices.Clone(states), func(s *state) bool { return s.ghost })
	if len(live) == 0 {
		return states
	}
	return live
}

// stmt runs one statement. It may change and return s itself.
func (in *interp) stmt(c ctx, s *state, st *syntax.Stmt) []*state {
	if in.steps += stepCost + len(s.vars)/2; in.steps > maxSteps || in.words > MaxWords || !in.enter() {
		in.an.Truncated = true
		return []*state{s}
	}
	defer in.leave()
	if st.Background || st.Coprocess || st.Disown {
		sub := s.clone()
		bg := c
		bg.background = true
		bg.forkMark = len(c.frames)
		for _, r := range in.bare(bg, sub, st) {
			s.absorb(r)
		}
		s.status = statusOK
		return []*state{s}
	}
	states := in.bare(c, s, st)
	if st.Negated {
		for _, r := range states {
			if r.stop != running {
				continue
			}
			switch r.status {
			case statusOK:
				r.status = statusFail
			case statusFail:
				r.status = statusOK
			}
		}
	}
	return states
}

// bare runs a statement without its & and !.
func (in *interp) bare(c ctx, s *state, st *syntax.Stmt) []*state {
	if x, ok := st.Cmd.(*syntax.CallExpr); ok {
		return in.call(c, s, x, st.Redirs)
	}
	if f, ok := st.Cmd.(*syntax.FuncDecl); ok {
		in.declare(s, f)
		return []*state{s}
	}
	if len(st.Redirs) == 0 {
		return in.command(c, s, st.Cmd)
	}
	p := in.redirect(c, s, st.Redirs)
	before := len(in.an.Commands)
	states := in.redirected(c, s, p, func(c ctx, s *state) []*state {
		c.redirs = append(slices.Clip(c.redirs), p.redirs...)
		if st.Cmd == nil {
			return []*state{s}
		}
		return in.command(c, s, st.Cmd)
	})
	if len(in.an.Commands) == before {
		in.emit(c, s, Command{Redirs: p.redirs, Pos: in.pos(st.Pos())})
	}
	return states
}

// command runs a compound command.
func (in *interp) command(c ctx, s *state, cmd syntax.Command) []*state {
	s.ghost = false
	switch x := cmd.(type) {
	case *syntax.Block:
		return in.stmts(c, []*state{s}, x.Stmts)
	case *syntax.Subshell:
		return in.subshell(c, s, x.Stmts)
	case *syntax.BinaryCmd:
		switch x.Op {
		case syntax.AndStmt, syntax.OrStmt:
			return in.andOr(c, s, x)
		}
		return in.pipeline(c, s, x)
	case *syntax.IfClause:
		return in.ifClause(c, s, x)
	case *syntax.WhileClause:
		return in.while(c, s, x)
	case *syntax.ForClause:
		return in.forClause(c, s, x)
	case *syntax.CaseClause:
		return in.caseClause(c, s, x)
	case *syntax.DeclClause:
		return in.declClause(c, s, x)
	case *syntax.ArithmCmd:
		n, ok := in.arith(c, s, x.X)
		s.status = statusUnknown
		if ok {
			s.status = statusFail
			if n != 0 {
				s.status = statusOK
			}
		}
	case *syntax.LetClause:
		for _, e := range x.Exprs {
			in.arith(c, s, e)
		}
		s.status = statusUnknown
	case *syntax.TestClause:
		s.status = in.test(c, s, x.X)
	case *syntax.TimeClause:
		if x.Stmt != nil {
			return in.stmt(c, s, x.Stmt)
		}
	case *syntax.CoprocClause:
		sub := s.clone()
		c.background = true
		c.forkMark = len(c.frames)
		if x.Stmt != nil {
			for _, r := range in.stmt(c, sub, x.Stmt) {
				s.absorb(r)
			}
		}
	case *syntax.FuncDecl:
		in.declare(s, x)
	case *syntax.TestDecl:
		if x.Body != nil {
			return in.stmt(c, s, x.Body)
		}
	case *syntax.CallExpr:
		return in.call(c, s, x, nil)
	}
	return []*state{s}
}

// declare defines a function; zsh may give it several names, or none: then it runs at once.
func (in *interp) declare(s *state, f *syntax.FuncDecl) {
	s.status = statusOK
	if f.Name != nil {
		s.setFunc(f.Name.Value, f.Body)
	}
	for _, n := range f.Names {
		s.setFunc(n.Value, f.Body)
	}
	if f.Name == nil && len(f.Names) == 0 && f.Body != nil {
		s.setFunc("", f.Body)
		in.runFunc(in.root(), s, "", call{})
	}
}

// subshell runs a list in a copy of the shell.
func (in *interp) subshell(c ctx, s *state, list []*syntax.Stmt) []*state {
	sub := s.clone()
	c.inLoop = 0
	var outs []val
	status := exitStatus(-1)
	for _, r := range in.stmts(c, []*state{sub}, list) {
		s.absorb(r)
		outs = append(outs, r.out)
		if status >= 0 && r.status != status {
			r.status = statusUnknown
		}
		status = r.status
	}
	s.out = mergeAll(outs, s.out)
	s.status = max(status, statusOK)
	return []*state{s}
}

// mergeAll is a value that is any of vs; none if there are none.
func mergeAll(vs []val, none val) val {
	if len(vs) == 0 {
		return none
	}
	v := vs[0]
	for _, w := range vs[1:] {
		v = v.merge(w)
	}
	return v
}

func (in *interp) andOr(c ctx, s *state, x *syntax.BinaryCmd) []*state {
	var out []*state
	for _, l := range in.stmt(c, s, x.X) {
		if l.stop != running {
			out = append(out, l)
			continue
		}
		enough := l.status == statusOK
		if x.Op == syntax.OrStmt {
			enough = l.status == statusFail
		}
		rc := c
		switch {
		case l.status == statusUnknown:
			skipped := l.clone()
			if x.Op == syntax.AndStmt {
				skipped.status = statusFail
			} else {
				skipped.status = statusOK
			}
			out = append(out, skipped)
			rc.maybe()
		case !enough:
			out = append(out, l)
			continue
		}
		if l.ghost {
			rc.maybe()
		}
		l.ghost = false
		out = append(out, in.stmt(rc, l, x.Y)...)
	}
	return settle(out)
}

func (in *interp) ifClause(c ctx, s *state, x *syntax.IfClause) []*state {
	if len(x.Cond) == 0 { // else
		return in.stmts(c, []*state{s}, x.Then)
	}
	var then, other, out []*state
	for _, r := range in.stmts(c, []*state{s}, x.Cond) {
		switch {
		case r.stop != running:
			out = append(out, r)
		case r.status == statusOK:
			then = append(then, r)
		case r.status == statusFail:
			other = append(other, r)
		default:
			other = append(other, r.clone())
			then = append(then, r)
			c.maybe()
		}
	}
	if len(then) > 0 && len(other) > 0 {
		c.maybe()
	}
	if len(then) > 0 {
		for _, t := range then {
			t.ghost = false
		}
		out = append(out, in.stmts(c, settle(then), x.Then)...)
	}
	for _, o := range settle(other) {
		if x.Else == nil {
			o.status = statusOK
			out = append(out, o)
			continue
		}
		o.ghost = false
		out = append(out, in.ifClause(c, o, x.Else)...)
	}
	return settle(out)
}

func (in *interp) caseClause(c ctx, s *state, x *syntax.CaseClause) []*state {
	word := in.single(c, s, x.Word)
	out := []*state{}
	c.maybe()
	sure := false
	var fall []*state
	for _, item := range x.Items {
		hit := in.matchesCase(c, s, word, item)
		var states []*state
		if hit != statusFail && !sure {
			states = append(states, s.clone())
		}
		states = append(states, fall...)
		fall = nil
		if len(states) == 0 {
			continue
		}
		states = in.stmts(c, states, item.Stmts)
		switch item.Op {
		case syntax.Fallthrough, syntax.Resume, syntax.ResumeKorn:
			for _, r := range states {
				if r.stop != running {
					out = append(out, r)
				} else {
					fall = append(fall, r)
				}
			}
			if item.Op != syntax.Fallthrough {
				for _, r := range fall {
					out = append(out, r.clone())
				}
			}
		default:
			out = append(out, states...)
			sure = sure || hit == statusOK
		}
	}
	out = append(out, fall...)
	if !sure {
		out = append(out, s)
	}
	return settle(out)
}

// matchesCase tells whether one of the patterns matches: statusOK yes, statusFail no, statusUnknown perhaps.
func (in *interp) matchesCase(c ctx, s *state, word val, item *syntax.CaseItem) exitStatus {
	result := statusFail
	for _, p := range item.Patterns {
		pat := in.pattern(c, s, p)
		switch {
		case pat.s == "*":
			return statusOK
		case !word.exact() || !pat.known() || in.zsh || len(word.s) > 4096 || hasExtGlob(p):
			result = statusUnknown
		case matchPattern(pat.s, word.s):
			return statusOK
		}
	}
	return result
}

func hasExtGlob(w *syntax.Word) bool {
	return slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool { _, ok := p.(*syntax.ExtGlob); return ok })
}
