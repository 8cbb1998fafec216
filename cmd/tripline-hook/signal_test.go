// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tripline-sh/tripline/hooks/spool"
	"github.com/tripline-sh/tripline/hooks/wire"
)

var ending = map[string]syscall.Signal{
	"SIGTERM": syscall.SIGTERM, "SIGINT": syscall.SIGINT, "SIGHUP": syscall.SIGHUP, "SIGQUIT": syscall.SIGQUIT,
}

// A signal is sent at a moment when the hook is known to be waiting for something that will never come.
func TestASignalIsAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	hold := frame(wire.KindHold, 0, "", "")
	for name, sig := range ending {
		for _, event := range []string{"PreToolUse", "PreSkillShellCommand", "ConfigChange", "PermissionRequest", "Stop"} {
			check := func(t *testing.T, got result, dir string, flags uint8) {
				t.Helper()
				if events[event] == gate {
					denied(t, got, event, "hook.interrupted")
				} else {
					silent(t, got)
				}
				if e := spooled(t, dir); e.Meta.Fault != spool.Interrupted || e.Meta.Flags != flags {
					t.Errorf("spooled %+v", e.Meta)
				}
			}
			for when, first := range map[string][]byte{"before an answer": nil, "while it is held": hold} {
				t.Run(name+" "+when+", "+event, func(t *testing.T) {
					t.Parallel()
					asked := make(chan struct{})
					sock := serve(t, func(c *net.UnixConn) {
						answer(first)(c)
						close(asked)
						untilGone(c)
					})
					dir := filepath.Join(t.TempDir(), "spool")
					cmd, wait := start(t, nil, "-s", sock, "-t", "50000", "-o", "allow", "-q", dir, "claude", event)
					<-asked
					kill(t, cmd, sig)
					check(t, wait(), dir, spool.FlagSent)
				})
			}
			t.Run(name+" while it reads, "+event, func(t *testing.T) {
				t.Parallel()
				r, w, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				defer w.Close()
				dir := filepath.Join(t.TempDir(), "spool")
				cmd, wait := start(t, r, "-s", "/nonexistent/hook.sock", "-t", "50000", "-o", "allow", "-q", dir, "claude", event)
				if _, err := w.WriteString("{"); err != nil {
					t.Fatal(err)
				}
				poll(t, func() bool { return unread(t, r) == 0 })
				kill(t, cmd, sig)
				check(t, wait(), dir, spool.FlagOpen)
			})
		}
	}
}

func TestSignalsInARowChangeNothing(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	sock := serve(t, func(c *net.UnixConn) {
		answer(nil)(c)
		close(asked)
		untilGone(c)
	})
	cmd, wait := start(t, nil, "-s", sock, "claude", "PreToolUse")
	<-asked
	for range 50 {
		for _, sig := range ending {
			_ = cmd.Process.Signal(sig) // it may have gone by now
		}
	}
	denied(t, wait(), "PreToolUse", "hook.interrupted")
}

func TestASignalThatWasIgnoredStaysIgnored(t *testing.T) {
	t.Parallel()
	asked, told := make(chan struct{}), make(chan struct{})
	sock := serve(t, func(c *net.UnixConn) {
		answer(nil)(c)
		close(asked)
		<-told
		c.Write(frame(wire.KindFinal, 2, "verdict", ""))
	})
	cmd, wait := startProgram(t, nil, nil, "/bin/sh", "-c", `trap "" HUP; exec "$0" "$@"`, hookPath(t), "-s", sock, "claude", "PreToolUse")
	<-asked
	kill(t, cmd, syscall.SIGHUP)
	close(told)
	if got, want := wait(), (result{"verdict", "", 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func kill(t *testing.T, cmd *exec.Cmd, sig syscall.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(sig); err != nil {
		t.Error(err)
	}
}

// unread returns how many bytes wait in a pipe.
func unread(t *testing.T, f *os.File) (n int) {
	raw, err := f.SyscallConn()
	if err == nil {
		e := raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), fionread) })
		if err == nil {
			err = e
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}
