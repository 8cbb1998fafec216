// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/cmd/auditctl/internal/words"
	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/daemon/control"
	"github.com/tripline-sh/tripline/hooks/agents/claude"
	"github.com/tripline-sh/tripline/hooks/install"
)

var now = time.Date(2026, 11, 24, 12, 17, 0, 0, time.UTC)

// healthy are facts about which no check has anything to say.
func healthy(t *testing.T) *Facts {
	t.Helper()
	places, err := config.FindPlaces(func(name string) string { return map[string]string{"HOME": "/home/dev"}[name] })
	if err != nil {
		t.Fatal(err)
	}
	f := &Facts{
		Inputs: Inputs{Self: "auditctl", Exe: "/home/dev/.local/bin/auditctl", Version: "0.3.0", UID: 1000, Now: now, Places: places, Getenv: func(string) string { return "" }},
		Config: config.Default(), Token: "00112233445566778899aabbccddeeff",
		Status:   &control.Status{Version: "0.3.0", PID: 4242, Started: now.Add(-time.Hour), Mode: "guard", OnDown: "deny", MetricsAddr: "127.0.0.1:9717", Size: 7, StartedBy: "systemd"},
		Disk:     Disk{Kind: "ext4", Free: 100 << 30, Total: 200 << 30},
		Log:      LogFacts{Segments: 1, Bytes: 4096, Last: now.Add(-time.Minute), Day: "2026-11-24"},
		Entry:    EntryOwn,
		OnPath:   true,
		Hits:     []Hit{{Name: "auditctl", Path: "/home/dev/.local/bin/auditctl", Ours: true}, {Name: "tripline"}},
		Agent:    AgentFacts{Found: true, Installed: claude.Version{Major: 2, Minor: 1, Patch: 332}},
		Programs: []Program{{Name: "tripline-hook", Path: "/home/dev/.local/bin/tripline-hook", Perm: 0o755, Ours: true}},
	}
	f.Hook = install.Options{Path: "/home/dev/.claude/settings.json", Binary: f.Programs[0].Path, Socket: places.HookSocket, Spool: places.SpoolDir, ServerUID: 1000, Token: f.Token,
		Daemon: []string{"/home/dev/.local/bin/triplined", "--on-demand"}}
	f.User.Scope, f.User.Path = "user", f.Hook.Path
	return f
}

// wired makes the settings hold what install writes.
func (f *Facts) wired(t *testing.T, change func(e *install.Entry)) *Facts {
	t.Helper()
	var err error
	if f.User.Wanted, err = install.Wanted(f.Hook); err != nil {
		t.Fatal(err)
	}
	f.User.Current = change == nil
	for _, e := range f.User.Wanted {
		e.Command = "/bin/sh" // a program that is there
		if change != nil {
			change(&e)
		}
		f.User.Installed = append(f.User.Installed, e)
	}
	for i := range f.User.Wanted {
		f.User.Wanted[i].Command = "/bin/sh"
	}
	return f
}

// Cases that a real home cannot easily show. The e2e table of package main has the others.
func TestChecks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(f *Facts)
		want   string // SEVERITY ID, of all findings
		text   string // in one of them, or its command
	}{
		{name: "all is well", change: func(*Facts) {}, want: "note wiring.none"},
		{name: "nobody is wired and no agent is there", change: func(f *Facts) { f.Agent = AgentFacts{} }, want: "note wiring.none", text: "no agent is wired"},
		{name: "wired", change: func(f *Facts) { f.wired(t, nil) }},
		{name: "down with on_down allow", want: "problem daemon.down, note config.on_down", text: "pass unjudged",
			change: func(f *Facts) {
				f.wired(t, nil)
				f.Status, f.StatusErr, f.Config.OnDown = nil, &control.UnreachableError{Socket: "x", Err: errors.New("y")}, "allow"
			}},
		{name: "the daemon answers with an error", want: "problem daemon.error",
			change: func(f *Facts) { f.wired(t, nil); f.Status, f.StatusErr = nil, errors.New("500") }},
		{name: "a daemon of another version", want: "warning daemon.version", change: func(f *Facts) { f.wired(t, nil); f.Status.Version = "0.2.0" }},
		{name: "a daemon from elsewhere", want: "warning daemon.elsewhere", change: func(f *Facts) { f.wired(t, nil); f.DaemonExe = "/opt/triplined" }},
		{name: "the configuration breaks under a daemon: it is said once, and no port is guessed", want: "problem config.broken", change: func(f *Facts) {
			f.wired(t, nil)
			f.ConfigErr = errors.New("tripline.yaml:1: mode")
			f.Status.RulesError, f.Status.MetricsAddr, f.PortTaken = "tripline.yaml:1: mode", "", true
		}},
		{name: "a long home, and a directory for sockets", want: "problem sockets.long", text: "takes 107: no daemon can listen there\nexport XDG_RUNTIME_DIR=/run/user/1000",
			change: func(f *Facts) {
				f.wired(t, nil)
				f.RuntimeDir, f.Places.HookSocket = "/run/user/1000", "/"+strings.Repeat("x", 207)
			}},
		{name: "a long home, and none", want: "problem sockets.long", text: "export TRIPLINE_HOME=/a/short/directory",
			change: func(f *Facts) { f.wired(t, nil); f.Places.HookSocket = "/" + strings.Repeat("x", 207) }},
		{name: "mode observe and on_down allow", want: "note config.observe, note config.on_down", change: func(f *Facts) {
			f.wired(t, nil)
			f.Status.Mode, f.Status.OnDown = "observe", "allow"
		}},
		{name: "alarms are bounded", want: "problem alarms.standing, problem alarms.standing, problem alarms.standing, problem alarms.standing, problem alarms.standing, problem alarms.more",
			text: "and 3 more alarms", change: func(f *Facts) { f.wired(t, nil); f.Status.Alarms = strings.Split("abcdefgh", "") }},
		{name: "a home that is mounted read-only", want: "problem dirs.closed, problem daemon.down", text: "configuration, log and sockets belong: read-only file system\nexport TRIPLINE_HOME=",
			change: func(f *Facts) {
				f.wired(t, nil)
				f.Status, f.StatusErr = nil, &control.UnreachableError{Socket: "x", Err: errors.New("y")}
				f.Closed = []Closed{{Dir: "/home/dev", Err: syscall.EROFS, UID: 1000, For: []string{forConfig, forState, forSockets}}}
			}},
		{name: "no daemon can start in a closed directory", want: "problem dirs.closed, problem daemon.down", text: "none can start before its directories can be written",
			change: func(f *Facts) {
				f.wired(t, nil)
				f.Status, f.StatusErr = nil, &control.UnreachableError{Socket: "x", Err: errors.New("y")}
				f.Closed = []Closed{{Dir: "/d", Err: syscall.EACCES, UID: 1000, For: []string{forSockets}}}
			}},
		{name: "a directory of the user's without its bits", want: "problem dirs.closed", text: "chmod u+rwx '/home/dev/a b'", change: func(f *Facts) {
			f.wired(t, nil)
			f.Closed = []Closed{{Dir: "/home/dev/a b", Err: syscall.EACCES, UID: 1000, For: []string{forState}}}
		}},
		{name: "a directory of ours that another user owns is said once", want: "problem dirs.closed", text: "sudo chown -R 1000 /s", change: func(f *Facts) {
			f.wired(t, nil)
			f.Closed = []Closed{{Dir: "/s", Err: syscall.EACCES, UID: 0, For: []string{forState}, Ours: true}}
			f.Files = []File{{Path: "/s", Kind: "directory", Perm: 0o755, UID: 0}}
		}},
		{name: "a directory of the system's is nobody's to give away", want: "problem dirs.closed", text: "export TRIPLINE_HOME=", change: func(f *Facts) {
			f.wired(t, nil)
			f.Closed = []Closed{{Dir: "/", Err: syscall.EACCES, UID: 0, For: []string{forState}}}
		}},
		{name: "a file where a directory belongs", want: "problem dirs.closed", text: "ls -ld /f", change: func(f *Facts) {
			f.wired(t, nil)
			f.Closed = []Closed{{Dir: "/f", Err: syscall.ENOTDIR, UID: 1000, For: []string{forState}, Ours: true}}
		}},
		{name: "a configuration that is kept elsewhere", want: "note dirs.closed", change: func(f *Facts) {
			f.wired(t, nil)
			f.Closed = []Closed{{Dir: "/c", Err: syscall.EROFS, UID: 0, For: []string{forConfig}, Ours: true}}
		}},
		{name: "one directory that others may write to is one problem", want: "problem programs.writable", text: "others may change tripline-hook and triplined, since they may write to /b\nchmod go-w /b",
			change: func(f *Facts) {
				f.wired(t, nil)
				f.Programs = []Program{{Name: "tripline-hook", Ours: true, Perm: 0o755, Loose: "/b"}, {Name: "triplined", Ours: true, Perm: 0o755, Loose: "/b"}, {Name: "auditctl", Ours: true, Perm: 0o755}}
			}},
		{name: "two of them are two", want: "problem programs.writable, problem programs.writable", change: func(f *Facts) {
			f.wired(t, nil)
			f.Programs = []Program{{Name: "tripline-hook", Ours: true, Perm: 0o755, Loose: "/b"}, {Name: "triplined", Ours: true, Perm: 0o755, Loose: "/c"}}
		}},
		{name: "little room", want: "warning log.room", text: "df -h ", change: func(f *Facts) { f.wired(t, nil); f.Disk.Free = 500 << 20 }},
		{name: "no room", want: "problem log.room", change: func(f *Facts) { f.wired(t, nil); f.Disk.Free = 0 }},
		{name: "room unknown", change: func(f *Facts) { f.wired(t, nil); f.Disk = Disk{} }},
		{name: "in memory", want: "warning disk.kind", text: "dies at the next reboot", change: func(f *Facts) { f.wired(t, nil); f.Disk.Kind = "tmpfs" }},
		{name: "on the network", want: "warning disk.kind", text: "cannot be relied upon", change: func(f *Facts) { f.wired(t, nil); f.Disk.Kind = "nfs" }},
		{name: "on FUSE", want: "note disk.kind", change: func(f *Facts) { f.wired(t, nil); f.Disk.Kind = "fuse" }},
		{name: "never verified for long", want: "note log.unverified", change: func(f *Facts) { f.wired(t, nil); f.Status.Started = now.AddDate(0, 0, -8) }},
		{name: "verified long ago", want: "note log.unverified", text: "10d", change: func(f *Facts) {
			f.wired(t, nil)
			f.Status.Verified = &control.Checked{Size: 1, At: now.AddDate(0, 0, -10)}
		}},
		{name: "an empty log needs no verification", change: func(f *Facts) { f.wired(t, nil); f.Status.Started, f.Status.Size = now.AddDate(0, 0, -8), 0 }},
		{name: "an event from the future", want: "problem clock.behind", text: "the last event of claude", change: func(f *Facts) {
			f.wired(t, nil)
			at := now.Add(time.Hour)
			f.Status.Agents = []control.AgentStatus{{Agent: "claude", LastEvent: &at}}
		}},
		{name: "a second ahead is no finding", change: func(f *Facts) { f.wired(t, nil); f.Log.Last = now.Add(time.Second) }},
		{name: "a day of the future in a name", want: "problem clock.behind", change: func(f *Facts) { f.wired(t, nil); f.Log.Day = "2027-01-01" }},
		{name: "the spool is being taken in", want: "note spool.pending", change: func(f *Facts) { f.wired(t, nil); f.Spooled = 3 }},
		{name: "another user's files", want: "problem files.owner", change: func(f *Facts) {
			f.wired(t, nil)
			f.Files = []File{{Path: "/home/dev/.local/state/tripline", Kind: "directory", Perm: 0o700, UID: 0}}
		}},
		{name: "a key that is a link", want: "problem files.link", change: func(f *Facts) {
			f.wired(t, nil)
			f.Files = []File{{Path: "/k", Kind: "key", Perm: 0o600, UID: 1000, Linked: true}}
		}},
		{name: "a public key may be read", change: func(f *Facts) {
			f.wired(t, nil)
			f.Files = []File{{Path: "/k.pub", Kind: "key", Perm: 0o644, UID: 1000}, {Path: "/c", Kind: "config", Perm: 0o644, UID: 1000}}
		}},
		{name: "an open directory", want: "warning files.open", change: func(f *Facts) {
			f.wired(t, nil)
			f.Files = []File{{Path: "/d", Kind: "directory", Perm: 0o755, UID: 1000}}
		}},
		{name: "an open directory in a closed one", change: func(f *Facts) {
			f.wired(t, nil)
			f.Files = []File{{Path: "/d", Kind: "directory", Perm: 0o700, UID: 1000}, {Path: "/d/e", Kind: "directory", Perm: 0o755, UID: 1000}}
		}},
		{name: "programs of different sources", want: "warning programs.versions", change: func(f *Facts) {
			f.wired(t, nil)
			f.Programs = []Program{{Name: "tripline-hook", Ours: true, Perm: 0o755, Revision: "a"}, {Name: "triplined", Ours: true, Perm: 0o755, Revision: "b"}, {Name: "auditctl", Ours: true, Perm: 0o755}}
		}},
		{name: "a program that cannot be executed", want: "problem programs.mode", change: func(f *Facts) { f.wired(t, nil); f.Programs[0].Perm = 0o644 }},
		{name: "managed hooks only, without ours", want: "problem switches.managed_only", change: func(f *Facts) {
			f.wired(t, nil)
			f.Others = []Settings{{Scope: "managed", Path: "/etc/claude-code/managed-settings.json", Settings: install.Settings{ManagedOnly: true}}}
		}},
		{name: "managed settings switch all off", want: "problem switches.disable_all", change: func(f *Facts) {
			f.wired(t, nil)
			f.Others = []Settings{{Scope: "managed", Path: "/etc/x", Settings: install.Settings{DisableAll: true}}}
		}},
		{name: "managed settings that cannot be read", want: "problem switches.managed_broken", change: func(f *Facts) {
			f.wired(t, nil)
			f.Others = []Settings{{Scope: "managed", Path: "/etc/x", Err: errors.New("x")}}
		}},
		{name: "a project's settings that cannot be read are its own business", change: func(f *Facts) {
			f.wired(t, nil)
			f.Others = []Settings{{Scope: "project", Path: "/p", Err: errors.New("x")}}
		}},
		{name: "the user's own variables are a warning", want: "warning switches.blinding", change: func(f *Facts) { f.wired(t, nil); f.User.Env = []string{"BASH_ENV", "PATH"} }},
		{name: "a switch that is off", change: func(f *Facts) {
			f.wired(t, nil)
			f.Getenv = func(name string) string { return map[string]string{"CLAUDE_CODE_SIMPLE": "0"}[name] }
		}},
		{name: "missing events are listed, not all of them", want: "problem wiring.differs", text: "20 of 21 events are not registered (PreSkillShellCommand, ConfigChange, PermissionRequest, PostToolUse and 16 more)",
			change: func(f *Facts) { f.wired(t, func(*install.Entry) {}); f.User.Installed = f.User.Installed[:1] }},
		{name: "an entry twice", want: "problem wiring.differs", text: "registered twice: PreToolUse", change: func(f *Facts) {
			f.wired(t, func(*install.Entry) {})
			f.User.Installed = append(f.User.Installed, f.User.Installed[0])
		}},
		{name: "an entry under an event that breaks", want: "problem wiring.differs", text: "must not be registered: WorktreeCreate", change: func(f *Facts) {
			f.wired(t, func(*install.Entry) {})
			f.User.Installed = append(f.User.Installed, install.Entry{Under: "WorktreeCreate", Event: "WorktreeCreate", Command: "/bin/sh"})
		}},
		{name: "everything differs", want: "problem wiring.binary, problem wiring.differs",
			text: "another socket (", change: func(f *Facts) {
				f.wired(t, func(e *install.Entry) {
					*e = install.Entry{Under: e.Under, Event: "Stop", Command: "/nonexistent/tripline-hook", Socket: "x", UID: "1", Spool: "x", DeadlineMS: "1", Token: "x", AllowOnDown: true, Timeout: 1, Block: !e.Block, Daemon: []string{"/x"}}
				})
			}},
		{name: "only bytes differ", want: "problem wiring.differs", text: "a matcher, an order or a key", change: func(f *Facts) { f.wired(t, nil); f.User.Current = false }},
		{name: "the token cannot be read", want: "problem wiring.token", change: func(f *Facts) { f.wired(t, nil); f.TokenErr = errors.New("denied") }},
		{name: "nothing starts the daemon again", want: "note service.none", change: func(f *Facts) { f.Hook.Daemon = nil; f.wired(t, nil) }},
		{name: "a service manager starts the daemon", change: func(f *Facts) {
			f.Hook.Daemon = nil
			f.wired(t, nil)
			f.Units = []Unit{{Path: "/u", Wants: "/s", Listens: "/s"}}
		}},
		{name: "an entry starts something else", want: "problem wiring.differs", text: "another command to start the daemon (PreToolUse", change: func(f *Facts) {
			f.wired(t, func(e *install.Entry) { e.Daemon = []string{"/tmp/evil"} })
		}},
		{name: "the metrics are off", change: func(f *Facts) { f.wired(t, nil); f.Status.MetricsAddr = "" }},
		{name: "the hook's entry is unknown", change: func(f *Facts) { f.wired(t, nil); f.Entry = EntryUnknown }},
		{name: "PATH has us, but nothing of our names first", change: func(f *Facts) { f.wired(t, nil); f.Hits = []Hit{{Name: "auditctl"}, {Name: "tripline"}} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := healthy(t)
			c.change(f)
			var got []string
			named := c.text == ""
			for _, r := range Run(context.Background(), Checks(), f) {
				for _, p := range r.Findings {
					got = append(got, string(p.Severity)+" "+p.ID)
					named = named || strings.Contains(p.Text+"\n"+p.Command, c.text)
					if !strings.HasPrefix(p.ID, r.ID+".") {
						t.Errorf("%s is a finding of %s", p.ID, r.ID)
					}
					if p.Command == "" && p.Severity != Note {
						t.Errorf("%s has no command", p.ID)
					}
				}
			}
			if strings.Join(got, ", ") != c.want || !named {
				t.Errorf("got %q, want %q with %q", got, c.want, c.text)
			}
		})
	}
}

func TestChecksHaveIDsOfTheirOwn(t *testing.T) {
	t.Parallel()
	var ids []string
	for _, c := range append(Checks(), Check{ID: "canary", Title: "x"}) {
		if slices.Contains(ids, c.ID) || c.Title == "" {
			t.Errorf("%q", c.ID)
		}
		ids = append(ids, c.ID)
	}
}

func TestSpansAndBytesInWords(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Hour: "0s", 0: "0s", 59 * time.Second: "59s", time.Minute: "1m", 59*time.Minute + 59*time.Second: "59m", time.Hour: "1h", 3*time.Hour + 5*time.Minute: "3h 5m",
		24 * time.Hour: "1d", 50 * time.Hour: "2d 2h",
	} {
		if got := Ago(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{-1: "0 B", 0: "0 B", 999: "999 B", 1000: "1.0 kB", 12_345_678: "12.3 MB", 99_949_999: "99.9 MB", 120e9: "120 GB", 999_600_000: "1.0 GB", 1<<63 - 1: "9 EB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestQuotedWordsAreOneWordOfAShell(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"/home/dev/x": "/home/dev/x", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$(x)": "'$(x)'", "~": "'~'", "a\nb": "'a\nb'", "a;b": "'a;b'", "ü": "'ü'",
	} {
		if got := words.Shell(s); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
}

func TestUnitFilesNameTheirProgram(t *testing.T) {
	t.Parallel()
	for unit, want := range map[string]string{
		"[Service]\nExecStart=/a/triplined --x\n":                    "/a/triplined",
		"ExecStart=\"/a b/tri\\\"p%%\" --x \"y\"\n":                  `/a b/tri"p%`,
		"ExecStart=/old\n  ExecStart = x\nExecStart=-/new/triplined": "/new/triplined",
		"ExecStart=\"/never ends":                                    "",
		"":                                                           "",
		"ExecStart=":                                                 "",
	} {
		if got := systemdProgram([]byte(unit)); got != want {
			t.Errorf("%q: %q, want %q", unit, got, want)
		}
	}
	for plist, want := range map[string]string{
		`<plist><dict><key>Label</key><string>l</string><key>ProgramArguments</key><array><string>/a&amp;b</string><string>-x</string></array></dict></plist>`: "/a&b",
		`<plist><dict><key>ProgramArguments</key><array></array>`: "",
		`<`: "", ``: "",
	} {
		if got := launchdProgram([]byte(plist)); got != want {
			t.Errorf("%q: %q, want %q", plist, got, want)
		}
	}
}

func FuzzUnitFiles(f *testing.F) {
	for _, s := range []string{"ExecStart=\"/a\\\" b\" -x\n", "<plist><dict><key>ProgramArguments</key><array><string>/a", "ListenStream=%%\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(_ *testing.T, b []byte) {
		systemdProgram(b)
		launchdProgram(b)
		unitKey(b, "ListenStream")
	})
}

func TestTheTimeOfAnAlarmIsThatOfTheClockOnTheWall(t *testing.T) {
	t.Parallel()
	wall := time.Date(2026, 12, 1, 8, 0, 0, 0, time.FixedZone("", 10*3600))
	for text, want := range map[string]string{
		"tamper.hooks-removed /home/dev/.claude/settings.json (2026-11-30T20:46:18Z)": "tamper.hooks-removed /home/dev/.claude/settings.json (06:46:18)",
		"tamper.denied-ran (2026-11-30T01:02:03Z)":                                    "tamper.denied-ran (2026-11-30 11:02:03)",
		"tamper.denied-ran (2026-13-30T01:02:03Z)":                                    "tamper.denied-ran (2026-13-30T01:02:03Z)",
		"daemon.x (2026-11-30T20:46:18Z) (2026-11-30T20:46:19Z)":                      "daemon.x (2026-11-30T20:46:18Z) (06:46:19)",
		"the audit log cannot be written":                                             "the audit log cannot be written",
		"":                                                                            "",
	} {
		if got := AlarmText(text, wall); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	f := healthy(t).wired(t, nil)
	f.Now = wall
	f.Status.Alarms = []string{"tamper.denied-ran (2026-11-30T20:46:18Z)"}
	found := checkAlarms(t.Context(), f)
	if len(found) != 1 || found[0].Text != "alarm: tamper.denied-ran (06:46:18)" || found[0].Command != "auditctl events --kind tamper.denied-ran --since 2026-11-30T20:46:18Z" {
		t.Errorf("found %+v", found)
	}
}

func TestAnAlarmNamesTheCommandThatShowsItsRecord(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"tamper.hooks-removed /home/dev/.claude/settings.json (2026-11-30T20:46:18Z)": "events --kind tamper.hooks-removed --since 2026-11-30T20:46:18Z",
		"tamper.denied-ran (2026-11-30T20:46:18Z)":                                    "events --kind tamper.denied-ran --since 2026-11-30T20:46:18Z",
		"daemon.tampered /home/dev/a; b (2026-11-30T20:46:18Z)":                       "events --kind daemon.tampered --since 2026-11-30T20:46:18Z",
		"the audit log cannot be written":                                             "events --kind daemon --since 7d",
		"tamper.x;id (2026-11-30T20:46:18Z)":                                          "events --kind tamper --since 7d",
	} {
		if got := alarmEvents(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
