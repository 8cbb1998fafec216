// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// pipeline runs the stages of a pipe, each in a copy of the shell, and hands on what is known of their output.
func (in *interp) pipeline(c ctx, s *state, x *syntax.BinaryCmd) []*state {
	stages := stagesOf(x)
	if len(stages) > maxStages {
		in.an.Truncated = true
		stages = stages[:maxStages]
	}
	key := pipeKey{in: in.nestedIn, at: x.OpPos.Offset(), via: strings.Join(c.via, "\x00")}
	id, ok := in.pipeOf[key]
	if !ok {
		in.pipes++
		id = in.pipes
		in.pipeOf[key] = id
	}
	inputs := []stream{s.in}
	var last []*state
	for i, st := range stages {
		sc := c
		sc.pipe, sc.stage = id, i
		sc.forkMark = len(c.frames)
		sc.inLoop = 0
		if i < len(stages)-1 {
			sc.captured = true
			sc.redirs = nil
		}
		last = last[:0]
		var outs []stream
		for _, input := range inputs {
			sub := s.clone()
			sub.in = input
			if i < len(stages)-1 {
				sub.out = val{}
			}
			for _, r := range in.stmt(sc, sub, st) {
				s.absorb(r)
				last = append(last, r)
				out := stream{v: r.out}
				found := false
				for _, o := range outs {
					found = found || o == out
				}
				if !found {
					outs = append(outs, out)
				}
			}
		}
		if len(outs) > maxStates {
			vs := make([]val, 0, len(outs))
			for _, o := range outs {
				vs = append(vs, o.v)
			}
			outs = []stream{{v: mergeAll(vs, val{})}}
		}
		inputs = outs
	}
	outs := make([]val, 0, len(last))
	s.status = statusUnknown
	for i, r := range last {
		outs = append(outs, r.out)
		if i == 0 {
			s.status = r.status
		} else if s.status != r.status {
			s.status = statusUnknown
		}
	}
	s.out = mergeAll(outs, s.out)
	s.ghost = false
	return []*state{s}
}

// stagesOf lists the stages of a pipe from left to right.
func stagesOf(x *syntax.BinaryCmd) []*syntax.Stmt {
	var rev []*syntax.Stmt
	for {
		rev = append(rev, x.Y)
		l, ok := x.X.Cmd.(*syntax.BinaryCmd)
		if !ok || l.Op != syntax.Pipe && l.Op != syntax.PipeAll || len(x.X.Redirs) > 0 || x.X.Negated || x.X.Background {
			rev = append(rev, x.X)
			break
		}
		x = l
	}
	for i, j := 0, len(rev)-1; i < j; i, j = i+1, j-1 {
		rev[i], rev[j] = rev[j], rev[i]
	}
	return rev
}

// substitute runs $(...) and returns its output.
func (in *interp) substitute(c ctx, s *state, x *syntax.CmdSubst) val {
	return in.capture(c, s, x.Stmts, "$()")
}

func (in *interp) capture(c ctx, s *state, list []*syntax.Stmt, via string) val {
	if !in.enter() {
		return unknown
	}
	defer in.leave()
	if v, ok := in.slurp(c, s, list); ok {
		return trimOutput(v)
	}
	sub := s.clone()
	sub.out = val{}
	sub.ghost = false
	c = c.under(via)
	c.redirs = nil
	c.pipe, c.stage = 0, 0
	c.captured = true
	c.inLoop = 0
	c.env = nil
	c.argsStdin = false
	var outs []val
	for _, r := range in.stmts(c, []*state{sub}, list) {
		s.absorb(r)
		outs = append(outs, r.out)
		s.status = r.status
	}
	if len(outs) != 1 {
		s.status = statusUnknown
	}
	return trimOutput(mergeAll(outs, val{}))
}

// trimOutput does what the shell does with the output of a substitution.
func trimOutput(v val) val {
	v.s = strings.TrimRight(v.s, "\n")
	if strings.Contains(v.s, dataNUL) {
		v.s = strings.ReplaceAll(v.s, dataNUL, "")
	}
	return v
}

// slurp is $(<file).
func (in *interp) slurp(c ctx, s *state, list []*syntax.Stmt) (val, bool) {
	if len(list) != 1 || list[0].Cmd != nil || len(list[0].Redirs) != 1 || list[0].Redirs[0].Op != syntax.RdrIn {
		return val{}, false
	}
	redirs := in.redirect(c, s, list[0].Redirs).redirs
	in.emit(c.under("$()"), s, Command{Redirs: redirs, Pos: in.pos(list[0].Pos())})
	return in.content(s, redirs[0].Target), true
}

// procSubst runs <(...) or >(...) and returns the name that stands for it.
func (in *interp) procSubst(c ctx, s *state, x *syntax.ProcSubst) val {
	if !in.enter() {
		return unknown
	}
	defer in.leave()
	in.temps++
	name := "/dev/fd/" + itoa(62+in.temps)
	if x.Op == syntax.CmdOut {
		sub := s.clone()
		if c.pipe == 0 {
			sub.in = stream{v: unknown}
		}
		c = c.under(">()")
		c.redirs, c.pipe, c.stage, c.inLoop, c.env = nil, 0, 0, 0, nil
		c.forkMark = len(c.frames)
		for _, r := range in.stmts(c, []*state{sub}, x.Stmts) {
			s.absorb(r)
		}
		return text(name)
	}
	sub := s.clone()
	sub.out = val{}
	c = c.under("<()")
	c.redirs, c.pipe, c.stage, c.inLoop, c.env, c.captured = nil, 0, 0, 0, nil, true
	c.forkMark = len(c.frames)
	var outs []val
	for _, r := range in.stmts(c, []*state{sub}, x.Stmts) {
		s.absorb(r)
		outs = append(outs, r.out)
	}
	s.putFile(name, file{texts: []val{mergeAll(outs, val{})}})
	return text(name)
}
