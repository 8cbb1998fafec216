// SPDX-License-Identifier: Apache-2.0

package shell

import "strings"

// read sets its variables to the next line of known input, or to unknown text.
func (in *interp) read(c ctx, s *state, args []Word) {
	ifs := in.ifs(s)
	for _, a := range c.env {
		if a.Name == "IFS" && a.Value.Known {
			ifs = a.Value.Text
		}
	}
	var names []string
	raw, plain, array := false, true, false
	for i := 0; i < len(args); i++ {
		a := args[i].Text
		if !args[i].Known {
			s.forget()
			return
		}
		if len(a) < 2 || a[0] != '-' {
			names = append(names, a)
			continue
		}
		for j := 1; j < len(a); j++ {
			switch a[j] {
			case 'r':
				raw = true
			case 'a', 'A':
				array = true
				plain = false
			case 's', 'e', 'q':
			default: // with a value, or something that changes what is read
				plain = false
				if strings.IndexByte("dinNptuk", a[j]) >= 0 {
					if j+1 == len(a) {
						i++
					}
					j = len(a)
				}
			}
		}
	}
	if len(names) == 0 {
		names = []string{"REPLY"}
	}
	s.status = statusUnknown
	line, ok := s.in.v, false
	if plain && !s.in.none && s.in.v.known() && (raw || !strings.Contains(s.in.v.s, `\`)) {
		rest := ""
		line.s, rest, ok = strings.Cut(s.in.v.s, "\n")
		s.in.v.s = rest
		s.status = statusFail
		if ok {
			s.status = statusOK
		}
		ok = true
	}
	for i, name := range names {
		name = strings.SplitN(name, "?", 2)[0]
		if !validName(name) {
			continue
		}
		switch {
		case array:
			s.setVar(name, variable{isArr: true, lost: true, set: true, v: val{f: s.in.v.f &^ fTemp}})
		case !ok:
			s.assign(name, val{s: unk, f: s.in.v.f & (fDownload | fHidden), name: name})
		case i == len(names)-1:
			s.assign(name, text(strings.Trim(line.s, blanks(ifs))))
		default:
			word, rest := cutField(line.s, ifs)
			line.s = rest
			s.assign(name, text(word))
		}
	}
}

// blanks are the characters of IFS that read takes off both ends of a line.
func blanks(ifs string) string {
	keep := ""
	for _, b := range []string{" ", "\t"} {
		if strings.Contains(ifs, b) {
			keep += b
		}
	}
	return keep
}

func cutField(line, ifs string) (word, rest string) {
	line = strings.TrimLeft(line, blanks(ifs))
	i := strings.IndexAny(line, ifs)
	if i < 0 || ifs == "" {
		return line, ""
	}
	return line[:i], line[i+1:]
}
