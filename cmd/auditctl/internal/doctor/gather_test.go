// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/daemon/control"
	"github.com/tripline-sh/tripline/hooks/install"
)

// world is a home with nothing of ours.
func world(t *testing.T) (Inputs, func(path, text string) string) {
	t.Helper()
	home := t.TempDir()
	if err := os.Chmod(home, 0o700); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"HOME": home, "PATH": home + "/bin:/nonexistent"}
	places, err := config.FindPlaces(func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	in := Inputs{Self: "auditctl", Exe: home + "/bin/auditctl", UID: os.Getuid(), Now: time.Now(), Getenv: func(name string) string { return env[name] },
		Cwd: home + "/shop/src", Places: places, Root: home + "/root", Client: &control.Client{Socket: places.ControlSocket},
		Hook: install.Options{Path: home + "/.claude/settings.json", Owner: os.Getuid(), Binary: home + "/bin/tripline-hook", Socket: places.HookSocket, Spool: places.SpoolDir, ServerUID: os.Getuid()}}
	return in, func(path, text string) string {
		t.Helper()
		path = filepath.Join(home, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
}

func ids(f *Facts, checks ...string) []string {
	var out []string
	for _, c := range Checks() {
		if slices.Contains(checks, c.ID) {
			for _, p := range c.Run(context.Background(), f) {
				out = append(out, p.ID)
			}
		}
	}
	return out
}

func TestGatherWritesNothing(t *testing.T) {
	t.Parallel()
	in, _ := world(t)
	f := Gather(context.Background(), in)
	if f.Status != nil || f.User.Wired() || f.Agent.Found || len(f.Files) != 0 {
		t.Errorf("%+v", f)
	}
	left, err := os.ReadDir(in.Places.Home)
	if err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestSettingsOfAllScopesAreRead(t *testing.T) {
	t.Parallel()
	in, put := world(t)
	put("shop/.git/HEAD", "")
	put("shop/src/.claude/settings.local.json", `{"disableAllHooks":true}`)
	put("shop/.claude/settings.json", `{"env":{"PATH":"x"}}`)
	put("root/etc/claude-code/managed-settings.json", `{"allowManagedHooksOnly":true}`)
	put("root/etc/claude-code/managed-settings.d/10-x.json", `{"disableAllHooks":true}`)
	put("root/etc/claude-code/managed-settings.d/20-y.json", `{`)
	put("root/etc/claude-code/managed-settings.d/notes.txt", `{`)
	f := Gather(context.Background(), in)
	if got, want := ids(f, "switches"), []string{"switches.disable_all", "switches.blinding", "switches.managed_only", "switches.disable_all", "switches.managed_broken"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	// ours among the administrator's
	put("root/etc/claude-code/managed-settings.d/30-ours.json", `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"/usr/lib/tripline/bin/tripline-hook"}]}]}}`)
	f = Gather(context.Background(), in)
	if got := ids(f, "switches"); slices.Contains(got, "switches.managed_only") {
		t.Errorf("got %q", got)
	}
	if got := ids(f, "foreign"); !slices.Equal(got, []string{"foreign.managed"}) {
		t.Errorf("got %q", got)
	}
}

func TestAProjectInTheHomeIsNotReadTwice(t *testing.T) {
	t.Parallel()
	in, put := world(t)
	put(".claude/settings.json", `{"disableAllHooks":true}`)
	in.Cwd = in.Places.Home
	if got := ids(Gather(context.Background(), in), "switches"); !slices.Equal(got, []string{"switches.disable_all"}) {
		t.Errorf("got %q", got)
	}
}

func TestWhatIsNoRegularFileIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	in, put := world(t)
	p := in.Places
	put("x", "")
	for _, path := range []string{p.TokenFile, p.ConfigFile, filepath.Join(p.RulesDir, "x.yaml"), in.Hook.Path, p.LockFile, in.Exe, filepath.Join(filepath.Dir(in.Exe), "tripline-hook"),
		filepath.Join(p.Home, "shop/src/.claude/settings.json"), filepath.Join(p.Home, ".config/systemd/user/tripline.service"), p.ControlSocket} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan *Facts)
	go func() { done <- Gather(context.Background(), in) }()
	select {
	case f := <-done:
		if f.User.Err == nil || f.TokenErr == nil || f.ConfigErr == nil || f.RulesErr == nil || f.Programs[0].Err == nil {
			t.Errorf("%+v", f)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it waits for a pipe")
	}
}

func TestLockNamesALiveDaemonOnly(t *testing.T) {
	t.Parallel()
	_, put := world(t)
	for text, what := range map[string]string{"": "nothing", "x\n": "no number", "1\n": "init", "-5": "a negative number", "999999999": "nobody", "99999999999999999999": "too much"} {
		if pid := lockHolder(put("lock", text)); pid != 0 {
			t.Errorf("%s: %d", what, pid)
		}
	}
	if runtime.GOOS == "linux" { // this test is no triplined, and here the system tells
		if pid := lockHolder(put("lock", strconv.Itoa(os.Getpid()))); pid != 0 {
			t.Errorf("another program: %d", pid)
		}
		child := exec.Command("/bin/true") // dead from here on until somebody waits for it
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		defer child.Wait()
		lock := put("lock", strconv.Itoa(child.Process.Pid))
		for deadline := time.Now().Add(30 * time.Second); ; runtime.Gosched() {
			if b, err := os.ReadFile("/proc/" + strconv.Itoa(child.Process.Pid) + "/stat"); err != nil || bytes.Contains(b, []byte(") Z ")) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("it does not end")
			}
		}
		if pid := lockHolder(lock); pid != 0 {
			t.Errorf("a dead process that nobody waited for: %d", pid)
		}
	}
}

func TestWhoMayChangeAProgram(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "bin", "x")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	uid := os.Getuid()
	for _, c := range []struct {
		path string
		mode os.FileMode
		want string
	}{
		{path, 0o755, ""}, {path, 0o757, path}, {filepath.Dir(path), 0o777, filepath.Dir(path)}, {filepath.Dir(path), 0o700, ""}, {filepath.Dir(path), 0o777 | os.ModeSticky, ""},
	} {
		if err := os.Chmod(c.path, c.mode); err != nil {
			t.Fatal(err)
		}
		if got := loose(path, uid); got != c.want {
			t.Errorf("%v %v: %q, want %q", c.path, c.mode, got, c.want)
		}
		if err := os.Chmod(c.path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if got := loose(path, uid+1); uid != 0 && got != path {
		t.Errorf("another user's: %q", got)
	}
	if got := loose(filepath.Join(dir, "gone"), uid); got == "" {
		t.Error("what is not there passes")
	}
}

func FuzzEntryOfABrokenProgram(f *testing.F) {
	f.Add([]byte("\x7fELF"))
	f.Add([]byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x3e\x00\x01\x00\x00\x00"))
	f.Fuzz(func(_ *testing.T, b []byte) { entryIn(readerAt(b)) })
}

type readerAt []byte

func (r readerAt) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= int64(len(r)) {
		return 0, os.ErrInvalid
	}
	n := copy(p, r[off:])
	if n < len(p) {
		return n, os.ErrInvalid
	}
	return n, nil
}

func TestDirectoriesThatCannotBeWrittenAreFound(t *testing.T) {
	t.Parallel()
	in, put := world(t)
	if f := Gather(t.Context(), in); len(f.Closed) != 0 {
		t.Errorf("in an empty home: %+v", f.Closed)
	}
	file := put(".local/state", "a file where a directory belongs")
	want := Closed{Dir: file, Err: syscall.ENOTDIR, UID: os.Getuid(), For: []string{forState, forSockets}}
	if diff := cmp.Diff([]Closed{want}, Gather(t.Context(), in).Closed, cmpopts.EquateErrors()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := os.Lstat(in.Places.ConfigDir); err == nil {
		t.Error("a look made a directory")
	}

	in, put = world(t)
	closed := filepath.Dir(put(".local/state/tripline/keys/log.pub", ""))
	if err := os.Chmod(closed, 0o500); err != nil {
		t.Fatal(err)
	}
	got := Gather(t.Context(), in).Closed
	want = Closed{Dir: closed, Err: syscall.EACCES, UID: os.Getuid(), For: []string{forState}, Ours: true}
	if os.Getuid() == 0 { // whom no mode stops
		if len(got) != 0 {
			t.Errorf("root is stopped: %+v", got)
		}
	} else if diff := cmp.Diff([]Closed{want}, got, cmpopts.EquateErrors()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
