// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// arithWord is the text of $((x)).
func (in *interp) arithWord(c ctx, s *state, x syntax.ArithmExpr) val {
	n, ok := in.arith(c, s, x)
	if !ok {
		return val{s: unkFlat}
	}
	return text(strconv.FormatInt(n, 10))
}

// arith evaluates an expression as far as it is known; commands in it are listed, variables that it sets are set.
func (in *interp) arith(c ctx, s *state, x syntax.ArithmExpr) (int64, bool) {
	if x == nil || !in.enter() {
		return 0, false
	}
	defer in.leave()
	switch x := x.(type) {
	case *syntax.Word:
		return in.arithOperand(c, s, x)
	case *syntax.ParenArithm:
		return in.arith(c, s, x.X)
	case *syntax.FlagsArithm:
		in.arith(c, s, x.X)
	case *syntax.UnaryArithm:
		return in.unary(c, s, x)
	case *syntax.BinaryArithm:
		return in.binary(c, s, x)
	}
	return 0, false
}

func (in *interp) arithOperand(c ctx, s *state, w *syntax.Word) (int64, bool) {
	v := in.single(c, s, w)
	if !v.known() {
		return 0, false
	}
	return in.arithText(c, s, strings.TrimSpace(v.s), 0)
}

// arithText is the number that a text means: a literal, or the value of a variable.
func (in *interp) arithText(c ctx, s *state, t string, hops int) (int64, bool) {
	if t == "" {
		return 0, true
	}
	if n, err := strconv.ParseInt(t, 0, 64); err == nil && !strings.ContainsAny(t, "_oO") {
		return n, true
	}
	if base, num, ok := strings.Cut(t, "#"); ok {
		if b, err := strconv.Atoi(base); err == nil && b >= 2 && b <= 36 {
			n, err := strconv.ParseInt(num, b, 64)
			return n, err == nil
		}
	}
	if validName(t) && hops < 8 {
		v, ok := in.variable(s, t)
		if !ok {
			return 0, false
		}
		if !v.set {
			return 0, true
		}
		val := in.lookup(s, t)
		if !val.known() {
			return 0, false
		}
		return in.arithText(c, s, strings.TrimSpace(val.s), hops+1)
	}
	if hops > 2 || len(t) > 1024 {
		if strings.ContainsAny(t, "$`") {
			in.block(c, Opaque{Why: "a variable holds code that arithmetic runs", Kind: "eval"})
		}
		return 0, false
	}
	// A value used in arithmetic is evaluated in turn: x='a[$(cmd)]'; ((x)) runs cmd.
	x, ok := parseArith(t, in.lang())
	if !ok {
		return 0, false
	}
	if w, isWord := x.(*syntax.Word); isWord && w.Lit() == t {
		return 0, false
	}
	return in.arith(c, s, x)
}

// setNumber assigns the result of an arithmetic assignment.
func (in *interp) setNumber(s *state, x syntax.ArithmExpr, n int64, ok bool) {
	w, isWord := x.(*syntax.Word)
	if !isWord {
		return
	}
	name := w.Lit()
	if !validName(name) {
		if len(w.Parts) > 0 {
			if p, isParam := w.Parts[0].(*syntax.ParamExp); isParam && p.Param != nil && p.Index != nil {
				s.setVar(p.Param.Value, variable{v: val{s: unkFlat}, set: true, isArr: true, lost: true})
			}
		}
		return
	}
	v := val{s: unkFlat}
	if ok {
		v = text(strconv.FormatInt(n, 10))
	}
	s.assign(name, v)
}

func (in *interp) unary(c ctx, s *state, x *syntax.UnaryArithm) (int64, bool) {
	n, ok := in.arith(c, s, x.X)
	switch x.Op {
	case syntax.Inc, syntax.Dec:
		m := n + 1
		if x.Op == syntax.Dec {
			m = n - 1
		}
		in.setNumber(s, x.X, m, ok)
		if x.Post {
			return n, ok
		}
		return m, ok
	case syntax.Not:
		return truth(n == 0), ok
	case syntax.BitNegation:
		return ^n, ok
	case syntax.Minus:
		return -n, ok
	}
	return n, ok
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

var assignOps = map[syntax.BinAritOperator]syntax.BinAritOperator{
	syntax.AddAssgn: syntax.Add, syntax.SubAssgn: syntax.Sub, syntax.MulAssgn: syntax.Mul, syntax.QuoAssgn: syntax.Quo,
	syntax.RemAssgn: syntax.Rem, syntax.AndAssgn: syntax.And, syntax.OrAssgn: syntax.Or, syntax.XorAssgn: syntax.Xor,
	syntax.ShlAssgn: syntax.Shl, syntax.ShrAssgn: syntax.Shr,
}

func (in *interp) binary(c ctx, s *state, x *syntax.BinaryArithm) (int64, bool) {
	switch x.Op {
	case syntax.Assgn:
		n, ok := in.arith(c, s, x.Y)
		in.setNumber(s, x.X, n, ok)
		return n, ok
	case syntax.TernQuest:
		cond, ok := in.arith(c, s, x.X)
		alt, isAlt := x.Y.(*syntax.BinaryArithm)
		if !isAlt {
			return 0, false
		}
		a, okA := in.arith(c, s, alt.X)
		b, okB := in.arith(c, s, alt.Y)
		switch {
		case !ok:
			return a, okA && okB && a == b
		case cond != 0:
			return a, okA
		}
		return b, okB
	}
	a, okA := in.arith(c, s, x.X)
	b, okB := in.arith(c, s, x.Y)
	if op, ok := assignOps[x.Op]; ok {
		n, ok := compute(op, a, b)
		in.setNumber(s, x.X, n, ok && okA && okB)
		return n, ok && okA && okB
	}
	if x.Op == syntax.Comma {
		return b, okB
	}
	n, ok := compute(x.Op, a, b)
	return n, ok && okA && okB
}

func compute(op syntax.BinAritOperator, a, b int64) (int64, bool) {
	switch op {
	case syntax.Add:
		return a + b, true
	case syntax.Sub:
		return a - b, true
	case syntax.Mul:
		return a * b, true
	case syntax.Quo, syntax.Rem:
		if b == 0 || b == -1 {
			return 0, false
		}
		if op == syntax.Quo {
			return a / b, true
		}
		return a % b, true
	case syntax.Pow:
		if b < 0 || b > 63 {
			return 0, false
		}
		n := int64(1)
		for range b {
			n *= a
		}
		return n, true
	case syntax.Eql:
		return truth(a == b), true
	case syntax.Neq:
		return truth(a != b), true
	case syntax.Lss:
		return truth(a < b), true
	case syntax.Gtr:
		return truth(a > b), true
	case syntax.Leq:
		return truth(a <= b), true
	case syntax.Geq:
		return truth(a >= b), true
	case syntax.And:
		return a & b, true
	case syntax.Or:
		return a | b, true
	case syntax.Xor:
		return a ^ b, true
	case syntax.Shl, syntax.Shr:
		if b < 0 || b > 63 {
			return 0, false
		}
		if op == syntax.Shl {
			return a << b, true
		}
		return a >> b, true
	case syntax.AndArit:
		return truth(a != 0 && b != 0), true
	case syntax.OrArit:
		return truth(a != 0 || b != 0), true
	}
	return 0, false
}
