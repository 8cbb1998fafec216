// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/hooks/install"
)

// gatherSettings reads every settings file of the agent that decides whether our hooks run.
func (f *Facts) gatherSettings() {
	u := &f.User
	u.Settings = readSettings("user", f.Hook.Path)
	if u.Err == nil && u.Bytes != nil {
		u.Installed, u.Err = install.Installed(u.Bytes)
	}
	f.plan()
	if f.Places.Home != "" {
		if home := filepath.Join(f.Places.Home, ".claude", "settings.json"); home != filepath.Clean(f.Hook.Path) {
			s := readSettings("user", home)
			f.Home = &s
		}
	}
	seen := []string{filepath.Clean(f.Hook.Path)}
	if f.Home != nil {
		seen = append(seen, f.Home.Path)
	}
	add := func(scope, path string) {
		if slices.Contains(seen, path) {
			return
		}
		seen = append(seen, path)
		if s := readSettings(scope, path); s.Bytes != nil || s.Err != nil {
			f.Others = append(f.Others, s)
		}
	}
	for _, dir := range projectDirs(f.Cwd) {
		add("project", filepath.Join(dir, ".claude", "settings.json"))
		add("local", filepath.Join(dir, ".claude", "settings.local.json"))
	}
	for _, dir := range []string{"/etc/claude-code", "/Library/Application Support/ClaudeCode"} {
		dir = f.Root + dir
		add("managed", filepath.Join(dir, "managed-settings.json"))
		list := names(filepath.Join(dir, "managed-settings.d"))
		slices.Sort(list)
		for _, name := range list[:min(len(list), 100)] {
			if strings.HasSuffix(name, ".json") {
				add("managed", filepath.Join(dir, "managed-settings.d", name))
			}
		}
	}
}

// plan asks what install would do to the user's file.
func (f *Facts) plan() {
	o := f.Hook
	// Which of two machines this is, one whose service manager holds the socket or one where hooks start the daemon, only
	// asking the manager would tell, and that would run a program. Both are what install writes.
	starts := func(e install.Entry) bool { return e.Daemon != nil }
	if len(f.User.Installed) > 0 && !slices.ContainsFunc(f.User.Installed, starts) {
		o.Daemon = nil
	}
	change, err := install.Plan(o)
	if err != nil {
		f.User.PlanErr = err
		return
	}
	o.Token = change.Token // the one in the file, or a new one, where there is no token file
	f.User.Current = change.Empty() && change.Old != nil && bytes.Equal(change.Old, f.User.Bytes)
	f.User.Wanted, f.User.PlanErr = install.Wanted(o)
}

func readSettings(scope, path string) Settings {
	s := Settings{Scope: scope, Path: path}
	b, err := readRegular(path, maxSettings)
	if errors.Is(err, fs.ErrNotExist) {
		return s
	}
	if err != nil {
		s.Err = err
		return s
	}
	s.Bytes = b
	s.Settings, s.Err = install.Inspect(bytes.Clone(b))
	return s
}

// projectDirs are the directories whose settings a session that starts in cwd reads: its own, and the root of the project.
func projectDirs(cwd string) []string {
	if !filepath.IsAbs(cwd) {
		return nil
	}
	dirs := []string{filepath.Clean(cwd)}
	for dir := dirs[0]; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			if dir != dirs[0] {
				dirs = append(dirs, dir)
			}
			return dirs
		}
		if dir == filepath.Dir(dir) {
			return dirs
		}
	}
}
