// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"bytes"
	"encoding/binary"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/hooks/wire"
)

func TestAnAnswerIsCopied(t *testing.T) {
	t.Parallel()
	hold := frame(wire.KindHold, 0, "", "")
	big := strings.Repeat("\x00\xff line\n", wire.MaxOutput/8)
	for name, tc := range map[string]struct {
		frames []byte
		want   result
	}{
		"a pass":                 {frame(wire.KindFinal, 0, "", ""), result{}},
		"an ask":                 {frame(wire.KindFinal, 0, `{"x":"ask"}`, ""), result{stdout: `{"x":"ask"}`}},
		"a deny":                 {frame(wire.KindFinal, 2, `{"x":"deny"}`, "tripline: denied (x)\n"), result{`{"x":"deny"}`, "tripline: denied (x)\n", 2}},
		"only a code":            {frame(wire.KindFinal, 2, "", ""), result{exit: 2}},
		"all that fits":          {frame(wire.KindFinal, 0, big, ""), result{stdout: big}},
		"all that fits, beside":  {frame(wire.KindFinal, 2, "", big), result{stderr: big, exit: 2}},
		"one hold before it":     {append(bytes.Clone(hold), frame(wire.KindFinal, 0, "a", "b")...), result{stdout: "a", stderr: "b"}},
		"a hundred holds before": {append(bytes.Repeat(hold, 100), frame(wire.KindFinal, 2, "a", "b")...), result{"a", "b", 2}},
		"noise behind it":        {append(frame(wire.KindFinal, 0, "a", ""), "noise"...), result{stdout: "a"}},
	} {
		for _, event := range []string{"PreToolUse", "Stop", "AnEventOfNextYear"} {
			t.Run(name+", "+event, func(t *testing.T) {
				t.Parallel()
				sock := serve(t, answer(tc.frames))
				dir := filepath.Join(t.TempDir(), "spool")
				if got := run(t, "{}", "-s", sock, "-q", dir, "claude", event); got != tc.want {
					t.Errorf("got %.200v, want %.200v", got, tc.want)
				}
				if _, err := os.Lstat(dir); err == nil {
					t.Error("an answered event was spooled")
				}
			})
		}
	}
}

func TestAnAnswerInSmallPieces(t *testing.T) {
	t.Parallel()
	sock := serve(t, func(c *net.UnixConn) {
		if _, _, err := request(c); err != nil {
			return
		}
		for _, b := range append(frame(wire.KindHold, 0, "", ""), frame(wire.KindFinal, 2, "out", "err")...) {
			c.Write([]byte{b})
		}
	})
	if got, want := run(t, "{}", "-s", sock, "claude", "PreToolUse"), (result{"out", "err", 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestServersThatDoNotAnswer(t *testing.T) {
	t.Parallel()
	hold, final := frame(wire.KindHold, 0, "", ""), frame(wire.KindFinal, 0, "stdout", "")
	change := func(at int, v byte) []byte {
		b := bytes.Clone(final)
		b[at] = v
		return b
	}
	huge := binary.BigEndian.AppendUint32(bytes.Clone(final[:8]), 0xfffffff0)
	// stall answers with b and then keeps the connection open and silent.
	stall := func(b []byte) func(*net.UnixConn) {
		return func(c *net.UnixConn) {
			answer(b)(c)
			untilGone(c)
		}
	}
	for name, tc := range map[string]struct {
		handle func(*net.UnixConn)
		rule   string
	}{
		"one that hangs up at once":                {func(*net.UnixConn) {}, "daemon.garbled"},
		"one that hangs up after the request":      {answer(nil), "daemon.garbled"},
		"one that reads and says nothing":          {stall(nil), "daemon.timeout"},
		"one that says half a frame and stops":     {stall(final[:10]), "daemon.timeout"},
		"one that says half a frame and hangs up":  {answer(final[:10]), "daemon.garbled"},
		"one that says all but the last byte":      {answer(final[:len(final)-1]), "daemon.garbled"},
		"one that speaks HTTP":                     {answer([]byte("HTTP/1.1 200 OK\r\n\r\n{}")), "daemon.garbled"},
		"one that says JSON":                       {answer([]byte(`{"decision":"approve"}`)), "daemon.garbled"},
		"one of another version":                   {answer(change(4, 2)), "daemon.garbled"},
		"one of an unknown kind":                   {answer(change(5, 3)), "daemon.garbled"},
		"one that wants exit code 1":               {answer(change(6, 1)), "daemon.garbled"},
		"one that wants exit code 3":               {answer(change(6, 3)), "daemon.garbled"},
		"one that wants exit code 255":             {answer(change(6, 255)), "daemon.garbled"},
		"one that promises 4 GiB":                  {answer(append(huge, 0, 0, 0, 0)), "daemon.garbled"},
		"one that holds and hangs up":              {answer(hold), "daemon.garbled"},
		"one that holds and stops":                 {stall(hold), "daemon.timeout"},
		"one that holds twice and stops":           {stall(append(bytes.Clone(hold), hold...)), "daemon.timeout"},
		"one that holds and says text":             {answer(append(bytes.Clone(hold), "sorry"...)), "daemon.garbled"},
		"one that holds for ever, as fast as ever": {func(c *net.UnixConn) { holdForever(c, hold) }, "daemon.timeout"},
	} {
		patience := "30000"
		if tc.rule == "daemon.timeout" {
			patience = "1000"
		}
		for _, event := range []string{"PreToolUse", "ConfigChange", "PermissionRequest", "PostToolUse"} {
			t.Run(name+", "+event, func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "spool")
				got := run(t, "{}", "-s", serve(t, tc.handle), "-t", patience, "-o", "allow", "-q", dir, "claude", event)
				if events[event] == gate {
					denied(t, got, event, tc.rule)
				} else {
					silent(t, got)
				}
				if e := spooled(t, dir); e.Meta.Fault.Rule() != tc.rule {
					t.Errorf("the spool says %s, want %s", e.Meta.Fault.Rule(), tc.rule)
				}
			})
		}
	}
}

func holdForever(c *net.UnixConn, hold []byte) {
	if _, _, err := request(c); err != nil {
		return
	}
	many := bytes.Repeat(hold, 1000)
	for {
		if _, err := c.Write(many); err != nil {
			return
		}
	}
}

func TestAnAnswerAfterTheDeadlineIsNotTaken(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	sock := serve(t, func(c *net.UnixConn) {
		if _, _, err := request(c); err != nil {
			return
		}
		untilGone(c) // the hook has given up: this is late
		c.Write(frame(wire.KindFinal, 0, "late", ""))
		close(gone)
	})
	begin := time.Now()
	denied(t, run(t, "{}", "-s", sock, "-t", "1000", "claude", "PreToolUse"), "PreToolUse", "daemon.timeout")
	if d := time.Since(begin); d < time.Second {
		t.Errorf("the hook gave up after %v, before its deadline", d)
	}
	<-gone
}

func TestTheFirstAnswerMustComeWithinTenSeconds(t *testing.T) {
	t.Parallel()
	for name, handle := range map[string]func(*net.UnixConn){
		"one that reads":         func(c *net.UnixConn) { untilGone(c) },
		"one that does not read": func(c *net.UnixConn) { waitForHangup(t, c) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			_, wait := start(t, bytes.NewReader(pattern(1<<20)), "-s", serve(t, handle), "claude", "PreToolUse")
			denied(t, wait(), "PreToolUse", "daemon.timeout")
			if d := time.Since(begin); d < 10*time.Second || d > 50*time.Second {
				t.Errorf("the hook gave up after %v, want 10 s", d)
			}
		})
	}
}

func TestTheRequestCarriesWhatTheHookKnows(t *testing.T) {
	t.Parallel()
	got := make(chan *wire.Header, 1)
	sock := serve(t, func(c *net.UnixConn) {
		h, _, err := request(c)
		if err != nil {
			return
		}
		c.Write(frame(wire.KindFinal, 0, "", ""))
		got <- h
	})
	before := time.Now()
	silent(t, run(t, `{"a":1}`, "-s", sock, "-t", "60000", "-n", "token", "claude", "PreToolUse"))
	h := <-got
	after := time.Now()
	if h.Agent != "claude" || h.Event != "PreToolUse" || h.Token != "token" || h.PayloadLen != 7 || h.Flags != 0 || int(h.ParentPID) != os.Getpid() {
		t.Errorf("header is %+v", h)
	}
	if h.Started < before.UnixNano() || h.Sent < h.Started || h.Sent > after.UnixNano() || h.Deadline-h.Started != int64(time.Minute) {
		t.Errorf("times are started %d, sent %d, deadline %d; test ran from %d to %d", h.Started, h.Sent, h.Deadline, before.UnixNano(), after.UnixNano())
	}
}

func TestDefaultDeadlines(t *testing.T) {
	t.Parallel()
	for event, want := range map[string]time.Duration{
		"PreToolUse": 140 * time.Second, "PreSkillShellCommand": 140 * time.Second, "ConfigChange": 20 * time.Second,
		"PermissionRequest": 5 * time.Second, "Stop": 5 * time.Second, "AnEventOfNextYear": 5 * time.Second,
	} {
		got := make(chan *wire.Header, 1)
		sock := serve(t, func(c *net.UnixConn) {
			if h, _, err := request(c); err == nil {
				c.Write(frame(wire.KindFinal, 0, "", ""))
				got <- h
			}
		})
		silent(t, run(t, "{}", "-s", sock, "claude", event))
		if h := <-got; time.Duration(h.Deadline-h.Started) != want {
			t.Errorf("%s: the deadline is after %v, want %v", event, time.Duration(h.Deadline-h.Started), want)
		}
	}
}
