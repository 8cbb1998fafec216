// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWhoeverCanPutAnotherProgramInPlaceIsSeen(t *testing.T) {
	t.Parallel()
	uid := os.Getuid()
	tests := []struct {
		name   string
		change func(dir string) error // bin holds the program, link leads to it, links/hook is a link to it
		path   string
		want   string // "" = nobody can
	}{
		{"a program of this user alone", func(string) error { return nil }, "bin/hook", ""},
		{"a link to it", func(string) error { return nil }, "links/hook", ""},
		{"through a link to its directory", func(string) error { return nil }, "link/hook", ""},
		{"others may write it", func(d string) error { return os.Chmod(filepath.Join(d, "bin/hook"), 0o757) }, "bin/hook", "bin/hook"},
		{"others may write its directory", func(d string) error { return os.Chmod(filepath.Join(d, "bin"), 0o777) }, "bin/hook", "bin"},
		{"others may replace the link", func(d string) error { return os.Chmod(filepath.Join(d, "links"), 0o777) }, "links/hook", "links"},
		{"others may change what a link leads to", func(d string) error { return os.Chmod(filepath.Join(d, "bin"), 0o777) }, "links/hook", "bin"},
		{"others may add to a directory, as to that of temporary files", func(d string) error {
			return os.Chmod(filepath.Join(d, "bin"), 0o777|os.ModeSticky)
		}, "bin/hook", ""},
		{"a link to nothing", func(d string) error { return os.Remove(filepath.Join(d, "bin/hook")) }, "links/hook", "links/hook"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			at := func(name string) string { return filepath.Join(dir, name) }
			for _, name := range []string{"bin", "links"} {
				if err := os.Mkdir(at(name), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(at("bin/hook"), nil, 0o755); err != nil {
				t.Fatal(err)
			}
			for link, to := range map[string]string{"link": "bin", "links/hook": at("bin/hook")} {
				if err := os.Symlink(to, at(link)); err != nil {
					t.Fatal(err)
				}
			}
			if err := tt.change(dir); err != nil {
				t.Fatal(err)
			}
			want := tt.want
			if want != "" {
				want = at(want)
			}
			if got := loose(at(tt.path), uid); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}
