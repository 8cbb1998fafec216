// SPDX-License-Identifier: Apache-2.0

package shell

import "strings"

// print models the builtins that write text.
func (in *interp) print(c ctx, s *state, name string, args []Word) {
	s.status = statusOK
	if !c.captured && !(name == "printf" && len(args) > 1 && args[0].Text == "-v") {
		return
	}
	var v val
	switch name {
	case "echo":
		v = echo(args)
		if c.argsStdin {
			v = unknown
		}
	case "print": // zsh; its options are many
		v = echo(args)
		if len(args) > 0 && strings.HasPrefix(args[0].Text, "-") {
			v = unknown
		}
	case "pwd":
		v = s.cwd.add(text("\n"))
	case "printf":
		if len(args) > 1 && args[0].Text == "-v" {
			out := printf(args[2:])
			if !args[1].Known || !validName(args[1].Text) {
				s.forget()
				return
			}
			s.assign(args[1].Text, out)
			return
		}
		if len(args) > 0 && args[0].Text == "--" {
			args = args[1:]
		}
		v = printf(args)
		if c.argsStdin {
			v = unknown
		}
	}
	s.out = bounded(s.out.add(v.loose()))
}

func echo(args []Word) val {
	newline, escapes := true, false
	for len(args) > 0 {
		a := args[0].Text
		if !args[0].Known || len(a) < 2 || a[0] != '-' || strings.Trim(a[1:], "neE") != "" {
			break
		}
		for _, f := range a[1:] {
			switch f {
			case 'n':
				newline = false
			case 'e':
				escapes = true
			case 'E':
				escapes = false
			}
		}
		args = args[1:]
	}
	v := joinWords(args)
	if escapes {
		out, stop := echoEscapes(v.s, true)
		v.s = out
		if stop {
			newline = false
		}
	}
	if newline {
		v = v.add(text("\n"))
	}
	return v
}

// printf formats its arguments as the command does; a format that is not understood gives unknown text.
func printf(args []Word) val {
	if len(args) == 0 {
		return val{}
	}
	format := args[0].val()
	if !format.known() {
		return val{s: unk, f: format.f &^ fTemp, name: format.name}
	}
	rest := args[1:]
	var out val
	for range maxBraces {
		used, stop := formatOnce(&out, format.s, &rest)
		if stop || !used || len(rest) == 0 || len(out.s) > maxText {
			return out
		}
	}
	return out.lost()
}

// formatOnce goes through the format once. used: it took arguments.
func formatOnce(out *val, format string, rest *[]Word) (used, stop bool) {
	next := func() val {
		used = true
		if len(*rest) == 0 {
			return val{}
		}
		w := (*rest)[0]
		*rest = (*rest)[1:]
		return w.val()
	}
	for i := 0; i < len(format); {
		j := strings.IndexByte(format[i:], '%')
		if j < 0 {
			j = len(format) - i
		}
		lit, ended := echoEscapes(format[i:i+j], false)
		*out = out.add(text(lit))
		if ended {
			return used, true
		}
		if i += j; i >= len(format) {
			break
		}
		i++ // the %
		start := i
		for i < len(format) && strings.IndexByte("-+ #0123456789.'*", format[i]) >= 0 {
			i++
		}
		mods := format[start:i]
		if i >= len(format) {
			*out = out.add(text("%" + mods))
			break
		}
		verb := format[i]
		i++
		v := val{}
		switch verb {
		case '%':
			v = text("%")
		case 's', 'd', 'i', 'u', 'b':
			if strings.Contains(mods, "*") {
				next()
			}
			v = next()
			if verb != 's' && verb != 'b' && v.known() {
				v.s = strings.TrimSpace(v.s)
				if v.s == "" {
					v.s = "0"
				}
			}
			if verb == 'b' {
				v.s, ended = echoEscapes(v.s, true)
			}
			if mods != "" {
				v = adjust(v, mods)
			}
		case 'c':
			v = next()
			v.s = v.s[:min(1, len(v.s))]
		case 'x', 'X', 'o', 'e', 'f', 'g', 'E', 'F', 'G', 'a', 'A':
			next()
			v = val{s: unkFlat}
		case 'q', 'Q':
			v = next()
			if v.known() && strings.Trim(v.s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-") != "" || v.s == "" {
				v.s = quoteText(v.s)
			}
		case '(':
			end := strings.Index(format[i:], ")T")
			if end < 0 {
				return used, true
			}
			i += end + 2
			next()
			v = val{s: unkFlat}
		default:
			v = unknown
		}
		*out = out.add(v)
		if ended {
			return used, true
		}
	}
	return used, false
}

// adjust applies a width and a precision; only the precision can take text away.
func adjust(v val, mods string) val {
	if !v.known() || strings.Contains(mods, "*") {
		return v.lost()
	}
	width, prec, cut := strings.Cut(strings.TrimLeft(mods, "+ #'"), ".")
	if cut {
		n, _ := digits(prec, 10, 6)
		v.s = v.s[:min(int(n), len(v.s))]
	}
	left := strings.Contains(width, "-")
	w := strings.TrimLeft(width, "-+ #")
	n, _ := digits(strings.TrimLeft(w, "0"), 10, 6)
	if n > 4096 {
		return v.lost()
	}
	fill := " "
	if strings.HasPrefix(w, "0") {
		fill = "0"
	}
	if pad := int(n) - len(v.s); pad > 0 {
		if left {
			v.s += strings.Repeat(" ", pad)
		} else {
			v.s = strings.Repeat(fill, pad) + v.s
		}
	}
	return v
}
