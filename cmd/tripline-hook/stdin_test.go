// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"bytes"
	"crypto/sha256"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/hooks/spool"
	"github.com/tripline-sh/tripline/hooks/wire"
)

// pattern returns n bytes that differ from place to place.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + i>>16)
	}
	return b
}

func TestPayloadsArriveUnchanged(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		size   int
		stream bool
	}{
		"nothing":                      {0, false},
		"a byte":                       {1, false},
		"one pipe buffer":              {65536, false},
		"6 MB":                         {6_000_000, false},
		"exactly the limit":            {wire.MaxPayload, false},
		"one byte more than the limit": {wire.MaxPayload + 1, true},
		"40 MB":                        {40_000_000, true},
	} {
		t.Run(name, func(t *testing.T) {
			want := pattern(tc.size)
			got := make(chan [32]byte, 1)
			streamed := make(chan bool, 1)
			sock := serve(t, func(c *net.UnixConn) {
				h, b, err := request(c)
				if err != nil {
					t.Errorf("server: %v", err)
					return
				}
				got <- sha256.Sum256(b)
				streamed <- h.Stream()
				c.Write(frame(wire.KindFinal, 2, "deny", ""))
			})
			_, wait := start(t, bytes.NewReader(want), "-s", sock, "claude", "PreToolUse")
			if r := wait(); r != (result{"deny", "", 2}) {
				t.Fatalf("got %+v", r)
			}
			if <-got != sha256.Sum256(want) || <-streamed != tc.stream {
				t.Error("the server got another payload, or in another way")
			}
		})
	}
}

func TestAnAnswerBeforeTheEndOfTheEvent(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		event  string
		frames []byte
		hangUp bool
		want   func(*testing.T, result)
	}{
		"a refusal counts": {"PreToolUse", frame(wire.KindFinal, 2, "too big", ""), false, func(t *testing.T, r result) {
			if r != (result{"too big", "", 2}) {
				t.Errorf("got %+v", r)
			}
		}},
		"a refusal of one who hangs up counts": {"PreToolUse", frame(wire.KindFinal, 2, "too big", ""), true, func(t *testing.T, r result) {
			if r != (result{"too big", "", 2}) {
				t.Errorf("got %+v", r)
			}
		}},
		"a pass of what was not read is not taken": {"PreToolUse", frame(wire.KindFinal, 0, "", ""), false, func(t *testing.T, r result) {
			denied(t, r, "PreToolUse", "daemon.garbled")
		}},
		"a hold of what was not read is not taken": {"PreToolUse", frame(wire.KindHold, 0, "", ""), false, func(t *testing.T, r result) {
			denied(t, r, "PreToolUse", "daemon.garbled")
		}},
		"hanging up is no answer":               {"PreToolUse", nil, true, func(t *testing.T, r result) { denied(t, r, "PreToolUse", "daemon.garbled") }},
		"an event that does not gate is silent": {"PostToolUse", frame(wire.KindFinal, 0, "", ""), false, silent},
	} {
		for size, payload := range map[string][]byte{"6 MB": pattern(6_000_000), "40 MB": pattern(40_000_000)} {
			t.Run(name+", "+size, func(t *testing.T) {
				t.Parallel()
				sock := serve(t, func(c *net.UnixConn) {
					if _, err := wire.ReadHeader(c); err != nil {
						return
					}
					c.Write(tc.frames)
					if !tc.hangUp {
						// Stay, without reading, until the hook has gone: its end shows as a failing write.
						waitForHangup(t, c)
					}
				})
				_, wait := start(t, bytes.NewReader(payload), "-s", sock, "claude", tc.event)
				tc.want(t, wait())
			})
		}
	}
}

// waitForHangup returns when the other end of c is closed, without reading what it sent.
func waitForHangup(t *testing.T, c *net.UnixConn) {
	raw, err := c.SyscallConn()
	if err != nil {
		t.Error(err)
		return
	}
	poll(t, func() bool { return hungUp(raw) })
}

// poll waits for a condition, for up to half a minute.
func poll(t *testing.T, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Error("waited half a minute in vain")
			return
		}
	}
}

func TestInputThatCannotBeRead(t *testing.T) {
	t.Parallel()
	sock := serve(t, answer(frame(wire.KindFinal, 0, "", "")))
	open := func(t *testing.T, path string, flag int) *os.File {
		f, err := os.OpenFile(path, flag, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	for name, tc := range map[string]struct {
		stdin func(t *testing.T) io.Reader
		part  string // what the spool keeps
		rule  string
	}{
		"a directory": {func(t *testing.T) io.Reader { return open(t, t.TempDir(), os.O_RDONLY) }, "", "hook.input"},
		"a file open only for writing": {func(t *testing.T) io.Reader {
			return open(t, filepath.Join(t.TempDir(), "f"), os.O_WRONLY|os.O_CREATE)
		}, "", "hook.input"},
		"a pipe that stays open": {func(t *testing.T) io.Reader {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { r.Close(); w.Close() })
			if _, err := w.WriteString(`{"half":`); err != nil {
				t.Fatal(err)
			}
			return r
		}, `{"half":`, "hook.input"},
	} {
		for _, event := range []string{"PreToolUse", "ConfigChange", "SessionEnd"} {
			t.Run(name+", "+event, func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "spool")
				_, wait := start(t, tc.stdin(t), "-s", sock, "-t", "1000", "-o", "allow", "-q", dir, "claude", event)
				if got := wait(); events[event] == gate {
					denied(t, got, event, tc.rule)
				} else {
					silent(t, got)
				}
				if e := spooled(t, dir); string(e.Payload) != tc.part || e.Meta.Flags != spool.FlagOpen {
					t.Errorf("spooled %q with flags %d", e.Payload, e.Meta.Flags)
				}
			})
		}
	}
}

func TestInputWithoutEndMeetsTheDeadline(t *testing.T) {
	t.Parallel()
	zero, err := os.Open("/dev/zero")
	if err != nil {
		t.Fatal(err)
	}
	defer zero.Close()
	sock := serve(t, func(c *net.UnixConn) { untilGone(c) })
	_, wait := start(t, zero, "-s", sock, "-t", "1000", "claude", "PreToolUse")
	// Which side the deadline meets is chance: the hook waits for both in turn.
	got, rule := wait(), "hook.input"
	if strings.Contains(got.stderr, "daemon.timeout") {
		rule = "daemon.timeout"
	}
	denied(t, got, "PreToolUse", rule)
}

func TestALongEventIsCutInTheSpool(t *testing.T) {
	t.Parallel()
	payload := pattern(40_000_000)
	dir := filepath.Join(t.TempDir(), "spool")
	_, wait := start(t, bytes.NewReader(payload), "-s", "/nonexistent/hook.sock", "-q", dir, "claude", "PostToolUse")
	silent(t, wait())
	e := spooled(t, dir)
	if !bytes.Equal(e.Payload, payload[:spool.MaxPayload]) || e.Meta.Flags != spool.FlagCut|spool.FlagOpen || e.Meta.Read != wire.MaxPayload+1 {
		t.Errorf("spooled %d bytes, %+v", len(e.Payload), e.Meta)
	}
}
