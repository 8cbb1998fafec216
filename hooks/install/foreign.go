// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"

	"github.com/tailscale/hujson"
)

// sameForeign compares what two documents say apart from our entries. Lists and objects under hooks that hold nothing count
// as absent: they say nothing to the client.
func sameForeign(a, b *document) error {
	if !bytes.Equal(foreign(a), foreign(b)) || a.root.IsStandard() && !b.root.IsStandard() {
		return errForeign
	}
	return nil
}

// foreign is a document without our entries, comments and white space.
func foreign(d *document) []byte {
	root := d.root.Clone()
	obj := root.Value.(*hujson.Object)
	for i := len(obj.Members) - 1; i >= 0; i-- {
		hooks, ok := obj.Members[i].Value.Value.(*hujson.Object)
		if !ok || stringOf(&obj.Members[i].Name) != "hooks" {
			continue
		}
		hooks.Members = keep(hooks.Members, foreignGroups)
		if len(hooks.Members) == 0 {
			obj.Members = append(obj.Members[:i:i], obj.Members[i+1:]...)
		}
	}
	root.Minimize()
	return root.Pack()
}

// foreignGroups takes our entries from an event's groups; false if nothing is left.
func foreignGroups(m *hujson.ObjectMember) bool {
	groups, ok := m.Value.Value.(*hujson.Array)
	if !ok {
		return true
	}
	under := stringOf(&m.Name)
	groups.Elements = keep(groups.Elements, func(group *hujson.Value) bool {
		handlers := handlersOf(group)
		if handlers == nil {
			return true
		}
		list := handlers.Value.(*hujson.Array)
		before := len(list.Elements)
		list.Elements = keep(list.Elements, func(h *hujson.Value) bool {
			_, ours := readEntry(under, h)
			return !ours
		})
		return before == 0 || len(list.Elements) > 0
	})
	return len(groups.Elements) > 0
}

func keep[T any](items []T, ok func(*T) bool) []T {
	var left []T
	for i := range items {
		if ok(&items[i]) {
			left = append(left, items[i])
		}
	}
	return left
}
