// SPDX-License-Identifier: Apache-2.0

package shell

import "strings"

// Unknown text is kept in band while a source is analysed: shell values cannot hold NUL, and the few other control bytes
// used here are replaced in every source before it is parsed.
const (
	unk     = "\x00" // any text, also none
	unkFlat = "\x01" // a piece of a name: no slash, no blank
	unkInit = "\x02" // set-up code that a known tool prints (ssh-agent -s)
	dataNUL = "\x03" // a NUL byte in a stream, as printf '\0' writes it
)

// srcUnknown stands for an unknown part inside a text that is parsed as source. The parser takes it for a letter.
const srcUnknown = "\ue0ff"

// srcFlat is the same for a piece of a name.
const srcFlat = "\ue0fe"

// A variable that runs over a pattern holds one of the names that match it. Its pattern characters are marked, since they
// stay active wherever the variable is used, also in quotes.
const (
	markStar = "\x04"
	markAny  = "\x05"
	markSet  = "\x06"

	markBytes = "\x04\x05\x06"
)

const unkBytes = "\x00\x01\x02"

// cleanSource replaces the bytes that have a meaning in values.
func cleanSource(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r <= 6 }) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch r {
		case 0:
			return -1
		case 1, 2, 3, 4, 5, 6:
			return '\ufffd'
		}
		return r
	}, s)
}

type flags uint8

const (
	fTemp     flags = 1 << iota // starts with the output of a plain mktemp
	fUnset                      // an unknown part is a variable that this source does not set
	fHidden                     // an unknown part went through a decoder
	fDownload                   // an unknown part comes from the network
	fMany                       // an element of a list that may be several, or none
)

// val is a value: text with unknown parts in band, and what is known about them.
type val struct {
	s    string
	f    flags
	name string // variable that made it unknown
	path string // the whole is the content of this file, which was not read
}

func text(s string) val { return val{s: s} }

var unknown = val{s: unk}

func (v val) known() bool { return !strings.ContainsAny(v.s, unkBytes) }

// exact tells that the text is known to the letter.
func (v val) exact() bool { return !strings.ContainsAny(v.s, unkBytes+markBytes) }

// loose replaces marked patterns by unknown pieces of a name.
func (v val) loose() val {
	if strings.ContainsAny(v.s, markBytes) {
		v.s = strings.NewReplacer(markStar, unkFlat, markAny, unkFlat, markSet, unkFlat).Replace(v.s)
	}
	return v
}

// markPattern turns pattern text into a value with marked pattern characters.
func markPattern(pat string) string {
	var sb strings.Builder
	for i := 0; i < len(pat); i++ {
		switch c := pat[i]; c {
		case '\\':
			if i++; i < len(pat) {
				sb.WriteByte(pat[i])
			}
		case '*':
			sb.WriteString(markStar)
		case '?':
			sb.WriteString(markAny)
		case '[':
			sb.WriteString(markSet)
		default:
			sb.WriteByte(c)
		}
	}
	return sb.String()
}

var unmark = strings.NewReplacer(markStar, "*", markAny, "?", markSet, "[")

// flat tells that all unknown parts are pieces of a name.
func (v val) flat() bool { return !strings.ContainsAny(v.s, "\x00\x02") }

// add appends w to v.
func (v val) add(w val) val {
	v.f &^= fMany
	w.f &^= fMany
	if v.s == "" {
		w.f |= v.f &^ fTemp
		return w
	}
	if w.s == "" {
		v.f |= w.f &^ fTemp
		return v
	}
	v.s += w.s
	v.f |= w.f &^ fTemp
	if v.name == "" {
		v.name = w.name
	}
	v.path = ""
	return v
}

// lost is an unknown value with what v says of its source.
func (v val) lost() val {
	return val{s: unk, f: v.f & (fHidden | fDownload | fUnset), name: v.name}
}

// merge is a value that is either of the two.
func (v val) merge(w val) val {
	if v == w {
		return v
	}
	if v.f&w.f&fTemp != 0 && v.known() && w.known() && sameTemp(v.s, w.s) {
		return v
	}
	u := v.lost()
	u.f |= w.f & (fHidden | fDownload | fUnset)
	return u
}

// sameTemp tells that two values differ only in which temporary file they name.
func sameTemp(a, b string) bool {
	trim := func(s string) (string, bool) {
		s, ok := strings.CutPrefix(s, TempPrefix)
		return strings.TrimLeft(s, "0123456789-"), ok
	}
	a, okA := trim(a)
	b, okB := trim(b)
	return okA && okB && a == b
}

// word turns a value into an unsplit, quoted word.
func (v val) word(pos Pos) Word {
	w := Word{Text: v.s, Known: v.known(), Pos: pos, Quoted: true, Temp: v.f&fTemp != 0}
	if strings.ContainsAny(v.s, markBytes) {
		w.Glob, w.GlobText = true, escapePattern(v.s)
	}
	w.finish(v)
	return w
}

// finish sets what the in-band marks say and takes them out of the text.
func (w *Word) finish(v val) {
	if !w.Known {
		w.Unset = v.f&fUnset != 0
		w.Hidden = v.f&fHidden != 0
		w.Download = v.f&fDownload != 0
		w.Var = v.name
		w.Flat = v.flat()
		w.path = v.path
		w.setup = strings.Contains(v.s, unkInit)
		w.Text = exportMarks(w.Text)
		w.GlobText = exportMarks(w.GlobText)
	}
	if w.Glob {
		w.Text, w.GlobText = unmark.Replace(w.Text), unmark.Replace(w.GlobText)
	}
	if strings.Contains(w.Text, dataNUL) {
		w.Text = strings.ReplaceAll(w.Text, dataNUL, "\ufffd")
	}
}

func exportMarks(s string) string {
	if !strings.ContainsAny(s, "\x01\x02") {
		return s
	}
	return strings.NewReplacer(unkFlat, unk, unkInit, unk).Replace(s)
}

// val turns a word back into a value.
func (w Word) val() val {
	v := val{s: w.Text, name: w.Var, path: w.path}
	if w.setup && !strings.Contains(strings.TrimRight(w.Text, unk), unk) {
		v.s = strings.ReplaceAll(w.Text, unk, unkInit)
	}
	if w.Flat {
		v.s = strings.ReplaceAll(v.s, unk, unkFlat)
	}
	if w.Temp {
		v.f |= fTemp
	}
	if w.Unset {
		v.f |= fUnset
	}
	if w.Hidden {
		v.f |= fHidden
	}
	if w.Download {
		v.f |= fDownload
	}
	return v
}
