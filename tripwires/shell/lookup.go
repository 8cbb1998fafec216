// SPDX-License-Identifier: Apache-2.0

package shell

import "strings"

// lookup returns the value of a variable.
func (in *interp) lookup(s *state, name string) val {
	v, ok := in.variable(s, name)
	if !ok {
		return val{s: unk, f: fUnset, name: name}
	}
	if !v.set {
		return val{}
	}
	if v.isArr {
		if v.lost || len(v.arr) == 0 {
			return v.v.lost()
		}
		if in.zsh {
			return joinVals(v.arr, " ")
		}
		return v.arr[0]
	}
	return v.v
}

// variable finds a variable that this source set, or that the environment is known to set.
func (in *interp) variable(s *state, name string) (variable, bool) {
	if v, ok := s.vars[name]; ok {
		if v.ref && v.v.known() && v.v.s != name {
			if t, ok := s.vars[v.v.s]; !ok || !t.ref {
				return in.variable(s, v.v.s)
			}
			return variable{v: unknown, set: true}, true
		}
		return v, true
	}
	env := func(v string) (variable, bool) {
		if v == "" || s.noHome {
			return variable{}, false
		}
		return variable{v: text(v), set: true, exported: true}, true
	}
	switch name {
	case "HOME":
		return env(in.o.Home)
	case "USER", "LOGNAME":
		return env(in.o.User)
	case "PWD":
		return variable{v: s.cwd, set: true, exported: true}, true
	case "OLDPWD":
		return variable{v: s.oldpwd, set: true, exported: true}, true
	case "RANDOM", "SRANDOM", "SECONDS", "EPOCHSECONDS", "BASHPID", "UID", "EUID", "LINENO", "SHLVL", "PPID", "COLUMNS", "LINES",
		"HOSTNAME", "OSTYPE", "HOSTTYPE", "MACHTYPE", "BASH_SUBSHELL":
		return variable{v: val{s: unkFlat, name: name}, set: true}, true
	case "REPLY", "EPOCHREALTIME", "BASH_VERSION", "BASH_SOURCE", "FUNCNAME", "PIPESTATUS", "BASH", "ZSH_VERSION", "status":
		return variable{v: val{s: unk, name: name}, set: true}, true
	case "IFS":
		return variable{v: text(" \t\n"), set: true}, true
	}
	return variable{}, false
}

func joinVals(vs []val, sep string) val {
	if len(vs) == 0 {
		return val{}
	}
	out := vs[0]
	if len(vs) == 1 {
		return out
	}
	var sb strings.Builder
	sb.WriteString(out.s)
	if out.s == "" {
		out.f &^= fTemp
	}
	for _, v := range vs[1:] {
		sb.WriteString(sep)
		sb.WriteString(v.s)
		out.f |= v.f &^ fTemp
		if out.name == "" {
			out.name = v.name
		}
	}
	out.s, out.path = sb.String(), ""
	return out
}
