// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"
)

// layout is how a piece of JSON is set: on one line, or on many with an indentation.
type layout struct {
	eol    string // "" = one line
	unit   string // one step of indentation
	indent string // of the line on which the piece starts
	colon  string
	comma  string // between the members of one line
}

// compact is the layout in which entries are compared.
var compact = layout{colon: ":", comma: ","}

// in is the layout of what stands inside a piece.
func (l layout) in() layout {
	l.indent += l.unit
	return l
}

func (l layout) object(members ...string) string { return l.list("{", members, "}") }
func (l layout) array(elements ...string) string { return l.list("[", elements, "]") }

func (l layout) list(open string, items []string, shut string) string {
	if l.eol == "" {
		return open + strings.Join(items, l.comma) + shut
	}
	inner := l.eol + l.indent + l.unit
	return open + inner + strings.Join(items, ","+inner) + l.eol + l.indent + shut
}

func (l layout) member(name, value string) string { return quote(name) + l.colon + value }

// group is the text of one hook group with one entry.
func (l layout) group(e *Entry) string {
	args := make([]string, 0, 16)
	for _, a := range e.args() {
		args = append(args, quote(a))
	}
	members := []string{
		l.member("type", quote("command")),
		l.member("command", quote(e.Command)),
		l.member("args", "["+strings.Join(args, l.comma)+"]"),
		l.member("timeout", strconv.Itoa(e.Timeout)),
	}
	if e.Block {
		members = append(members, l.member("onFailure", quote("block")))
	}
	list := l.in()
	return l.object(l.member("matcher", quote("*")), l.member("hooks", list.array(list.in().object(members...))))
}

// event is the text of an event's member with one group.
func (l layout) event(e *Entry) string { return l.member(e.Under, l.array(l.in().group(e))) }

func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return strings.TrimSuffix(b.String(), "\n")
}

// style is the layout of the file as a whole: that of its first members, two spaces if it has none.
func (d *document) style() layout {
	l := layout{eol: endOfLine(d.text), unit: "  ", colon: ": ", comma: ", "}
	if l.eol == "" {
		l.eol = "\n"
	}
	root := boxOf(&d.root)
	if len(root.items) == 0 {
		return l
	}
	multi := false
	for _, it := range root.items {
		if !bytes.ContainsRune(d.text[it.before:it.start], '\n') {
			continue
		}
		multi = true
		if unit := strings.TrimPrefix(d.lineIndent(it.start), d.lineIndent(root.open)); unit != "" {
			l.unit = unit
			break
		}
	}
	members := d.object().Members
	if members[0].Name.AfterExtra == nil && members[0].Value.BeforeExtra == nil {
		l.colon = ":"
	}
	if !multi {
		l.eol = ""
		if len(members) > 1 && len(members[1].Name.BeforeExtra) == 0 || len(members) == 1 && l.colon == ":" {
			l.comma = ","
		}
	}
	return l
}

// lineIndent is the white space that starts the line on which offset n lies.
func (d *document) lineIndent(n int) string {
	start := bytes.LastIndexByte(d.text[:n], '\n') + 1
	end := start
	for end < n && (d.text[end] == ' ' || d.text[end] == '\t') {
		end++
	}
	return string(d.text[start:end])
}

// inside is the layout for a new item of b: like the last one that is there, else like the file.
func (d *document) inside(b box) layout {
	l := d.style()
	l.indent = d.lineIndent(b.open) + l.unit
	if len(b.items) == 0 {
		return l
	}
	last := b.items[len(b.items)-1]
	lead := d.text[last.before:last.start]
	switch {
	case bytes.ContainsRune(lead, '\n'):
		l.eol = endOfLine(lead)
		l.indent = d.lineIndent(last.start)
	case !lineComment(bytes.TrimRight(d.text[last.end:b.shut], " \t\r\n")):
		l.eol = ""
	case l.eol == "": // behind a line comment starts a line of its own, whatever the others do
		l.eol = "\n"
	}
	return l
}

// asIs is the layout that an item has.
func (d *document) asIs(it item) layout {
	l := d.style()
	l.indent = d.lineIndent(it.start)
	l.eol = endOfLine(d.text[it.start:it.end])
	return l
}

// endOfLine is the first end of line in b, "" if there is none.
func endOfLine(b []byte) string {
	switch n := bytes.IndexByte(b, '\n'); {
	case n < 0:
		return ""
	case n > 0 && b[n-1] == '\r':
		return "\r\n"
	}
	return "\n"
}

// box is an object or a list by its offsets.
type box struct {
	open, shut int // of the brackets
	items      []item
}

// item is a member or an element. The white space and comments before it start at before; comma is the offset of the comma
// behind it, -1 if there is none.
type item struct{ before, start, end, comma int }

func boxOf(v *hujson.Value) box {
	b := box{open: v.StartOffset, shut: v.EndOffset - 1}
	add := func(first, last *hujson.Value, more bool) {
		it := item{first.StartOffset - len(first.BeforeExtra), first.StartOffset, last.EndOffset, -1}
		if more || last.AfterExtra != nil {
			it.comma = last.EndOffset + len(last.AfterExtra)
		}
		b.items = append(b.items, it)
	}
	switch c := v.Value.(type) {
	case *hujson.Object:
		for i := range c.Members {
			add(&c.Members[i].Name, &c.Members[i].Value, i < len(c.Members)-1)
		}
	case *hujson.Array:
		for i := range c.Elements {
			add(&c.Elements[i], &c.Elements[i], i < len(c.Elements)-1)
		}
	}
	return b
}
