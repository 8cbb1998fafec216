// SPDX-License-Identifier: Apache-2.0

package gitfile

import (
	"errors"
	"path"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/paths"
	"github.com/tripline-sh/tripline/tripwires/view"
)

// Trees answers for every file of a project, whichever repository it is in: a directory of the project may be a repository
// of its own. It is for one decision and not safe for concurrent use.
type Trees struct {
	root  string
	r     view.Reader
	repos map[string]opened
}

type opened struct {
	repo *Repo
	err  error
}

// NewTrees returns the Trees of a project; root is absolute.
func NewTrees(root string, r view.Reader) *Trees {
	return &Trees{root: path.Clean(root), r: r, repos: make(map[string]opened)}
}

// Regenerable reports whether what res names may be lost because a build makes it again: it is, or is in, a directory of
// the project with a well-known build name, and either no repository holds it or the index was read and tracks nothing in
// that directory. why says it in words in both cases.
func (t *Trees) Regenerable(res paths.Result) (ok bool, why string) {
	if res.Place != paths.Project || !res.BuildDir || res.Denied {
		return false, "not a build directory of the project"
	}
	dir := path.Join(t.root, res.BuildRoot)
	if _, err := t.r.Lstat(path.Join(dir, ".git")); err == nil {
		return false, "a repository of its own"
	}
	repo, rel, err := t.open(dir)
	switch {
	case errors.Is(err, ErrNoRepo):
		return true, "a build directory, and no git repository"
	case err != nil:
		return false, "a build directory, but it could not be told whether git tracks files in it"
	}
	tracks, err := repo.TracksUnder(rel)
	switch {
	case err != nil:
		return false, "a build directory, but it could not be told whether git tracks files in it"
	case tracks:
		return false, "a build directory in which git tracks files"
	}
	return true, "a build directory in which git tracks nothing"
}

// State says whether git could bring the file abs back. It is Untracked, with ErrNoRepo, where there is no repository.
func (t *Trees) State(abs string) (State, error) {
	repo, rel, err := t.open(path.Clean(abs))
	switch {
	case errors.Is(err, ErrNoRepo):
		return Untracked, err
	case err != nil:
		return Unknown, err
	}
	return repo.FileState(rel)
}

// open returns the nearest repository above abs and the path of abs in it. It looks above the project's root as well,
// which may have been set to a part of a repository.
func (t *Trees) open(abs string) (*Repo, string, error) {
	for dir := abs; dir != "/" && dir != "."; {
		dir = path.Dir(dir)
		o, ok := t.repos[dir]
		if !ok {
			o.repo, o.err = Open(dir, t.r)
			t.repos[dir] = o
		}
		if errors.Is(o.err, ErrNoRepo) {
			continue
		}
		if o.err != nil {
			return nil, "", o.err
		}
		return o.repo, strings.TrimPrefix(abs[len(dir):], "/"), nil
	}
	return nil, "", ErrNoRepo
}
