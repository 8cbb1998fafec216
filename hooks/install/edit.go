// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// errForeign guards against ourselves: an edit that would touch what is not ours is not made.
var errForeign = errors.New("the change would touch entries that are not ours")

// put returns the text with exactly one entry of ours for each wanted event, and none for others.
func put(d *document, want []Entry) ([]byte, error) {
	if loneCR(d.text) {
		return nil, errLoneCR
	}
	before := d
	for {
		next, err := step(d, want)
		if err != nil {
			return nil, err
		}
		if next == nil {
			return d.text, sameForeign(before, d)
		}
		if d, err = parse(next); err != nil {
			return nil, err
		}
	}
}

// step goes one step towards the wanted entries and returns the new text, nil if nothing is left to do. Each step removes an
// entry too many, adds some, or corrects them all, so that the steps end.
func step(d *document, want []Entry) ([]byte, error) {
	found, err := d.ours()
	if err != nil {
		return nil, err
	}
	kept := make(map[string]bool)
	for _, p := range slices.Backward(found) {
		wanted := slices.ContainsFunc(want, func(e Entry) bool { return e.Under == p.entry.Under })
		alone := p.whole && len(p.handlers.Value.(*hujson.Array).Elements) == 1
		// The first one of an event that has its group to itself stays.
		earlier := slices.ContainsFunc(found, func(o place) bool {
			return o.event == p.event && o.group < p.group && o.whole && len(o.handlers.Value.(*hujson.Array).Elements) == 1
		})
		if !wanted || !alone || earlier {
			if next := d.remove(p); next != nil {
				return next, nil
			}
			return []byte(newFile), nil
		}
		kept[p.entry.Under] = true
	}
	missing := slices.DeleteFunc(slices.Clone(want), func(e Entry) bool { return kept[e.Under] })
	if len(missing) > 0 {
		return d.add(missing)
	}
	var next []byte
	for _, p := range slices.Backward(found) { // from the end, so that the offsets before stay true
		i := slices.IndexFunc(want, func(e Entry) bool { return e.Under == p.entry.Under })
		if from, to, text := d.correct(p, &want[i]); text != "" {
			if next == nil {
				next = d.text
			}
			next = splice(next[:from], []byte(text), next[to:])
		}
	}
	return next, nil
}

// takeOut returns the text without our entries; nil if the file is one that put made and there is nothing else in it.
func takeOut(d *document) ([]byte, error) {
	before := d
	for {
		found, err := d.ours()
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return d.text, sameForeign(before, d)
		}
		next := d.remove(found[len(found)-1])
		if next == nil {
			return nil, nil
		}
		if d, err = parse(next); err != nil {
			return nil, err
		}
	}
}

// add puts in entries for events that have none of ours: one into a list that is there, else all into new lists.
func (d *document) add(missing []Entry) ([]byte, error) {
	hooks, _, err := d.hooks()
	if err != nil {
		return nil, err
	}
	lists := func(l layout) []string {
		var all []string
		for i := range missing {
			all = append(all, l.event(&missing[i]))
		}
		return all
	}
	if hooks == nil {
		root := boxOf(&d.root)
		l := d.inside(root)
		return d.insert(root, l, l.member("hooks", l.object(lists(l.in())...))), nil
	}
	members := hooks.Value.(*hujson.Object).Members
	for i := range members {
		under := stringOf(&members[i].Name)
		if n := slices.IndexFunc(missing, func(e Entry) bool { return e.Under == under }); n >= 0 {
			groups := boxOf(&members[i].Value)
			l := d.inside(groups)
			return d.insert(groups, l, l.group(&missing[n])), nil
		}
	}
	events := boxOf(hooks)
	l := d.inside(events)
	return d.insert(events, l, lists(l)...), nil
}

// correct returns the text that brings the entry at p up to date and what it replaces; "" if it is.
func (d *document) correct(p place, e *Entry) (from, to int, text string) {
	hooks, _, _ := d.hooks()
	list := &hooks.Value.(*hujson.Object).Members[p.event].Value
	group := list.Value.(*hujson.Array).Elements[p.group].Clone()
	group.BeforeExtra, group.AfterExtra = nil, nil
	group.Minimize()
	if string(group.Pack()) == compact.group(e) {
		return 0, 0, ""
	}
	it := boxOf(list).items[p.group]
	return it.start, it.end, d.asIs(it).group(e)
}

// insert puts new items behind the last item of b.
//
// Where b is empty but was there before us, a space is left behind the item: when nothing but ours is left, remove can tell
// by it whether b goes or stays. Nothing else in the file could say so, and a note beside the file could be stale.
func (d *document) insert(b box, l layout, items ...string) []byte {
	sep := ""
	if l.eol != "" {
		sep = l.eol + l.indent
	}
	if len(b.items) == 0 {
		tail := ""
		if l.eol != "" {
			tail = l.eol + strings.TrimSuffix(l.indent, l.unit)
		}
		if !d.fresh {
			tail = mark + tail
		}
		between := l.comma
		if l.eol != "" {
			between = "," + sep
		}
		return splice(d.text[:b.shut], []byte(sep+strings.Join(items, between)+tail), d.text[b.shut:])
	}
	if l.eol == "" {
		sep = strings.TrimPrefix(l.comma, ",")
	}
	text := strings.Join(items, ","+sep)
	last := b.items[len(b.items)-1]
	from, before, after := last.end, ",", ""
	if last.comma >= 0 { // the file has trailing commas: so shall the new item
		from, before, after = last.comma+1, "", ","
	}
	rest := d.text[from:b.shut]
	comments := bytes.TrimRight(rest, " \t\r\n") // they belong to the items before
	return splice(d.text[:from], []byte(before), comments, []byte(sep+text+after), rest[len(comments):], d.text[b.shut:])
}

// mark is left behind the only item of a list or object that was empty before us.
const mark = " "

// marked reports whether b holds one item and was there, empty, before it.
func (d *document) marked(b box) bool {
	if len(b.items) != 1 || b.items[0].comma >= 0 {
		return false
	}
	after := d.text[b.items[0].end:b.shut]
	return bytes.HasPrefix(after, []byte(mark)) && len(bytes.TrimSpace(after)) == 0
}

// remove takes out the entry at p, its group if there is nothing foreign in it, and what then is empty and was made for it. It
// returns nil if that is the whole file.
func (d *document) remove(p place) []byte {
	if !p.whole {
		return d.cut(boxOf(p.handlers), p.handler)
	}
	hooks := &d.object().Members[p.root].Value
	boxes := []box{boxOf(&d.root), boxOf(hooks), boxOf(&hooks.Value.(*hujson.Object).Members[p.event].Value)}
	index := []int{p.root, p.event, p.group}
	level := 2
	for level > 0 && d.made(boxes[level]) {
		level--
	}
	root := boxes[0]
	if level > 0 || !d.made(root) {
		return d.cut(boxes[level], index[level])
	}
	if bytes.HasPrefix(d.text, []byte(newHead)) && bytes.HasSuffix(d.text, []byte(newTail)) {
		return nil
	}
	return splice(d.text[:root.open+1], d.text[root.shut:])
}

// How a file starts and ends that put made. One of that form with nothing else in it holds nothing of anybody.
const (
	newHead = "{\n  \"hooks\": {\n    \""
	newTail = "\n    ]\n  }\n}\n"
)

// made reports whether b was made to hold its one item: nothing else is in it, not even a comment.
func (d *document) made(b box) bool {
	if len(b.items) != 1 || d.marked(b) {
		return false
	}
	it := b.items[0]
	around := splice(d.text[it.before:it.start], d.text[it.end:b.shut])
	return len(bytes.Trim(around, " \t\r\n,")) == 0
}

// cut takes item i out of b, with the white space that insert put before it.
func (d *document) cut(b box, i int) []byte {
	it := b.items[i]
	lead := d.text[it.before:it.start]
	head, rest := d.text[:it.before], d.text[it.end:]
	kept := stripSeparator(lead)
	switch {
	case it.comma >= 0:
		rest = splice(d.text[it.end:it.comma], d.text[it.comma+1:])
	case i > 0:
		comma := b.items[i-1].comma
		head = splice(d.text[:comma], d.text[comma+1:it.before])
	case d.marked(b):
		if bytes.IndexByte(d.text[it.end:b.shut], '\n') < 0 {
			kept = lead // on one line, no white space was put before it
		}
		rest = d.text[b.shut:]
	}
	if lineComment(kept) && !startsLine(rest) {
		kept = lead // its end of line ends a comment
	}
	return splice(head, kept, rest)
}

// stripSeparator takes from the end of lead what insert puts before an item: an end of line and an indentation, or blanks.
func stripSeparator(lead []byte) []byte {
	lead = bytes.TrimRight(lead, " \t")
	if l, ok := bytes.CutSuffix(lead, []byte("\n")); ok {
		lead = bytes.TrimSuffix(l, []byte("\r"))
	}
	return lead
}

// startsLine reports whether b starts with an end of line, blanks apart.
func startsLine(b []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(b, " \t\r"), []byte("\n"))
}

// lineComment reports whether extra ends in a comment that only the end of its line would end.
func lineComment(extra []byte) bool {
	for i := 0; i+1 < len(extra); i++ {
		if extra[i] != '/' {
			continue
		}
		end := bytes.IndexByte(extra[i:], '\n')
		if extra[i+1] == '*' {
			end = bytes.Index(extra[i+2:], []byte("*/")) + 3
		}
		if end < 0 {
			return true
		}
		i += end
	}
	return false
}

func splice(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
