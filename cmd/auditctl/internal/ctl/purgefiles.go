// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/tripline-sh/tripline/daemon/config"
)

// purgePlan is what would be deleted and what lies beside it.
type purgePlan struct {
	dirs    []ownDir // inner ones first
	files   []string // absolute
	foreign []string // absolute
}

// ownDir is one of our directories and the names that we give to files in it.
type ownDir struct {
	path  string
	in    string // the directory of ours that holds it, "" if none does
	names *regexp.Regexp
	subs  []string // directories of ours in it
	files []string // found
}

// maxNames bounds how many names of one directory are looked at, in one go.
const maxNames = 1 << 20

// names makes a pattern of whole names; a name behind a dot and before digits, or behind ".new-", is one of them that was being written.
func names(patterns ...string) *regexp.Regexp {
	any := strings.Join(patterns, "|")
	return regexp.MustCompile(`^(?:(?:` + any + `)|\.(?:` + any + `)[0-9]*|\.new-(?:` + any + `))$`)
}

// ownDirs are all directories of an install, inner ones first.
func ownDirs(p config.Places) []ownDir {
	base := filepath.Base
	q := func(path string) string { return regexp.QuoteMeta(base(path)) }
	segment := `[0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{12,19}\.db`
	run := ownDir{path: p.RunDir, names: names(q(p.HookSocket), q(p.ControlSocket), q(p.LockFile), q(p.MetricsAddr), q(p.StoppedFile))}
	if filepath.Dir(p.RunDir) == p.StateDir {
		run.in = p.StateDir
	}
	return []ownDir{
		{path: p.RulesDir, in: p.ConfigDir, names: names(`[^/]*\.yaml`)},
		{path: p.ConfigDir, names: names(q(p.ConfigFile)), subs: []string{base(p.RulesDir)}},
		run,
		{path: p.LogDir, in: p.StateDir, names: names(segment, segment+`~corrupt-[0-9TZ.]+`, `lock`)},
		{path: p.KeysDir, in: p.StateDir, names: names(`log\.key`, `log\.pub`, `last\.checkpoint`, `join\.key`, q(p.TokenFile))},
		{path: p.SpoolDir, in: p.StateDir, names: names(`[0-9]{19}-[0-9]+-[0-9a-f]+-[0-9]+\.(?:evt|tmp)`)},
		{path: p.StateDir, names: names(q(p.DaemonLog) + `(?:\.[0-9]+)?`), subs: []string{base(p.LogDir), base(p.KeysDir), base(p.SpoolDir), base(p.RunDir)}},
	}
}

// planPurge looks at every directory of this install. It changes nothing and follows no link.
func planPurge(p config.Places) (*purgePlan, error) {
	pl := &purgePlan{}
	for _, d := range ownDirs(p) {
		root, err := d.open()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if errors.Is(err, errNotOwn) {
			pl.foreign = append(pl.foreign, d.path)
			continue
		}
		if err != nil {
			return nil, err
		}
		err = pl.look(&d, root)
		_ = root.Close()
		if err != nil {
			return nil, err
		}
		pl.dirs = append(pl.dirs, d)
	}
	return pl, nil
}

// look sorts the names of one directory.
func (pl *purgePlan) look(d *ownDir, root *os.Root) error {
	f, err := root.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	entries, err := f.ReadDir(maxNames)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(d.path, e.Name())
		switch {
		case e.IsDir() && containsName(d.subs, e.Name()):
		case (e.Type().IsRegular() || e.Type() == fs.ModeSocket) && d.names.MatchString(e.Name()):
			d.files = append(d.files, e.Name())
			pl.files = append(pl.files, path)
		default:
			pl.foreign = append(pl.foreign, path)
		}
	}
	return nil
}

func containsName(list []string, name string) bool {
	for _, s := range list {
		if s == name {
			return true
		}
	}
	return false
}

// carryOut deletes the files of the plan, and the directories that are empty then. It returns how many files went.
func (pl *purgePlan) carryOut() (int, error) {
	n := 0
	var errs []error
	for _, d := range pl.dirs {
		root, err := d.open()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, name := range d.files {
			switch err := root.Remove(name); {
			case err == nil:
				n++
			case !errors.Is(err, fs.ErrNotExist): // the sockets go with the daemon or the units
				errs = append(errs, err)
			}
		}
		_ = root.Close()
		_ = syscall.Rmdir(d.path) // it stays if something else is in it
	}
	return n, errors.Join(errs...)
}

// errNotOwn says that a directory is a link, or another user's.
var errNotOwn = errors.New("not a directory of this user")

// open opens a directory of ours: a real one, which belongs to this user, in one that is so, too.
func (d *ownDir) open() (*os.Root, error) {
	if d.in == "" {
		before, err := os.Lstat(d.path)
		if err != nil {
			return nil, err
		}
		root, err := os.OpenRoot(d.path)
		return sameOwn(d.path, before, root, err)
	}
	parent, err := (&ownDir{path: d.in}).open()
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	name := filepath.Base(d.path)
	before, err := parent.Lstat(name)
	if err != nil {
		return nil, err
	}
	root, err := parent.OpenRoot(name)
	return sameOwn(d.path, before, root, err)
}

// sameOwn returns root if it is what was looked at before, and that is no link and this user's.
func sameOwn(path string, before fs.FileInfo, root *os.Root, err error) (*os.Root, error) {
	st, ok := before.Sys().(*syscall.Stat_t)
	own := before.IsDir() && ok && int(st.Uid) == os.Geteuid()
	if err == nil && own {
		now, serr := root.Stat(".")
		own, err = serr == nil && os.SameFile(before, now), serr
	}
	switch {
	case own && err == nil:
		return root, nil
	case root != nil:
		_ = root.Close()
	}
	if !own {
		err = fmt.Errorf("%w: %s", errNotOwn, path)
	}
	return nil, err
}
