// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/daemon/internal/sock"
)

// told collects what a service manager hears.
type told struct {
	mu    sync.Mutex
	lines []string
}

func (n *told) notify(state string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, strings.Split(state, "\n")...)
	return nil
}

func (n *told) count(prefix string) (c int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.lines {
		if strings.HasPrefix(l, prefix) {
			c++
		}
	}
	return c
}

func (n *told) all() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.lines, " | ")
}

func TestTheManagerHearsOfStartAndStop(t *testing.T) {
	t.Parallel()
	n := &told{}
	b := running(t, func(o *Options) { o.Manager = &Manager{Notify: n.notify} })
	if got, want := n.all(), "READY=1 | STATUS=judging calls at "+b.places.HookSocket; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
	b.stop()
	if got := n.all(); !strings.HasSuffix(got, " | STOPPING=1 | STATUS=stopping") || n.count("WATCHDOG") != 0 {
		t.Errorf("told %q", got)
	}
}

func TestTheManagerHearsWhyAStartFailed(t *testing.T) {
	t.Parallel()
	n := &told{}
	b := place(t)
	err := b.tryStart(func(o *Options) {
		o.Manager = &Manager{Notify: n.notify}
		o.seam.openLog = func(context.Context, audit.Options) (auditLog, error) { return nil, errors.New("no\nlog") }
	})
	if err == nil || n.all() != "STATUS=cannot start: cannot open the audit log: no log" {
		t.Errorf("%v, told %q", err, n.all())
	}
}

// sickLog is an audit log that can be told to be ill.
type sickLog struct {
	auditLog
	err      atomic.Pointer[error]
	hold     atomic.Pointer[chan struct{}] // appends wait for it
	onCommit func(audit.CommitInfo)
}

func (l *sickLog) Err() error {
	if p := l.err.Load(); p != nil {
		return *p
	}
	return l.auditLog.Err()
}

func (l *sickLog) Append(ctx context.Context, e *audit.Entry) (audit.Receipt, error) {
	if p := l.hold.Load(); p != nil {
		<-*p
	}
	return l.auditLog.Append(ctx, e)
}

func watched(t *testing.T, n *told) (*bench, *sickLog) {
	log := &sickLog{}
	b := running(t, func(o *Options) {
		o.Manager = &Manager{Notify: n.notify, Watchdog: 40 * time.Millisecond}
		o.seam.openLog = func(ctx context.Context, o audit.Options) (auditLog, error) {
			l, err := audit.Open(ctx, o)
			log.auditLog, log.onCommit = l, o.OnCommit
			return log, err
		}
	})
	return b, log
}

// goesOn waits for n further words to the watchdog.
func (b *bench) goesOn(n *told, words int) {
	b.t.Helper()
	from := n.count("WATCHDOG=1")
	b.eventually("the watchdog hears of the daemon", func() bool { return n.count("WATCHDOG=1") >= from+words })
}

func TestTheWatchdogHearsOfADaemonThatWorks(t *testing.T) {
	t.Parallel()
	n := &told{}
	b, log := watched(t, n)
	b.goesOn(n, 5)
	// A full disk is the log's business, which goes on trying.
	full := errors.New("no space left on device")
	log.err.Store(&full)
	log.onCommit(audit.CommitInfo{Err: full, Duration: time.Millisecond})
	b.goesOn(n, 5)
	// A commit that does not end is the manager's.
	log.onCommit(audit.CommitInfo{Err: full, Duration: commitTimeout})
	b.eventually("the manager hears why", func() bool { return n.count("STATUS=the audit log does not end a commit") == 1 })
	silence := n.count("WATCHDOG=1")
	b.eventually("another tick or two", ticks(100*time.Millisecond))
	if now := n.count("WATCHDOG=1"); now != silence {
		t.Errorf("a daemon with a stuck commit called itself well %d times", now-silence)
	}
	log.err.Store(nil)
	b.goesOn(n, 3)
	if got := n.all(); n.count("STATUS=judging") != 2 || n.count("STATUS=the audit log") != 1 {
		t.Errorf("told %s", got)
	}
	if !strings.Contains(b.log.String(), "is not told any more") {
		t.Error("the daemon's log does not say why it may be ended")
	}
}

func TestTheWatchdogHearsNothingOfAHungKeeper(t *testing.T) {
	t.Parallel()
	n := &told{}
	b, log := watched(t, n)
	b.goesOn(n, 2)
	release := make(chan struct{})
	defer sync.OnceFunc(func() { close(release) })()
	log.hold.Store(&release)
	b.d.gaps.add("busy", 1) // the keeper declares it
	b.eventually("the manager hears why", func() bool { return n.count("STATUS=the daemon hangs") == 1 })
	silence := n.count("WATCHDOG=1")
	b.eventually("another tick or two", ticks(100*time.Millisecond))
	if now := n.count("WATCHDOG=1"); now != silence {
		t.Errorf("a hung daemon called itself well %d times", now-silence)
	}
	log.hold.Store(nil)
	close(release)
	b.goesOn(n, 3)
	release = make(chan struct{})
}

// ticks is a condition that comes true after a time.
func ticks(d time.Duration) func() bool {
	over := time.Now().Add(d)
	return func() bool { return time.Now().After(over) }
}

// given is a listening socket at path, under a name.
func given(t *testing.T, path, name string) *os.File {
	t.Helper()
	l, err := sock.Listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	defer l.Close()
	raw, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	return renamed(t, raw, name)
}

func TestSocketsOfAManagerOutliveTheDaemon(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{{"hook"}, {"control"}, {"hook", "control"}, {"control", "hook"}} {
		b := place(t)
		if err := os.MkdirAll(b.places.RunDir, 0o700); err != nil {
			t.Fatal(err)
		}
		paths := map[string]string{"hook": b.places.HookSocket, "control": b.places.ControlSocket}
		var held, second []*os.File
		for _, name := range names {
			f := given(t, paths[name], name)
			held = append(held, f)
			second = append(second, renamed(t, f, name))
		}
		b.start(func(o *Options) { o.Manager, o.StartedBy = &Manager{Sockets: held}, "systemd" })
		if !isPass(b.send("PreToolUse", b.bash("ls", "1"))) || len(b.calls()) != 1 {
			t.Errorf("%v: not served", names)
		}
		b.stop()
		for name, path := range paths {
			_, err := os.Lstat(path)
			if kept := strings.Contains(strings.Join(names, " "), name); kept != (err == nil) {
				t.Errorf("%v: after the stop, %s: %v", names, name, err)
			}
		}
		if names[0] != "hook" {
			continue
		}
		// Who comes while nobody serves waits for the next one.
		c, err := net.Dial("unix", b.places.HookSocket)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(frame(t, "claude", "PreToolUse", b.bash("ls", "2"))); err != nil {
			t.Fatal(err)
		}
		b.start(func(o *Options) { o.Manager = &Manager{Sockets: second} })
		if !isPass(b.final(c)) || len(b.calls()) != 2 {
			t.Errorf("%v: who waited was not served", names)
		}
		c.Close()
		b.stop()
	}
}

func TestSocketsThatAreNotOursAreRefused(t *testing.T) {
	t.Parallel()
	b := place(t)
	if err := os.MkdirAll(b.places.RunDir, 0o700); err != nil {
		t.Fatal(err)
	}
	hook := given(t, b.places.HookSocket, "hook")
	for says, files := range map[string][]*os.File{
		`called "LISTEN_FD_3"`:         {renamed(t, hook, "LISTEN_FD_3")},
		`two sockets called "hook"`:    {hook, renamed(t, hook, "hook")},
		"this daemon's place is":       {renamed(t, hook, "control")},
		"which was handed over, is no": {renamed(t, os.Stdin, "hook")},
	} {
		err := b.tryStart(func(o *Options) { o.Manager = &Manager{Sockets: files} })
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// renamed is a copy of a descriptor under another name.
func renamed(t *testing.T, f *os.File, name string) *os.File {
	t.Helper()
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	syscall.CloseOnExec(fd)
	out := os.NewFile(uintptr(fd), name)
	t.Cleanup(func() { out.Close() })
	return out
}
