// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// pass runs a loop's body once and sorts the states: those that go on with the loop, and those that left it.
func (in *interp) pass(c ctx, states []*state, body []*syntax.Stmt) (next, left []*state) {
	c.inLoop++
	for _, r := range in.stmts(c, states, body) {
		switch r.stop {
		case stopBreak, stopContinue:
			if r.levels--; r.levels > 0 {
				left = append(left, r)
				continue
			}
			again := r.stop == stopContinue
			r.stop = running
			if again {
				next = append(next, r)
			} else {
				left = append(left, r)
			}
		case running:
			next = append(next, r)
		default:
			left = append(left, r)
		}
	}
	return settle(dropGhosts(next)), settle(left)
}

// spend takes one iteration from the budget.
func (in *interp) spend() bool {
	if in.loops++; in.loops > maxLoops {
		in.an.Truncated = true
		return false
	}
	return true
}

func (in *interp) forClause(c ctx, s *state, x *syntax.ForClause) []*state {
	iter, ok := x.Loop.(*syntax.WordIter)
	if !ok {
		return in.cStyle(c, s, x)
	}
	var items []Word
	if iter.InPos.IsValid() {
		items = in.fields(c, s, iter.Items)
	} else {
		for _, v := range s.params {
			items = append(items, v.word(Pos{}))
		}
		if s.open {
			items = append(items, Word{Text: unk, Unset: true, Split: true, Var: "@"})
		}
	}
	if x.Select {
		return in.selectLoop(c, s, iter, items, x.Do)
	}
	states, out := []*state{s}, []*state(nil)
	if len(items) == 0 {
		s.status = statusOK
	}
	for _, w := range items {
		v := w.loopVal()
		if w.Split || w.Glob {
			// Any number of values, or none.
			again := func(_ ctx, s *state) []*state {
				next := s.clone()
				next.assign(iter.Name.Value, v)
				next.status, s.status = statusUnknown, statusFail
				return []*state{s, next}
			}
			c.maybe()
			next, left := in.iterate(c, states, x.Do, again, func(*state) {})
			out = append(out, left...)
			states = next
			continue
		}
		if !in.spend() {
			v = unknown // what follows is judged once, for an unknown value
		}
		for _, r := range states {
			r.assign(iter.Name.Value, v)
		}
		next, left := in.pass(c, states, x.Do)
		out = append(out, left...)
		states = next
		if len(states) == 0 || in.loops > maxLoops {
			break
		}
	}
	return settle(append(states, out...))
}

// loopVal is what a loop variable holds: for a pattern, one of the names that match it.
func (w Word) loopVal() val {
	if !w.Glob {
		return w.val()
	}
	v := w.val()
	v.s = markPattern(w.GlobText)
	if !w.Known {
		v.s = strings.NewReplacer(markStar, unkFlat, markAny, unkFlat, markSet, unkFlat).Replace(v.s)
	}
	return v
}

func (in *interp) selectLoop(c ctx, s *state, iter *syntax.WordIter, items []Word, body []*syntax.Stmt) []*state {
	c.maybe()
	out := []*state{}
	for _, w := range items {
		if !in.spend() {
			break
		}
		r := s.clone()
		r.assign(iter.Name.Value, w.loopVal())
		r.assign("REPLY", val{s: unk})
		next, left := in.pass(c, []*state{r}, body)
		out = settle(append(append(out, next...), left...))
	}
	return settle(append(out, s))
}

func (in *interp) cStyle(c ctx, s *state, x *syntax.ForClause) []*state {
	loop, ok := x.Loop.(*syntax.CStyleLoop)
	if !ok {
		return []*state{s}
	}
	if loop.Init != nil {
		in.arith(c, s, loop.Init)
	}
	states := []*state{s}
	cond := func(s *state) exitStatus {
		if loop.Cond == nil {
			return statusOK
		}
		n, ok := in.arith(c, s, loop.Cond)
		switch {
		case !ok:
			return statusUnknown
		case n != 0:
			return statusOK
		}
		return statusFail
	}
	post := func(s *state) {
		if loop.Post != nil {
			in.arith(c, s, loop.Post)
		}
	}
	done, left := in.iterate(c, states, x.Do, func(c ctx, s *state) []*state {
		s.status = cond(s)
		return []*state{s}
	}, post)
	return settle(append(done, left...))
}

func (in *interp) while(c ctx, s *state, x *syntax.WhileClause) []*state {
	done, left := in.iterate(c, []*state{s}, x.Do, func(c ctx, s *state) []*state {
		c.inLoop++
		states := in.stmts(c, []*state{s}, x.Cond)
		if x.Until {
			for _, r := range states {
				if r.status != statusUnknown {
					r.status = statusFail - r.status
				}
			}
		}
		return states
	}, func(*state) {})
	return settle(append(done, left...))
}

// iterate runs a loop with a condition. While the condition is known it is followed exactly; otherwise the body runs until
// its state settles, and what keeps changing becomes unknown. It returns the states in which the condition ended the loop,
// and those that left it in another way.
func (in *interp) iterate(c ctx, states []*state, body []*syntax.Stmt, cond func(ctx, *state) []*state, post func(*state)) (done, left []*state) {
	unsure := 0
	for len(states) > 0 {
		var run []*state
		before := make([]*state, len(states))
		for i, s := range states {
			before[i] = s.clone()
		}
		sure := true
		for _, s := range states {
			for _, r := range cond(c, s) {
				switch {
				case r.stop == stopBreak || r.stop == stopContinue:
					r.stop = running
					left = append(left, r)
				case r.stop != running:
					left = append(left, r)
				case r.status == statusFail:
					done = append(done, r)
				case r.status == statusOK:
					run = append(run, r)
				default:
					sure = false
					done = append(done, r.clone())
					run = append(run, r)
				}
			}
		}
		if len(run) == 0 {
			break
		}
		run = settle(run)
		done = settle(done)
		if !sure {
			c.maybe()
			unsure++
		}
		spent := !in.spend()
		next, out := in.pass(c, run, body)
		for _, n := range next {
			post(n)
		}
		left = settle(append(left, out...))
		if spent || !changed(before, next) {
			done = append(done, next...)
			break
		}
		if unsure >= 2 || in.loops > maxLoops/2 || in.steps > maxSteps/2 {
			if unsure > 8 {
				done = append(done, next...)
				break
			}
			unsure++
			next = widen(before, next)
		}
		states = next
	}
	for _, states := range [][]*state{done, left} {
		for _, s := range states {
			if s.stop == running {
				s.status = statusUnknown
			}
		}
	}
	return settle(done), left
}

// changed tells that a pass led to a state that was not there before it.
func changed(before, after []*state) bool {
	for _, a := range after {
		found := false
		for _, b := range before {
			if b.same(a) {
				found = true
				break
			}
		}
		if !found {
			return true
		}
	}
	return false
}

// widen makes one state that stands for all: what differs becomes unknown.
func widen(before, after []*state) []*state {
	all := append(append([]*state{}, before...), after...)
	for _, s := range all[1:] {
		if !all[0].same(s) {
			all[0].join(s)
		}
	}
	return all[:1]
}
