// SPDX-License-Identifier: Apache-2.0

// Package ingest is the daemon's side of the spool: it reads what tripline-hook left there. The intended loop, at start and then
// every minute:
//
//	res, err := s.Scan(limit)          // names, oldest first
//	for each name: e, err := s.Load(name)
//	    append a record, late and unauthenticated
//	    s.Remove(name)                 // only once the record is durable
//	declare a gap of res.Dropped events, then s.Declared(res.Dropped)
//
// A crash between two steps repeats an entry or a gap and loses none; the entry's name identifies it. Any process of the same user
// can put things into a spool, so nothing in it is followed, waited for or believed: what is not an entry is moved into the
// directory bad beneath and reported once.
package ingest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/tripline-sh/tripline/hooks/spool"
)

// Limits of one scan and of what is kept aside.
const (
	maxNames = 4 * spool.MaxEntries // names looked at in one scan
	maxBad   = 256                  // foreign things kept in bad; further ones are deleted

	// unfinishedAfter is how long a file may keep its .tmp name before its hook counts as dead.
	unfinishedAfter = 10 * time.Minute

	badName = "bad"
)

// ErrForeign is wrapped by errors about things in a spool that are no entries.
var ErrForeign = errors.New("not a spool entry")

// Spool is one spool directory. Its methods are for one goroutine at a time, and one process: the daemon's lock sees to that.
type Spool struct {
	dir string
	uid int
	now func() time.Time
}

// Result is what a scan found.
type Result struct {
	Names   []string // entries to load, oldest first, at most as many as were asked for
	More    bool     // there are further entries
	Bad     []error  // one for each foreign thing put aside by this scan; each wraps ErrForeign and names it
	Dropped int64    // events that hooks could not spool, and that no Declared has taken away
}

// Open returns the spool at dir. The error wraps fs.ErrNotExist if there is none yet; it is another one if dir is a link, is not a
// directory, belongs to another user, or can be written by others.
func Open(dir string) (*Spool, error) {
	fi, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	uid := os.Geteuid()
	if st, ok := fi.Sys().(*syscall.Stat_t); !fi.IsDir() || !ok || int(st.Uid) != uid || fi.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("spool %q: not a directory that only this user can write to", dir)
	}
	return &Spool{dir: dir, uid: uid, now: time.Now}, nil
}

// Scan lists up to limit entries and puts aside what is none. It looks at a bounded number of names; a spool with more yields them
// to later scans. Entries whose hook is still writing are left alone.
func (s *Spool) Scan(limit int) (*Result, error) {
	d, err := os.Open(s.dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(maxNames)
	if err != nil && err != io.EOF {
		return nil, err
	}
	slices.Sort(names)

	res := &Result{}
	for _, name := range names {
		_, tmp, ok := spool.ParseName(name)
		switch {
		case name == badName:
		case name == spool.DroppedName:
			res.Dropped, err = s.dropped()
			if why, ok := errors.AsType[foreign](err); ok {
				res.Bad = append(res.Bad, s.putAside(name, string(why)))
			} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		case !ok:
			res.Bad = append(res.Bad, s.putAside(name, "unknown name"))
		case tmp:
			if s.unfinished(name) {
				res.Bad = append(res.Bad, s.putAside(name, "its hook died while writing it"))
			}
		case len(res.Names) < limit:
			res.Names = append(res.Names, name)
		default:
			res.More = true
		}
	}
	res.More = res.More || len(names) == maxNames
	return res, nil
}

// Remove deletes the entry called name. It is no error if it is gone already.
func (s *Spool) Remove(name string) error {
	if _, _, ok := spool.ParseName(name); !ok {
		return fmt.Errorf("remove %q: %w", name, ErrForeign)
	}
	if err := os.Remove(s.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Declared takes n dropped events off the count, once a gap record for them is durable.
func (s *Spool) Declared(n int64) error {
	if n <= 0 {
		return nil
	}
	f, err := s.open(spool.DroppedName, os.O_RDWR)
	if err != nil {
		return err
	}
	defer f.Close()
	// Hooks add under the same lock. It is not waited for: somebody who holds it must not stop the daemon.
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("lock the count of dropped events: %w", err)
	}
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	if err := f.Truncate(max(fi.Size()-n, 0)); err != nil {
		return err
	}
	return f.Sync()
}

func (s *Spool) path(name string) string { return filepath.Join(s.dir, name) }

func (s *Spool) dropped() (int64, error) {
	f, err := s.open(spool.DroppedName, os.O_RDONLY)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return min(fi.Size(), spool.MaxDropped), nil
}

func (s *Spool) unfinished(name string) bool {
	fi, err := os.Lstat(s.path(name))
	return err == nil && s.now().Sub(fi.ModTime()).Abs() > unfinishedAfter
}
