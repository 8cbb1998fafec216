// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// testWords evaluates test and [ where their operands are known texts or numbers; questions about files have no answer here.
func testWords(name string, args []Word) exitStatus {
	if name == "[" {
		if len(args) == 0 || args[len(args)-1].Text != "]" {
			return statusUnknown
		}
		args = args[:len(args)-1]
	}
	for _, a := range args {
		if a.Glob || a.Split {
			return statusUnknown
		}
	}
	negate := len(args) > 1 && args[0].Text == "!" && !args[0].Quoted
	if negate {
		args = args[1:]
	}
	result := statusUnknown
	switch len(args) {
	case 2:
		result = testText(args[0].Text, args[1].val())
	case 3:
		result = compareText(args[0].val(), args[1].Text, args[2].val())
	}
	if negate && result != statusUnknown {
		return statusFail - result
	}
	return result
}

func verdict(b bool) exitStatus {
	if b {
		return statusOK
	}
	return statusFail
}

// testText is -z and -n.
func testText(op string, v val) exitStatus {
	empty := v.s == ""
	if !v.known() && strings.Trim(v.s, unkBytes) == "" {
		return statusUnknown
	}
	switch op {
	case "-z":
		return verdict(empty)
	case "-n":
		return verdict(!empty)
	}
	return statusUnknown
}

// compareText is a = b, a -lt b and the like, of texts and numbers.
func compareText(a val, op string, b val) exitStatus {
	if !a.exact() || !b.exact() || a.f&fTemp != 0 || b.f&fTemp != 0 {
		return statusUnknown
	}
	switch op {
	case "=", "==":
		return verdict(a.s == b.s)
	case "!=":
		return verdict(a.s != b.s)
	}
	m, errM := strconv.ParseInt(a.s, 10, 64)
	n, errN := strconv.ParseInt(b.s, 10, 64)
	if errM != nil || errN != nil {
		return statusUnknown
	}
	switch op {
	case "-eq":
		return verdict(m == n)
	case "-ne":
		return verdict(m != n)
	case "-lt":
		return verdict(m < n)
	case "-le":
		return verdict(m <= n)
	case "-gt":
		return verdict(m > n)
	case "-ge":
		return verdict(m >= n)
	}
	return statusUnknown
}

// test evaluates [[ ]] as far as it is known, and lists the commands in its words.
func (in *interp) test(c ctx, s *state, x syntax.TestExpr) exitStatus {
	if x == nil || !in.enter() {
		return statusUnknown
	}
	defer in.leave()
	switch x := x.(type) {
	case *syntax.Word:
		return testText("-n", in.single(c, s, x))
	case *syntax.ParenTest:
		return in.test(c, s, x.X)
	case *syntax.UnaryTest:
		if x.Op == syntax.TsNot {
			if r := in.test(c, s, x.X); r != statusUnknown {
				return statusFail - r
			}
			return statusUnknown
		}
		w, ok := x.X.(*syntax.Word)
		if !ok {
			in.test(c, s, x.X)
			return statusUnknown
		}
		return testText(x.Op.String(), in.single(c, s, w))
	case *syntax.BinaryTest:
		return in.binaryTest(c, s, x)
	}
	return statusUnknown
}

func (in *interp) binaryTest(c ctx, s *state, x *syntax.BinaryTest) exitStatus {
	a, okA := x.X.(*syntax.Word)
	b, okB := x.Y.(*syntax.Word)
	if x.Op == syntax.AndTest || x.Op == syntax.OrTest || !okA || !okB {
		l, r := in.test(c, s, x.X), in.test(c, s, x.Y)
		decisive := statusFail
		if x.Op == syntax.OrTest {
			decisive = statusOK
		}
		switch {
		case x.Op != syntax.AndTest && x.Op != syntax.OrTest:
			return statusUnknown
		case l == decisive || r == decisive:
			return decisive
		case l == statusUnknown || r == statusUnknown:
			return statusUnknown
		}
		return statusFail - decisive
	}
	l := in.single(c, s, a)
	pat := in.pattern(c, s, b)
	if !isPlain(pat.s) || hasExtGlob(b) {
		return statusUnknown
	}
	switch x.Op {
	case syntax.TsMatch, syntax.TsMatchShort, syntax.TsNoMatch, syntax.TsEql, syntax.TsNeq, syntax.TsLss, syntax.TsGtr, syntax.TsLeq,
		syntax.TsGeq:
		pat.s = plain(pat.s)
		return compareText(l, x.Op.String(), pat)
	}
	return statusUnknown
}
