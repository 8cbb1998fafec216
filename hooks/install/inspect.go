// SPDX-License-Identifier: Apache-2.0

package install

import (
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/tripline-sh/tripline/hooks/agents/claude"
)

// Settings is what a settings file says about whether hooks run, for whoever looks at it and changes nothing. No value of a
// variable is in it: those can be secrets.
type Settings struct {
	Handlers    []Handler // in the order of the file
	DisableAll  bool      // disableAllHooks is true
	ManagedOnly bool      // allowManagedHooksOnly is true
	Env         []string  // names of the variables that the file sets, sorted
	Warnings    []string  // what keeps its hooks from running, as Plan tells it
}

// Handler is one hook handler, whoever put it there.
type Handler struct {
	Event string // the event that it is registered for
	Ours  bool   // of the form that Plan writes, for whatever install
	texts []string
}

// Mentions reports whether any text of the handler, at any depth, holds one of words. Empty words are passed over.
func (h Handler) Mentions(words ...string) bool {
	return slices.ContainsFunc(h.texts, func(text string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return w != "" && strings.Contains(text, w) })
	})
}

// Inspect reads the bytes of a settings file. Its errors are those of Plan, without their path.
func Inspect(b []byte) (Settings, error) {
	doc, err := parse(b)
	if err != nil {
		return Settings{}, err
	}
	hooks, _, err := doc.hooks()
	if err != nil {
		return Settings{}, err
	}
	s := Settings{Warnings: doc.warnings(), DisableAll: isTrue(doc, "disableAllHooks"), ManagedOnly: isTrue(doc, "allowManagedHooksOnly")}
	if env := field(doc.object(), "env"); env != nil {
		if obj, ok := env.Value.(*hujson.Object); ok {
			for i := range obj.Members {
				s.Env = append(s.Env, stringOf(&obj.Members[i].Name))
			}
			slices.Sort(s.Env)
			s.Env = slices.Compact(s.Env)
		}
	}
	if hooks == nil {
		return s, nil
	}
	events := hooks.Value.(*hujson.Object).Members
	for e := range events {
		under := stringOf(&events[e].Name)
		groups := events[e].Value.Value.(*hujson.Array).Elements
		for g := range groups {
			list := handlersOf(&groups[g])
			if list == nil { // not a group; what stands there could still be read by a laxer client
				s.Handlers = append(s.Handlers, Handler{Event: under, texts: texts(&groups[g], nil)})
				continue
			}
			handlers := list.Value.(*hujson.Array).Elements
			for h := range handlers {
				_, ours := readEntry(under, &handlers[h])
				s.Handlers = append(s.Handlers, Handler{Event: under, Ours: ours, texts: texts(&handlers[h], nil)})
			}
		}
	}
	return s, nil
}

// Wanted returns the entries that Plan would leave in the file, in the order of events. Path and Owner are not looked at; a
// token must be given.
func Wanted(o Options) ([]Entry, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	var want []Entry
	for _, r := range claude.Events() {
		want = append(want, o.entry(r, o.Token))
	}
	return want, nil
}

// Args returns the arguments with which the entry runs its command.
func (e Entry) Args() []string { return e.args() }

func isTrue(d *document, name string) bool {
	v := field(d.object(), name)
	return v != nil && v.Value.Kind() == 't'
}

// texts appends every text of v, names of members included. The parser bounded the depth.
func texts(v *hujson.Value, to []string) []string {
	switch c := v.Value.(type) {
	case *hujson.Object:
		for i := range c.Members {
			to = append(to, stringOf(&c.Members[i].Name))
			to = texts(&c.Members[i].Value, to)
		}
	case *hujson.Array:
		for i := range c.Elements {
			to = texts(&c.Elements[i], to)
		}
	case hujson.Literal:
		if v.Value.Kind() == '"' {
			to = append(to, stringOf(v))
		}
	}
	return to
}
