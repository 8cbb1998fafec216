// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"github.com/tripline-sh/tripline/tripwires/gitfile"
	"github.com/tripline-sh/tripline/tripwires/paths"
)

// repositories answers for the project's repositories; they are opened once a decision and only when asked.
func (x *evaluation) repositories() *gitfile.Trees {
	if x.trees == nil {
		x.trees = gitfile.NewTrees(x.root, x.view.Quiet())
	}
	return x.trees
}

// regenerable reports whether a build makes again what a path names.
func (x *evaluation) regenerable(r paths.Result) bool {
	ok, _ := x.repositories().Regenerable(r)
	return ok
}

// restorable reports whether git has the very content of an existing file.
func (x *evaluation) restorable(r paths.Result) bool {
	state, err := x.repositories().State(r.Path)
	return err == nil && state == gitfile.Restorable
}
