// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync/atomic"
)

// reader is a Reader on a tree. With a pool every access runs in one of its slots.
type reader struct {
	tree  tree
	pool  *Pool // nil: the tree cannot hang
	ctx   context.Context
	set   *readSet
	quiet bool
	// seen is what the walks of this decision met, by resolved path; a zero Info is what was not there. It makes one
	// decision see one state of the machine. nil = not remembered.
	seen  map[string]Info
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
	seen    []sight
}

// sight is a component that a walk met.
type sight struct {
	path string
	info Info
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
		w.saw = func(p string, i Info) { a.seen = append(a.seen, sight{p, i}) }
		if err := r.pool.do(r.ctx, w.where, work); err != nil {
			*r.stuck = true // one vain wait is all that a decision may cost
			return nil, err
		}
	}
	for _, s := range a.seen {
		r.seen[s.path] = s.info
	}
	if !r.quiet {
		for _, e := range a.entries {
			r.set.add(e)
		}
	}
	return a, a.found.err
}

func (r *reader) Lstat(name string) (Info, error) {
	if info, ok := r.seen[name]; ok && info.Mode&fs.ModeSymlink == 0 {
		e, err := kindEntry(info), error(nil)
		if info == (Info{}) {
			e, err = Entry{Hash: hashAbsent}, fs.ErrNotExist
		}
		if e.Path = name; !r.quiet {
			r.set.add(e)
		}
		return info, err
	}
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
	return r.readFile(name, max, false)
}

func (r *reader) ReadCode(name string, max int64) ([]byte, error) { return r.readFile(name, max, true) }

func (r *reader) readFile(name string, max int64, code bool) ([]byte, error) {
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
	if code && a != nil && len(a.entries) > 0 { // the last one is the file, or the component that is missing
		r.set.markCode(a.entries[len(a.entries)-1].Path)
	}
	if err != nil {
		return nil, err
	}
	return a.data, nil
}

func (r *reader) Resolve(name string) (string, error) {
	for range maxLinks {
		a, err := r.do(name, true, func(a *access) {
			e := Entry{Path: a.found.path, Hash: hashPresent} // where it is counts here, not what it holds
			if a.found.info.Mode.IsDir() {
				e.Hash = hashDir
			}
			a.entries = append(a.entries, e)
		})
		switch {
		case err == nil, errors.Is(err, fs.ErrNotExist) && a.found.again == "":
			return a.found.path, nil
		case !errors.Is(err, fs.ErrNotExist):
			return "", err
		}
		// What is absent may be a directory by the time that it counts: then ".." leads back to what is there now, links included.
		name = a.found.again
	}
	return "", ErrLoop
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
	if infos, ok := r.remembered(dir, names); ok {
		return infos, nil
	}
	q := r.silent()
	a, err := q.do(dir, true, func(a *access) {
		a.infos = make([]Info, len(names))
		h, err := r.tree.dir(a.found.at, a.found.name)
		if err != nil {
			a.found.err = err
			return
		}
		defer r.tree.close(h)
		var missing []string
		for i, n := range names {
			if slices.ContainsFunc(missing, func(m string) bool { return strings.HasPrefix(n, m) }) {
				continue
			}
			info, err := r.tree.statBelow(h, n)
			switch {
			case err == nil:
				a.infos[i] = info
			case errors.Is(err, fs.ErrNotExist):
				missing = append(missing, n+"/")
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return a.infos, nil
}

// remembered answers from what the walks met, if they met all of it. A link is not answered for: it is to be followed. Names
// that stand below one that is missing cost no look-up, so that a long path costs one step a component.
func (r *reader) remembered(dir string, names []string) ([]Info, bool) {
	if len(r.seen) == 0 || !path.IsAbs(dir) || path.Clean(dir) != dir {
		return nil, false
	}
	infos := make([]Info, len(names))
	missing := ""
	for i, n := range names {
		if missing != "" && strings.HasPrefix(n, missing) && !strings.Contains(n[len(missing):], "..") {
			continue
		}
		if strings.Contains(n, "..") {
			return nil, false // its parent may be elsewhere
		}
		info, ok := r.met(path.Join(dir, n))
		if !ok || info.Mode&fs.ModeSymlink != 0 {
			return nil, false
		}
		if infos[i] = info; info == (Info{}) {
			missing = n + "/"
		}
	}
	return infos, true
}

// met returns what the walks know of a clean path: what they saw there, or that there is nothing, since something above it is
// missing.
func (r *reader) met(p string) (Info, bool) {
	info, ok := r.seen[p]
	for !ok && len(p) > 1 {
		p = p[:max(strings.LastIndexByte(p, '/'), 1)]
		if info, ok = r.seen[p]; ok && info != (Info{}) {
			return Info{}, false
		}
	}
	return info, ok
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
