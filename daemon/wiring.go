// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"

	"github.com/tripline-sh/tripline/hooks/agents/claude"
	"github.com/tripline-sh/tripline/hooks/install"
)

// hookProgram is what the program in our entries is called.
const hookProgram = "tripline-hook"

// wiring is what a settings file says about this daemon's hooks. The zero value is that of an absent file.
type wiring struct {
	entries   map[string]string // event by fingerprint: entry, its matcher and its switches; our entries and no others
	programs  []string          // that they run, sorted
	off       bool              // the file switches hooks off, those of other files too
	unloading bool              // something in it keeps the agent from loading the file
}

var errNoHooks = errors.New("hooks is not an object of lists")

// readWiring reads a settings file. Entries count that talk to this socket: those of another install are not ours.
func readWiring(b []byte, socket string) (wiring, error) {
	s, err := install.Inspect(b)
	if err != nil {
		return wiring{}, err
	}
	w := wiring{entries: make(map[string]string), off: s.DisableAll, unloading: len(s.Warnings) > 0 && !s.DisableAll || len(s.Warnings) > 1}
	v, err := claude.ParseSettings(b)
	if err != nil {
		return wiring{}, err
	}
	v = v.Clone()
	v.Standardize()
	var root map[string]json.RawMessage
	if err := json.Unmarshal(v.Pack(), &root); err != nil {
		return wiring{}, err
	}
	if root["hooks"] == nil {
		return w, nil
	}
	var events map[string][]json.RawMessage
	if err := json.Unmarshal(root["hooks"], &events); err != nil {
		return wiring{}, errNoHooks
	}
	for event, groups := range events {
		for _, g := range groups {
			w.group(event, g, socket)
		}
	}
	slices.Sort(w.programs)
	w.programs = slices.Compact(w.programs)
	return w, nil
}

// group adds our entries in one group of an event. What has another shape is none of ours.
func (w *wiring) group(event string, raw json.RawMessage, socket string) {
	var group map[string]any
	if json.Unmarshal(raw, &group) != nil {
		return
	}
	handlers, _ := group["hooks"].([]any)
	delete(group, "hooks")
	for _, h := range handlers {
		handler, _ := h.(map[string]any)
		program, _ := handler["command"].(string)
		args, _ := handler["args"].([]any)
		if filepath.Base(program) != hookProgram || !names(args, socket) {
			continue
		}
		b, err := json.Marshal([]any{event, group, handler}) // keys come sorted
		if err != nil {
			continue
		}
		sum := sha256.Sum256(b)
		w.entries[hex.EncodeToString(sum[:8])] = event
		w.programs = append(w.programs, program)
	}
}

// names reports whether arguments of the hook name a socket.
func names(args []any, socket string) bool {
	for i := 1; i < len(args); i++ {
		if args[i-1] == any("-s") && args[i] == any(socket) {
			return true
		}
	}
	return false
}

// lacks returns the events of the wanted entries that are not there as they were, sorted. Their names are our own: an entry
// of ours stands under any other only if somebody put it there.
func (w *wiring) lacks(want map[string]string) []string {
	var out []string
	for id, event := range want {
		if _, ok := w.entries[id]; !ok {
			out = append(out, event)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
