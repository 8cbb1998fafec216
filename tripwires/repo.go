// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/gitfile"
	"github.com/tripline-sh/tripline/tripwires/paths"
)

// openRepo finds the project's repository once a decision.
func (x *evaluation) openRepo() (*gitfile.Repo, error) {
	if !x.repoOpen {
		x.repoOpen = true
		x.repo, x.repoErr = gitfile.Open(x.root, x.view.Quiet())
	}
	return x.repo, x.repoErr
}

// untracked reports whether a well-known build directory, relative to the root, holds nothing that the repository tracks. No
// repository tracks nothing; an index that cannot be read is no proof.
func (x *evaluation) untracked(buildRoot string) bool {
	repo, err := x.openRepo()
	if errors.Is(err, gitfile.ErrNoRepo) {
		return true
	}
	if err != nil {
		return false
	}
	tracked, err := repo.TracksUnder(buildRoot)
	if errors.Is(err, gitfile.ErrNoRepo) {
		return true
	}
	return err == nil && !tracked
}

// restorable reports whether git has the very content of an existing file.
func (x *evaluation) restorable(r paths.Result) bool {
	repo, err := x.openRepo()
	if err != nil {
		return false
	}
	root := x.root
	if real, err := x.view.Quiet().Resolve(root); err == nil && within(real, r.Path) {
		root = real
	}
	rel, err := filepath.Rel(root, r.Path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return false
	}
	state, err := repo.FileState(rel)
	return err == nil && state == gitfile.Restorable
}
