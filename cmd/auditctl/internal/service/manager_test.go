// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// machine is a host whose systemctl, journalctl and launchctl write down what they are asked.
type machine struct {
	Host
	dir string
	env map[string]string
}

// fake is a service manager's client: it appends its arguments to the file calls, and does what a file of that name says.
const fake = `#!/bin/sh
echo "$(basename "$0") $*" >>DIR/calls
case "$*" in
*show*UnitPath*) cat DIR/unitpath || exit 1 ;;
"print "*/*/*) [ -e DIR/loaded ] || exit 113 ;;
"print "*) [ -e DIR/session ] || exit 112 ;;
bootstrap*) : >DIR/loaded ;;
bootout*) rm -f DIR/loaded ;;
"--user --no-ask-password start tripline.service") [ ! -e DIR/fails ] || { echo "Job failed." >&2; exit 1; } ;;
-*) case "$(basename "$0")" in journalctl) printf 'one\ntwo\n' ;; esac ;;
esac
`

func newMachine(t *testing.T, system string) *machine {
	t.Helper()
	m := &machine{dir: t.TempDir(), env: map[string]string{"XDG_RUNTIME_DIR": "/run/user/1", "USER": "nobody-known", "SECRET": "x"}}
	home := filepath.Join(m.dir, "home")
	bin := filepath.Join(m.dir, "bin")
	m.mkdir(t, home, bin, filepath.Join(m.dir, "booted"), filepath.Join(m.dir, "linger"))
	for _, name := range []string{"systemctl", "launchctl", "journalctl"} {
		m.write(t, filepath.Join(bin, name), strings.ReplaceAll(fake, "DIR", m.dir), 0o700)
	}
	m.env["PATH"] = bin + ":" + os.Getenv("PATH")
	m.write(t, filepath.Join(m.dir, "unitpath"), "UnitPath=/a "+home+"/.config/systemd/user /b\n", 0o600)
	m.Host = Host{
		OS: system, Home: home, Getenv: func(k string) string { return m.env[k] }, UID: 4711,
		Booted: filepath.Join(m.dir, "booted"), LingerDir: filepath.Join(m.dir, "linger"),
	}
	return m
}

func (m *machine) mkdir(t *testing.T, dirs ...string) {
	t.Helper()
	for _, d := range dirs {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

func (m *machine) write(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	m.mkdir(t, filepath.Dir(path))
	// a child that another test starts meanwhile must not hold the file open: it could not be run then
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, []byte(text), mode)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
}

// calls returns what was asked since the last time.
func (m *machine) calls(t *testing.T) []string {
	t.Helper()
	path := filepath.Join(m.dir, "calls")
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	_ = os.Remove(path)
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

func (m *machine) detect(t *testing.T) (Manager, string) {
	t.Helper()
	mgr, why, err := Detect(t.Context(), m.Host, plain())
	if err != nil {
		t.Fatal(err)
	}
	m.calls(t)
	return mgr, why
}

const (
	ctl = "systemctl --user --no-ask-password "
	all = "tripline-hook.socket tripline-control.socket tripline.service"
)

func TestSystemdIsAskedForNoMoreThanNeeded(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "linux")
	mgr, why := m.detect(t)
	if mgr.Name() != Systemd {
		t.Fatalf("%s: %s", mgr.Name(), why)
	}
	steps := []struct {
		name string
		do   func() error
		want []string
	}{
		{"stop before anything is installed", func() error { return mgr.Stop(t.Context()) }, []string{""}},
		{"the first start", func() error { _, err := mgr.Start(t.Context()); return err }, []string{
			ctl + "daemon-reload", ctl + "reset-failed tripline.service tripline-hook.socket tripline-control.socket", ctl + "enable " + all,
			ctl + "start tripline-hook.socket tripline-control.socket", ctl + "start tripline.service",
		}},
		{"a second start reloads nothing", func() error { _, err := mgr.Start(t.Context()); return err }, []string{
			ctl + "reset-failed tripline.service tripline-hook.socket tripline-control.socket", ctl + "enable " + all,
			ctl + "start tripline-hook.socket tripline-control.socket", ctl + "start tripline.service",
		}},
		{"restart keeps the sockets", func() error { _, err := mgr.Restart(t.Context()); return err }, []string{
			ctl + "reset-failed tripline.service tripline-hook.socket tripline-control.socket", ctl + "enable " + all,
			ctl + "start tripline-hook.socket tripline-control.socket", ctl + "restart tripline.service",
		}},
		{"stop takes the sockets, too", func() error { return mgr.Stop(t.Context()) }, []string{ctl + "stop " + all}},
		{"disable", func() error {
			removed, err := mgr.Disable(t.Context())
			if len(removed) != 3 {
				t.Errorf("removed %q", removed)
			}
			return err
		}, []string{ctl + "disable " + all, ctl + "daemon-reload"}},
		{"disable again", func() error { _, err := mgr.Disable(t.Context()); return err }, []string{""}},
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
		if diff := cmp.Diff(s.want, m.calls(t)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s.name, diff)
		}
	}
	left, err := os.ReadDir(filepath.Join(m.Home, ".config/systemd/user"))
	if err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestLaunchdIsToldOfTheAgentOnce(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "darwin")
	m.write(t, filepath.Join(m.dir, "session"), "", 0o600)
	mgr, why := m.detect(t)
	if mgr.Name() != Launchd {
		t.Fatalf("%s: %s", mgr.Name(), why)
	}
	plist := filepath.Join(m.Home, "Library/LaunchAgents", Label+".plist")
	const target = "gui/4711/" + Label
	steps := []struct {
		name string
		do   func() error
		want []string
	}{
		{"the first start", func() error { _, err := mgr.Start(t.Context()); return err }, []string{
			"launchctl print " + target, "launchctl bootstrap gui/4711 " + plist, "launchctl kickstart " + target}},
		{"a second one", func() error { _, err := mgr.Start(t.Context()); return err }, []string{"launchctl print " + target, "launchctl kickstart " + target}},
		{"restart", func() error { _, err := mgr.Restart(t.Context()); return err }, []string{
			"launchctl print " + target, "launchctl bootout " + target, "launchctl print " + target, "launchctl bootstrap gui/4711 " + plist, "launchctl kickstart " + target}},
		{"disable", func() error {
			removed, err := mgr.Disable(t.Context())
			if len(removed) != 1 || removed[0] != plist {
				t.Errorf("removed %q", removed)
			}
			return err
		}, []string{"launchctl print " + target, "launchctl bootout " + target}},
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
		if diff := cmp.Diff(s.want, m.calls(t)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s.name, diff)
		}
	}
}

// The presence of a manager's program says nothing: it has to answer, and to read what we would write.
func TestAManagerThatDoesNotAnswerIsNotUsed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		system string
		spoil  func(*machine)
		why    string
	}{
		"the machine was not started by systemd":       {"linux", func(m *machine) { m.Booted = "/nowhere" }, "does not run this machine"},
		"there is no session of this user":             {"linux", func(m *machine) { delete(m.env, "XDG_RUNTIME_DIR") }, "XDG_RUNTIME_DIR"},
		"the bus does not answer":                      {"linux", func(m *machine) { _ = os.Remove(m.dir + "/unitpath") }, "does not answer"},
		"there is no systemctl":                        {"linux", func(m *machine) { m.env["PATH"] = "/nowhere:relative" }, "systemctl"},
		"the manager belongs to another home":          {"linux", func(m *machine) { m.Home = "/somewhere/else" }, "does not read"},
		"XDG_CONFIG_HOME is another one there":         {"linux", func(m *machine) { m.env["XDG_CONFIG_HOME"] = "/x" }, "does not read"},
		"macOS without a session, as over ssh":         {"darwin", func(*machine) {}, "no session"},
		"a system that we do not know":                 {"plan9", func(*machine) {}, "plan9"},
		"this user has no home":                        {"linux", func(m *machine) { m.Home = "" }, "no home"},
		"a user of macOS without a home":               {"darwin", func(m *machine) { m.Home = "" }, "no home"},
		"a directory whose name only begins like ours": {"linux", func(m *machine) { m.Home = m.Home[:len(m.Home)-1] }, "does not read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, c.system)
			c.spoil(m)
			mgr, why := m.detect(t)
			if mgr.Name() != None || !strings.Contains(why, c.why) {
				t.Errorf("%s: %s", mgr.Name(), why)
			}
		})
	}
	m := newMachine(t, "linux")
	in := plain()
	in.Private = true
	if mgr, why, err := Detect(t.Context(), m.Host, in); err != nil || mgr.Name() != None || !strings.Contains(why, "TRIPLINE_HOME") {
		t.Errorf("a private install: %v %s %v", mgr, why, err)
	}
}

// A shell without a session, as after su, must not say that all is well while systemd runs a daemon elsewhere.
func TestUnitsThatThisShellDoesNotReachAreNamed(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "linux")
	mgr, _ := m.detect(t)
	if _, err := mgr.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	delete(m.env, "XDG_RUNTIME_DIR")
	mgr, _ = m.detect(t)
	if notes := mgr.Notes(); mgr.Name() != None || len(notes) != 1 || !strings.Contains(notes[0], serviceUnit) {
		t.Errorf("%s: %q", mgr.Name(), notes)
	}
	m = newMachine(t, "linux")
	delete(m.env, "XDG_RUNTIME_DIR")
	if mgr, _ = m.detect(t); len(mgr.Notes()) != 0 {
		t.Errorf("without units: %q", mgr.Notes())
	}
}

func TestUnitPathsWithBlanksAreRecognised(t *testing.T) {
	t.Parallel()
	for _, line := range []string{`UnitPath=/x "/a b/u" /y`, `UnitPath="/a b/u"`, `UnitPath=/a\x20b/u /y`, "UnitPath=/x /a b/u\n"} {
		if !reads(line, "/a b/u") {
			t.Errorf("%q", line)
		}
	}
	for _, line := range []string{"", "/a b/u", `UnitPath="/a b/u2"`, "UnitPath=/b/u", "UnitPath=/x/a b/u"} {
		if reads(line, "/a b/u") {
			t.Errorf("%q", line)
		}
	}
}

func TestAUnitOfSomebodyElseIsNeverTouched(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(t *testing.T, path string){
		"a file": func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte("[Unit]\nDescription=mine\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		},
		"a link to a file with our header": func(t *testing.T, path string) {
			to := filepath.Join(t.TempDir(), "to")
			if err := errors.Join(os.WriteFile(to, []byte("# "+header), 0o644), os.Symlink(to, path)); err != nil {
				t.Fatal(err)
			}
		},
		"a link to nowhere":            func(t *testing.T, path string) { _ = os.Symlink("/nowhere", path) },
		"a link to /dev/null (masked)": func(t *testing.T, path string) { _ = os.Symlink("/dev/null", path) },
		"a directory":                  func(t *testing.T, path string) { _ = os.Mkdir(path, 0o700) },
	} {
		for _, unit := range []string{serviceUnit, controlUnit} {
			m := newMachine(t, "linux")
			dir := filepath.Join(m.Home, ".config/systemd/user")
			m.mkdir(t, dir)
			put(t, filepath.Join(dir, unit))
			before, _ := os.Lstat(filepath.Join(dir, unit))
			mgr, _ := m.detect(t)
			if _, err := mgr.Start(t.Context()); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), unit) {
				t.Errorf("%s: start: %v", name, err)
			}
			if got := m.calls(t); got[0] != "" {
				t.Errorf("%s: systemctl was called: %q", name, got)
			}
			left, _ := os.ReadDir(dir)
			if len(left) != 1 {
				t.Errorf("%s: %v", name, left)
			}
			if _, err := mgr.Disable(t.Context()); err != nil {
				t.Errorf("%s: disable: %v", name, err)
			}
			if after, err := os.Lstat(filepath.Join(dir, unit)); err != nil || !os.SameFile(before, after) {
				t.Errorf("%s: it was replaced or removed: %v", name, err)
			}
		}
	}
}

func TestAFailedStartIsToldWithItsReason(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "linux")
	m.write(t, filepath.Join(m.dir, "fails"), "", 0o600)
	mgr, _ := m.detect(t)
	if _, err := mgr.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "Job failed.") {
		t.Errorf("error %v", err)
	}
	if got := mgr.LastWords(t.Context()); got != "one\ntwo" {
		t.Errorf("last words %q", got)
	}
}

func TestLingeringIsToldOnlyWhenItIsOff(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "linux")
	mgr, _ := m.detect(t)
	if notes := mgr.Notes(); len(notes) != 1 || !strings.Contains(notes[0], "loginctl enable-linger") {
		t.Errorf("off: %q", notes)
	}
	m.write(t, filepath.Join(m.LingerDir, "nobody-known"), "", 0o600)
	if notes := mgr.Notes(); len(notes) != 0 {
		t.Errorf("on: %q", notes)
	}
}

// Secrets of the shell are nothing that a service manager's client needs.
func TestTheManagersClientGetsNoMoreThanItNeeds(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "linux")
	m.write(t, filepath.Join(m.dir, "bin/systemctl"), "#!/bin/sh\nenv\n", 0o700)
	out, err := m.run(t.Context(), probeTime, "systemctl")
	if err != nil || strings.Contains(out, "SECRET") || !strings.Contains(out, "XDG_RUNTIME_DIR=/run/user/1\n") {
		t.Errorf("%v\n%s", err, out)
	}
}
