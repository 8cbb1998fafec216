// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets this binary play a daemon: it locks the file that it is told of, writes its process id into it, and waits.
func TestMain(m *testing.M) {
	if lock := os.Getenv("PLAY_DAEMON"); lock != "" {
		play(lock)
	}
	os.Exit(m.Run())
}

func play(lock string) {
	f, err := os.OpenFile(lock, os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err == nil {
		_, err = f.WriteString(strconv.Itoa(os.Getpid()) + "\n")
	}
	if err != nil {
		os.Exit(1)
	}
	_, _ = os.Stdout.WriteString("locked\n")
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// daemonProcess starts a process of that name which holds the lock.
func daemonProcess(t *testing.T, name, lock string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), name)
	if err := os.Link(self, program); err != nil {
		b, rerr := os.ReadFile(self)
		syscall.ForkLock.RLock() // as in machine.write
		err := os.WriteFile(program, b, 0o700)
		syscall.ForkLock.RUnlock()
		if err := errors.Join(rerr, err); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program)
	cmd.Env = []string{"PLAY_DAEMON=" + lock}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		_ = cmd.Wait()
	})
	if b := make([]byte, 7); !readFull(stdout, b) {
		t.Fatal("the process did not get the lock")
	}
	return cmd
}

func readFull(r io.Reader, b []byte) bool {
	_, err := io.ReadFull(r, b)
	return err == nil
}

func TestTheDaemonThatHoldsTheLockIsEnded(t *testing.T) {
	t.Parallel()
	lock := filepath.Join(t.TempDir(), "lock")
	cmd := daemonProcess(t, daemonName, lock)
	if pid, err := Holder(lock); err != nil || pid != cmd.Process.Pid {
		t.Fatalf("holder %d, %v", pid, err)
	}
	// nobody has waited for the process yet: what counts is that it gave the lock up
	if pid, err := End(t.Context(), lock, 10*time.Second); err != nil || pid != cmd.Process.Pid {
		t.Fatalf("ended %d, %v", pid, err)
	}
	if pid, err := End(t.Context(), lock, 10*time.Second); err != nil || pid != 0 {
		t.Errorf("ended %d, %v", pid, err)
	}
}

// A number that a dead daemon left may be another process's by now.
func TestAStaleLockHitsNobody(t *testing.T) {
	t.Parallel()
	lock := filepath.Join(t.TempDir(), "lock")
	other := daemonProcess(t, daemonName, lock+".other") // even one that is called like the daemon
	for name, text := range map[string]string{
		"the number of another daemon": strconv.Itoa(other.Process.Pid), "our own": strconv.Itoa(os.Getpid()),
		"init": "1", "a process group": "-1", "all": "0", "nothing": "", "text": "triplined", "a large number": "99999999999999999999",
	} {
		if err := os.WriteFile(lock, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if pid, err := End(t.Context(), lock, time.Second); err != nil || pid != 0 {
			t.Errorf("%s: ended %d, %v", name, pid, err)
		}
	}
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the other process: %v", err)
	}
}

func TestALockThatAnotherProgramHoldsHitsNobody(t *testing.T) {
	t.Parallel()
	lock := filepath.Join(t.TempDir(), "lock")
	cmd := daemonProcess(t, "something", lock)
	pid, err := End(t.Context(), lock, time.Second)
	if err == nil || pid != 0 || !strings.Contains(err.Error(), `"something"`) {
		t.Errorf("ended %d, %v", pid, err)
	}
	for name, text := range map[string]string{"all": "-1", "init": "1", "nothing": ""} {
		if err := os.WriteFile(lock, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if pid, err := End(t.Context(), lock, time.Second); err == nil || pid != 0 {
			t.Errorf("%s: ended %d, %v", name, pid, err)
		}
	}
	if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the process: %v", err)
	}
}

func TestWhatIsNoLockFileIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo, link := filepath.Join(dir, "fifo"), filepath.Join(dir, "link")
	if err := errors.Join(syscall.Mkfifo(fifo, 0o600), os.Symlink(filepath.Join(dir, "to"), link)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, link, dir} {
		if pid, err := Holder(path); err == nil || pid != 0 {
			t.Errorf("%s: %d, %v", path, pid, err)
		}
	}
	if pid, err := Holder(filepath.Join(dir, "none")); err != nil || pid != 0 {
		t.Errorf("no file: %d, %v", pid, err)
	}
}

func TestTheDetachedDaemonHasNothingOfItsStarter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := plain()
	in.Program, in.LogFile = filepath.Join(dir, "triplined"), filepath.Join(dir, "state/log")
	script := "#!/bin/sh\necho \"args $*\"\necho \"cwd $PWD\"\necho \"session $(ps -o sid= -p $$ | tr -d ' ') $$\"\nenv | grep -v -e ^PWD= -e ^SHLVL= -e ^_= -e ^OLDPWD= | sed 's/^/env /'\necho last >&2\nexit 3\n"
	syscall.ForkLock.RLock() // as in machine.write
	err := os.WriteFile(in.Program, []byte(script), 0o700)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	d := newDetached(in)
	for range 2 {
		done, err := d.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var exit *exec.ExitError
		if err := <-done; !errors.As(err, &exit) || exit.ExitCode() != 3 {
			t.Fatalf("ended with %v", err)
		}
		lines := strings.Split(d.LastWords(t.Context()), "\n") // of this start only
		if len(lines) != 4 || lines[0] != "args "+strings.Join(in.Args, " ")+" --started-by person --log-file "+in.LogFile || lines[1] != "cwd /" || lines[3] != "last" {
			t.Errorf("it said %q", lines)
			continue
		}
		if f := strings.Fields(lines[2]); len(f) != 3 || f[1] != f[2] {
			t.Errorf("it is not the leader of a session: %q", lines[2])
		}
	}
	fi, err := os.Stat(in.LogFile)
	if err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("log: %v, %v", fi.Mode(), err)
	}
}

func TestTheDetachedDaemonIsNotStartedIntoSomethingElse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo, link := filepath.Join(dir, "fifo"), filepath.Join(dir, "link")
	if err := errors.Join(syscall.Mkfifo(fifo, 0o600), os.Symlink(filepath.Join(dir, "to"), link)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, link, dir} {
		in := plain()
		in.LogFile = path
		if _, err := newDetached(in).Start(t.Context()); err == nil {
			t.Errorf("%s was written to", path)
		}
	}
	in := plain()
	in.LogFile, in.Program = filepath.Join(dir, "log"), filepath.Join(dir, "none")
	if _, err := newDetached(in).Start(t.Context()); err == nil {
		t.Error("a program that is not there was started")
	}
}
