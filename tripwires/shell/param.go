// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// param adds a parameter expansion.
func (b *builder) param(p *syntax.ParamExp, quoted bool) {
	if !b.in.enter() {
		b.add(unknown, quoted)
		return
	}
	defer b.in.leave()
	list, isList, open := b.list(p)
	if !isList {
		v := b.in.scalar(b.c, b.s, p, quoted, b)
		if b.in.zsh && !quoted && !b.noSplit && (p.Split == syntax.OptOn || p.GlobSubst == syntax.OptOn) {
			b.splitInto(v) // zsh: ${=x} is split, ${~x} is a pattern
			return
		}
		b.result(v, quoted)
		return
	}
	if quoted {
		b.quoted = true
	}
	star := quoted && isStar(p) || b.noSplit
	if star {
		sep := " "
		if ifs := b.in.ifs(b.s); isStar(p) && ifs != "" {
			sep = ifs[:1]
		} else if isStar(p) {
			sep = ""
		}
		v := joinList(list, sep)
		if open {
			v = v.add(others(p))
		}
		b.add(v, quoted)
		return
	}
	for i, v := range list {
		if i > 0 {
			b.endField()
		}
		if v.f&fMany != 0 {
			b.quoted = b.quoted || quoted
			b.add(v, false)
			continue
		}
		b.result(v, quoted)
		if quoted {
			b.started = true
		}
	}
	if open {
		if len(list) > 0 {
			b.endField()
		}
		b.add(others(p), false)
		b.quoted = b.quoted || quoted
	}
}

// joinList joins the elements of a list; around those that may be several, or none, it is not known how.
func joinList(list []val, sep string) val {
	if !slices.ContainsFunc(list, func(v val) bool { return v.f&fMany != 0 }) {
		return joinVals(list, sep)
	}
	var out val
	for i, v := range list {
		switch {
		case i == 0:
		case v.f&fMany == 0 && list[i-1].f&fMany == 0:
			out = out.add(text(sep))
		default:
			out = out.add(unknown)
		}
		out = out.add(v)
	}
	return out
}

// others stands for the elements of a list that are not known.
func others(p *syntax.ParamExp) val {
	v := val{s: unk, name: p.Param.Value}
	if v.name == "@" || v.name == "*" {
		v.f, v.name = fUnset, "@"
	}
	return v
}

func isStar(p *syntax.ParamExp) bool {
	if p.Param == nil {
		return false
	}
	return p.Param.Value == "*" || indexIs(p.Index, "*")
}

func indexIs(x syntax.ArithmExpr, s string) bool {
	w, ok := x.(*syntax.Word)
	return ok && w.Lit() == s
}

// list tells whether an expansion is a list ($@, ${a[@]}), and returns its elements. open: others follow.
func (b *builder) list(p *syntax.ParamExp) (list []val, isList, open bool) {
	if p.Param == nil || p.Length || p.Excl {
		return nil, false, false
	}
	name := p.Param.Value
	switch {
	case name == "@" || name == "*":
		list, open = b.s.params, b.s.open
	case indexIs(p.Index, "@") || indexIs(p.Index, "*"):
		v, ok := b.in.variable(b.s, name)
		switch {
		case !ok:
			return []val{{s: unk, f: fUnset, name: name}}, true, true
		case v.isArr:
			list, open = v.arr, v.lost
		case v.set:
			list = []val{v.v}
		}
	case b.in.zsh && p.Index == nil:
		v, ok := b.in.variable(b.s, name)
		if !ok || !v.isArr || p.Slice != nil || p.Exp != nil || p.Repl != nil {
			return nil, false, false
		}
		return v.arr, true, v.lost
	default:
		return nil, false, false
	}
	switch {
	case p.Slice != nil:
		list, open = b.sliceList(p, list, open, name == "@" || name == "*")
	case p.Exp != nil && (len(list) > 0 || open):
		switch p.Exp.Op {
		case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull, syntax.ErrorUnset,
			syntax.ErrorUnsetOrNull:
		default:
			list = b.mapList(list, func(v val) val { return b.in.operate(b.c, b.s, p, v, true) })
		}
		if open {
			b.in.single(b.c, b.s, p.Exp.Word)
		}
	case p.Exp != nil:
		return nil, false, false // no elements: as a scalar that is unset
	case p.Repl != nil:
		list = b.mapList(list, func(v val) val { return b.in.operate(b.c, b.s, p, v, true) })
	}
	return list, true, open
}

func (b *builder) mapList(list []val, f func(val) val) []val {
	out := make([]val, 0, len(list))
	for _, v := range list {
		out = append(out, f(v))
	}
	return out
}

func (b *builder) sliceList(p *syntax.ParamExp, list []val, open, positional bool) ([]val, bool) {
	off, ok := b.in.arith(b.c, b.s, p.Slice.Offset)
	n, okN := int64(maxText), true
	if p.Slice.Length != nil {
		n, okN = b.in.arith(b.c, b.s, p.Slice.Length)
	}
	if !ok || !okN || off < 0 || n < 0 || open {
		return []val{unknown}, true
	}
	if positional {
		list = append([]val{b.s.arg0}, list...)
	}
	off = min(off, int64(len(list)))
	return list[off:min(off+n, int64(len(list)))], false
}

// scalar is the value of an expansion that is one string.
func (in *interp) scalar(c ctx, s *state, p *syntax.ParamExp, quoted bool, b *builder) val {
	if p.NestedParam != nil {
		return in.nested(c, s, p)
	}
	if p.Param == nil {
		return unknown
	}
	name := p.Param.Value
	if p.Excl {
		return in.indirect(c, s, p, name)
	}
	v, set := in.scalarValue(c, s, p, name)
	if p.Length {
		return in.length(s, p, v)
	}
	if p.Flags != nil || p.IsSet || len(p.Modifiers) > 0 || p.Width {
		return in.zshFlags(c, s, p, v)
	}
	if p.Exp != nil {
		if v, done := in.defaults(c, s, p, v, set, quoted, b); done {
			return v
		}
	}
	return in.operate(c, s, p, v, false)
}

// scalarValue finds the value and whether it is set: statusOK set, statusFail unset, statusUnknown perhaps.
func (in *interp) scalarValue(c ctx, s *state, p *syntax.ParamExp, name string) (val, exitStatus) {
	switch name {
	case "?", "$", "!", "#", "-", "_":
		if name == "#" && !s.open {
			return text(strconv.Itoa(len(s.params))), statusOK
		}
		if name == "_" || name == "-" {
			return unknown, statusOK
		}
		return val{s: unkFlat}, statusOK
	case "@", "*":
		if len(s.params) == 0 && !s.open {
			return val{}, statusFail
		}
		return unknown, statusUnknown
	case "0":
		return s.arg0, statusOK
	}
	if n, err := strconv.Atoi(name); err == nil {
		switch {
		case n > 0 && n <= len(s.params):
			for _, p := range s.params[:n] {
				if p.f&fMany != 0 { // and so it is not known which one this is
					return val{s: unk, f: orFlags(s.params), name: name}, statusUnknown
				}
			}
			return s.params[n-1], statusOK
		case s.open:
			return val{s: unk, f: fUnset, name: name}, statusUnknown
		}
		return val{}, statusFail
	}
	v, ok := in.variable(s, name)
	if !ok {
		if p.Index != nil {
			in.index(c, s, p.Index)
		}
		return val{s: unk, f: fUnset, name: name}, statusUnknown
	}
	if p.Index != nil {
		return in.element(c, s, v, p.Index)
	}
	if !v.set {
		return val{}, statusFail
	}
	val := in.lookup(s, name)
	if !val.known() && val.f&fUnset != 0 {
		return val, statusUnknown
	}
	return val, statusOK
}

// index evaluates a subscript.
func (in *interp) index(c ctx, s *state, x syntax.ArithmExpr) (int64, bool) { return in.arith(c, s, x) }

func (in *interp) element(c ctx, s *state, v variable, x syntax.ArithmExpr) (val, exitStatus) {
	i, ok := in.index(c, s, x)
	if !v.isArr {
		if ok && i == 0 && !in.zsh && v.set {
			return v.v, statusOK
		}
		return v.v.lost(), statusUnknown
	}
	if in.zsh && i > 0 {
		i--
	}
	if i < 0 {
		i += int64(len(v.arr))
	}
	if !ok || v.lost {
		return v.v.lost(), statusUnknown
	}
	if i < 0 || i >= int64(len(v.arr)) {
		return val{}, statusFail
	}
	return v.arr[i], statusOK
}

func (in *interp) length(s *state, p *syntax.ParamExp, v val) val {
	name := p.Param.Value
	switch {
	case name == "@" || name == "*":
		if !s.open {
			return text(strconv.Itoa(len(s.params)))
		}
	case indexIs(p.Index, "@") || indexIs(p.Index, "*"):
		if a, ok := in.variable(s, name); ok && a.isArr && !a.lost {
			return text(strconv.Itoa(len(a.arr)))
		}
	case v.exact():
		return text(strconv.Itoa(len([]rune(v.s))))
	}
	return val{s: unkFlat}
}

// indirect is ${!name}.
func (in *interp) indirect(c ctx, s *state, p *syntax.ParamExp, name string) val {
	if p.Names != 0 || p.Index != nil {
		return unknown
	}
	if n, err := strconv.Atoi(name); err == nil && (n < 1 || n > len(s.params)) {
		return unknown
	}
	v, _ := in.scalarValue(c, s, p, name)
	if !v.known() || !validName(v.s) {
		return v.lost()
	}
	q := *p
	q.Excl, q.Param = false, &syntax.Lit{Value: v.s}
	return in.scalar(c, s, &q, true, nil)
}

// defaults does ${x:-w}, ${x:=w}, ${x:+w} and ${x:?w}.
func (in *interp) defaults(c ctx, s *state, p *syntax.ParamExp, v val, set exitStatus, quoted bool, b *builder) (val, bool) {
	orNull := false
	switch p.Exp.Op {
	case syntax.DefaultUnsetOrNull, syntax.AssignUnsetOrNull, syntax.AlternateUnsetOrNull, syntax.ErrorUnsetOrNull:
		orNull = true
	case syntax.DefaultUnset, syntax.AssignUnset, syntax.AlternateUnset, syntax.ErrorUnset:
	default:
		return val{}, false
	}
	if orNull && set == statusOK {
		switch {
		case v.known() && v.s == "":
			set = statusFail
		case strings.Trim(v.s, unkBytes) == "" && !v.known() && !v.flat():
			set = statusUnknown
		}
	}
	word := func() val {
		if p.Exp.Word == nil {
			return val{}
		}
		if b != nil && !quoted && !b.noSplit && set == statusFail && len(p.Exp.Word.Parts) > 0 {
			old := b.words
			b.words = true // its quotes protect from splitting
			b.parts(p.Exp.Word.Parts)
			b.words = old
			return val{}
		}
		return in.single(c, s, p.Exp.Word)
	}
	switch p.Exp.Op {
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		switch set {
		case statusOK:
			set = statusFail // so that the word is split as it should be
			return word(), true
		case statusFail:
			return val{}, true
		}
		w := word()
		return val{s: unk, f: w.f &^ fTemp}, true
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		if p.Exp.Word != nil {
			in.single(c, s, p.Exp.Word)
		}
		if set == statusFail {
			return unknown, true
		}
		v.f &^= fUnset // it is set, or nothing runs
		return v, true
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if set == statusOK {
			return v, true
		}
		w := in.single(c, s, p.Exp.Word)
		if set == statusUnknown {
			w = val{s: unk, f: w.f&^fTemp | fUnset, name: v.name}
		}
		s.assign(p.Param.Value, w)
		return w, true
	}
	switch set {
	case statusOK:
		return v, true
	case statusFail:
		return word(), true
	}
	w := in.single(c, s, p.Exp.Word)
	return val{s: unk, f: w.f&^fTemp | v.f&^fTemp, name: v.name}, true
}
