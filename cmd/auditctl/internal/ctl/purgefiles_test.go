// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tripline-sh/tripline/daemon/config"
)

func purgeHome(t *testing.T) (string, config.Places) {
	t.Helper()
	home := t.TempDir()
	p, err := config.FindPlaces(getenv(map[string]string{"HOME": home}))
	if err != nil {
		t.Fatal(err)
	}
	return home, p
}

func put(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestPurgeKnowsItsOwnNamesAndNoOther(t *testing.T) {
	t.Parallel()
	home, p := purgeHome(t)
	state, cfg := p.StateDir, p.ConfigDir
	ours := []string{
		cfg + "/tripline.yaml", cfg + "/.tripline.yaml123456", cfg + "/rules.d/mine.yaml",
		state + "/log/2026-11-30-000000000001.db", state + "/log/2026-11-30-000000000001.db~corrupt-20261130T101112.000000001Z",
		state + "/log/.new-2026-11-30-000000000001.db", state + "/log/lock", state + "/triplined.log", state + "/triplined.log.1",
		state + "/keys/log.key", state + "/keys/log.pub", state + "/keys/.new-last.checkpoint", state + "/keys/last.checkpoint", state + "/keys/install.token",
		state + "/keys/join.key", state + "/keys/.join.key99",
		state + "/spool/1764000000000000000-12-ab12-99.evt", state + "/spool/1764000000000000000-12-ab12-99.tmp",
		state + "/run/stopped", state + "/run/triplined.lock", state + "/run/metrics.addr", state + "/run/hook.sock",
	}
	foreign := []string{
		cfg + "/tripline.yaml.bak", cfg + "/notes", cfg + "/rules.d/README.md", cfg + "/rules.d/mine.yaml~",
		state + "/log/2026-11-30-1.db", state + "/log/2026-11-30-000000000001.db.bak", state + "/log/data.db", state + "/log/corrupt-x",
		state + "/keys/id_ed25519", state + "/keys/log.key.bak", state + "/keys/log.key2", state + "/spool/x.evt", state + "/run/other.sock",
		state + "/precious", state + "/triplined.log.gz",
	}
	for _, path := range slices.Concat(ours, foreign) {
		put(t, path)
	}
	put(t, state+"/log/deep/log.key")    // a directory in one of ours
	put(t, home+"/.config/other/a.yaml") // and one beside them
	pl, err := planPurge(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range ours {
		if !slices.Contains(pl.files, path) {
			t.Errorf("%s would stay", path)
		}
	}
	for _, path := range append(foreign, state+"/log/deep") {
		if !slices.Contains(pl.foreign, path) {
			t.Errorf("%s is not listed as foreign", path)
		}
	}
	if len(pl.files) != len(ours) || len(pl.foreign) != len(foreign)+1 {
		t.Errorf("%d files and %d foreign ones", len(pl.files), len(pl.foreign))
	}
	n, err := pl.carryOut()
	if err != nil || n != len(ours) {
		t.Errorf("deleted %d, %v", n, err)
	}
	var left []string
	_ = filepath.WalkDir(home, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			left = append(left, path)
		}
		return nil
	})
	if len(left) != len(foreign)+2 {
		t.Errorf("left: %q", left)
	}
}

// A directory of ours that is a link leads to somebody else's files, whatever their names are.
func TestPurgeFollowsNoLink(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"state", "log", "keys", "rules", "run"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, p := purgeHome(t)
			elsewhere := t.TempDir()
			for _, file := range []string{"lock", "log.key", "2026-11-30-000000000001.db", "triplined.log", "a.yaml", "stopped", "log/lock", "keys/log.key"} {
				put(t, filepath.Join(elsewhere, file))
			}
			dir := map[string]string{"state": p.StateDir, "log": p.LogDir, "keys": p.KeysDir, "rules": p.RulesDir, "run": p.RunDir}[name]
			if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(elsewhere, dir); err != nil {
				t.Fatal(err)
			}
			pl, err := planPurge(p)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(pl.foreign, dir) {
				t.Errorf("the link is not listed: %q", pl.foreign)
			}
			if n, err := pl.carryOut(); err != nil || n != 0 {
				t.Errorf("deleted %d, %v: %q", n, err, pl.files)
			}
			if entries, _ := os.ReadDir(elsewhere); len(entries) != 8 {
				t.Errorf("left there: %v", entries)
			}
			for _, file := range []string{"log/lock", "keys/log.key"} {
				if _, err := os.Stat(filepath.Join(elsewhere, file)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// Between the list that a person saw and the deletion, a directory may be replaced.
func TestADirectoryThatIsReplacedMeanwhileIsLeft(t *testing.T) {
	t.Parallel()
	_, p := purgeHome(t)
	put(t, filepath.Join(p.KeysDir, "log.key"))
	pl, err := planPurge(p)
	if err != nil || len(pl.files) != 1 {
		t.Fatal(err, pl.files)
	}
	elsewhere := t.TempDir()
	put(t, filepath.Join(elsewhere, "log.key"))
	if err := os.Rename(p.KeysDir, p.KeysDir+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, p.KeysDir); err != nil {
		t.Fatal(err)
	}
	if n, err := pl.carryOut(); n != 0 || err == nil || !strings.Contains(err.Error(), "keys") {
		t.Errorf("deleted %d, %v", n, err)
	}
	if _, err := os.Stat(filepath.Join(elsewhere, "log.key")); err != nil {
		t.Error(err)
	}
}
