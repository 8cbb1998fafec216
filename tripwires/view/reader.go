// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"sync/atomic"
)

// reader is a Reader on a tree. With a pool every access runs in one of its slots.
type reader struct {
	tree  tree
	pool  *Pool // nil: the tree cannot hang
	ctx   context.Context
	set   *readSet
	quiet bool
	stuck *bool // set once this decision waited in vain; shared with Quiet; nil without a pool
}

var _ Reader = (*reader)(nil)

// access is what one walk yields to the caller of do.
type access struct {
	found   found
	data    []byte
	names   []string
	infos   []Info
	entries []Entry
	link    string
}

// do walks to name and runs f there. f may run on after do gave up, so it writes to its own access only.
func (r *reader) do(name string, follow bool, f func(*access)) (*access, error) {
	a := &access{}
	w := walker{tree: r.tree}
	if !r.quiet {
		w.note = func(e Entry) { a.entries = append(a.entries, e) }
	}
	work := func() {
		defer w.done()
		a.found = w.walk(name, follow)
		if a.found.err == nil {
			f(a)
		}
	}
	if r.pool == nil {
		work()
	} else {
		if *r.stuck || r.pool.refuses(path.Clean(name)) {
			return nil, ErrBusy
		}
		w.where = new(atomic.Pointer[string])
		if err := r.pool.do(r.ctx, w.where, work); err != nil {
			*r.stuck = true // one vain wait is all that a decision may cost
			return nil, err
		}
	}
	if !r.quiet {
		for _, e := range a.entries {
			r.set.add(e)
		}
	}
	return a, a.found.err
}

func (r *reader) Lstat(name string) (Info, error) {
	a, err := r.do(name, false, func(a *access) {
		if a.found.info.Mode&fs.ModeSymlink != 0 {
			r.readlink(a)
			return
		}
		a.noteKind()
	})
	if err != nil {
		return Info{}, err
	}
	return a.found.info, nil
}

func (r *reader) Readlink(name string) (string, error) {
	a, err := r.do(name, false, func(a *access) {
		if a.found.info.Mode&fs.ModeSymlink == 0 {
			a.noteKind()
			a.found.err = ErrNotRegular
			return
		}
		r.readlink(a)
	})
	if err != nil {
		return "", err
	}
	return a.link, nil
}

func (r *reader) readlink(a *access) {
	target, err := r.tree.link(a.found.at, a.found.name)
	if err != nil {
		a.found.err = err
		return
	}
	a.link = target
	a.entries = append(a.entries, Entry{Path: a.found.path, Hash: linkHash(target)})
}

func (r *reader) ReadFile(name string, max int64) ([]byte, error) {
	a, err := r.do(name, true, func(a *access) {
		if pseudo(a.found.path) || !a.found.info.Mode.IsRegular() {
			a.noteKind()
			a.found.err = ErrNotRegular
			return
		}
		data, info, err := r.tree.read(a.found.at, a.found.name, max)
		if err != nil {
			a.noteKind()
			a.found.err = err
			return
		}
		a.data = data
		if !r.quiet {
			a.entries = append(a.entries, Entry{Path: a.found.path, Dev: info.Dev, Ino: info.Ino,
				Size: int64(len(data)), Hash: contentHash(data)})
		}
	})
	if err != nil {
		return nil, err
	}
	return a.data, nil
}

func (r *reader) Resolve(name string) (string, error) {
	a, err := r.do(name, true, func(a *access) {
		e := Entry{Path: a.found.path, Hash: hashPresent} // where it is counts here, not what it holds
		if a.found.info.Mode.IsDir() {
			e.Hash = hashDir
		}
		a.entries = append(a.entries, e)
	})
	switch {
	case err == nil, errors.Is(err, fs.ErrNotExist):
		return a.found.path, nil
	}
	return "", err
}

func (r *reader) ReadDir(name string, max int) ([]string, error) {
	a, err := r.do(name, true, func(a *access) {
		a.noteKind()
		if !a.found.info.Mode.IsDir() {
			a.found.err = ErrNotRegular
			return
		}
		h, err := r.tree.dir(a.found.at, a.found.name)
		if err != nil {
			a.found.err = err
			return
		}
		defer r.tree.close(h)
		a.names, a.found.err = r.tree.list(h, max)
	})
	if err != nil {
		return nil, err
	}
	return a.names, nil
}

func (r *reader) StatBelow(dir string, names []string) ([]Info, error) {
	q := r.silent()
	a, err := q.do(dir, true, func(a *access) {
		a.infos = make([]Info, len(names))
		h, err := r.tree.dir(a.found.at, a.found.name)
		if err != nil {
			a.found.err = err
			return
		}
		defer r.tree.close(h)
		for i, n := range names {
			if info, err := r.tree.statBelow(h, n); err == nil {
				a.infos[i] = info
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return a.infos, nil
}

func (r *reader) Quiet() Reader { return r.silent() }

func (r *reader) silent() *reader {
	q := *r
	q.quiet = true
	return &q
}

func (r *reader) ReadSet() []Entry { return r.set.list() }

func (a *access) noteKind() {
	e := kindEntry(a.found.info)
	e.Path = a.found.path
	a.entries = append(a.entries, e)
}
