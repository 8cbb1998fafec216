// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"errors"
	"hash/maphash"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/tripline-sh/tripline/tripwires/view"
)

// snapshot remembers what was seen of the machine for the time of one preview: all past calls are judged by one state of the
// files, that of today, and each path is looked at once. It is safe for concurrent use.
type snapshot struct {
	pool *view.Pool
	seed maphash.Seed

	mu    sync.RWMutex
	stats map[string]answer[view.Info]
	paths map[string]answer[string]
	links map[string]answer[string]
	files map[sized]answer[[]byte]
	dirs  map[sized]answer[[]string]
	below map[uint64]answer[[]view.Info]
	bytes int // of all that is remembered, about
}

// answer is what a reader said.
type answer[T any] struct {
	value T
	err   error
}

type sized struct {
	path string
	max  int64
}

// Bounds of what is remembered; beyond them it is forgotten and looked at again.
const (
	maxRemembered = 10_000   // answers of each kind
	maxBytes      = 12 << 20 // of all of them
)

func newSnapshot(p *view.Pool) *snapshot {
	s := &snapshot{pool: p, seed: maphash.MakeSeed()}
	s.forget()
	return s
}

func (s *snapshot) forget() {
	s.stats, s.paths, s.links = map[string]answer[view.Info]{}, map[string]answer[string]{}, map[string]answer[string]{}
	s.files, s.dirs, s.below, s.bytes = map[sized]answer[[]byte]{}, map[sized]answer[[]string]{}, map[uint64]answer[[]view.Info]{}, 0
}

// reader returns the Reader of one decision.
func (s *snapshot) reader(ctx context.Context) *snapReader { return &snapReader{snap: s, ctx: ctx} }

// snapReader implements view.Reader. It keeps no read set: nothing is bound to what a preview saw.
type snapReader struct {
	snap  *snapshot
	ctx   context.Context
	inner view.Reader // made when something has to be looked at
	// content is set when the answer depends on what a file holds: one that the call would run, or git's index.
	content bool
}

var _ view.Reader = (*snapReader)(nil)

func (r *snapReader) machine() view.Reader {
	if r.inner == nil {
		r.inner = r.snap.pool.Reader(r.ctx)
	}
	return r.inner
}

// remember returns what is known under key, or else asks and keeps an answer that will be the same later on: a machine that is
// too busy now says nothing about its files.
func remember[K comparable, T any](r *snapReader, of func() map[K]answer[T], key K, size func(T) int, ask func() (T, error)) (T, error) {
	s := r.snap
	s.mu.RLock()
	a, ok := of()[key]
	s.mu.RUnlock()
	if ok {
		return a.value, a.err
	}
	a.value, a.err = ask()
	if a.err != nil {
		kept := error(nil)
		for _, err := range []error{fs.ErrNotExist, view.ErrDenied, view.ErrNotRegular, view.ErrTooLarge} {
			if errors.Is(a.err, err) {
				kept = err
			}
		}
		if kept == nil || errors.Is(a.err, view.ErrBusy) {
			return a.value, a.err
		}
	}
	n := 200 // an entry of a map
	switch k := any(key).(type) {
	case string:
		n += 2 * len(k) // the answer is mostly the path once more
	case sized:
		n += len(k.path)
	}
	if size != nil {
		n += size(a.value)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes += n; len(of()) >= maxRemembered || s.bytes > maxBytes {
		s.forget()
		s.bytes = n
	}
	of()[key] = a
	return a.value, a.err
}

func (r *snapReader) Lstat(p string) (view.Info, error) {
	return remember(r, func() map[string]answer[view.Info] { return r.snap.stats }, p, nil, func() (view.Info, error) {
		if above, ok := r.known(path.Dir(p)); ok && p == path.Clean(p) && (errors.Is(above.err, fs.ErrNotExist) || above.err == nil && above.value.Mode.IsRegular()) {
			return view.Info{}, fs.ErrNotExist
		}
		return r.machine().Lstat(p)
	})
}

// known returns what is remembered of a path.
func (r *snapReader) known(p string) (answer[view.Info], bool) {
	r.snap.mu.RLock()
	defer r.snap.mu.RUnlock()
	a, ok := r.snap.stats[p]
	return a, ok
}

func (r *snapReader) Readlink(p string) (string, error) {
	return remember(r, func() map[string]answer[string] { return r.snap.links }, p, nil, func() (string, error) { return r.machine().Readlink(p) })
}

// Resolve resolves a clean path by what its directory resolves to: most paths of a session stand in few directories.
func (r *snapReader) Resolve(p string) (string, error) {
	return remember(r, func() map[string]answer[string] { return r.snap.paths }, p, nil, func() (string, error) {
		dir, base := path.Split(p)
		if dir != "" && dir != "/" && path.IsAbs(p) && p == path.Clean(p) && strings.IndexByte(p, 0) < 0 && len(p) < 1000 {
			real, err := r.Resolve(strings.TrimSuffix(dir, "/"))
			if err == nil && real != "/" {
				info, err := r.Lstat(real + "/" + base)
				if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode&fs.ModeSymlink == 0 {
					return real + "/" + base, nil
				}
			}
		}
		return r.machine().Resolve(p)
	})
}

// What is handed out as a slice is a copy: a reader's caller may do with it what it likes.

func (r *snapReader) ReadFile(p string, max int64) ([]byte, error) {
	r.content = r.content || path.Base(p) == "index"
	data, err := remember(r, func() map[sized]answer[[]byte] { return r.snap.files }, sized{p, max}, func(b []byte) int { return len(b) },
		func() ([]byte, error) { return r.machine().ReadFile(p, max) })
	return slices.Clone(data), err
}

func (r *snapReader) ReadCode(p string, max int64) ([]byte, error) {
	r.content = true
	return r.ReadFile(p, max)
}

func (r *snapReader) ReadDir(p string, max int) ([]string, error) {
	names, err := remember(r, func() map[sized]answer[[]string] { return r.snap.dirs }, sized{p, int64(max)},
		func(names []string) int { return 40 * len(names) }, func() ([]string, error) { return r.machine().ReadDir(p, max) })
	return slices.Clone(names), err
}

func (r *snapReader) StatBelow(dir string, names []string) ([]view.Info, error) {
	var h maphash.Hash
	h.SetSeed(r.snap.seed)
	_, _ = h.WriteString(dir)
	for _, n := range names {
		_ = h.WriteByte(0)
		_, _ = h.WriteString(n)
	}
	infos, err := remember(r, func() map[uint64]answer[[]view.Info] { return r.snap.below }, h.Sum64(), func(i []view.Info) int { return 100 * len(i) },
		func() ([]view.Info, error) { return r.machine().StatBelow(dir, names) })
	return slices.Clone(infos), err
}

// Quiet returns the same reader: there is no read set to be kept out of.
func (r *snapReader) Quiet() view.Reader { return r }

// ReadSet implements view.Reader.
func (r *snapReader) ReadSet() []view.Entry { return nil }
