// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/hooks/client"
	"github.com/tripline-sh/tripline/hooks/event"
)

// fallbacks makes the real hook fail on an event in every way that a test can bring about, and returns what it answered.
func fallbacks(t *testing.T) func(name string) []event.Reply {
	dir := t.TempDir()
	deaf := listen(t, filepath.Join(dir, "deaf"), nil)
	rude := listen(t, filepath.Join(dir, "rude"), func(c net.Conn) { c.Close() })
	odd := listen(t, filepath.Join(dir, "odd"), func(c net.Conn) {
		_, _ = c.Write([]byte("TRPR\x01\x01\x00\x00 this is no frame"))
		c.Close()
	})
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return func(name string) []event.Reply {
		var all []event.Reply
		for _, socket := range []string{filepath.Join(dir, "absent"), file, deaf, rude, odd} {
			all = append(all, runHook(t, "-1", "-s", socket, "-t", "100", "claude", name))
		}
		return append(all,
			runHook(t, strconv.Itoa(os.Getuid()+1), "-s", deaf, "-t", "100", "claude", name),
			runHook(t, "signal", "-s", deaf, "-t", "5000", "claude", name))
	}
}

// listen makes a socket that accepts and, if speak is nil, says nothing.
func listen(t *testing.T, path string, speak func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if speak != nil {
				speak(c)
				continue
			}
			defer c.Close() // when the listener goes
		}
	}()
	return path
}

// runHook runs the hook in this process. how is the uid that it accepts as the daemon's, -1 for its own, or "signal": then it
// is asked to end.
func runHook(t *testing.T, how string, args ...string) event.Reply {
	t.Helper()
	dir := t.TempDir()
	open := func(name, text string) *os.File {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	in, out, errs := open("in", `{"hook_event_name":"x"}`), open("out", ""), open("err", "")
	p := client.Process{Args: args, Started: time.Now(), In: int(in.Fd()), Out: int(out.Fd()), Err: int(errs.Fd()), Signals: -1}
	switch how {
	case "-1":
	case "signal":
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		if _, err := w.Write([]byte{15}); err != nil {
			t.Fatal(err)
		}
		p.Signals = int(r.Fd())
	default:
		p.Args = append([]string{"-u", how}, args...)
	}
	reply := event.Reply{Exit: client.Run(p)}
	var err1, err2 error
	reply.Stdout, err1 = os.ReadFile(out.Name())
	reply.Stderr, err2 = os.ReadFile(errs.Name())
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	return reply
}
