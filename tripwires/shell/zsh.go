// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// readsOtherwise tells whether zsh may read a source in another way than bash. It may say so too often.
func readsOtherwise(src string) bool {
	for _, mark := range []string{"noglob", "nocorrect", "repeat", "foreach", "always", "setopt", "(e:", "(e{", "(e[", "(e'", "(+", "(#q",
		"=(", "${(", "${=", "${~", "${^", "$~", "$=", "&!", "&|", ">>|", "|)", "() {", "(){", "emulate", "zmodload", "sysopen", "<->", "ztcp",
		"zf_", "aliases[", "functions[", "commands[", ":h}", ":t}", "- "} {
		if strings.Contains(src, mark) {
			return true
		}
	}
	// =name at the start of a word
	for i := strings.IndexByte(src, '='); i >= 0; {
		if (i == 0 || strings.IndexByte(" \t\n;&|(`{!", src[i-1]) >= 0) && i+1 < len(src) && isNameByte(src[i+1]) {
			return true
		}
		next := strings.IndexByte(src[i+1:], '=')
		if next < 0 {
			break
		}
		i += 1 + next
	}
	return false
}

// precommand handles the words that stand in front of a command and say how the shell looks it up.
func (in *interp) precommand(c ctx, s *state, k call) ([]*state, bool) {
	name, args := k.argv[0].Text, k.argv[1:]
	one := []*state{s}
	list := func() ([]*state, bool) {
		in.emit(c, s, Command{Argv: k.argv, Redirs: k.redirs, Pos: k.pos})
		return one, true
	}
	switch name {
	case "command", "builtin":
		i := 0
		for ; i < len(args) && len(args[i].Text) > 1 && args[i].Text[0] == '-'; i++ {
			if args[i].Text == "--" {
				i++
				break
			}
			if name == "command" && strings.ContainsAny(args[i].Text, "vV") {
				s.out = bounded(s.out.add(locate(args[i+1:])))
				s.status = statusUnknown
				return list()
			}
		}
		if i >= len(args) {
			return list()
		}
		n := k.from(i + 1)
		n.noFunc = true
		return in.dispatch(c.under(name), s, n), true
	case "exec":
		i := 0
		for ; i < len(args) && len(args[i].Text) > 1 && args[i].Text[0] == '-'; i++ {
			if args[i].Text == "--" {
				i++
				break
			}
			if strings.Contains(args[i].Text, "a") {
				i++
			}
		}
		if i >= len(args) {
			k.argv = nil
			in.emit(c, s, Command{Redirs: k.redirs, Pos: k.pos})
			s.status = statusOK
			return one, true
		}
		n := k.from(i + 1)
		n.noFunc = true
		return in.dispatchProgram(c.under(name), s, n), true
	}
	if !in.zsh {
		return nil, false
	}
	switch name {
	case "noglob", "nocorrect", "-":
		if len(args) == 0 {
			return list()
		}
		return in.dispatch(c.under(name), s, k.from(1)), true
	case "repeat":
		if len(args) < 2 {
			return list()
		}
		return in.dispatch(c.under(name), s, k.from(2)), true
	}
	return nil, false
}

// qualifier runs the code in a zsh glob qualifier: *(e:'code':) and *(+function).
func (in *interp) qualifier(c ctx, s *state, raw string) {
	if !strings.HasSuffix(raw, ")") {
		return
	}
	open := strings.LastIndexByte(raw[:strings.IndexAny(raw+"'\"", "'\"")], '(')
	if open < 0 {
		return
	}
	q := strings.TrimPrefix(raw[open+1:len(raw)-1], "#q")
	rc := c.under("glob qualifier")
	rc.maybe()
	for i := 0; i < len(q); i++ {
		switch q[i] {
		case '+':
			n := i + 1
			for n < len(q) && isNameByte(q[n]) {
				n++
			}
			if _, ok := s.funcs[q[i+1:n]]; ok {
				in.runFunc(rc, s.clone(), q[i+1:n], call{argv: []Word{{Text: q[i+1 : n], Known: true}}})
			}
			i = n - 1
		case 'e':
			if i+2 >= len(q) {
				return
			}
			closer := q[i+1]
			switch closer {
			case '(':
				closer = ')'
			case '[':
				closer = ']'
			case '{':
				closer = '}'
			case '<':
				closer = '>'
			}
			end := strings.LastIndexByte(q[i+2:], closer)
			if end < 0 {
				return
			}
			code := strings.Trim(strings.ReplaceAll(strings.ReplaceAll(q[i+2:i+2+end], `\'`, `'`), `\ `, ` `), `'"`)
			in.runText(rc, s.clone(), fromSource(code), textRun{kind: "eval", pos: in.nestedIn, lang: syntax.LangZsh})
			return
		}
	}
}

// zshFlags is an expansion in a form that only zsh has; few are computed.
func (in *interp) zshFlags(c ctx, s *state, p *syntax.ParamExp, v val) val {
	if p.Exp != nil && p.Exp.Word != nil {
		in.single(c, s, p.Exp.Word)
	}
	if p.Flags != nil && strings.ContainsAny(p.Flags.Value, "eP%") && p.Flags.Value != "P" {
		if strings.Contains(v.s, "$(") || strings.Contains(v.s, "`") || !v.known() {
			in.block(c, Opaque{Why: "an expansion runs code that a variable holds", Kind: "eval"})
		}
	}
	return v.lost()
}

// nested is ${${x}...}.
func (in *interp) nested(c ctx, s *state, p *syntax.ParamExp) val {
	b := builder{in: in, c: c, s: s, noSplit: true, ifs: " \t\n"}
	b.parts([]syntax.WordPart{p.NestedParam})
	if p.Exp == nil && p.Repl == nil && p.Slice == nil && p.Flags == nil && p.Index == nil && len(p.Modifiers) == 0 {
		return b.v
	}
	if p.Exp != nil && p.Exp.Word != nil {
		in.single(c, s, p.Exp.Word)
	}
	return b.v.lost()
}

// splitWords returns the words of the first command of a parsed text.
func (in *interp) splitWords(c ctx, s *state, p parsed) []Word {
	if len(p.stmts) == 0 {
		return nil
	}
	call, ok := p.stmts[0].Cmd.(*syntax.CallExpr)
	if !ok {
		return []Word{{Text: unk}}
	}
	var out []Word
	for _, a := range call.Assigns {
		if a.Name != nil && a.Array == nil {
			v := text(a.Name.Value + "=").add(in.single(c, s, a.Value))
			out = append(out, v.word(Pos{}))
		}
	}
	return append(out, in.fields(c, s, call.Args)...)
}
