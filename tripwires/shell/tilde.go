// SPDX-License-Identifier: Apache-2.0

package shell

import "strings"

// tilde expands a tilde prefix at the start of an unquoted literal; it adds the home to the field and returns the rest.
// last tells that the literal is the whole rest of the word: a prefix that runs into a quote is no prefix.
func (b *builder) tilde(s string, last bool) string {
	if s[0] == '~' {
		return b.tildeHere(s, last)
	}
	// NAME=~/x as an argument, and --option=~/x in zsh only.
	if b.noSplit {
		return b.tildeAfterColon(s)
	}
	if i := strings.IndexByte(s, '='); i > 0 && i+1 < len(s) && validName(s[:i]) && strings.Contains(s, "~") {
		b.raw(s[:i+1])
		rest := s[i+1:]
		if rest[0] == '~' {
			rest = b.tildeHere(rest, last)
		}
		return b.tildeAfterColon(rest)
	}
	return s
}

// tildeAfterColon expands the prefixes behind colons, as in PATH=~/bin:~/sbin.
func (b *builder) tildeAfterColon(s string) string {
	for {
		i := strings.Index(s, ":~")
		if i < 0 || i > 0 && s[i-1] == '\\' {
			return s
		}
		b.lit(s[:i+1], false, false)
		rest := b.tildeHere(s[i+1:], true)
		if rest == s[i+1:] {
			b.raw("~")
			rest = rest[1:]
		}
		s = rest
	}
}

func (b *builder) tildeHere(s string, last bool) string {
	end := strings.IndexAny(s, "/:")
	if end < 0 {
		if !last {
			return s
		}
		end = len(s)
	}
	name := s[1:end]
	if strings.ContainsAny(name, "\\\"'") {
		return s
	}
	b.add(b.in.home(b.s, name), true)
	b.quoted = false
	return s[end:]
}

// home is what ~name stands for.
func (in *interp) home(s *state, name string) val {
	switch name {
	case "":
		return in.lookup(s, "HOME")
	case "+":
		return s.cwd
	case "-":
		return s.oldpwd
	case "root":
		if in.o.User != "root" {
			return text("/root")
		}
	}
	if name == in.o.User && in.o.Home != "" {
		return text(in.o.Home)
	}
	if in.zsh && validName(name) {
		if v, ok := s.vars[name]; ok && v.set && strings.HasPrefix(v.v.s, "/") {
			return v.v // zsh: a variable that holds a path names a directory
		}
	}
	if strings.Contains(name, srcUnknown) {
		return unknown
	}
	return val{s: unk, name: "~" + name}
}

func validName(s string) bool {
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	for i := range len(s) {
		if !isNameByte(s[i]) {
			return false
		}
	}
	return true
}
