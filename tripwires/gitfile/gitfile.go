// SPDX-License-Identifier: Apache-2.0

// Package gitfile answers two questions about a work tree without ever running git: does the index track anything below a
// directory, and could git bring a file back as it is. It reads .git with its own bounded readers, since running git would
// run what the repository's configuration names.
package gitfile

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/view"
)

// Errors that callers may test.
var (
	ErrNoRepo  = errors.New("no git repository")
	ErrUnknown = errors.New("the index could not be read")
)

// Bounds of what is read.
const (
	maxIndex   = 64 << 20
	maxEntries = 1 << 20
	maxPointer = 4 << 10
	maxConfig  = 256 << 10
)

// State is what git holds of a file.
type State int

// The states. Only Restorable means that git has the very content that lies on the disk.
const (
	Unknown State = iota // could not be told
	Untracked
	Modified
	Restorable
)

// String returns the state in words.
func (s State) String() string {
	switch s {
	case Untracked:
		return "untracked"
	case Modified:
		return "modified"
	case Restorable:
		return "restorable"
	}
	return "unknown"
}

// Repo is the repository of one work tree, for one decision. It is not safe for concurrent use.
type Repo struct {
	root   string
	gitDir string
	common string
	r      view.Reader

	loaded bool
	idx    *index
	stat   view.Info // of the index file, taken before it was read
	err    error
}

// Open finds the repository whose work tree's root is root: a .git directory, or a .git file that points to one (linked
// work trees, submodules). It returns ErrNoRepo if there is none; any other error means that it could not be told.
func Open(root string, r view.Reader) (*Repo, error) {
	root = path.Clean(root)
	dot := path.Join(root, ".git")
	info, err := r.Lstat(dot)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoRepo
	}
	if err != nil {
		return nil, fmt.Errorf("%q: %w", dot, err)
	}
	repo := &Repo{root: root, gitDir: dot, r: r}
	if info.Mode.IsRegular() {
		target, err := pointer(r, dot, "gitdir:")
		if err != nil {
			return nil, err
		}
		repo.gitDir = resolve(root, target)
	}
	if _, err := r.Lstat(path.Join(repo.gitDir, "HEAD")); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, ErrNoRepo // git itself does not take such a directory for a repository
		}
		return nil, fmt.Errorf("%q: %w", repo.gitDir, err)
	}
	repo.common = repo.gitDir
	switch target, err := pointer(r, path.Join(repo.gitDir, "commondir"), ""); {
	case err == nil:
		repo.common = resolve(repo.gitDir, target)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	return repo, nil
}

// pointer reads a file of one line that names a path.
func pointer(r view.Reader, name, key string) (string, error) {
	data, err := r.ReadFile(name, maxPointer)
	if err != nil {
		return "", fmt.Errorf("%q: %w", name, err)
	}
	target, ok := strings.CutPrefix(string(data), key)
	target = strings.TrimRight(strings.TrimLeft(target, " "), "\r\n")
	if !ok || target == "" || strings.ContainsAny(target, "\x00\n") {
		return "", fmt.Errorf("%q: not a pointer to a git directory", name)
	}
	return target, nil
}

func resolve(dir, target string) string {
	if path.IsAbs(target) {
		return path.Clean(target)
	}
	return path.Join(dir, target)
}

// TracksUnder reports whether the index holds an entry that is rel or below it; rel is relative to the root, "." is all.
// An error means that it could not be told.
func (r *Repo) TracksUnder(rel string) (bool, error) {
	if err := r.load(); err != nil {
		return false, err
	}
	rel = path.Clean(rel)
	if r.idx.inSubmodule(rel) {
		return false, fmt.Errorf("%q: %w: it is in a submodule", rel, ErrUnknown)
	}
	return r.idx.under(rel), nil
}

// FileState says whether git could bring back the file rel, as it lies on the disk now: its content is the one that the
// index names. A file that is not there is Restorable if it is tracked. An error means Unknown.
func (r *Repo) FileState(rel string) (State, error) {
	if err := r.load(); err != nil {
		return Unknown, err
	}
	rel = path.Clean(rel)
	if r.idx.inSubmodule(rel) {
		return Unknown, fmt.Errorf("%q: %w: it is in a submodule", rel, ErrUnknown)
	}
	e, ok := r.idx.find(rel)
	if !ok {
		return Untracked, nil
	}
	if !e.restorable() {
		return Modified, nil
	}
	name := path.Join(r.root, rel)
	info, err := r.r.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Restorable, nil
	case err != nil:
		return Unknown, fmt.Errorf("%q: %w", rel, err)
	case e.matches(info) && info.MTimeNS < r.stat.MTimeNS, e.sameContent(name, info, r.r):
		return Restorable, nil
	}
	return Modified, nil
}

// load reads the index once. It is quiet: every evaluation reads it anew, and a mere "git status" rewrites it.
func (r *Repo) load() error {
	if r.loaded {
		return r.err
	}
	r.loaded = true
	r.idx, r.err = r.readIndex()
	if r.err != nil {
		r.err = fmt.Errorf("%w: %w", ErrUnknown, r.err)
	}
	return r.err
}

func (r *Repo) readIndex() (*index, error) {
	q := r.r.Quiet()
	cfg, err := readConfig(q, path.Join(r.common, "config"))
	if err != nil {
		return nil, err
	}
	if cfg.worktree != "" && resolve(r.gitDir, cfg.worktree) != r.root {
		return nil, errors.New("core.worktree names another directory")
	}
	// The time of the file that a link leads to is what counts, and it must be the time from before the reading.
	if infos, err := q.StatBelow(r.gitDir, []string{"index"}); err == nil {
		r.stat = infos[0]
	}
	data, err := q.ReadFile(path.Join(r.gitDir, "index"), maxIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return &index{}, nil // nothing was ever added
	}
	if err != nil {
		return nil, err
	}
	return parseIndex(data, cfg.hashSize, cfg.ignoreCase)
}
