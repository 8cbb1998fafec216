// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"path"
	"slices"
	"strings"
)

// chdir follows cd. The first state is that it worked; the second, a ghost, that it did not.
func (in *interp) chdir(c ctx, s *state, name string, args []Word) []*state {
	var dirs []Word
	for i, a := range args {
		switch {
		case a.Text == "--":
			dirs = append(dirs, args[i+1:]...)
		case len(a.Text) > 1 && (a.Text[0] == '-' || a.Text[0] == '+') && a.Known && len(dirs) == 0:
			if a.Text[0] == '+' || strings.Trim(a.Text[1:], "0123456789") == "" {
				dirs = append(dirs, Word{Text: unk}) // an entry of the stack
			}
			continue
		default:
			dirs = append(dirs, a)
			continue
		}
		break
	}
	failed := s.clone()
	failed.status, failed.ghost = statusFail, true
	to := unknown
	switch {
	case name == "popd":
		if n := len(s.dirs); n > 0 {
			to = s.dirs[n-1]
			s.dirs = slices.Clip(s.dirs[:n-1])
		}
	case len(dirs) == 0 && name == "pushd":
		if n := len(s.dirs); n > 0 {
			to = s.dirs[n-1]
			s.dirs = append(slices.Clone(s.dirs[:n-1]), s.cwd)
		}
	case len(dirs) == 0:
		to = in.lookup(s, "HOME")
	case len(dirs) > 1 && !in.zsh:
		s.status = statusFail // too many arguments
		return []*state{s}
	case dirs[0].Text == "-" && dirs[0].Known:
		to = s.oldpwd
	default:
		to = in.enterDir(s, dirs[0])
		if searched(c, dirs[0]) {
			to = unknown
		}
	}
	if name == "pushd" && len(dirs) > 0 {
		s.dirs = append(slices.Clip(s.dirs), s.cwd)
	}
	s.oldpwd, s.cwd = s.cwd, to
	delete(s.vars, "PWD")
	delete(s.vars, "OLDPWD")
	s.status = statusOK
	return []*state{s, failed}
}

// searched tells that cd looks for the directory in a CDPATH which stands in front of it.
func searched(c ctx, dir Word) bool {
	return !strings.HasPrefix(dir.Text, "/") && !strings.HasPrefix(dir.Text, ".") &&
		slices.ContainsFunc(c.env, func(a Assign) bool { return a.Name == "CDPATH" })
}

// enterDir resolves the operand of cd. Parts that are not known stay in it: cd "$X/build" ends in some build.
func (in *interp) enterDir(s *state, w Word) val {
	v := w.loopVal().loose()
	if v.s == "" {
		return s.cwd
	}
	if _, ok := s.vars["CDPATH"]; ok && !strings.HasPrefix(v.s, "/") && !strings.HasPrefix(v.s, ".") {
		return unknown
	}
	if !v.known() {
		switch {
		case v.s[0] == '/' || v.s[0] < 3:
			return v
		case s.cwd.known() && v.flat():
			return val{s: strings.TrimSuffix(s.cwd.s, "/") + "/" + v.s, f: v.f &^ fTemp, name: v.name}
		}
		return v.lost()
	}
	if v.s[0] == '/' {
		v.s = path.Clean(v.s)
		return v.temp()
	}
	if !s.cwd.known() {
		// Below an unknown directory; climbing out of it is no longer followed.
		rel := path.Clean(v.s)
		if rel == "." {
			return s.cwd
		}
		if strings.HasPrefix(rel, "..") {
			return s.cwd.lost()
		}
		out := s.cwd
		out.s = strings.TrimSuffix(out.s, "/") + "/" + rel
		return out
	}
	out := s.cwd
	out.s = path.Clean(s.cwd.s + "/" + v.s)
	return out.temp()
}
