// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// copyFiles follows cp, mv and ln.
func (in *interp) copyFiles(s *state, args []Word, name string) {
	o := spec{short: "tSmog", long: "target-directory suffix mode owner group"}.read(args)
	ops := operands(args, "tSmog")
	to, isDir := o.has("t", "target-directory")
	if !isDir {
		if len(ops) < 2 {
			return
		}
		to, ops = ops[len(ops)-1], ops[:len(ops)-1]
	}
	for _, from := range ops {
		in.copyFile(s, from, to, name == "mv", isDir || len(ops) > 1 || strings.HasSuffix(to.Text, "/"))
	}
}

func (in *interp) copyFile(s *state, from, to Word, move, intoDir bool) {
	src, ok := s.abs(from)
	dst, okTo := s.abs(to)
	if !ok || !okTo {
		return
	}
	f, virtual := s.files[src]
	inside := path.Join(dst, path.Base(src))
	if !virtual {
		// The content of a file that is there: it is read when the copy is run.
		f = file{texts: []val{{s: unk, path: src}}}
		if _, old := s.files[dst]; !old && !isShellName(dst) && !isShellName(src) {
			return
		}
	}
	if !intoDir {
		s.putFile(dst, f)
	}
	if _, old := s.files[inside]; virtual || old || isShellName(inside) {
		s.putFile(inside, f) // the target may be a directory
	}
	if move {
		delete(s.files, src)
	}
}

// changeFiles notes files that a program changes in a way that is not computed.
func (in *interp) changeFiles(s *state, args []Word, name string) {
	inPlace := name != "sed" && name != "gsed" && name != "perl"
	for _, a := range args {
		t := a.Text
		if name == "dd" {
			if out, ok := strings.CutPrefix(t, "of="); ok {
				v := val{s: unk}
				if !s.in.none {
					v = s.in.v
				}
				in.write(s, Word{Text: out, Known: a.Known}, v, false)
			}
			continue
		}
		if len(t) > 1 && t[0] == '-' {
			inPlace = inPlace || strings.HasPrefix(t, "--in-place") || t[1] != '-' && strings.Contains(t, "i")
			continue
		}
		p, ok := s.abs(a)
		if !ok || !inPlace {
			continue
		}
		if _, virtual := s.files[p]; virtual || isShellName(p) {
			s.putFile(p, file{texts: []val{unknown}})
		}
	}
}

// onPath runs a file that this source wrote, if its name is looked up in a PATH that the source set.
func (in *interp) onPath(c ctx, s *state, k call, name string) []*state {
	_, set := s.vars["PATH"]
	for _, a := range c.env {
		set = set || a.Name == "PATH"
	}
	if !set || len(s.files) == 0 {
		return nil
	}
	for _, p := range slices.Sorted(maps.Keys(s.files)) {
		if path.Base(p) == name {
			k.argv = slices.Clone(k.argv)
			k.argv[0].Text = p
			return in.fileProgram(c, s, k)
		}
	}
	return nil
}
