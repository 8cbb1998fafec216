// SPDX-License-Identifier: Apache-2.0

package sys

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// status returns a field of /proc/PID/status.
func status(t *testing.T, pid int, field string) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	t.Fatalf("no %s in %s", field, b)
	return ""
}

func link(t *testing.T, pid int, name string) string {
	t.Helper()
	to, err := os.Readlink(fmt.Sprintf("/proc/%d/%s", pid, name))
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// startSleep starts a program that does nothing, and ends it with the test.
func startSleep(t *testing.T) int {
	t.Helper()
	pid, err := Start([]string{"/bin/sleep", "60"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		var ws syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &ws, 0, nil); err != nil {
			t.Error(err)
		}
	})
	return pid
}

// Whatever this process is like, what it starts begins with nothing of it.
func TestAStartedProgramInheritsNothing(t *testing.T) {
	signal.Ignore(syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGTSTP)
	defer signal.Reset(syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGTSTP)
	// Descriptors that nobody marked close-on-exec: one small, one large.
	leaks := []int{200, 777}
	for _, fd := range leaks {
		if err := syscall.Dup3(1, fd, 0); err != nil {
			t.Fatal(err)
		}
		defer syscall.Close(fd)
	}
	defer syscall.Umask(syscall.Umask(0o777))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	blocked := uint64(1)<<(syscall.SIGTERM-1) | 1<<(syscall.SIGINT-1)
	if _, _, e := syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, 0, uintptr(unsafe.Pointer(&blocked)), 0, 8, 0, 0); e != 0 {
		t.Fatal(e)
	}
	pid := startSleep(t)
	for field, want := range map[string]string{"SigBlk": "0000000000000000", "SigIgn": "0000000000000000", "Umask": "0077"} {
		if got := status(t, pid, field); got != want {
			t.Errorf("%s is %s", field, got)
		}
	}
	if env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); err != nil || len(env) != 0 {
		t.Errorf("environment %q, %v", env, err)
	}
	if cwd := link(t, pid, "cwd"); cwd != "/" {
		t.Errorf("runs in %s", cwd)
	}
	var fds []string
	for deadline := time.Now().Add(10 * time.Second); len(fds) != 3 && time.Now().Before(deadline); {
		fds, _ = filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid)) // while it loads its libraries it has more
		_, _ = Poll(nil, time.Millisecond)
	}
	if len(fds) != 3 {
		t.Errorf("descriptors %q", fds)
	}
	for fd := range 3 {
		if to := link(t, pid, fmt.Sprintf("fd/%d", fd)); to != "/dev/null" {
			t.Errorf("descriptor %d leads to %s", fd, to)
		}
	}
	if sid, _, e := syscall.RawSyscall(syscall.SYS_GETSID, uintptr(pid), 0, 0); e != 0 || int(sid) != pid {
		t.Errorf("its session is %d, %v", sid, e)
	}
	// What had no effect here still has none.
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGTSTP} {
		if err := syscall.Kill(os.Getpid(), sig); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDescriptorsAreMarkedOneByOneWhereTheKernelCannot(t *testing.T) {
	for _, fd := range []int{201, 778} {
		if err := syscall.Dup3(1, fd, 0); err != nil {
			t.Fatal(err)
		}
		defer syscall.Close(fd)
	}
	closeEach()
	for _, fd := range []int{201, 778} {
		flags, _, e := syscall.RawSyscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0)
		if e != 0 || flags&syscall.FD_CLOEXEC == 0 {
			t.Errorf("descriptor %d: flags %#x, %v", fd, flags, e)
		}
	}
}

func TestEndedTellsHowAProgramEnded(t *testing.T) {
	for script, want := range map[string]bool{"exit 0": true, "exit 1": false, "kill -9 $$": false} {
		pid, err := Start([]string{"/bin/sh", "-c", script})
		if err != nil {
			t.Fatal(err)
		}
		var ended, ok bool
		for deadline := time.Now().Add(10 * time.Second); !ended && time.Now().Before(deadline); {
			ended, ok = Ended(pid)
			if !ended {
				_, _ = Poll(nil, 5*time.Millisecond)
			}
		}
		if !ended || ok != want {
			t.Errorf("%s: ended %v, ok %v", script, ended, ok)
		}
		if ended, _ := Ended(pid); ended {
			t.Errorf("%s: ended twice", script)
		}
	}
	pid := startSleep(t)
	if ended, _ := Ended(pid); ended {
		t.Error("a running program has ended")
	}
}

func TestWhatCannotBeStartedIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("#!/nonexistent/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/nonexistent/triplined", dir, plain, script} {
		if pid, err := Start([]string{path}); err == nil {
			t.Errorf("%s was started as %d", path, pid)
		}
	}
}
