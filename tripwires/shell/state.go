// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"maps"
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

type variable struct {
	v        val
	arr      []val // when isArr
	isArr    bool
	lost     bool // an array whose elements are not known
	set      bool // false: known to be unset
	exported bool
	odd      bool // each value is changed when it is assigned (declare -i, -l, -u)
	ref      bool // v names another variable (declare -n)
}

func (a variable) equal(b variable) bool {
	return sameVal(a.v, b.v) && slices.EqualFunc(a.arr, b.arr, sameVal) && a.isArr == b.isArr && a.lost == b.lost &&
		a.set == b.set && a.exported == b.exported && a.ref == b.ref && a.odd == b.odd
}

// sameVal tells that two values need not be told apart.
func sameVal(a, b val) bool {
	return a.s == b.s && a.f == b.f || a.f&b.f&fTemp != 0 && sameTemp(a.s, b.s)
}

// file is a file that this source wrote. More than one text: it may hold any of them.
type file struct {
	base  bool // the texts follow what the file held before
	texts []val
}

type exitStatus int8

const (
	statusOK exitStatus = iota
	statusFail
	statusUnknown
)

// stop says why a path of execution ended.
type stop int8

const (
	running stop = iota
	stopBreak
	stopContinue
	stopReturn
	stopExit
)

// stream is standard input.
type stream struct {
	v    val
	none bool // nothing is piped or redirected in
}

// state is one possible state of the shell at one point.
type state struct {
	vars    map[string]variable
	funcs   map[string]*syntax.Stmt
	aliases map[string]string
	files   map[string]file
	cwd     val
	oldpwd  val
	dirs    []val // pushd
	arg0    val
	params  []val // positional parameters
	open    bool  // more of them may follow that are not known
	saves   []saved
	out     val // standard output since it began to be captured
	in      stream
	status  exitStatus
	stop    stop
	levels  int // loops still to leave, for break and continue
	// ghost marks the failure of a command that is taken to succeed (cd): only || and else look at it.
	ghost  bool
	noHome bool // env -i
	traps  []trap
	linked bool // links or mounts were made
}

// saved is what a local variable hides.
type saved struct {
	name string
	old  variable
	had  bool
}

func (s *state) clone() *state {
	n := *s
	n.vars = maps.Clone(s.vars)
	n.funcs = maps.Clone(s.funcs)
	n.aliases = maps.Clone(s.aliases)
	n.files = maps.Clone(s.files)
	n.params = slices.Clip(s.params)
	n.dirs = slices.Clip(s.dirs)
	n.saves = slices.Clone(s.saves)
	n.traps = slices.Clip(s.traps)
	return &n
}

// same tells that two states lead to the same commands from here on. Their exit status is not compared.
func (s *state) same(o *state) bool {
	return s.stop == o.stop && s.levels == o.levels && s.ghost == o.ghost && s.noHome == o.noHome && s.open == o.open && s.linked == o.linked &&
		sameVal(s.cwd, o.cwd) && sameVal(s.oldpwd, o.oldpwd) && s.out == o.out && s.in == o.in &&
		slices.EqualFunc(s.params, o.params, sameVal) && slices.EqualFunc(s.dirs, o.dirs, sameVal) &&
		maps.EqualFunc(s.vars, o.vars, variable.equal) &&
		maps.Equal(s.funcs, o.funcs) && maps.Equal(s.aliases, o.aliases) && len(s.saves) == len(o.saves) && len(s.traps) == len(o.traps) &&
		maps.EqualFunc(s.files, o.files, func(a, b file) bool {
			return a.base == b.base && slices.EqualFunc(a.texts, b.texts, sameVal)
		})
}

// join makes s stand for o as well: what differs is no longer known.
func (s *state) join(o *state) {
	for name, v := range s.vars {
		w, ok := o.vars[name]
		if !ok {
			w = variable{v: val{s: unk, f: fUnset, name: name}, set: true, exported: v.exported}
		}
		if !v.equal(w) {
			s.setVar(name, v.merge(w))
		}
	}
	for name, w := range o.vars {
		if _, ok := s.vars[name]; !ok {
			s.setVar(name, w.merge(variable{v: val{s: unk, f: fUnset, name: name}, set: true}))
		}
	}
	for name, f := range o.funcs {
		if _, ok := s.funcs[name]; !ok {
			s.setFunc(name, f)
		}
	}
	s.cwd, s.oldpwd = s.cwd.merge(o.cwd), s.oldpwd.merge(o.oldpwd)
	s.out = s.out.merge(o.out)
	if s.in != o.in {
		s.in = stream{v: s.in.v.merge(o.in.v)}
	}
	if !slices.EqualFunc(s.params, o.params, sameVal) {
		s.params, s.open = nil, true
	}
	s.open = s.open || o.open
	if !slices.EqualFunc(s.dirs, o.dirs, sameVal) {
		s.dirs = nil
	}
	if s.status != o.status {
		s.status = statusUnknown
	}
	s.noHome = s.noHome || o.noHome
	if len(o.traps) > len(s.traps) {
		s.traps = o.traps
	}
	s.ghost = s.ghost && o.ghost
	s.absorb(o)
}

func (a variable) merge(b variable) variable {
	m := variable{v: a.v.merge(b.v), set: true, exported: a.exported || b.exported, isArr: a.isArr || b.isArr}
	if !a.set || !b.set {
		m.v = a.v.lost()
		m.v.f |= b.v.f & (fHidden | fDownload | fUnset)
	}
	m.lost = m.isArr
	return m
}

// absorb takes over what outlives a subshell: files and links.
func (s *state) absorb(o *state) {
	s.linked = s.linked || o.linked
	for path, f := range o.files {
		old, ok := s.files[path]
		if ok && old.base == f.base && slices.Equal(old.texts, f.texts) {
			continue
		}
		s.putFile(path, f)
	}
}

func (s *state) setVar(name string, v variable) {
	if s.vars == nil {
		s.vars = map[string]variable{}
	}
	s.vars[name] = v
}

func (s *state) setFunc(name string, body *syntax.Stmt) {
	if s.funcs == nil {
		s.funcs = map[string]*syntax.Stmt{}
	}
	s.funcs[name] = body
}

func (s *state) putFile(path string, f file) {
	if s.files == nil {
		s.files = map[string]file{}
	}
	s.files[path] = f
}

// assign sets a variable and keeps its attributes.
func (s *state) assign(name string, v val) {
	old := s.vars[name]
	if old.ref && old.v.known() && old.v.s != name && !s.vars[old.v.s].ref {
		s.assign(old.v.s, v)
		return
	}
	if old.odd {
		v = v.lost()
	}
	s.setVar(name, variable{v: v, set: true, odd: old.odd, exported: old.exported || inEnvironment(name)})
}

// inEnvironment tells that a variable is exported from the start.
func inEnvironment(name string) bool {
	switch name {
	case "HOME", "PATH", "USER", "LOGNAME", "PWD", "SHELL", "LANG", "TERM":
		return true
	}
	return false
}

// settle removes states that need not be told apart and keeps their number small.
func settle(states []*state) []*state {
	if len(states) < 2 {
		return states
	}
	kept := states[:0]
	for _, s := range states {
		dup := false
		for _, k := range kept {
			if k.same(s) {
				if k.status != s.status {
					k.status = statusUnknown
				}
				dup = true
				break
			}
		}
		if !dup {
			kept = append(kept, s)
		}
	}
	if len(kept) <= maxStates {
		return kept
	}
	// Too many: those that ended in the same way become one.
	var merged []*state
	for _, s := range kept {
		i := slices.IndexFunc(merged, func(m *state) bool {
			return m.stop == s.stop && m.status == s.status && m.levels == s.levels && m.ghost == s.ghost
		})
		if i < 0 {
			merged = append(merged, s)
		} else {
			merged[i].join(s)
		}
	}
	return merged
}

// maxStates is how many possible states are followed apart.
const maxStates = 4
