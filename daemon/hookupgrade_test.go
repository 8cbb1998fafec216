// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/daemon/control"
)

func TestAnAnnouncedUpgradeOfTheHookProgramIsNoAlarm(t *testing.T) {
	t.Parallel()
	const next = "\x7fELF the next hook"
	say := func(b *bench, path, hash, action string) error {
		_, err := b.client.Announce(t.Context(), control.AnnounceRequest{Path: path, SHA256: hash, Action: action, Agent: "claude", Proof: control.Proof{Level: "L0"}})
		return err
	}
	upgrade := func(b *bench) { must(b.t, say(b, b.hookFile(), hashOf(next), actionUpgrade)) }
	put := func(b *bench, text string) {
		must(b.t, os.WriteFile(b.hookFile()+".new", []byte(text), 0o700), os.Rename(b.hookFile()+".new", b.hookFile()))
	}
	tests := []struct {
		name   string
		do     func(b *bench)
		alarms int // that were ever recorded
		stands bool
	}{
		{"it is announced, then replaced", func(b *bench) { upgrade(b); put(b, next) }, 0, false},
		{"it is replaced, then announced", func(b *bench) {
			put(b, next)
			b.eventually("the alarm", func() bool { return len(b.status().Alarms) == 1 })
			upgrade(b)
			b.eventually("the end of the alarm", func() bool { return len(b.status().Alarms) == 0 })
		}, 1, false},
		{"other bytes are announced", func(b *bench) { must(b.t, say(b, b.hookFile(), hashOf("\x7fELF"), actionUpgrade)); put(b, next) }, 1, true},
		{"another program is announced", func(b *bench) {
			must(b.t, say(b, filepath.Join(b.home, hookProgram), hashOf(next), actionUpgrade))
			put(b, next)
		}, 1, true},
		{"it is announced as settings", func(b *bench) { must(b.t, say(b, b.hookFile(), hashOf(next), actionInstall)); put(b, next) }, 1, true},
		{"it is announced, and then cannot be run", func(b *bench) {
			upgrade(b)
			put(b, next)
			must(b.t, os.Chmod(b.hookFile(), 0o600))
		}, 1, true},
		{"it is announced, replaced, and replaced once more", func(b *bench) {
			upgrade(b)
			put(b, next)
			b.eventually("a look", func() bool { return b.d.hookWatch.takes(b.hookFile(), hashOf(next)) })
			put(b, "\x7fELF another")
		}, 1, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := running(t)
			b.wire("")
			tt.do(b)
			b.eventually("the alarms", func() bool {
				return len(b.kinds(record.TamperBinary)) == tt.alarms && (len(b.status().Alarms) == 1) == tt.stands
			})
			if tt.alarms == 0 {
				b.eventually("a look", func() bool { return b.d.hookWatch.takes(b.hookFile(), hashOf(next)) })
				if rs := b.kinds(record.TamperBinary); len(rs) != 0 {
					t.Errorf("records %v", rs)
				}
			}
		})
	}
	t.Run("what cannot be an upgrade is refused", func(t *testing.T) {
		t.Parallel()
		b := running(t)
		for _, r := range [][2]string{{b.settingsFile(), hashOf(next)}, {b.hookFile(), hashAbsent}, {"tripline-hook", hashOf(next)}, {b.hookFile(), "00"}} {
			if err := say(b, r[0], r[1], actionUpgrade); err == nil {
				t.Errorf("%q was taken", r)
			}
		}
	})
}

// takes reports whether a program with these bytes is taken for good.
func (w *hookWatch) takes(path, hash string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.dirty) == 0 && w.programs[path] != nil && w.programs[path].now == hash && w.programs[path].hash == hash
}
