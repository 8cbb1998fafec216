// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"strings"

	"github.com/tripline-sh/tripline/tripwires/shell"
)

// optSpec says which options of a program take a value, so that the value is not taken for an operand.
type optSpec struct {
	short string   // letters whose value follows in the same or in the next word
	long  []string // long options whose value may be the next word
	posix bool     // options end at the first operand
	plus  bool     // words that start with + are options too
}

// parsedArgs is a command's arguments taken apart.
type parsedArgs struct {
	flags    []string // "-r", "--recursive", in order; clusters taken apart
	values   map[string][]shell.Word
	operands []shell.Word
	after    int // operands from this index on stood behind "--"; len(operands) if there was none
	dashdash bool
}

// parseArgs follows the habits of getopt_long: clusters, --name=value, "--", options after operands.
func parseArgs(args []shell.Word, spec optSpec) parsedArgs {
	p := parsedArgs{values: map[string][]shell.Word{}}
	for i := 0; i < len(args); i++ {
		w := args[i]
		t := w.Text
		switch {
		case t == "--" && w.Known:
			p.after, p.dashdash = len(p.operands), true
			p.operands = append(p.operands, args[i+1:]...)
			return p
		case strings.HasPrefix(t, "--"):
			name, val, eq := strings.Cut(t, "=")
			p.flags = append(p.flags, name)
			if eq {
				p.values[name] = append(p.values[name], subWord(w, val))
			} else if hasLong(spec.long, name) && i+1 < len(args) {
				i++
				p.values[name] = append(p.values[name], args[i])
			}
		case len(t) > 1 && (t[0] == '-' || spec.plus && t[0] == '+'):
			for j := 1; j < len(t); j++ {
				f := t[:1] + t[j:j+1]
				p.flags = append(p.flags, f)
				if strings.IndexByte(spec.short, t[j]) < 0 {
					continue
				}
				if j+1 < len(t) {
					p.values[f] = append(p.values[f], subWord(w, t[j+1:]))
				} else if i+1 < len(args) {
					i++
					p.values[f] = append(p.values[f], args[i])
				}
				break
			}
		default:
			p.operands = append(p.operands, w)
			if spec.posix {
				p.operands = append(p.operands, args[i+1:]...)
				p.after = len(p.operands)
				return p
			}
		}
	}
	p.after = len(p.operands)
	return p
}

// subWord is the part of a word that starts at val.
func subWord(w shell.Word, val string) shell.Word {
	out := w
	out.Text = val
	out.Known = w.Known || !strings.Contains(val, "\x00")
	if i := strings.LastIndex(w.GlobText, val); w.Glob && i >= 0 {
		out.GlobText = w.GlobText[i:]
	}
	return out
}

func hasLong(list []string, name string) bool {
	for _, l := range list {
		if l == name {
			return true
		}
	}
	return false
}

// has reports whether any of the options was given. A long option counts when shortened, as getopt_long allows.
func (p *parsedArgs) has(names ...string) bool {
	for _, f := range p.flags {
		for _, n := range names {
			if f == n || len(f) >= 3 && strings.HasPrefix(f, "--") && strings.HasPrefix(n, f) {
				return true
			}
		}
	}
	return false
}

// value returns the last value of any of the options.
func (p *parsedArgs) value(names ...string) (shell.Word, bool) {
	for _, n := range names {
		if v := p.values[n]; len(v) > 0 {
			return v[len(v)-1], true
		}
	}
	return shell.Word{}, false
}

// all returns every value of the options.
func (p *parsedArgs) all(names ...string) []shell.Word {
	var out []shell.Word
	for _, n := range names {
		out = append(out, p.values[n]...)
	}
	return out
}

// operand returns the text of operand i, "" if there is none.
func (p *parsedArgs) operand(i int) string {
	if i < 0 || i >= len(p.operands) {
		return ""
	}
	return p.operands[i].Text
}
