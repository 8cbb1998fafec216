// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/hooks/event"
)

// SettingsFiles returns the settings files that a session of ev reads, absolute and without repeats: the user's, and those
// of its directory and of root, the project that the directory is in ("" if in none). The user's directory follows from
// where the client keeps the session's transcript, since it can be set to be elsewhere, and is also looked for in homes.
func (Adapter) SettingsFiles(ev *event.Event, homes []string, root string) []string {
	var out []string
	add := func(elem ...string) {
		if p := filepath.Join(elem...); filepath.IsAbs(p) && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	// The transcript is DIR/projects/PROJECT/SESSION.jsonl, a subagent's lies deeper. No name in there holds a slash, but a
	// directory above DIR may be called projects too.
	if i := strings.LastIndex(ev.Transcript, "/projects/"); i > 0 {
		add(ev.Transcript[:i], "settings.json")
	}
	for _, h := range homes {
		add(h, ".claude", "settings.json")
	}
	for _, dir := range []string{ev.Cwd, root} {
		if dir != "" {
			add(dir, ".claude", "settings.json")
			add(dir, ".claude", "settings.local.json")
		}
	}
	return out
}
