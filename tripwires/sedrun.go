// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"strings"
)

// progSedScript looks at what sed's programs run and write before their files are judged.
func progSedScript(x *evaluation, c *command) {
	p := parseArgs(c.args, optSpec{short: "efl", long: []string{"--expression", "--file", "--line-length"}})
	scripts := p.all("-e", "--expression")
	if len(scripts) == 0 && !p.has("-f", "--file") && len(p.operands) > 0 {
		scripts = p.operands[:1]
	}
	for _, s := range scripts {
		for _, a := range sedActions(s.Text) {
			switch a.kind {
			case 'e':
				x.nested(a.text, c, "sed e")
			case 'w':
				x.writeFile(c, literal(a.text), Write, false)
			}
		}
	}
	progSed(x, c)
}

// sedAction is something that a sed program does beyond the text: 'e' runs a command, 'w' writes a file.
type sedAction struct {
	kind byte
	text string
}

// sedActions reads a sed program as far as it takes to find its e and w commands and flags.
func sedActions(src string) []sedAction {
	var out []sedAction
	i := 0
	rest := func() string {
		end := strings.IndexByte(src[i:], '\n')
		if end < 0 {
			end = len(src) - i
		}
		s := strings.TrimSpace(src[i : i+end])
		i += end
		return s
	}
	part := func(delim byte) string { // up to the delimiter, which is passed
		var b strings.Builder
		for i < len(src) && src[i] != delim {
			if src[i] == '\\' && i+1 < len(src) {
				i++
				if src[i] != delim {
					b.WriteByte('\\')
				}
			}
			b.WriteByte(src[i])
			i++
		}
		i++
		return b.String()
	}
	for i < len(src) {
		ch := src[i]
		switch {
		case strings.IndexByte(" \t\n;{}0123456789,$!~+", ch) >= 0:
			i++
		case ch == '/':
			i++
			part('/')
			for i < len(src) && (src[i] == 'I' || src[i] == 'M') {
				i++
			}
		case ch == '\\' && i+1 < len(src):
			d := src[i+1]
			i += 2
			part(d)
		case ch == '#', ch == 'a', ch == 'i', ch == 'c', ch == 'r', ch == 'R':
			rest()
		case ch == 'w' || ch == 'W' || ch == 'e':
			i++
			if t := rest(); t != "" {
				out = append(out, sedAction{map[bool]byte{true: 'e', false: 'w'}[ch == 'e'], t})
			}
		case (ch == 's' || ch == 'y') && i+1 < len(src):
			d := src[i+1]
			i += 2
			part(d)
			with := part(d)
			for ch == 's' && i < len(src) && strings.IndexByte("gpiImM0123456789ew", src[i]) >= 0 {
				f := src[i]
				i++
				if f == 'e' {
					out = append(out, sedAction{'e', strings.TrimSpace(with)})
				} else if f == 'w' {
					if t := rest(); t != "" {
						out = append(out, sedAction{'w', t})
					}
					break
				}
			}
		default: // a command of one letter, perhaps with a label
			for i < len(src) && strings.IndexByte(";\n}", src[i]) < 0 {
				i++
			}
		}
	}
	return out
}
