// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// plumbing is what the redirections of a command do to its standard input and output.
type plumbing struct {
	redirs []Redir
	in     *stream
	out    *Redir // file that takes standard output
	drop   bool   // standard output goes to another descriptor
}

// redirect expands redirections.
func (in *interp) redirect(c ctx, s *state, list []*syntax.Redirect) plumbing {
	var p plumbing
	c.redirs = nil
	for _, r := range list {
		fd := ""
		if r.N != nil {
			fd = r.N.Value
		}
		out := fd == "" || fd == "1"
		rd := Redir{FD: fd, Target: Word{Known: true}, Body: Word{Known: true}}
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			rd.Op = "<<"
			rd.Body = in.heredoc(c, s, r)
			if fd == "" || fd == "0" {
				p.in = &stream{v: rd.Body.val()}
			}
		case syntax.WordHdoc:
			rd.Op = "<<<"
			v := in.single(c, s, r.Word).add(text("\n"))
			rd.Target, rd.Body = v.word(in.pos(r.Word.Pos())), v.word(in.pos(r.Word.Pos()))
			if fd == "" || fd == "0" {
				p.in = &stream{v: v}
			}
		case syntax.RdrIn, syntax.RdrInOut:
			rd.Op, rd.Target = r.Op.String(), in.target(c, s, r.Word)
			if fd == "" || fd == "0" {
				p.in = &stream{v: in.content(s, rd.Target)}
			}
		case syntax.DplIn:
			t := in.target(c, s, r.Word)
			if (fd == "" || fd == "0") && t.Text != "0" {
				p.in = &stream{v: unknown}
			}
			continue
		case syntax.DplOut:
			t := in.target(c, s, r.Word)
			if isDescriptor(t) || fd != "" {
				if out && t.Text != "1" {
					p.drop, p.out = true, nil
				}
				continue
			}
			rd.Op, rd.Target = "&>", t
		case syntax.RdrAll, syntax.RdrAllClob:
			rd.Op, rd.Target = "&>", in.target(c, s, r.Word)
		case syntax.AppAll, syntax.AppAllClob:
			rd.Op, rd.Target = "&>>", in.target(c, s, r.Word)
		case syntax.AppOut, syntax.AppClob:
			rd.Op, rd.Target = ">>", in.target(c, s, r.Word)
		default:
			rd.Op, rd.Target = r.Op.String(), in.target(c, s, r.Word)
		}
		p.redirs = append(p.redirs, rd)
		if rd.Op[0] != '<' && out && !strings.HasPrefix(rd.Target.Text, "/dev/fd/") {
			p.out, p.drop = &rd, false
		}
	}
	return p
}

// target expands the file operand of a redirection. It is split and globbed, but must give one word.
func (in *interp) target(c ctx, s *state, w *syntax.Word) Word {
	if w == nil {
		return Word{Known: true}
	}
	ws := in.expand(c, s, w, nil)
	if len(ws) == 1 {
		return ws[0]
	}
	return in.one(c, s, w)
}

func isDescriptor(w Word) bool {
	if w.Text == "-" || w.Text == "p" {
		return true
	}
	t := strings.TrimSuffix(w.Text, "-")
	return t != "" && strings.Trim(t, "0123456789") == ""
}

// heredoc is the text of a here-document.
func (in *interp) heredoc(c ctx, s *state, r *syntax.Redirect) Word {
	if r.Hdoc == nil {
		return Word{Known: true, Quoted: true}
	}
	quoted := slices.ContainsFunc(r.Word.Parts, func(p syntax.WordPart) bool {
		lit, ok := p.(*syntax.Lit)
		return !ok || strings.Contains(lit.Value, `\`)
	})
	var v val
	if quoted {
		var sb strings.Builder
		for _, p := range r.Hdoc.Parts {
			if lit, ok := p.(*syntax.Lit); ok {
				sb.WriteString(lit.Value)
			}
		}
		v = fromSource(sb.String())
	} else {
		v = in.document(c, s, r.Hdoc)
	}
	if r.Op == syntax.DashHdoc {
		lines := strings.SplitAfter(v.s, "\n")
		for i, l := range lines {
			lines[i] = strings.TrimLeft(l, "\t")
		}
		v.s = strings.Join(lines, "")
	}
	return v.word(in.pos(r.Hdoc.Pos()))
}

// redirected runs f with the plumbing in place.
func (in *interp) redirected(c ctx, s *state, p plumbing, f func(ctx, *state) []*state) []*state {
	if p.in == nil && p.out == nil && !p.drop {
		return f(c, s)
	}
	before, oldIn := s.out, s.in
	if p.in != nil {
		s.in = *p.in
	}
	if p.out != nil || p.drop {
		s.out = val{}
		c.captured = true
	}
	states := f(c, s)
	for _, r := range states {
		if p.in != nil {
			r.in = oldIn
		}
		if p.out == nil && !p.drop {
			continue
		}
		produced := r.out
		r.out = before
		if p.out != nil {
			in.write(r, p.out.Target, produced, strings.HasSuffix(p.out.Op, ">>"))
		}
	}
	return states
}

// abs resolves a path word in the current directory; ok is false if it is not known.
func (s *state) abs(w Word) (string, bool) {
	if !w.Known || w.Text == "" {
		return "", false
	}
	p := w.Text
	if p[0] != '/' {
		if !s.cwd.known() {
			return "", false
		}
		p = s.cwd.s + "/" + p
	}
	return path.Clean(p), true
}

// write notes that a file was written.
func (in *interp) write(s *state, target Word, v val, appended bool) {
	p, ok := s.abs(target)
	if !ok || strings.HasPrefix(p, "/dev/") {
		return
	}
	if !appended {
		s.putFile(p, file{texts: []val{v}})
		return
	}
	old, ok := s.files[p]
	if !ok {
		s.putFile(p, file{base: true, texts: []val{v}})
		return
	}
	f := file{base: old.base}
	for _, t := range old.texts {
		f.texts = append(f.texts, bounded(t.add(v)))
	}
	s.putFile(p, f)
}

// bounded gives up on texts that grow too long.
func bounded(v val) val {
	if len(v.s) > maxText {
		return v.lost()
	}
	return v
}

// content is what reading a file gives.
func (in *interp) content(s *state, w Word) val {
	p, ok := s.abs(w)
	if !ok {
		return unknown
	}
	if p == "/dev/null" {
		return val{}
	}
	if p == "/dev/stdin" || p == "/dev/fd/0" || p == "/proc/self/fd/0" {
		return s.in.v.orUnknown(s.in.none)
	}
	f, ok := s.files[p]
	if !ok {
		return val{s: unk, path: p}
	}
	if f.base || len(f.texts) != 1 {
		v := val{s: unk}
		for _, t := range f.texts {
			v.f |= t.f & (fDownload | fHidden)
		}
		v.path = p
		return v
	}
	return f.texts[0]
}

func (v val) orUnknown(none bool) val {
	if none {
		return unknown
	}
	return v
}
