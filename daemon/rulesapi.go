// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"net/http"
	"slices"

	"github.com/tripline-sh/tripline/daemon/control"
)

// getRules hands out the files of the rules in force, so that whoever asks compiles the same set.
func (d *Daemon) getRules(w http.ResponseWriter, r *http.Request) error {
	p := d.policy.Load()
	out := control.RulesResponse{RuleSet: p.set.Hash(), Mode: p.cfg.Mode, Profile: p.cfg.Profile, Files: []control.RulesFile{}}
	for _, f := range p.set.Files() {
		out.Files = append(out.Files, control.RulesFile{Path: f.Path, Layer: string(f.Layer), Data: f.Data, Generation: f.Generation})
	}
	return writeJSON(w, out)
}

// sameLines reports whether two lists hold the same lines, in whatever order.
func sameLines(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}
