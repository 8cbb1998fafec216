// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/daemon/control"
	"github.com/tripline-sh/tripline/hooks/wire"
)

const hooked = `{"model":"opus","hooks":{"PreToolUse":[{"matcher":"*","hooks":[{"type":"command","command":"/usr/bin/tripline-hook"}]}]}}`

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// changed sends the event of a change of the user's settings.
func (b *bench) changed(source string) *wire.Reply {
	b.t.Helper()
	return b.send("ConfigChange", b.payload("ConfigChange", map[string]any{"source": source, "file_path": b.settingsFile()}))
}

func (b *bench) settingsFile() string { return filepath.Join(b.home, ".claude", "settings.json") }

func TestConfigChange(t *testing.T) {
	t.Parallel()
	const removed, model = `{"model":"opus"}`, `{"model":"sonnet","hooks":{"PreToolUse":[{"matcher":"*","hooks":[{"type":"command","command":"/usr/bin/tripline-hook"}]}]}}`
	tests := []struct {
		name   string
		before string // "" = no session start, so no base
		after  string // "-" = the file is removed
		source string
		say    string // hash to announce
		block  bool
		kind   record.Kind
	}{
		{"a harmless key passes", hooked, model, "user_settings", "", false, record.ConfigSettings},
		{"removed hooks are blocked", hooked, removed, "user_settings", "", true, record.TamperSettings},
		{"a switch that turns hooks off is blocked", hooked, `{"disableAllHooks":true,` + hooked[1:], "project_settings", "", true, record.TamperSettings},
		{"a removed file is blocked", hooked, "-", "user_settings", "", true, record.TamperSettings},
		{"broken JSON is blocked", hooked, "{", "local_settings", "", true, record.TamperSettings},
		{"without a base everything is blocked", "", model, "user_settings", "", true, record.TamperSettings},
		{"an announced change passes", hooked, removed, "user_settings", hashOf(removed), false, record.ConfigSettings},
		{"an announced change passes without a base", "", removed, "user_settings", hashOf(removed), false, record.ConfigSettings},
		{"an announced removal passes", hooked, "-", "user_settings", "absent", false, record.ConfigSettings},
		{"an announcement of other bytes does not help", hooked, removed, "user_settings", hashOf("x"), true, record.TamperSettings},
		{"a managed change cannot be blocked", hooked, removed, "policy_settings", "", false, record.TamperPolicy},
		{"a file that is as it was passes", hooked, hooked, "user_settings", "", false, record.ConfigSettings},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := running(t)
			if tt.before != "" {
				write(t, b.settingsFile(), tt.before)
				b.send("SessionStart", b.payload("SessionStart", map[string]any{"source": "startup", "permission_mode": nil}))
			}
			if tt.say != "" {
				if _, err := b.client.Announce(t.Context(), control.AnnounceRequest{Path: b.settingsFile(), SHA256: tt.say, Action: "uninstall", Agent: "claude", Proof: control.Proof{Level: "L0"}}); err != nil {
					t.Fatal(err)
				}
			}
			if tt.after == "-" {
				if err := os.Remove(b.settingsFile()); err != nil {
					t.Fatal(err)
				}
			} else {
				write(t, b.settingsFile(), tt.after)
			}
			r := b.changed(tt.source)
			if tt.block == isPass(r) {
				t.Fatalf("reply %+v", r)
			}
			rs := b.kinds(record.ConfigSettings, record.TamperSettings, record.TamperPolicy)
			if got := rs[len(rs)-1].Kind; got != tt.kind {
				t.Errorf("record %s, want %s", got, tt.kind)
			}
			if alarms := b.status().Alarms; (len(alarms) == 1) != (tt.kind != record.ConfigSettings) {
				t.Errorf("alarms %q", alarms)
			}
		})
	}
}

func TestBlockedChangeKeepsItsAlarmUntilItIsUndone(t *testing.T) {
	t.Parallel()
	b := running(t)
	start := b.payload("SessionStart", map[string]any{"source": "startup", "permission_mode": nil})
	write(t, b.settingsFile(), hooked)
	b.send("SessionStart", start)
	write(t, b.settingsFile(), `{}`)
	if r := b.changed("user_settings"); isPass(r) {
		t.Fatal("the change passed")
	}
	// What was refused does not become the measure in the next session, nor after a restart.
	b.send("SessionStart", start)
	b.stop()
	b.start()
	b.send("SessionStart", start)
	if alarms := b.status().Alarms; len(alarms) != 1 || !strings.Contains(alarms[0], "tamper.settings") {
		t.Errorf("alarms %q", alarms)
	}
	write(t, b.settingsFile(), `{"model":"x"}`)
	if r := b.changed("user_settings"); isPass(r) {
		t.Error("a change was measured by what had been refused")
	}
	write(t, b.settingsFile(), hooked)
	if r := b.changed("user_settings"); !isPass(r) {
		t.Errorf("putting the file back: %+v", r)
	}
	if alarms := b.status().Alarms; len(alarms) != 0 {
		t.Errorf("alarms %q", alarms)
	}
}

func TestBaseOutlivesARestartOfTheDaemon(t *testing.T) {
	t.Parallel()
	b := running(t)
	write(t, b.settingsFile(), hooked)
	b.send("SessionStart", b.payload("SessionStart", map[string]any{"source": "startup", "permission_mode": nil}))
	b.stop()
	b.start()
	write(t, b.settingsFile(), strings.Replace(hooked, "opus", "haiku", 1))
	if r := b.changed("user_settings"); !isPass(r) {
		t.Errorf("a harmless change after a restart: %+v", r)
	}
}

func TestInstallToken(t *testing.T) {
	t.Parallel()
	b := running(t)
	with := func(token string) func(*wire.Header) { return func(h *wire.Header) { h.Token = token } }
	b.send("PreToolUse", b.bash("ls", "1"))
	if n := len(b.kinds(record.TamperToken)); n != 0 {
		t.Errorf("%d alarms before a token was installed", n)
	}
	write(t, b.places.TokenFile, "abc123\n")
	b.send("PreToolUse", b.bash("ls", "2"), with("abc123"))
	if n := len(b.kinds(record.TamperToken)); n != 0 {
		t.Errorf("%d alarms for the right token", n)
	}
	for i, token := range []string{"", "abc124", "x"} {
		if r := b.send("PreToolUse", b.bash("ls", "3"), with(token)); !isPass(r) {
			t.Errorf("the verdict depends on the token: %+v", r)
		}
		if n := len(b.kinds(record.TamperToken)); n != 1 {
			t.Errorf("%d alarms after %d bad tokens of one session", n, i+1)
		}
	}
	calls := b.kinds(record.CallRequested)
	if last := calls[len(calls)-1]; last.Detail["token"] != "unknown" {
		t.Errorf("detail %v", last.Detail)
	}
}

func TestSettingsFilesOfASession(t *testing.T) {
	t.Parallel()
	b := running(t)
	sub := filepath.Join(b.project, "src")
	other := filepath.Join(b.home, "elsewhere")
	// The directory of the user's settings follows from where the transcript is kept; none of the files exists yet.
	b.send("SessionStart", b.payload("SessionStart", map[string]any{"source": "startup", "permission_mode": nil, "cwd": sub,
		"transcript_path": filepath.Join(other, "projects", "p", "s.jsonl")}))
	tests := []struct {
		path, text string
		block      bool
	}{
		{filepath.Join(b.home, ".claude", "settings.json"), `{"model":"opus"}`, false},
		{filepath.Join(other, "settings.json"), `{"model":"opus"}`, false},
		{filepath.Join(b.project, ".claude", "settings.local.json"), `{"permissions":{"allow":["Bash(ls:*)"]}}`, false},
		{filepath.Join(sub, ".claude", "settings.json"), hooked, true},
		{filepath.Join(b.project, ".claude", "settings.json"), `{"disableAllHooks":true}`, true},
		{filepath.Join(other, "settings.local.json"), `{"model":"opus"}`, true}, // no file of this session: no base
		{"relative/settings.json", "", true},
	}
	for _, tt := range tests {
		if filepath.IsAbs(tt.path) {
			write(t, tt.path, tt.text)
		}
		r := b.send("ConfigChange", b.payload("ConfigChange", map[string]any{"source": "project_settings", "file_path": tt.path}))
		if tt.block == isPass(r) {
			t.Errorf("%s: %+v", tt.path, r)
		}
	}
}

func TestUnreadableSettingsAreBlocked(t *testing.T) {
	t.Parallel()
	b := running(t)
	write(t, b.settingsFile(), hooked)
	b.send("SessionStart", b.payload("SessionStart", map[string]any{"source": "startup", "permission_mode": nil}))
	for name, spoil := range map[string]func() error{
		"a FIFO":           func() error { return syscall.Mkfifo(b.settingsFile(), 0o600) },
		"a directory":      func() error { return os.Mkdir(b.settingsFile(), 0o700) },
		"a file of 4 MB":   func() error { return os.WriteFile(b.settingsFile(), make([]byte, 4<<20), 0o600) },
		"a link to nobody": func() error { return os.Symlink("/proc/self/mem", b.settingsFile()) },
	} {
		if err := os.RemoveAll(b.settingsFile()); err != nil {
			t.Fatal(err)
		}
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if r := b.changed("user_settings"); isPass(r) {
			t.Errorf("%s passed", name)
		}
	}
}

func TestAFullBookForgetsTheOldestFileAndNeverGrows(t *testing.T) {
	t.Parallel()
	b := running(t)
	write(t, b.settingsFile(), hooked)
	session := func(cwd string) {
		b.send("SessionStart", b.payload("SessionStart", map[string]any{"session_id": cwd, "cwd": cwd, "source": "startup"}))
	}
	refused := func(path string) bool {
		return !isPass(b.send("ConfigChange", b.payload("ConfigChange", map[string]any{"source": "project_settings", "file_path": path})))
	}
	first := filepath.Join(b.project, ".claude", "settings.json")
	write(t, first, hooked)
	session(b.project)
	write(t, first, `{}`)
	if !refused(first) {
		t.Fatal("removed hooks pass")
	}
	// More projects, and more refused changes, than the book holds.
	for i := range maxSettingsFiles {
		session(filepath.Join(b.home, "p"+itoa(uint64(i))))
		if i%8 == 0 && !refused(filepath.Join(b.home, "nowhere", itoa(uint64(i)), "settings.json")) {
			t.Fatal("a change of an unknown file passes")
		}
	}
	st, err := b.d.log.State(settingsPrefix)
	if err != nil || len(st) > maxSettingsFiles {
		t.Errorf("%d files in the state, %v", len(st), err)
	}
	// What was refused is still not the measure, and the newest project still has one.
	session(b.project)
	if !refused(first) {
		t.Error("a refused change became the measure")
	}
	last := filepath.Join(b.home, "p"+itoa(maxSettingsFiles-1), ".claude", "settings.json")
	write(t, last, `{"model":"sonnet"}`)
	if refused(last) {
		t.Error("the newest project's file is not known")
	}
	b.stop()
	b.start()
	if !refused(first) || refused(last) {
		t.Error("a restart changed that")
	}
}

func TestABookFullOfRefusedChangesRefuses(t *testing.T) {
	t.Parallel()
	b := running(t)
	for i := range maxSettingsFiles + 20 {
		b.send("ConfigChange", b.payload("ConfigChange", map[string]any{"source": "project_settings", "file_path": "/nowhere/" + itoa(uint64(i))}))
	}
	st, err := b.d.log.State(settingsPrefix)
	if err != nil || len(st) > maxSettingsFiles {
		t.Errorf("%d files in the state, %v", len(st), err)
	}
	write(t, b.settingsFile(), hooked)
	b.send("SessionStart", b.payload("SessionStart", map[string]any{"source": "startup"}))
	if r := b.changed("user_settings"); isPass(r) {
		t.Errorf("a file that the book has no room for: %+v", r)
	}
}
