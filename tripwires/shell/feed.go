// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"slices"
	"strconv"
	"strings"
)

// xargs starts its command with arguments from standard input.
func (in *interp) xargs(c ctx, s *state, k call, name string, o options) []*state {
	args := k.argv[1:]
	rc := c.under(name)
	cmd := slices.Clone(args[o.at:])
	if o.lost && len(cmd) > 1 && !strings.HasPrefix(cmd[1].Text, "-") {
		alt := rc
		alt.maybe()
		alt.argsStdin = true
		in.dispatchProgram(alt, s.clone(), call{argv: cmd[1:], redirs: k.redirs, pos: k.pos})
	}
	if len(cmd) == 0 {
		cmd = []Word{{Text: "echo", Known: true, Pos: k.pos}}
	}
	v := s.in.v.orUnknown(s.in.none)
	if f, ok := o.has("a", "arg-file"); ok {
		v = in.content(s, f)
		k.redirs = append(slices.Clip(k.redirs), Redir{Op: "<", Target: f, Body: Word{Known: true}})
	}
	mark, replace := "", false
	if w, ok := o.has("I", "J"); ok {
		mark, replace = w.Text, true
	} else if w, ok := o.has("i", "replace", "replace-str"); ok {
		if mark, replace = w.Text, true; mark == "" {
			mark = "{}"
		}
	}
	run := func(argv []Word, rc ctx) []*state {
		saved := s.in
		s.in = stream{v: val{}}
		states := in.dispatchProgram(rc, s, call{argv: argv, redirs: k.redirs, pos: k.pos})
		for _, r := range states {
			r.in = saved
		}
		return dropGhosts(states)
	}
	items, ok := xargsItems(v, o, replace)
	if !ok || in.loops+len(items) > maxLoops {
		by := Word{Text: unk, Hidden: v.f&fHidden != 0, Download: v.f&fDownload != 0}
		if replace && mark != "" {
			rc.found = true
			return run(replaceWords(cmd, mark, by), rc)
		}
		rc.argsStdin = true
		return run(cmd, rc)
	}
	if len(items) == 0 {
		if _, ok := o.has("r", "no-run-if-empty"); ok || v.s == "" && !replace {
			rc.maybe()
		}
		if replace {
			return []*state{s}
		}
		return run(cmd, rc)
	}
	per := len(items)
	if w, ok := o.has("n", "max-args"); ok {
		if n, err := strconv.Atoi(w.Text); err == nil && n > 0 {
			per = n
		}
	}
	if replace {
		per = 1
	}
	states := []*state{s}
	for start := 0; start < len(items); start += per {
		in.loops++
		batch := items[start:min(start+per, len(items))]
		argv := slices.Clone(cmd)
		if replace {
			argv = replaceWords(cmd, mark, batch[0])
		} else {
			argv = append(argv, batch...)
		}
		states = run(argv, rc)
		if len(states) == 1 {
			s = states[0]
		}
	}
	return states
}

// xargsItems splits known input as xargs does.
func xargsItems(v val, o options, lines bool) ([]Word, bool) {
	if !v.known() {
		return nil, false
	}
	word := func(t string) Word { return Word{Text: t, Known: true, Quoted: true} }
	var out []Word
	sep := ""
	if _, ok := o.has("0", "null"); ok {
		sep = dataNUL
	} else if w, ok := o.has("d", "delimiter"); ok {
		t, _ := echoEscapes(w.Text, true)
		sep = t
	}
	if sep != "" {
		parts := strings.Split(strings.TrimSuffix(v.s, sep), sep)
		for _, p := range parts {
			out = append(out, word(strings.ReplaceAll(p, dataNUL, "")))
		}
		return out, len(out) <= maxLoops
	}
	if _, ok := o.has("E", "L", "l", "eof", "max-lines"); ok {
		return nil, false
	}
	for line := range strings.SplitSeq(strings.ReplaceAll(v.s, dataNUL, ""), "\n") {
		words, ok := xargsWords(line, lines)
		if !ok {
			return nil, false
		}
		out = append(out, words...)
		if len(out) > maxLoops {
			return nil, false
		}
	}
	return out, true
}

// xargsWords splits a line at blanks, or takes it whole, and removes quotes.
func xargsWords(line string, whole bool) ([]Word, bool) {
	var out []Word
	var cur strings.Builder
	started := false
	line = strings.TrimLeft(line, " \t")
	for i := 0; i < len(line); i++ {
		switch ch := line[i]; ch {
		case '\'', '"':
			end := strings.IndexByte(line[i+1:], ch)
			if end < 0 {
				return nil, false
			}
			cur.WriteString(line[i+1 : i+1+end])
			started = true
			i += end + 1
		case '\\':
			if i++; i < len(line) {
				cur.WriteByte(line[i])
				started = true
			}
		case ' ', '\t':
			if whole {
				cur.WriteByte(ch)
				continue
			}
			if started {
				out = append(out, Word{Text: cur.String(), Known: true, Quoted: true})
				cur.Reset()
				started = false
			}
		default:
			cur.WriteByte(ch)
			started = true
		}
	}
	if started {
		out = append(out, Word{Text: cur.String(), Known: true, Quoted: true})
	}
	return out, true
}

// parallel runs its command through a shell, once for each argument behind ::: or line of standard input.
func (in *interp) parallel(c ctx, s *state, k call, name string, o options) []*state {
	args := k.argv[1:]
	if o.stop {
		in.external(c, s, k, name)
		return []*state{s}
	}
	rc := c.under(name)
	cmd := args[o.at:]
	var items []Word
	known := false
	for i, a := range cmd {
		if strings.HasPrefix(a.Text, ":::") && a.Known {
			known = a.Text == ":::" || a.Text == ":::+"
			items = cmd[i+1:]
			cmd = cmd[:i]
			for _, it := range items {
				if strings.HasPrefix(it.Text, ":::") || it.Split || it.Glob {
					known = false
				}
			}
			break
		}
	}
	if items == nil {
		var ok bool
		if items, ok = xargsItems(s.in.v.orUnknown(s.in.none), options{}, true); ok {
			known = true
		}
	}
	saved := s.in
	s.in = stream{v: val{}}
	defer func() { s.in = saved }()
	if !known || in.loops+len(items) > maxLoops {
		items = []Word{{Text: unk}}
		rc.argsStdin = true
		rc.found = true
	}
	for _, it := range items {
		in.loops++
		line := joinWords(cmd)
		it.Split = false
		if len(cmd) == 0 {
			line = it.val() // each argument is a command line
			rc.found = false
		} else if w := line.word(k.pos); strings.Contains(w.Text, "{") {
			for _, mark := range []string{"{}", "{.}", "{/}", "{//}", "{/.}", "{1}"} {
				w = replaceWords([]Word{w}, mark, it)[0]
			}
			line = w.val()
		} else {
			line = line.add(text(" ")).add(it.val())
		}
		in.runWords(rc, s, k, []Word{line.word(k.pos)})
	}
	return []*state{s}
}

// find lists the commands that find starts for each file below its start directories.
func (in *interp) find(c ctx, s *state, k call, name string) []*state {
	args := k.argv[1:]
	i := 0
	for i < len(args) && (args[i].Text == "-H" || args[i].Text == "-L" || args[i].Text == "-P" || strings.HasPrefix(args[i].Text, "-O")) {
		i++
	}
	var starts []Word
	for ; i < len(args); i++ {
		t := args[i].Text
		if args[i].Known && (strings.HasPrefix(t, "-") || t == "(" || t == "!" || t == ")") {
			break
		}
		starts = append(starts, args[i])
	}
	if len(starts) == 0 {
		starts = []Word{{Text: ".", Known: true, Pos: k.pos}}
	}
	for ; i < len(args); i++ {
		flag := args[i].Text
		switch flag {
		case "-exec", "-execdir", "-ok", "-okdir":
		default:
			continue
		}
		end := i + 1
		for end < len(args) && args[end].Text != ";" && !(args[end].Text == "+" && args[end-1].Text == "{}") {
			end++
		}
		cmd := args[i+1 : end]
		i = end
		if len(cmd) == 0 {
			continue
		}
		for _, start := range starts[:min(len(starts), 16)] {
			in.forEachFile(c.under("find "+flag), s, k, cmd, "{}", start, strings.HasSuffix(flag, "dir"))
		}
		if len(starts) > 16 {
			in.an.Truncated = true
		}
	}
	return []*state{s}
}

// forEachFile starts a command for files below a directory; mark stands for their names.
func (in *interp) forEachFile(c ctx, s *state, k call, cmd []Word, mark string, start Word, inDir bool) {
	below := start.val()
	if start.Glob {
		below = start.loopVal()
	}
	below.s = strings.TrimSuffix(below.s, "/") + "/" + unk
	by := below.word(start.Pos)
	c.maybe()
	c.found = true
	old := s.cwd
	if inDir {
		if d, ok := s.abs(start); ok {
			s.cwd = val{s: strings.TrimSuffix(d, "/") + "/" + unk}
		} else {
			s.cwd = unknown
		}
	}
	sub := s.clone()
	if !s.in.none {
		sub.in = stream{v: unknown}
	}
	for _, r := range in.dispatchProgram(c, sub, call{argv: replaceWords(cmd, mark, by), redirs: k.redirs, pos: k.pos}) {
		s.absorb(r)
	}
	s.cwd = old
}

// fd lists the command of fd -x and -X.
func (in *interp) fd(c ctx, s *state, k call, name string) []*state {
	args := k.argv[1:]
	start := Word{Text: ".", Known: true, Pos: k.pos}
	var ops []Word
	for i := 0; i < len(args); i++ {
		t := args[i].Text
		switch {
		case t == "-x" || t == "-X" || t == "--exec" || t == "--exec-batch":
			end := i + 1
			for end < len(args) && args[end].Text != ";" {
				end++
			}
			cmd := slices.Clone(args[i+1 : end])
			i = end
			if len(cmd) == 0 {
				continue
			}
			if len(ops) > 1 {
				start = ops[1]
			}
			marked := false
			for j, w := range cmd {
				for _, m := range []string{"{}", "{.}", "{/}", "{//}", "{/.}"} {
					if strings.Contains(w.Text, m) {
						cmd[j] = substituteIn(cmd[j], m, Word{Text: "{}", Known: true})
						marked = true
					}
				}
			}
			if !marked {
				cmd = append(cmd, Word{Text: "{}", Known: true})
			}
			in.forEachFile(c.under(name+" -x"), s, k, cmd, "{}", start, false)
		case len(t) == 2 && t[0] == '-' && strings.Contains("edEtcjSo", t[1:]):
			i++
		case strings.HasPrefix(t, "-") && args[i].Known:
			if n, v, ok := strings.Cut(t, "="); ok && (n == "--base-directory" || n == "--search-path") {
				start = Word{Text: v, Known: true}
			} else if t == "--search-path" || t == "--base-directory" {
				if i++; i < len(args) {
					start = args[i]
				}
			}
		default:
			ops = append(ops, args[i])
		}
	}
	return []*state{s}
}
