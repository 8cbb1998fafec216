// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"slices"
	"strconv"
	"strings"
)

// finding is an effect with what the rules need to judge it and what an Effect does not show.
type finding struct {
	Effect
	form string // finer than the kind: "reset-hard", "fork-bomb", "drop" ...; built-in rules select by it

	abs         []string // absolute paths that the target may mean: as written, and with links resolved
	credentials bool     // keys and cloud credentials below a home
	shallow     bool     // "/", a system directory, or a direct child of one
	regenerable bool     // a well-known build name that nothing tracks
	recoverable bool     // git can bring it back
	exists      bool     // something is there now (or it could not be told)
	host        string   // of a network target
	cmd         int      // index into evaluation.cmds, -1 if a file tool or the source as a whole made it
	redir       bool     // made by a redirection of that command and not by its arguments
	quiet       bool     // only for path patterns: not worth showing as an effect
	privileged  bool
	linked      bool // the same source makes links or mounts before
}

// key tells effects apart that are shown.
func (f *finding) key() string {
	return strings.Join([]string{string(f.Kind), f.Target, f.Program, f.Place, string(f.Certainty), f.Note, strconv.FormatBool(f.Recursive),
		strconv.FormatBool(f.Forced), strings.Join(f.Via, "\x1f")}, "\x1e")
}

// shown is the effect with its texts bounded.
func (f *finding) shown() Effect {
	e := f.Effect
	e.Target, e.Program, e.Note = shorten(e.Target, 500), shorten(e.Program, 100), shorten(e.Note, 200)
	if e.Via = e.Via[:min(len(e.Via), 16)]; len(e.Via) > 0 {
		e.Via = slices.Clone(e.Via)
		for i, v := range e.Via {
			e.Via[i] = shorten(v, 100)
		}
	}
	return e
}

func (k EffectKind) known() bool {
	switch k {
	case Read, Write, Append, Delete, Empty, Overwrite, ExecuteDownload, NetworkSend, SecretRead, VCSDiscard,
		VCSRewriteRemote, Privilege, PermissionChange, DeviceWrite, ProcessKill, Persistence, DatabaseDestroy,
		InfraDestroy, HistoryWipe, SelfTamper, AgentUnguarded, Execute, ResourceExhaust, Unknown:
		return true
	}
	return false
}

// mutates reports whether an effect of this kind changes something (modes ask and plan).
func (k EffectKind) mutates() bool { return k != Read && k != SecretRead }

// reads reports whether a Read(...) pattern speaks of this kind.
func (k EffectKind) reads() bool { return k == Read || k == SecretRead }

// writes reports whether a Write(...) or Edit(...) pattern speaks of this kind.
func (k EffectKind) writes() bool {
	switch k {
	case Write, Append, Empty, Overwrite, Delete, DeviceWrite, SelfTamper, Persistence:
		return true
	}
	return false
}
