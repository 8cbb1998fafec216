// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/daemon/control"
	"github.com/tripline-sh/tripline/hooks/install"
)

// hookFile is the hook program of a bench.
func (b *bench) hookFile() string { return filepath.Join(b.home, "bin", hookProgram) }

// wire installs our hooks for the bench's home as auditctl does, on top of before, and waits until the daemon knows.
func (b *bench) wire(before string) {
	b.t.Helper()
	if err := os.MkdirAll(filepath.Dir(b.hookFile()), 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(b.hookFile(), []byte("\x7fELF the hook"), 0o700); err != nil {
		b.t.Fatal(err)
	}
	if before != "" {
		write(b.t, b.settingsFile(), before)
	}
	c, err := install.Plan(install.Options{
		Path: b.settingsFile(), Owner: os.Getuid(), Binary: b.hookFile(), Socket: b.places.HookSocket, ServerUID: os.Getuid(),
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.apply(c, actionInstall)
	b.eventually("the hooks are known", func() bool { return b.d.hookWatch.knows(b.settingsFile(), b.hookFile()) })
}

// apply announces a change and makes it.
func (b *bench) apply(c *install.Change, action string) {
	b.t.Helper()
	if _, err := b.client.Announce(b.t.Context(), control.AnnounceRequest{Path: c.Path, SHA256: c.SHA256(), Action: action, Agent: "claude", Proof: control.Proof{Level: "L0"}}); err != nil {
		b.t.Fatal(err)
	}
	if err := c.Apply(); err != nil {
		b.t.Fatal(err)
	}
}

// unwire takes our hooks out as auditctl does.
func (b *bench) unwire() {
	b.t.Helper()
	c, err := install.PlanRemoval(b.settingsFile(), os.Getuid())
	if err != nil {
		b.t.Fatal(err)
	}
	b.apply(c, actionUninstall)
}

// knows reports whether a file is watched as wired, and the program's hash is known.
func (w *hookWatch) knows(path, program string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	f, p := w.files[path], w.programs[program]
	return f != nil && len(f.Want) > 0 && f.Accepted != "" && p != nil && p.path == program && w.hashed(p)
}

// hashed reports whether a program was looked at; its mark is gone then. The caller holds mu.
func (w *hookWatch) hashed(p *program) bool {
	_, marked := w.dirty[p.path]
	return !marked
}

func (b *bench) read() []byte {
	b.t.Helper()
	data, err := os.ReadFile(b.settingsFile())
	if err != nil {
		b.t.Fatal(err)
	}
	return data
}

// replace writes a file beside the settings and gives it their name.
func (b *bench) replace(data []byte) {
	b.t.Helper()
	temp := b.settingsFile() + ".tmp"
	if err := os.WriteFile(temp, data, 0o600); err != nil {
		b.t.Fatal(err)
	}
	if err := os.Rename(temp, b.settingsFile()); err != nil {
		b.t.Fatal(err)
	}
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestHooksThatGoWithoutAPersonsWordRaiseAnAlarmThatEndsWhenTheyAreBack(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		tamper func(b *bench, good []byte)
		why    string
	}{
		{"the file is edited in place", func(b *bench, _ []byte) { write(b.t, b.settingsFile(), `{"model":"opus"}`) }, "entries are gone"},
		{"another file takes its name", func(b *bench, _ []byte) { b.replace([]byte(`{}`)) }, "entries are gone"},
		{"one entry is taken out", func(b *bench, good []byte) {
			b.replace(bytes.Replace(good, []byte(`"PreToolUse": [`), []byte(`"PreToolUseX": [`), 1))
		}, "gone or changed: PreToolUse"},
		{"the matcher is narrowed", func(b *bench, good []byte) { b.replace(bytes.Replace(good, []byte(`"*"`), []byte(`"Nothing"`), 1)) }, "gone or changed"},
		{"onFailure is softened", func(b *bench, good []byte) {
			b.replace(bytes.Replace(good, []byte(`"block"`), []byte(`"continue"`), 1))
		}, "gone or changed"},
		{"a switch is added to an entry", func(b *bench, good []byte) {
			b.replace(bytes.Replace(good, []byte(`"type": "command"`), []byte(`"async": true, "type": "command"`), 1))
		}, "gone or changed"},
		{"the file is deleted", func(b *bench, _ []byte) { must(b.t, os.Remove(b.settingsFile())) }, "the file is gone"},
		{"the directory is deleted", func(b *bench, _ []byte) { must(b.t, os.RemoveAll(filepath.Dir(b.settingsFile()))) }, "the file is gone"},
		{"the directory is moved away", func(b *bench, _ []byte) {
			must(b.t, os.Rename(filepath.Dir(b.settingsFile()), filepath.Join(b.home, "away")))
		}, "the file is gone"},
		{"the directory is replaced", func(b *bench, _ []byte) {
			dir := filepath.Dir(b.settingsFile())
			must(b.t, os.Rename(dir, dir+".old"), os.Mkdir(dir, 0o700))
		}, "the file is gone"},
		{"hooks are switched off", func(b *bench, good []byte) {
			b.replace(append([]byte(`{"disableAllHooks": true,`), bytes.TrimPrefix(good, []byte("{"))...))
		}, "disableAllHooks"},
		{"hooks are switched off in another file of a session", func(b *bench, _ []byte) {
			b.send("SessionStart", b.payload("SessionStart", map[string]any{"source": "startup"}))
			write(b.t, filepath.Join(b.project, ".claude", "settings.local.json"), `{"disableAllHooks":true}`)
		}, "disableAllHooks"},
		{"a bad entry keeps the agent from loading the file", func(b *bench, good []byte) {
			b.replace(bytes.Replace(good, []byte(`"PreToolUse": [`), []byte(`"PreToolUse": [{"hooks":[{"type":"nonsense"}]},`), 1))
		}, "keeps the agent from loading it"},
		{"the file is no JSON any more", func(b *bench, good []byte) { b.replace(good[:len(good)-3]) }, "cannot be read as settings"},
		{"the file is huge", func(b *bench, good []byte) { b.replace(append(good, bytes.Repeat([]byte(" "), 2<<20)...)) }, "cannot be read as settings"},
		{"a FIFO takes its place", func(b *bench, _ []byte) {
			must(b.t, os.Remove(b.settingsFile()), syscall.Mkfifo(b.settingsFile(), 0o600))
		}, "cannot be read as settings"},
		{"a directory takes its place", func(b *bench, _ []byte) {
			must(b.t, os.Remove(b.settingsFile()), os.Mkdir(b.settingsFile(), 0o700))
		}, "cannot be read as settings"},
		{"a link to another file takes its place", func(b *bench, _ []byte) {
			other := filepath.Join(b.home, "other.json")
			write(b.t, other, "{}")
			must(b.t, os.Remove(b.settingsFile()), os.Symlink(other, b.settingsFile()))
		}, "entries are gone"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := running(t)
			b.wire("{\n  \"model\": \"opus\"\n}\n")
			good := b.read()
			tt.tamper(b, bytes.Clone(good))
			if fi, err := os.Stat(b.settingsFile()); err == nil && fi.Mode().IsRegular() && bytes.Equal(b.read(), good) && !strings.Contains(tt.name, "another file of a session") {
				t.Fatal("nothing was done")
			}
			b.eventually("the alarm", func() bool { return len(b.kinds(record.TamperHooksRemoved)) > 0 })
			r := b.one(record.TamperHooksRemoved)
			if !strings.Contains(r.Detail["why"], tt.why) || r.Detail["path"] == "" || r.Detail["while"] != "" {
				t.Errorf("detail %v, want %q", r.Detail, tt.why)
			}
			st := b.status()
			if len(st.Alarms) != 1 || !strings.HasPrefix(st.Alarms[0], "tamper.hooks-removed "+r.Detail["path"]) {
				t.Errorf("alarms %q", st.Alarms)
			}
			b.eventually("the gauge", func() bool { return b.metric("tripline_hooks_removed") == 1 })
			if n := b.metric(`tripline_alarms_total{kind="tamper.hooks-removed"}`); n != 1 {
				t.Errorf("counted %v times", n)
			}
			// Everything back as it was.
			must(t, os.RemoveAll(filepath.Join(b.project, ".claude")), os.RemoveAll(b.settingsFile()), os.MkdirAll(filepath.Dir(b.settingsFile()), 0o700))
			write(t, b.settingsFile(), string(good))
			b.eventually("the end of the alarm", func() bool { return len(b.status().Alarms) == 0 })
			b.eventually("the gauge", func() bool { return b.metric("tripline_hooks_removed") == 0 })
			rs := b.kinds(record.ConfigSettings)
			if last := rs[len(rs)-1]; last.Detail["hooks"] != "back" {
				t.Errorf("last record %v", last.Detail)
			}
		})
	}
}

func TestSettingsThatTheDaemonMayNotReadRaiseAnAlarm(t *testing.T) {
	t.Parallel()
	b := running(t)
	b.wire("")
	must(t, os.Chmod(b.settingsFile(), 0))
	if os.Geteuid() == 0 { // who may read everything sees that nothing changed, and so does the agent
		write(t, filepath.Join(b.home, ".claude", "mark.json"), "{}")
		b.d.hookWatch.add(b.settingsFile())
		b.eventually("a look", func() bool { return b.d.hookWatch.idle() })
		if n := len(b.kinds(record.TamperHooksRemoved)); n != 0 {
			t.Errorf("%d alarms", n)
		}
		return
	}
	b.eventually("the alarm", func() bool { return len(b.kinds(record.TamperHooksRemoved)) == 1 })
	must(t, os.Chmod(b.settingsFile(), 0o600))
	b.eventually("the end of the alarm", func() bool { return len(b.status().Alarms) == 0 })
}

// idle reports whether everything that was marked was looked at.
func (w *hookWatch) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.dirty) == 0
}

func TestWhatAPersonAnnouncedIsNoAlarm(t *testing.T) {
	t.Parallel()
	b := running(t)
	wired := func() bool {
		b.d.hookWatch.mu.Lock()
		defer b.d.hookWatch.mu.Unlock()
		return b.d.hookWatch.wiredIn(b.settingsFile())
	}
	for range 2 {
		b.wire(`{"model":"opus"}`)
		b.unwire()
		b.eventually("the uninstall is known", func() bool { return !wired() })
	}
	b.wire("")
	// Edits that leave our entries alone are none of our business.
	b.replace(bytes.Replace(b.read(), []byte("opus"), []byte("haiku"), 1))
	b.eventually("a look", b.d.hookWatch.idle)
	b.stop()
	b.start()
	b.eventually("a look after the restart", b.d.hookWatch.idle)
	if rs := b.kinds(record.TamperHooksRemoved, record.TamperBinary); len(rs) != 0 || len(b.status().Alarms) != 0 {
		t.Errorf("records %v, alarms %q", rs, b.status().Alarms)
	}
}

// A person's word counts for ten minutes, whatever happens to the daemon meanwhile.
func TestWhatAPersonAnnouncedIsNoAlarmAfterARestart(t *testing.T) {
	t.Parallel()
	b := running(t)
	b.wire("")
	c, err := install.Plan(install.Options{
		Path: b.settingsFile(), Owner: os.Getuid(), Binary: b.hookFile(), Socket: b.places.HookSocket, ServerUID: os.Getuid(), AllowOnDown: true,
	})
	must(t, err)
	_, err = b.client.Announce(t.Context(), control.AnnounceRequest{Path: c.Path, SHA256: c.SHA256(), Action: actionInstall, Agent: "claude", Proof: control.Proof{Level: "L0"}})
	must(t, err)
	b.stop()
	must(t, c.Apply())
	b.start()
	b.eventually("the new entries are known", func() bool { return b.d.hookWatch.knows(b.settingsFile(), b.hookFile()) })
	b.eventually("a look", b.d.hookWatch.idle)
	if rs := b.kinds(record.TamperHooksRemoved); len(rs) != 0 || len(b.status().Alarms) != 0 {
		t.Errorf("records %v, alarms %q", rs, b.status().Alarms)
	}
	// Words that are too old, not yet said, or about another file count for nothing.
	book := newSettingsBook(nil, nil, nil)
	now := time.Now()
	said := func(at time.Time, path string) *record.Record {
		return &record.Record{Kind: record.ConfigSettings, Time: at, Detail: map[string]string{"announced": "1", "path": path, "sha256": "aa", "action": actionInstall}}
	}
	book.replay(said(now.Add(-announcedFor-time.Second), "/f"), now)
	book.replay(said(now.Add(time.Hour), "/f"), now)
	book.replay(said(now, "/g"), now)
	if book.isAnnounced("/f", "aa", now) || !book.isAnnounced("/g", "aa", now) {
		t.Error("the wrong word counts")
	}
}

// wiredIn reports whether a file has entries of ours. The caller holds mu.
func (w *hookWatch) wiredIn(path string) bool {
	return w.files[path] != nil && len(w.files[path].Want) > 0
}

func TestEachChangeIsToldOnceAndOutlivesARestart(t *testing.T) {
	t.Parallel()
	b := running(t)
	b.wire("")
	good := b.read()
	write(t, b.settingsFile(), `{}`)
	b.eventually("the alarm", func() bool { return len(b.kinds(record.TamperHooksRemoved)) == 1 })
	write(t, b.settingsFile(), `{"model":"opus"}`) // still gone, in the same way
	b.d.hookWatch.add(b.settingsFile())
	b.eventually("a look", b.d.hookWatch.idle)
	must(t, os.Remove(b.settingsFile())) // gone in another way
	b.eventually("the second change", func() bool { return len(b.kinds(record.TamperHooksRemoved)) == 2 })
	b.stop()
	b.start()
	b.eventually("a look after the restart", b.d.hookWatch.idle)
	if n := len(b.kinds(record.TamperHooksRemoved)); n != 2 {
		t.Errorf("%d records after a restart", n)
	}
	if a := b.status().Alarms; len(a) != 1 {
		t.Errorf("alarms %q", a)
	}
	write(t, b.settingsFile(), string(good))
	b.eventually("the end of the alarm", func() bool { return len(b.status().Alarms) == 0 })
}

func TestHooksThatGoWhileNoDaemonRunsAreTold(t *testing.T) {
	t.Parallel()
	b := running(t)
	b.wire("")
	good := b.read()
	b.stop()
	write(t, b.settingsFile(), `{}`)
	b.start()
	b.eventually("the alarm", func() bool { return len(b.kinds(record.TamperHooksRemoved)) == 1 })
	if d := b.one(record.TamperHooksRemoved).Detail; d["while"] == "" {
		t.Errorf("detail %v", d)
	}
	// It may have been a person, so that it is how things are from now on: the alarm ends by itself.
	b.eventually("a look", b.d.hookWatch.idle)
	if n := b.metric("tripline_hooks_removed"); n != 0 {
		t.Errorf("%v files", n)
	}
	b.stop()
	b.start()
	b.eventually("a look", b.d.hookWatch.idle)
	if n := len(b.kinds(record.TamperHooksRemoved)); n != 1 {
		t.Errorf("told %d times", n)
	}
	b.stop()
	write(t, b.settingsFile(), string(good))
	b.start()
	b.eventually("the hooks are known again", func() bool { return b.d.hookWatch.wired() })
}

func TestEntriesOfAnotherInstallAreNotOurs(t *testing.T) {
	t.Parallel()
	b := running(t)
	b.wire("")
	other := bytes.ReplaceAll(b.read(), []byte(b.places.HookSocket), []byte("/elsewhere/hook.sock"))
	w, err := readWiring(other, b.places.HookSocket)
	if err != nil || len(w.entries) != 0 {
		t.Errorf("%d entries, %v", len(w.entries), err)
	}
	w, err = readWiring(b.read(), b.places.HookSocket)
	if err != nil || len(w.entries) == 0 || len(w.programs) != 1 || w.programs[0] != b.hookFile() {
		t.Errorf("%d entries, programs %q, %v", len(w.entries), w.programs, err)
	}
}

func TestAHookProgramThatIsReplacedOrGoneRaisesAnAlarm(t *testing.T) {
	t.Parallel()
	good := []byte("\x7fELF the hook")
	tests := []struct {
		name   string
		tamper func(b *bench)
		now    string
	}{
		{"it is deleted", func(b *bench) { must(b.t, os.Remove(b.hookFile())) }, hashAbsent},
		{"its directory is deleted", func(b *bench) { must(b.t, os.RemoveAll(filepath.Dir(b.hookFile()))) }, hashAbsent},
		{"it is overwritten", func(b *bench) { must(b.t, os.WriteFile(b.hookFile(), []byte("#!/bin/true\n"), 0o700)) }, hashOf("#!/bin/true\n")},
		{"it may not be run any more", func(b *bench) { must(b.t, os.Chmod(b.hookFile(), 0o600)) }, "not executable"},
		{"a directory takes its place", func(b *bench) { must(b.t, os.Remove(b.hookFile()), os.Mkdir(b.hookFile(), 0o700)) }, "unreadable"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := running(t)
			b.wire("")
			tt.tamper(b)
			b.eventually("the alarm", func() bool {
				rs := b.kinds(record.TamperBinary) // overwriting takes two steps
				return len(rs) > 0 && rs[len(rs)-1].Detail["sha256"] == tt.now
			})
			if a := b.status().Alarms; len(a) != 1 || !strings.HasPrefix(a[0], "tamper.binary "+b.hookFile()) {
				t.Errorf("alarms %q", a)
			}
			must(t, os.RemoveAll(b.hookFile()), os.MkdirAll(filepath.Dir(b.hookFile()), 0o700), os.WriteFile(b.hookFile(), good, 0o700))
			b.eventually("the end of the alarm", func() bool { return len(b.status().Alarms) == 0 })
		})
	}
}

func TestANewHookProgramIsTakenForGoodAtInstallAndAtTheStart(t *testing.T) {
	t.Parallel()
	b := running(t)
	b.wire("")
	must(t, os.WriteFile(b.hookFile(), []byte("\x7fELF the next hook"), 0o700))
	b.eventually("the alarm", func() bool { return len(b.status().Alarms) == 1 })
	b.stop()
	b.start()
	b.eventually("the end of the alarm", func() bool { return len(b.status().Alarms) == 0 })
	must(t, os.Remove(b.hookFile()))
	b.eventually("the alarm", func() bool { return len(b.status().Alarms) == 1 })
	b.stop()
	b.start()
	b.eventually("a look", b.d.hookWatch.idle)
	if a := b.status().Alarms; len(a) != 1 { // what cannot be run is wrong at any start
		t.Errorf("alarms %q", a)
	}
	b.unwire() // and nobody's business once no entry names it
	b.eventually("the end of the alarm", func() bool { return len(b.status().Alarms) == 0 })
}

func TestAFullWatchKeepsWhatIsWired(t *testing.T) {
	t.Parallel()
	b := running(t)
	b.wire("")
	for i := range 2 * maxWired {
		b.d.hookWatch.add(filepath.Join(b.home, "p"+itoa(uint64(i)), ".claude", "settings.json"))
	}
	b.d.hookWatch.add("relative", "/"+strings.Repeat("x", 2*maxPathText))
	b.d.hookWatch.mu.Lock()
	n, wired := len(b.d.hookWatch.files), b.d.hookWatch.wiredIn(b.settingsFile())
	b.d.hookWatch.mu.Unlock()
	if n > maxWired || !wired {
		t.Errorf("%d files, wired %v", n, wired)
	}
	write(t, b.settingsFile(), `{}`)
	b.eventually("the alarm", func() bool { return len(b.kinds(record.TamperHooksRemoved)) == 1 })
}

func TestWithoutNotificationsTheWatchLooksWhenItIsTold(t *testing.T) {
	t.Parallel()
	b := running(t)
	b.wire("")
	blind := newHookWatch(b.d, nil)
	blind.add(b.settingsFile())
	if blind.follow(t.Context(), nil); !blind.look(t.Context()) || !blind.wired() {
		t.Fatal("the file was not looked at")
	}
	b.stop()
}

func FuzzReadWiring(f *testing.F) {
	const socket = "/run/hook.sock"
	f.Add([]byte(hooked))
	f.Add([]byte(`{"disableAllHooks":true,"hooks":{"PreToolUse":[{"hooks":[{"command":"/x/tripline-hook","args":["-s","/run/hook.sock"]}]},3]}}`))
	f.Add([]byte(`{"hooks":{"Stop":[{"hooks":{}}]},}`))
	f.Add([]byte(`{"hooks":[],"hooks":null}`))
	f.Add([]byte("\xff{"))
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		w, err := readWiring(b, socket)
		if err != nil && (len(w.entries) != 0 || w.off) {
			t.Error("an error with a result")
		}
		if !bytes.Equal(b, before) {
			t.Error("the bytes were changed")
		}
		again, err2 := readWiring(b, socket)
		if (err == nil) != (err2 == nil) || len(w.lacks(again.entries)) != 0 {
			t.Error("two readings differ")
		}
	})
}
