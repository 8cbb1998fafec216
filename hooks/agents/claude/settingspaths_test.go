// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tripline-sh/tripline/hooks/event"
)

func TestSettingsFilesOfASession(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		ev    event.Event
		homes []string
		root  string
		want  []string
	}{
		{"nothing known", event.Event{}, nil, "", nil},
		{"a usual session", event.Event{Transcript: "/home/dev/.claude/projects/-home-dev-shop/s.jsonl", Cwd: "/home/dev/shop/src"},
			[]string{"/home/dev"}, "/home/dev/shop", []string{
				"/home/dev/.claude/settings.json",
				"/home/dev/shop/src/.claude/settings.json", "/home/dev/shop/src/.claude/settings.local.json",
				"/home/dev/shop/.claude/settings.json", "/home/dev/shop/.claude/settings.local.json"}},
		{"another configuration directory", event.Event{Transcript: "/srv/cfg/projects/p/s.jsonl"}, []string{"/home/dev"}, "",
			[]string{"/srv/cfg/settings.json", "/home/dev/.claude/settings.json"}},
		{"a home below a directory called projects", event.Event{Transcript: "/home/projects/dev/.claude/projects/p/s.jsonl"}, nil, "",
			[]string{"/home/projects/dev/.claude/settings.json"}},
		{"a subagent's transcript", event.Event{Transcript: "/home/dev/.claude/projects/p/s/subagents/a.jsonl"}, nil, "",
			[]string{"/home/dev/.claude/settings.json"}},
		{"the directory is the project", event.Event{Cwd: "/p"}, nil, "/p", []string{"/p/.claude/settings.json", "/p/.claude/settings.local.json"}},
		{"relative paths are no paths", event.Event{Transcript: "x/projects/p/s.jsonl", Cwd: "src"}, []string{"home"}, "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, Adapter{}.SettingsFiles(&tt.ev, tt.homes, tt.root)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
