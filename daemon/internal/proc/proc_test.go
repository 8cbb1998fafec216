// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestLookupSelf(t *testing.T) {
	t.Parallel()
	p, err := Lookup(int32(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	if int(p.PPID) != os.Getppid() || p.Exe == "" {
		t.Errorf("got %+v", p)
	}
	for _, pid := range []int32{0, -1, 1 << 30} {
		if _, err := Lookup(pid); err == nil {
			t.Errorf("pid %d was found", pid)
		}
	}
}

func TestAgentSkipsShells(t *testing.T) {
	t.Parallel()
	// sh -> sleep: the agent of the sleep is this test, not the shell between.
	cmd := exec.Command("/bin/sh", "-c", "sleep 60 & echo $!; wait")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var buf [32]byte
	n, err := out.Read(buf[:])
	if err != nil {
		t.Fatal(err)
	}
	var pid int32
	for _, b := range buf[:n] {
		if b >= '0' && b <= '9' {
			pid = pid*10 + int32(b-'0')
		}
	}
	defer func() {
		if p, err := os.FindProcess(int(pid)); err == nil {
			_ = p.Kill()
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	p, ok := Agent(pid)
	if !ok || int(p.PID) != os.Getpid() {
		t.Errorf("agent of %d is %+v, %v; this test is %d", pid, p, ok, os.Getpid())
	}
}

func TestWatchSeesTheEnd(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("/bin/sh", "-c", "read x")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w, err := NewWatch(int32(cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if w.Gone() {
		t.Error("gone while it lives")
	}
	in.Close()
	_ = cmd.Wait()
	for deadline := time.Now().Add(5 * time.Second); !w.Gone(); {
		if time.Now().After(deadline) {
			t.Fatal("its end was not seen")
		}
	}
	if _, err := NewWatch(0); err == nil {
		t.Error("pid 0 was pinned")
	}
}

func TestSinceBootAdvances(t *testing.T) {
	t.Parallel()
	a := SinceBoot()
	if a <= 0 || SinceBoot() < a {
		t.Errorf("time since boot: %v, then %v", a, SinceBoot())
	}
	if first, second := BootID(), BootID(); first != second {
		t.Errorf("the boot id changes: %q, %q", first, second)
	}
}

func TestAProcessIsAliveUntilItEndsAndAnotherWithItsNumberIsNot(t *testing.T) {
	t.Parallel()
	before := time.Now()
	cmd := exec.Command("/bin/sh", "-c", "read x")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p, err := Lookup(int32(cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	if !p.Alive() {
		t.Error("a process that waits is not alive")
	}
	if b := p.Began(); b.Before(before.Add(-2*time.Second)) || b.After(time.Now().Add(2*time.Second)) {
		t.Errorf("began %v, started at %v", b, before)
	}
	other := p
	other.Start--
	if other.Alive() {
		t.Error("another process with the same number is taken for it")
	}
	in.Close()
	for deadline := time.Now().Add(5 * time.Second); p.Alive(); { // it ends before this test, its parent, asks for its status
		if time.Now().After(deadline) {
			t.Fatal("its end was not seen")
		}
	}
	_ = cmd.Wait()
	if p.Alive() {
		t.Error("alive after its end")
	}
	if (Process{}).Alive() {
		t.Error("no process is alive")
	}
}
