// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tailscale/hujson"

	"github.com/tripline-sh/tripline/hooks/agents/claude"
)

// newFile is what a file that does not exist is taken for.
const newFile = "{}\n"

var (
	errHooksTwice = errors.New("the key hooks is there twice")
	errTooMany    = errors.New("there are too many entries of ours")
	errLoneCR     = errors.New("a carriage return ends no line: what stands before it could not be told from what is put there")
	errHooksShape = errors.New("hooks is not an object of lists, as the client wants it")
)

// byteOrderMark is what some editors begin a file with. The client reads on behind it, and so does this package.
var byteOrderMark = []byte("\ufeff")

// document is a settings file and what it says.
type document struct {
	text  []byte // without a mark
	root  hujson.Value
	fresh bool // there is no file yet
}

// loneCR reports whether text holds a carriage return without a line feed behind it.
func loneCR(text []byte) bool {
	return bytes.Count(text, []byte("\r")) != bytes.Count(text, []byte("\r\n"))
}

func parse(text []byte) (*document, error) {
	text = bytes.TrimPrefix(text, byteOrderMark)
	root, err := claude.ParseSettings(text)
	if err != nil {
		return nil, err
	}
	return &document{text: text, root: root}, nil
}

func (d *document) object() *hujson.Object { return d.root.Value.(*hujson.Object) }

// hooks returns the hooks object and its index in the root, nil if the file has none. What the client could not load is an
// error: it must not be built upon.
func (d *document) hooks() (*hujson.Value, int, error) {
	var found *hujson.Value
	at := -1
	members := d.object().Members
	for i := range members {
		if stringOf(&members[i].Name) != "hooks" {
			continue
		}
		if found != nil {
			return nil, -1, errHooksTwice
		}
		found, at = &members[i].Value, i
	}
	if found == nil {
		return nil, -1, nil
	}
	obj, ok := found.Value.(*hujson.Object)
	if !ok {
		return nil, -1, errHooksShape
	}
	seen := make(map[string]bool)
	for i := range obj.Members {
		name := stringOf(&obj.Members[i].Name)
		if seen[name] {
			return nil, -1, fmt.Errorf("%w for the event %.40q", errHooksTwice, name)
		}
		seen[name] = true
		if obj.Members[i].Value.Value.Kind() != '[' {
			return nil, -1, errHooksShape
		}
	}
	return found, at, nil
}

// place is where one of our entries stands: indices into root, hooks, the event's list, and the group's handlers.
type place struct {
	root, event, group, handler int
	handlers                    *hujson.Value // the group's list
	whole                       bool          // the group holds nothing but entries of ours
	entry                       Entry
}

// maxOurs bounds the entries of ours that are looked at: far more than ever are installed.
const maxOurs = 256

// ours returns our entries in the order of the file. Groups of a shape that the client would not load are passed over: they
// are not ours.
func (d *document) ours() ([]place, error) {
	hooks, root, err := d.hooks()
	if err != nil || hooks == nil {
		return nil, err
	}
	var all []place
	events := hooks.Value.(*hujson.Object).Members
	for e := range events {
		under := stringOf(&events[e].Name)
		groups := events[e].Value.Value.(*hujson.Array).Elements
		for g := range groups {
			handlers := handlersOf(&groups[g])
			if handlers == nil {
				continue
			}
			list := handlers.Value.(*hujson.Array).Elements
			first := len(all)
			for h := range list {
				if entry, ok := readEntry(under, &list[h]); ok {
					all = append(all, place{root, e, g, h, handlers, false, entry})
				}
			}
			if len(all) > maxOurs {
				return nil, errTooMany
			}
			for i := first; i < len(all); i++ {
				all[i].whole = len(all)-first == len(list)
			}
		}
	}
	return all, nil
}

// handlersOf returns the list of handlers of a hook group, nil if it is none.
func handlersOf(group *hujson.Value) *hujson.Value {
	obj, ok := group.Value.(*hujson.Object)
	if !ok {
		return nil
	}
	list := field(obj, "hooks")
	if list == nil || list.Value.Kind() != '[' {
		return nil
	}
	return list
}

// Skipped tells why the client skips a settings file with these bytes as a whole, hooks included and without a word, "" if it
// does not: comments and trailing commas, which this package reads and keeps, are no JSON to it (seen with Claude Code 2.1.332).
func Skipped(b []byte) string {
	b = bytes.TrimPrefix(b, byteOrderMark)
	if len(bytes.TrimSpace(b)) == 0 || json.Valid(b) {
		return ""
	}
	line := 1
	var v any
	var at *json.SyntaxError
	if errors.As(json.Unmarshal(b, &v), &at) {
		line += bytes.Count(b[:min(max(int(at.Offset)-1, 0), len(b))], []byte("\n"))
	}
	return fmt.Sprintf("line %d holds a comment, a trailing comma or something else that is no JSON: the client skips this whole file, our hooks included", line)
}

// warnings names what in the file keeps hooks from running.
func (d *document) warnings() []string {
	var w []string
	if why := Skipped(d.text); why != "" {
		w = append(w, why)
	}
	if v := field(d.object(), "disableAllHooks"); v != nil && v.Value.Kind() == 't' {
		w = append(w, "disableAllHooks is true in this file: the client will run no hook of it")
	}
	hooks, _, err := d.hooks()
	if err != nil || hooks == nil {
		return w
	}
	for _, m := range hooks.Value.(*hujson.Object).Members {
		switch event := stringOf(&m.Name); event {
		case "PreToolUse", "PermissionRequest", "PreSkillShellCommand":
			if !loads(m.Value.Value.(*hujson.Array)) {
				w = append(w, "an entry under "+event+" cannot be loaded: the client will skip this whole file, our hooks included")
			}
		}
	}
	return w
}

// loads reports whether the client, as far as is known, can load the groups of an event.
func loads(groups *hujson.Array) bool {
	for g := range groups.Elements {
		handlers := handlersOf(&groups.Elements[g])
		if handlers == nil {
			return false
		}
		list := handlers.Value.(*hujson.Array).Elements
		for h := range list {
			obj, ok := list[h].Value.(*hujson.Object)
			if !ok {
				return false
			}
			switch stringOf(field(obj, "type")) {
			case "command", "http", "prompt", "agent", "mcp_tool":
			default:
				return false
			}
			if v := field(obj, "onFailure"); v != nil && stringOf(v) != "block" && stringOf(v) != "continue" {
				return false
			}
			if v := field(obj, "timeout"); v != nil && (v.Value.Kind() != '0' || v.Value.(hujson.Literal).Float() <= 0) {
				return false
			}
		}
	}
	return true
}
