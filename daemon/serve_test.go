// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/hooks/wire"
)

// shrunk gives a daemon other limits.
func shrunk(change func(*limits)) func(*Options) {
	return func(o *Options) {
		l := defaultLimits()
		change(&l)
		o.seam.limits = &l
	}
}

func TestBadFramesCloseTheConnectionAndNothingElse(t *testing.T) {
	t.Parallel()
	b := running(t, shrunk(func(l *limits) { l.header, l.progress = 300*time.Millisecond, 300*time.Millisecond }))
	whole := frame(t, "claude", "PreToolUse", b.bash("ls", "1"))
	tests := []struct {
		name  string
		bytes []byte
		close bool
	}{
		{"garbage", []byte(strings.Repeat("garbage ", 100)), false},
		{"an HTTP request", []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" + strings.Repeat(" ", 64)), false},
		{"half a header, then the end", whole[:20], true},
		{"half a header, then silence", whole[:20], false},
		{"half a payload, then the end", whole[:len(whole)-5], true},
		{"a length beyond the limit", append(append([]byte{}, whole[:38]...), 0xff, 0xff, 0xff, 0xff), false},
		{"a newer version", append([]byte("TRPL\x02"), whole[5:]...), false},
		{"nothing, then the end", nil, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := b.dial()
			if _, err := c.Write(tt.bytes); err != nil {
				t.Fatal(err)
			}
			if tt.close {
				if err := c.CloseWrite(); err != nil {
					t.Fatal(err)
				}
			}
			_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
			if got, err := io.ReadAll(c); err != nil && !strings.Contains(err.Error(), "reset") || len(got) != 0 {
				t.Errorf("answered %q, %v", got, err)
			}
		})
	}
	if r := b.send("PreToolUse", b.bash("ls", "2")); !isPass(r) {
		t.Errorf("afterwards: %+v", r)
	}
}

func TestSlowPayloadIsDenied(t *testing.T) {
	t.Parallel()
	b := running(t, shrunk(func(l *limits) { l.progress = 200 * time.Millisecond }))
	c := b.dial()
	whole := frame(t, "claude", "PreToolUse", b.bash("ls", "1"))
	if _, err := c.Write(whole[:len(whole)-5]); err != nil {
		t.Fatal(err)
	}
	if r := b.final(c); r.Exit != 2 || !strings.Contains(string(r.Stderr), "internal.slow") {
		t.Errorf("reply %+v", r)
	}
	if c := b.one(record.CallRequested); c.Decision.Failure != "deadline" {
		t.Errorf("decision %+v", c.Decision)
	}
}

func TestIdleConnectionsDoNotStarveOthers(t *testing.T) {
	t.Parallel()
	b := running(t, shrunk(func(l *limits) { l.header = time.Second }))
	for range 300 {
		b.dial()
	}
	start := time.Now()
	if r := b.send("PreToolUse", b.bash("ls", "1")); !isPass(r) {
		t.Errorf("reply %+v", r)
	}
	if d := time.Since(start); d > 8*time.Second {
		t.Errorf("answered after %v", d)
	}
}

func TestBeyondTheLimitAConnectionWaitsAndIsDeniedInTheEnd(t *testing.T) {
	t.Parallel()
	b := running(t, shrunk(func(l *limits) { l.conns, l.waiting, l.patience, l.header = 1, 2, 200*time.Millisecond, 5*time.Second }))
	idle := b.dial() // takes the one slot
	b.eventually("the slot is taken", func() bool { return len(b.d.hooks.slots) == 1 })
	if r := b.send("PreToolUse", b.bash("ls", "1")); r.Exit != 2 || !strings.Contains(string(r.Stderr), "internal.busy") {
		t.Errorf("reply %+v", r)
	}
	if r := b.send("PostToolUse", b.post("ls", "1")); !isPass(r) {
		t.Errorf("reply %+v", r)
	}
	idle.Close()
	b.eventually("the slot is free", func() bool { return len(b.d.hooks.slots) == 0 })
	if r := b.send("PreToolUse", b.bash("ls", "2")); !isPass(r) {
		t.Errorf("reply %+v", r)
	}
}

func TestBudgetIsAskedBeforeMemory(t *testing.T) {
	t.Parallel()
	b := running(t, shrunk(func(l *limits) { l.budget = 1 << 20; l.frame = 300 * time.Millisecond }))
	big := frame(t, "claude", "PreToolUse", nil, func(h *wire.Header) { h.PayloadLen = wire.MaxPayload })
	c := b.dial()
	if _, err := c.Write(big); err != nil {
		t.Fatal(err)
	}
	if r := b.final(c); r.Exit != 2 || !strings.Contains(string(r.Stderr), "internal.busy") {
		t.Errorf("reply %+v", r)
	}
	if r := b.send("PreToolUse", b.bash("ls", "1")); !isPass(r) {
		t.Errorf("afterwards: %+v", r)
	}
}

func TestBudgetServesInOrderAndForgetsThoseWhoLeave(t *testing.T) {
	t.Parallel()
	g := newBudget(10)
	if err := g.take(t.Context(), 8); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { gone <- g.take(ctx, 9) }()
	waiting := func(n int) {
		for deadline := time.Now().Add(5 * time.Second); ; {
			g.mu.Lock()
			k := len(g.line)
			g.mu.Unlock()
			if k == n {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d wait, want %d", k, n)
			}
		}
	}
	waiting(1)
	small := make(chan error, 1)
	go func() { small <- g.take(t.Context(), 2) }()
	waiting(2) // there would be room for it, but it is not its turn
	cancel()
	if err := <-gone; err == nil {
		t.Error("took more than there was")
	}
	if err := <-small; err != nil {
		t.Error(err)
	}
	g.give(8)
	g.give(2)
	if g.free != 10 || len(g.line) != 0 {
		t.Errorf("free %d, %d wait", g.free, len(g.line))
	}
}

func TestForeignUIDIsRefusedOnBothSockets(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	foreign := false
	b := running(t, func(o *Options) {
		o.seam.uid = func(uid uint32) uint32 {
			mu.Lock()
			defer mu.Unlock()
			if foreign {
				return uid + 1
			}
			return uid
		}
	})
	mu.Lock()
	foreign = true
	mu.Unlock()
	c := b.dial()
	_, _ = c.Write(frame(t, "claude", "PreToolUse", b.bash("ls", "1")))
	if r, err := finalReply(c); err == nil {
		t.Errorf("the hook socket answered another user: %+v", r)
	}
	if _, err := b.client.Status(t.Context()); err == nil {
		t.Error("the control socket answered another user")
	}
	if n := len(b.kinds(record.CallRequested)); n != 0 {
		t.Errorf("%d calls were recorded", n)
	}
}

func TestSecondInstanceIsRefused(t *testing.T) {
	t.Parallel()
	b := running(t)
	other := &bench{t: t, places: b.places, home: b.home, log: &syncBuffer{}}
	err := other.tryStart()
	if err == nil || !strings.Contains(err.Error(), "another triplined is running") {
		t.Fatalf("error %v", err)
	}
	if r := b.send("PreToolUse", b.bash("ls", "1")); !isPass(r) {
		t.Errorf("the first one answers %+v", r)
	}
}

func TestStaleSocketsAreReplaced(t *testing.T) {
	t.Parallel()
	b := place(t)
	if err := os.MkdirAll(b.places.RunDir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{b.places.HookSocket, b.places.ControlSocket} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		l.Close()
	}
	b.start()
	if r := b.send("PreToolUse", b.bash("ls", "1")); !isPass(r) {
		t.Errorf("reply %+v", r)
	}
	for _, path := range []string{b.places.HookSocket, b.places.ControlSocket} {
		if fi, err := os.Lstat(path); err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", filepath.Base(path), fi, err)
		}
	}
}

func TestPlacesThatCannotBeUsedAreClearErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		spoil func(t *testing.T, b *bench)
		err   string
	}{
		{"a file where the state should be", func(t *testing.T, b *bench) { write(t, b.places.StateDir, "x") }, "cannot create directory"},
		{"a world-writable run directory", func(t *testing.T, b *bench) {
			if err := os.MkdirAll(b.places.RunDir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(b.places.RunDir, 0o777); err != nil {
				t.Fatal(err)
			}
		}, "other users"},
		{"a file where a socket should be", func(t *testing.T, b *bench) { write(t, b.places.HookSocket, "x") }, "not a socket"},
		{"a broken configuration at the first start", func(t *testing.T, b *bench) { write(t, b.places.ConfigFile, "mode: [") }, "tripline.yaml"},
		{"a damaged key", func(t *testing.T, b *bench) { write(t, filepath.Join(b.places.KeysDir, "join.key"), "x") }, "damaged"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := place(t)
			tt.spoil(t, b)
			if err := b.tryStart(); err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want %q in it", err, tt.err)
			}
		})
	}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestStopAnswersWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}), make(chan struct{})
	b := running(t, func(o *Options) {
		o.seam.stage = func(_, stage string) {
			if stage == "analyse" {
				close(entered)
				<-release
			}
		}
	})
	c := b.dial()
	if _, err := c.Write(frame(t, "claude", "PreToolUse", b.bash("ls", "1"))); err != nil {
		t.Fatal(err)
	}
	<-entered
	for range 5 {
		b.dial() // idle ones must not hold the stop up
	}
	stopped := make(chan time.Duration, 1)
	go func() { stopped <- b.stop() }()
	b.eventually("it stops accepting", func() bool {
		n, err := net.Dial("unix", b.places.HookSocket)
		if err == nil {
			n.Close()
		}
		return err != nil
	})
	close(release)
	if r, err := finalReply(c); err != nil || !isPass(r) {
		t.Errorf("reply %+v, %v", r, err)
	}
	if d := <-stopped; d > 4*time.Second {
		t.Errorf("stopping took %v", d)
	}
	b.start() // the log was closed clean and says so
	rs := b.kinds(record.DaemonStart, record.DaemonStop, record.CallRequested)
	if len(rs) != 4 || rs[1].Kind != record.CallRequested || rs[2].Kind != record.DaemonStop {
		t.Errorf("records %s", b.list())
	}
	if err := b.d.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	if err := b.d.Stop(context.Background()); err != nil {
		t.Errorf("a second stop: %v", err)
	}
}

func FuzzConnection(f *testing.F) {
	b := running(f, shrunk(func(l *limits) {
		l.header, l.progress, l.frame = 50*time.Millisecond, 50*time.Millisecond, 200*time.Millisecond
	}))
	whole := frame(f, "claude", "PreToolUse", b.bash("rm -rf src", "1"))
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte("TRPL"))
	f.Add([]byte(strings.Repeat("\x00", 64)))
	f.Add(frame(f, "claude", "PostToolUse", nil, func(h *wire.Header) { h.Flags = wire.FlagStream }))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := net.Dial("unix", b.places.HookSocket)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = c.Write(data)
		_ = c.(*net.UnixConn).CloseWrite()
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		if _, err := io.ReadAll(c); err != nil && isTimeout(err) {
			t.Fatal("the connection hangs")
		}
		if _, err := b.client.Status(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestWhatIsRefusedUnreadIsDeclared(t *testing.T) {
	t.Parallel()
	b := running(t, shrunk(func(l *limits) { l.conns, l.waiting, l.patience, l.header = 1, 2, 100*time.Millisecond, time.Minute }))
	idle := b.dial()
	b.eventually("the slot is taken", func() bool { return len(b.d.hooks.slots) == 1 })
	b.send("PreToolUse", b.bash("ls", "1"))
	b.send("PostToolUse", b.post("ls", "1")) // silent, but its loss is not
	b.eventually("both are declared", func() bool {
		n := 0
		for _, g := range b.kinds(record.Gap) {
			k, _ := strconv.Atoi(g.Detail["lost_busy"])
			n += k
		}
		return n == 2
	})
	if d, f := b.metric(`tripline_events_dropped_total{reason="busy"}`), b.metric(`tripline_fail_closed_total{reason="busy"}`); d != 2 || f != 1 {
		t.Errorf("%v dropped, %v denied", d, f)
	}
	idle.Close()
}

func TestASlowPayloadCountsOnceAndOnlyWhereItIsDenied(t *testing.T) {
	t.Parallel()
	b := running(t, shrunk(func(l *limits) { l.progress = 100 * time.Millisecond }))
	for _, event := range []string{"PreToolUse", "PostToolUse"} {
		c := b.dial()
		whole := frame(t, "claude", event, b.bash("ls", "1"))
		if _, err := c.Write(whole[:len(whole)-5]); err != nil {
			t.Fatal(err)
		}
		b.final(c)
	}
	b.eventually("both are done", func() bool { return b.metric("tripline_connections") == 0 })
	if n := b.metric(`tripline_fail_closed_total{reason="deadline"}`); n != 1 {
		t.Errorf("counted %v times", n)
	}
}
