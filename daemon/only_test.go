// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/daemon/internal/sock"
)

func onDemand(o *Options) { o.OnDemand, o.StartedBy = true, "hook" }

// stopped leaves the marker.
func (b *bench) stopped() {
	b.t.Helper()
	if err := os.MkdirAll(b.places.RunDir, 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(b.places.StoppedFile, nil, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestAPersonsWordOutlastsHooks(t *testing.T) {
	t.Parallel()
	b := place(t)
	b.stopped()
	if err := b.tryStart(onDemand); !errors.Is(err, ErrStopped) {
		t.Fatalf("a hook started what a person stopped: %v", err)
	}
	if !exists(b.places.StoppedFile) || exists(b.places.HookSocket) || exists(b.places.LogDir) {
		t.Error("a start that was refused changed something")
	}
	b.start() // as a person
	if exists(b.places.StoppedFile) {
		t.Error("a person's start left the marker")
	}
	b.stop()
	b.start(onDemand)
	if by := b.d.startedBy; by != "hook" {
		t.Errorf("started by %s", by)
	}
}

// Whatever the marker is, it is not taken for none.
func TestAMarkerThatCannotBeReadIsOne(t *testing.T) {
	t.Parallel()
	b := place(t)
	if err := os.MkdirAll(b.places.RunDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/nonexistent/x", b.places.StoppedFile); err != nil {
		t.Fatal(err)
	}
	if err := b.tryStart(onDemand); !errors.Is(err, ErrStopped) {
		t.Errorf("error %v", err)
	}
}

func TestADaemonOnDemandTakesOverFromOneThatIsEnding(t *testing.T) {
	t.Parallel()
	b := place(t)
	if err := os.MkdirAll(b.places.RunDir, 0o700); err != nil {
		t.Fatal(err)
	}
	ending, err := sock.AcquireLock(b.places.LockFile) // and it listens no more
	if err != nil {
		t.Fatal(err)
	}
	if err := b.tryStart(); !IsRunning(err) {
		t.Errorf("a person's start waited: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- b.tryStart(onDemand) }() // waited for below
	select {
	case err := <-done:
		t.Fatalf("did not wait: %v", err)
	case <-time.After(5 * yieldPause):
	}
	if err := ending.Release(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if !isPass(b.send("PreToolUse", b.bash("ls", "1"))) {
		t.Error("not served")
	}
}

func TestADaemonOnDemandHeedsAMarkerThatComesWhileItWaits(t *testing.T) {
	t.Parallel()
	b := place(t)
	if err := os.MkdirAll(b.places.RunDir, 0o700); err != nil {
		t.Fatal(err)
	}
	ending, err := sock.AcquireLock(b.places.LockFile)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- b.tryStart(onDemand) }() // waited for below
	select {
	case err := <-done:
		t.Fatalf("did not wait: %v", err)
	case <-time.After(5 * yieldPause):
	}
	b.stopped()
	if err := ending.Release(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, ErrStopped) {
		t.Errorf("error %v", err)
	}
	if lock, err := sock.AcquireLock(b.places.LockFile); err != nil {
		t.Errorf("it kept the lock: %v", err)
	} else if err := lock.Release(); err != nil {
		t.Error(err)
	}
}

func TestADaemonOnDemandLeavesAtOnceIfAnotherServes(t *testing.T) {
	t.Parallel()
	b := running(t)
	second := *b
	begin := time.Now()
	if err := second.tryStart(onDemand); !IsRunning(err) || !strings.Contains(err.Error(), "another triplined is running") {
		t.Errorf("error %v", err)
	}
	if d := time.Since(begin); d > yield/2 {
		t.Errorf("it took %v", d)
	}
}

func TestADaemonOnDemandDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	b := place(t)
	if err := os.MkdirAll(b.places.RunDir, 0o700); err != nil {
		t.Fatal(err)
	}
	hung, err := sock.AcquireLock(b.places.LockFile)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := b.tryStart(onDemand); !IsRunning(err) {
		t.Errorf("error %v", err)
	}
	if d := time.Since(begin); d < yield-2*yieldPause {
		t.Errorf("it waited for %v only", d)
	}
	if err := hung.Release(); err != nil {
		t.Error(err)
	}
}
