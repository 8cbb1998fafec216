// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tripline-sh/tripline/audit/record"
)

// ended reports the reason for which a daemon cannot go on, "" as long as it can.
func (b *bench) ended() string {
	select {
	case err := <-b.d.fatal:
		return err.Error()
	default:
		return ""
	}
}

func TestADaemonWhosePlacesAreGoneEndsAndTheNextOneTakesOver(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		lose func(b *bench) error
		why  string
	}{
		{"the runtime directory is removed", func(b *bench) error { return os.RemoveAll(b.places.RunDir) }, "lock file"},
		{"the runtime directory is moved away", func(b *bench) error { return os.Rename(b.places.RunDir, b.places.RunDir+"2") }, "lock file"},
		{"the lock file is removed", func(b *bench) error { return os.Remove(b.places.LockFile) }, "lock file"},
		{"another file has the lock's name", func(b *bench) error {
			return os.Rename(b.places.ConfigFile, b.places.LockFile)
		}, "lock file"},
		{"the socket is removed", func(b *bench) error { return os.Remove(b.places.HookSocket) }, "socket of hooks"},
		{"the socket is moved away", func(b *bench) error { return os.Rename(b.places.HookSocket, b.places.HookSocket+"2") }, "socket of hooks"},
		{"a link has the socket's name", func(b *bench) error {
			moved := b.places.HookSocket + "2"
			if err := os.Rename(b.places.HookSocket, moved); err != nil {
				return err
			}
			return os.Symlink(moved, b.places.HookSocket)
		}, "socket of hooks"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := running(t)
			write(t, b.places.ConfigFile, "mode: guard\n")
			must(t, tt.lose(b))
			why := ""
			b.eventually("the end", func() bool { why += b.ended(); return why != "" })
			if !strings.Contains(why, tt.why) {
				t.Errorf("it ends because %s", why)
			}
			b.stop()
			b.start(onDemand)
			if !isPass(b.send("PreToolUse", b.bash("ls", "1"))) {
				t.Error("the next daemon does not serve")
			}
			if d := b.one(record.DaemonAlarm).Detail; !strings.Contains(d["what"], tt.why) {
				t.Errorf("on record: %v", d)
			}
		})
	}
}

func TestASocketOfTheManagerThatIsGoneIsAnAlarm(t *testing.T) {
	t.Parallel()
	b := place(t)
	must(t, os.MkdirAll(filepath.Dir(b.places.HookSocket), 0o700))
	held := given(t, b.places.HookSocket, hookSocketName)
	b.start(func(o *Options) { o.Manager = &Manager{Sockets: []*os.File{held}} })
	must(t, os.Remove(b.places.HookSocket))
	b.eventually("the alarm", func() bool { return len(b.status().Alarms) == 1 && len(b.kinds(record.DaemonAlarm)) == 1 })
	if why := b.ended(); why != "" {
		t.Errorf("it ends: %s", why)
	}
	must(t, os.Remove(b.places.LockFile))
	b.eventually("the end without a lock", func() bool { return strings.Contains(b.ended(), "lock file") })
}

func TestOtherChangesOfItsPlacesAreNoReasonToEnd(t *testing.T) {
	t.Parallel()
	b := running(t)
	must(t, os.Chmod(b.places.HookSocket, 0o666), os.Chmod(b.places.LockFile, 0o644), os.WriteFile(b.places.LockFile, []byte("1\n"), 0o600),
		os.Remove(b.places.ControlSocket), os.WriteFile(b.places.StoppedFile, nil, 0o600))
	if !isPass(b.send("PreToolUse", b.bash("ls", "1"))) {
		t.Error("not served")
	}
	if what, _ := b.d.standing.Load().gone(); what != "" {
		t.Error(what)
	}
}
