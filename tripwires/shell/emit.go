// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"slices"
	"strconv"
	"strings"
)

func itoa(n int) string { return strconv.Itoa(n) }

// call is one command to be started.
type call struct {
	argv   []Word
	redirs []Redir
	pos    Pos
	noFunc bool // functions and aliases are passed over
}

func (k call) from(i int) call {
	k.argv = k.argv[min(i, len(k.argv)):]
	return k
}

// emit lists a command.
func (in *interp) emit(c ctx, s *state, cmd Command) {
	cmd.Redirs = append(slices.Clip(c.redirs), cmd.Redirs...)
	if len(c.env) > 0 {
		cmd.Env = append(slices.Clip(c.env), cmd.Env...)
	}
	if len(cmd.Argv) == 0 && len(cmd.Redirs) == 0 && len(cmd.Env) == 0 {
		return // nothing was left of it
	}
	cmd.Via = c.via
	cmd.Cwd = s.cwd.word(Pos{})
	cmd.Pipe, cmd.Stage = c.pipe, c.stage
	cmd.StdinNone = s.in.none
	if !s.in.none {
		cmd.Stdin = s.in.v.word(Pos{})
	}
	cmd.ArgsFromStdin = c.argsStdin
	cmd.Remote, cmd.Host, cmd.Mounts = c.remote, c.host, c.mounts
	cmd.Privileged, cmd.Background, cmd.NoExec = c.priv, c.background, c.noExec
	cmd.LinkedBefore, cmd.Conditional, cmd.Zsh = s.linked, c.conditional, in.second
	cmd.Exported = s.exports()
	cmd.Script = c.script
	key := in.key(&cmd)
	if _, dup := in.seen[key]; dup {
		return
	}
	if in.bytes += len(key); in.bytes > maxTotal || len(in.an.Commands) >= MaxWords {
		in.an.Truncated = true
		return
	}
	in.seen[key] = struct{}{}
	in.an.Commands = append(in.an.Commands, cmd)
}

// exports lists the exported variables, by name.
func (s *state) exports() []Assign {
	var out []Assign
	for name, v := range s.vars {
		if v.exported && v.set && !v.isArr {
			out = append(out, Assign{Name: name, Value: v.v.word(Pos{})})
		}
	}
	slices.SortFunc(out, func(a, b Assign) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// key identifies a command: one that is met again, in a loop or in another state, is listed once.
func (in *interp) key(cmd *Command) string {
	var sb strings.Builder
	word := func(w Word) {
		sb.WriteString(w.Text)
		sb.WriteByte('\x1f')
		if !w.Known || w.Glob {
			sb.WriteString(w.GlobText)
			sb.WriteByte('?')
		}
	}
	sb.WriteString(strconv.Itoa(int(cmd.Pos.Line)))
	sb.WriteByte(':')
	sb.WriteString(strconv.Itoa(int(cmd.Pos.Col)))
	sb.WriteByte('|')
	sb.WriteString(strconv.Itoa(cmd.Pipe))
	for _, w := range cmd.Argv {
		word(w)
	}
	sb.WriteByte('\x1e')
	for _, a := range cmd.Env {
		sb.WriteString(a.Name)
		word(a.Value)
	}
	for _, r := range cmd.Redirs {
		sb.WriteString(r.FD + r.Op)
		word(r.Target)
	}
	sb.WriteByte('\x1e')
	word(cmd.Cwd)
	for _, v := range cmd.Via {
		sb.WriteString(v)
		sb.WriteByte('\x1d')
	}
	if !cmd.StdinNone {
		if len(cmd.Stdin.Text) > 256 {
			sb.WriteString(cmd.Stdin.Text[:256])
			sb.WriteString(strconv.Itoa(len(cmd.Stdin.Text)))
		} else {
			word(cmd.Stdin)
		}
	}
	sb.WriteString(cmd.Script)
	for _, b := range []bool{cmd.ArgsFromStdin, cmd.Remote, cmd.Privileged, cmd.Background, cmd.NoExec, cmd.LinkedBefore} {
		if b {
			sb.WriteByte('1')
		} else {
			sb.WriteByte('0')
		}
	}
	return sb.String()
}

// block notes something that would run and could not be read.
func (in *interp) block(c ctx, o Opaque) {
	if c.noExec {
		return
	}
	o.Via = c.via
	o.Remote, o.Script = c.remote, c.script
	key := o.Kind + "\x1f" + o.Script + "\x1f" + o.Why + strings.Join(o.Via, "\x1e") + itoa(int(o.Pos.Line)) + ":" + itoa(int(o.Pos.Col))
	for _, w := range o.Argv {
		key += "\x1f" + w.Text
	}
	if o.Download {
		key += "d"
	}
	if _, dup := in.opaque[key]; dup {
		return
	}
	if len(in.an.Opaque) >= 256 {
		in.an.Truncated = true
		return
	}
	in.opaque[key] = struct{}{}
	in.an.Opaque = append(in.an.Opaque, o)
}
