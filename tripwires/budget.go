// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"strings"

	"github.com/tripline-sh/tripline/tripwires/view"
)

// maxWork bounds what one decision looks up, in components of paths: about 1.5 microseconds each on a local disk. No command
// of daily work comes near it.
const maxWork = 100_000

// meter counts the look-ups of one decision and refuses those beyond its bound: the machine is then not asked any more, paths
// are judged by their text, and the decision says that it could not tell.
type meter struct {
	left int
	ops  int  // look-ups, for tests
	out  bool // something was refused
}

func (m *meter) spend(path string, n int) bool {
	cost := 4 + n + strings.Count(path, "/")
	if m.out || cost > m.left {
		m.out = true
		return false
	}
	m.left -= cost
	m.ops++
	return true
}

// metered is a Reader whose look-ups are counted.
type metered struct {
	view.Reader
	m *meter
}

func (r metered) Lstat(path string) (view.Info, error) {
	if !r.m.spend(path, 0) {
		return view.Info{}, view.ErrBusy
	}
	return r.Reader.Lstat(path)
}

func (r metered) Readlink(path string) (string, error) {
	if !r.m.spend(path, 0) {
		return "", view.ErrBusy
	}
	return r.Reader.Readlink(path)
}

func (r metered) ReadFile(path string, max int64) ([]byte, error) {
	if !r.m.spend(path, 0) {
		return nil, view.ErrBusy
	}
	return r.Reader.ReadFile(path, max)
}

func (r metered) ReadCode(path string, max int64) ([]byte, error) {
	if !r.m.spend(path, 0) {
		return nil, view.ErrBusy
	}
	return r.Reader.ReadCode(path, max)
}

func (r metered) Resolve(path string) (string, error) {
	if !r.m.spend(path, 0) {
		return "", view.ErrBusy
	}
	return r.Reader.Resolve(path)
}

func (r metered) ReadDir(path string, max int) ([]string, error) {
	if !r.m.spend(path, 8) { // a listing costs more than a look
		return nil, view.ErrBusy
	}
	return r.Reader.ReadDir(path, max)
}

func (r metered) StatBelow(dir string, names []string) ([]view.Info, error) {
	if !r.m.spend(dir, len(names)/2) {
		return nil, view.ErrBusy
	}
	return r.Reader.StatBelow(dir, names)
}

func (r metered) Quiet() view.Reader { return metered{r.Reader.Quiet(), r.m} }

// class is what the built-in rules ask of a finding, apart from its paths.
type class struct {
	kind                                                          EffectKind
	place, form, program, host, certainty                         string
	recursive, forced, credentials, shallow, regenerable, recover bool
	exists, linked, privileged                                    bool
}

func (f *finding) class() class {
	return class{f.Kind, f.Place, f.form, f.Program, f.host, string(f.Certainty), f.Recursive, f.Forced, f.credentials, f.shallow, f.regenerable,
		f.recoverable, f.exists, f.linked, f.privileged}
}

// beyondBounds says once that the call does more than is looked at: what was left out may be anything, so a person decides.
func (x *evaluation) beyondBounds(why string) {
	if x.beyond {
		return
	}
	x.beyond = true
	x.doubt(why)
	x.findings = append(x.findings, finding{Effect: Effect{Kind: Unknown, Certainty: Uncertain, Note: why}, form: "truncated", cmd: -1})
}
