// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
)

// A hook that got through to the socket is answered, whenever the daemon is told to stop: it is not hung up on. One that came later
// finds no socket, and can start a daemon.
func TestStopHangsUpOnNoHook(t *testing.T) {
	t.Parallel()
	b := running(t)
	var asked, answered atomic.Int64
	first := make(chan struct{})
	var once sync.Once
	var wg sync.WaitGroup
	defer wg.Wait()
	for i := range 8 {
		wg.Go(func() {
			for n := 0; ; n++ {
				c, err := net.Dial("unix", b.places.HookSocket)
				if err != nil {
					if !errors.Is(err, syscall.ENOENT) && !errors.Is(err, syscall.ECONNREFUSED) {
						t.Errorf("dial: %v", err)
					}
					return
				}
				asked.Add(1)
				_, _ = c.Write(frame(t, "claude", "PreToolUse", b.bash("ls", itoa(uint64(i))+"-"+itoa(uint64(n)))))
				if _, err := finalReply(c); err != nil {
					t.Errorf("the daemon hung up: %v", err)
				} else {
					answered.Add(1)
				}
				c.Close()
				if n > 3 {
					once.Do(func() { close(first) })
				}
			}
		})
	}
	<-first
	if took := b.stop(); took > 3*time.Second {
		t.Errorf("stopping took %v", took)
	}
	wg.Wait()
	b.start()
	if n := len(b.kinds(record.CallRequested)); int64(n) != asked.Load() || asked.Load() != answered.Load() {
		t.Errorf("%d asked, %d answered, %d on record", asked.Load(), answered.Load(), n)
	}
}

// One that connects and says nothing, or not all, holds a stop up for a moment only.
func TestAStopIsNotHeldUpBySilence(t *testing.T) {
	t.Parallel()
	b := running(t)
	whole := frame(t, "claude", "PreToolUse", b.bash("ls", "1"))
	for _, part := range [][]byte{nil, whole[:1], whole[:len(whole)-1]} {
		if _, err := b.dial().Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if took := b.stop(); took > 2*time.Second {
		t.Errorf("stopping took %v", took)
	}
}
