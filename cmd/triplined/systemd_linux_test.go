// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/daemon/control"
)

var programDir string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "triplined")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	programDir = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

var buildProgram = sync.OnceValues(func() (string, error) {
	out := filepath.Join(programDir, "triplined")
	if b, err := exec.Command("go", "build", "-o", out, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, b)
	}
	return out, nil
})

// managed is a daemon under a service manager, and what the manager hears.
type managed struct {
	config.Places
	t      *testing.T
	args   []string // the daemon's command line
	socket string   // of notifications
	words  chan string
}

func newManaged(t *testing.T) *managed {
	t.Helper()
	bin, err := buildProgram()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "tl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	p, err := config.Dirs{Home: dir}.Places()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(p.RunDir, 0o700); err != nil {
		t.Fatal(err)
	}
	m := &managed{Places: p, t: t, socket: filepath.Join(dir, "notify"), words: make(chan string, 1000),
		args: append([]string{bin, "--metrics-listen=off"}, p.Dirs().Args()...)}
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: m.socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { // ends when c is closed
		defer close(done)
		b := make([]byte, 4096)
		for {
			n, err := c.Read(b)
			if err != nil {
				return
			}
			for _, l := range strings.Split(string(b[:n]), "\n") {
				m.words <- l
			}
		}
	}()
	t.Cleanup(func() { c.Close(); <-done })
	return m
}

// hears waits for a word with this beginning, and returns what came before it.
func (m *managed) hears(prefix string) (before []string) {
	m.t.Helper()
	for limit := time.After(20 * time.Second); ; {
		select {
		case w := <-m.words:
			if strings.HasPrefix(w, prefix) {
				return before
			}
			before = append(before, w)
		case <-limit:
			m.t.Fatalf("the manager does not hear %q; it heard %q", prefix, before)
		}
	}
}

// start runs a command that becomes the daemon, and ends it with the test.
func (m *managed) start(stderr *lockedBuffer, extra []*os.File, name string, args ...string) (stop func() error) {
	m.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = []string{"NOTIFY_SOCKET=" + m.socket, "WATCHDOG_USEC=200000", "HOME=/nonexistent", "PATH=" + os.Getenv("PATH")}
	cmd.ExtraFiles, cmd.Stderr = extra, stderr
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	stop = sync.OnceValue(func() error {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		return cmd.Wait()
	})
	m.t.Cleanup(func() { _ = stop() })
	return stop
}

// served checks that the daemon answers on its control socket and knows who started it.
func (m *managed) served(stderr *lockedBuffer) {
	m.t.Helper()
	s, err := (&control.Client{Socket: m.ControlSocket}).Status(m.t.Context())
	if err != nil || s.StartedBy != "systemd" || s.HookSocket != m.HookSocket {
		m.t.Fatalf("status %+v, %v; the daemon says:\n%s", s, err, stderr)
	}
}

// lives checks that the daemon is called well more than once, and says what it should.
func (m *managed) lives() {
	m.t.Helper()
	m.hears("READY=1")
	m.hears("STATUS=judging calls at " + m.HookSocket)
	for range 3 {
		if before := m.hears("WATCHDOG=1"); len(before) != 0 {
			m.t.Errorf("between words to the watchdog the manager heard %q", before)
		}
	}
}

func TestTheFirstCallerStartsTheDaemonUnderSocketActivation(t *testing.T) {
	t.Parallel()
	activate, err := exec.LookPath("systemd-socket-activate")
	if err != nil {
		t.Skip("SKIPPED, THE DAEMON WAS NOT STARTED BY A REAL SOCKET ACTIVATION: no systemd-socket-activate (Debian: systemd)")
	}
	m := newManaged(t)
	var stderr lockedBuffer
	stop := m.start(&stderr, nil, activate, append([]string{"-l", m.HookSocket, "-l", m.ControlSocket, "--fdname=hook:control",
		"-E", "NOTIFY_SOCKET", "-E", "WATCHDOG_USEC"}, m.args...)...)
	for deadline := time.Now().Add(20 * time.Second); ; { // the sockets come one after the other
		if _, err := os.Lstat(m.ControlSocket); err == nil {
			break
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-time.After(time.Until(deadline)):
			t.Fatalf("no socket: %s", &stderr)
		}
	}
	m.served(&stderr)
	m.lives()
	if err := stop(); err != nil {
		t.Errorf("exit %v: %s", err, &stderr)
	}
	m.hears("STOPPING=1")
	for _, path := range []string{m.HookSocket, m.ControlSocket} {
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("the stop took the manager's socket away: %v", err)
		}
	}
}

// listening makes a socket as a manager holds it.
func listening(t *testing.T, path string) *os.File {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	defer l.Close()
	f, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// given is a shell that becomes the daemon with two descriptors from its manager.
const given = `LISTEN_PID=$$ LISTEN_FDS=2 LISTEN_FDNAMES=$0 exec "$@"`

func TestTheNextCallerStartsTheDaemonAgain(t *testing.T) {
	t.Parallel()
	m := newManaged(t)
	sockets := []*os.File{listening(t, m.ControlSocket), listening(t, m.HookSocket)}
	for range 2 {
		// The caller is there first.
		var stderr lockedBuffer
		answer := make(chan error, 1)
		go func() { // waited for below
			answer <- (&control.Client{Socket: m.ControlSocket}).Calls(t.Context(), record.Filter{}, func(record.Call) error { return nil })
		}()
		stop := m.start(&stderr, sockets, "/bin/sh", append([]string{"-c", given, "control:hook"}, m.args...)...)
		if err := <-answer; err != nil {
			t.Fatalf("%v: %s", err, &stderr)
		}
		m.served(&stderr)
		m.lives()
		if err := stop(); err != nil {
			t.Errorf("exit %v: %s", err, &stderr)
		}
		m.hears("STOPPING=1")
	}
}

func TestSocketsOfTheWrongKindOrNameAreRefused(t *testing.T) {
	t.Parallel()
	m := newManaged(t)
	sockets := []*os.File{listening(t, m.HookSocket), listening(t, m.ControlSocket)}
	for names, says := range map[string]string{
		"control:hook":                        "this daemon's place is",
		"hook:web":                            `called "web"`,
		"hook:hook":                           `two sockets called "hook"`,
		"":                                    `called "LISTEN_FD_3"`,
		"tripline.socket:tripline-ctl.socket": `FileDescriptorName= knows hook and control`,
	} {
		var stderr lockedBuffer
		cmd := exec.Command("/bin/sh", append([]string{"-c", given, names}, m.args...)...)
		cmd.Env, cmd.ExtraFiles, cmd.Stderr = []string{}, sockets, &stderr
		if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != exitError || !strings.Contains(stderr.String(), says) {
			t.Errorf("%q: %v, %s; want %q", names, err, &stderr, says)
		}
	}
	if _, err := os.Lstat(m.HookSocket); err != nil {
		t.Errorf("a refused socket went away: %v", err)
	}
}

// The manager's variables are for this process alone.
func TestTheManagersVariablesAreTakenOut(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "n")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	vars := map[string]string{"NOTIFY_SOCKET": socket, "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": fmt.Sprint(os.Getpid()),
		"LISTEN_PID": "1", "LISTEN_FDS": "2", "LISTEN_FDNAMES": "hook:control"}
	for k, v := range vars {
		t.Setenv(k, v)
	}
	m, err := serviceManager()
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Sockets) != 0 || m.Watchdog != 30*time.Second { // the sockets are another process's
		t.Errorf("got %+v", m)
	}
	for k := range vars {
		if v, ok := os.LookupEnv(k); ok {
			t.Errorf("%s is still there: %q", k, v)
		}
	}
	if err := m.Notify("READY=1"); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	if n, err := c.Read(b); err != nil || !bytes.Equal(b[:n], []byte("READY=1")) {
		t.Errorf("the manager heard %q, %v", b[:n], err)
	}
	if m, err := serviceManager(); m != nil || err != nil {
		t.Errorf("without a manager: %+v, %v", m, err)
	}
	t.Setenv("WATCHDOG_USEC", "soon")
	if _, err := serviceManager(); err == nil {
		t.Error("nonsense was taken")
	}
}
