// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"slices"
)

// maxSettings bounds an agent's settings file that is applied virtually.
const maxSettings = 4 << 20

// settingsWrite records a write to an agent's settings file whose result is not known: that is on the floor.
func (x *evaluation) settingsWrite(f *finding, _ *located) {
	g := *f
	g.Kind, g.form, g.Note = SelfTamper, "settings", "an agent's settings would be changed in a way that cannot be shown harmless"
	x.add(g)
}

// settingsContent judges a write to a settings file whose whole new content is known. change computes it from the old bytes
// (nil = no file); ok false means that it could not be computed.
func (x *evaluation) settingsContent(f finding, l *located, change func(old []byte) (result []byte, ok bool)) {
	old, err := x.view.ReadFile(l.res.Path, maxSettings)
	if err != nil {
		// An absent file has no hooks of ours, and agents of other homes may read it: what it would hold is not harmless.
		absent := errors.Is(err, fs.ErrNotExist)
		if next, ok := change(nil); ok && absent && x.announced(next) {
			x.announcedWrite(f)
			return
		}
		x.settingsWrite(&f, l)
		return
	}
	next, ok := change(old)
	switch {
	case !ok:
		x.settingsWrite(&f, l)
	case x.announced(next):
		x.announcedWrite(f)
	case bytes.Equal(old, next):
		x.settingsAsk(f, "the settings stay as they are")
	case x.eng.settings == nil:
		x.settingsWrite(&f, l)
	default:
		if harmless, why := x.eng.settings(l.res.Path, old, next); harmless {
			x.settingsAsk(f, "an agent's settings would be changed; no hook is concerned")
		} else {
			f.Note = shorten(why, 120)
			x.settingsWrite(&f, l)
		}
	}
}

func (x *evaluation) settingsAsk(f finding, note string) {
	f.form, f.Note = "settings-harmless", note
	f.Place = ""
	x.add(f)
}

// announcedWrite is a change whose bytes a person announced.
func (x *evaluation) announcedWrite(f finding) {
	f.form, f.Note, f.Place = "settings-announced", "a person announced this change", ""
	x.trace("settings change was announced")
	x.add(f)
}

func (x *evaluation) announced(next []byte) bool {
	sum := sha256.Sum256(next)
	return slices.Contains(x.call.Announced, hex.EncodeToString(sum[:]))
}
