// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/daemon/control"
	"github.com/tripline-sh/tripline/hooks/wire"
)

// bench is a daemon under test with everything around it.
type bench struct {
	t       testing.TB
	d       *Daemon
	places  config.Places
	project string // a directory with src/a in it
	home    string
	log     *syncBuffer
	client  *control.Client
}

// syncBuffer collects what the daemon logs.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// place makes the directories of a bench. Names are short, since socket paths are.
func place(t testing.TB) *bench {
	t.Helper()
	dir, err := os.MkdirTemp("", "tl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "home", "dev")
	project := filepath.Join(home, "project")
	for _, d := range []string{filepath.Join(project, "src"), filepath.Join(project, ".git"), filepath.Join(home, ".claude")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(project, "src", "a"), []byte("a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	places, err := config.FindPlaces(func(k string) string {
		return map[string]string{"TRIPLINE_HOME": filepath.Join(dir, "t"), "HOME": home}[k]
	})
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t: t, places: places, project: project, home: home, log: &syncBuffer{},
		client: &control.Client{Socket: places.ControlSocket}}
}

// start runs a daemon at the bench's places until the test ends.
func (b *bench) start(change ...func(*Options)) *bench {
	b.t.Helper()
	if err := b.tryStart(change...); err != nil {
		b.t.Fatal(err)
	}
	return b
}

func (b *bench) tryStart(change ...func(*Options)) error {
	o := Options{
		Places:    b.places,
		Overrides: map[string]string{"metrics.listen": "off"},
		Version:   "test",
		Homes:     []string{b.home},
		Logger:    zerolog.New(b.log).Level(zerolog.TraceLevel),
	}
	for _, f := range change {
		f(&o)
	}
	d, err := New(o)
	if err != nil {
		return err
	}
	if err := d.Start(context.Background()); err != nil {
		return err
	}
	b.d = d
	b.t.Cleanup(func() { b.stop() })
	return nil
}

// stop stops the daemon; it reports how long that took.
func (b *bench) stop() time.Duration {
	b.t.Helper()
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := b.d.Stop(ctx); err != nil {
		b.t.Errorf("stop: %v", err)
	}
	return time.Since(start)
}

func running(t testing.TB, change ...func(*Options)) *bench {
	t.Helper()
	return place(t).start(change...)
}

// dial connects to the hook socket.
func (b *bench) dial() *net.UnixConn {
	b.t.Helper()
	c, err := net.Dial("unix", b.places.HookSocket)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { c.Close() })
	return c.(*net.UnixConn)
}

// frame is a request as the hook would send it.
func frame(t testing.TB, agent, event string, payload []byte, change ...func(*wire.Header)) []byte {
	t.Helper()
	now := time.Now()
	h := &wire.Header{
		Agent: agent, Event: event, Deadline: now.Add(140 * time.Second).UnixNano(), Started: now.UnixNano(), Sent: now.UnixNano(),
		ParentPID: int32(os.Getppid()), PayloadLen: uint32(len(payload)),
	}
	for _, f := range change {
		f(h)
	}
	b, err := wire.AppendHeader(nil, h)
	if err != nil {
		t.Fatal(err)
	}
	return append(b, payload...)
}

// send is one whole exchange. HOLD frames are passed over.
func (b *bench) send(event string, payload []byte, change ...func(*wire.Header)) *wire.Reply {
	b.t.Helper()
	c := b.dial()
	if _, err := c.Write(frame(b.t, "claude", event, payload, change...)); err != nil {
		b.t.Fatal(err)
	}
	return b.final(c)
}

// final reads up to the final frame.
func (b *bench) final(c net.Conn) *wire.Reply {
	b.t.Helper()
	r, err := finalReply(c)
	if err != nil {
		b.t.Fatalf("no reply: %v; log:\n%s", err, b.log)
	}
	return r
}

func finalReply(c net.Conn) (*wire.Reply, error) {
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		return nil, err
	}
	for {
		r, err := wire.ReadReply(c)
		if err != nil || r.Kind == wire.KindFinal {
			return r, err
		}
	}
}

// payload is an event of Claude Code in the bench's project.
func (b *bench) payload(event string, extra map[string]any) []byte {
	b.t.Helper()
	m := map[string]any{
		"session_id": "s-1", "transcript_path": filepath.Join(b.home, ".claude", "projects", "p", "s-1.jsonl"),
		"cwd": b.project, "hook_event_name": event, "permission_mode": "default",
	}
	for k, v := range extra {
		if v == nil {
			delete(m, k)
			continue
		}
		m[k] = v
	}
	p, err := json.Marshal(m)
	if err != nil {
		b.t.Fatal(err)
	}
	return append(p, '\n')
}

// bash is a PreToolUse event of a Bash call.
func (b *bench) bash(command, id string) []byte {
	return b.payload("PreToolUse", map[string]any{
		"tool_name": "Bash", "tool_input": map[string]any{"command": command, "description": "d"}, "tool_use_id": id,
	})
}

// post is the PostToolUse event of a Bash call.
func (b *bench) post(command, id string) []byte {
	return b.payload("PostToolUse", map[string]any{
		"tool_name": "Bash", "tool_input": map[string]any{"command": command, "description": "d"}, "tool_use_id": id,
		"tool_response": map[string]any{"stdout": "ok", "stderr": "", "interrupted": false, "isImage": false}, "duration_ms": 12,
	})
}

// records returns everything that the log holds.
func (b *bench) records() []record.Record {
	b.t.Helper()
	out, err := b.d.log.Tail(context.Background(), 100000)
	if err != nil && !errors.Is(err, audit.ErrDamaged) { // what is left of a damaged log is what a test looks at
		b.t.Fatal(err)
	}
	return out
}

// kinds returns the records of some kinds.
func (b *bench) kinds(kinds ...record.Kind) []record.Record {
	b.t.Helper()
	var out []record.Record
	for _, r := range b.records() {
		for _, k := range kinds {
			if r.Kind == k {
				out = append(out, r)
			}
		}
	}
	return out
}

// one returns the only record of a kind.
func (b *bench) one(kind record.Kind) record.Record {
	b.t.Helper()
	rs := b.kinds(kind)
	if len(rs) != 1 {
		b.t.Fatalf("%d records of kind %s, want 1; all: %s", len(rs), kind, b.list())
	}
	return rs[0]
}

func (b *bench) list() string {
	var s []string
	for _, r := range b.records() {
		s = append(s, string(r.Kind))
	}
	return strings.Join(s, " ")
}

// metric returns the value of a series, as `name{label="value"}`.
func (b *bench) metric(series string) float64 {
	b.t.Helper()
	w := httptest.NewRecorder()
	b.d.m.Handler(0).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if v, ok := strings.CutPrefix(line, series+" "); ok {
			f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
			if err != nil {
				b.t.Fatal(err)
			}
			return f
		}
	}
	b.t.Fatalf("there is no series %s", series)
	return 0
}

// calls returns the calls of the log as people see them.
func (b *bench) calls() []record.Call {
	b.t.Helper()
	var out []record.Call
	if err := b.client.Calls(b.t.Context(), record.Filter{Canary: true}, func(c record.Call) error { out = append(out, c); return nil }); err != nil {
		b.t.Fatal(err)
	}
	return out
}

// eventually polls a condition.
func (b *bench) eventually(what string, ok func() bool) {
	b.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(10 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			b.t.Fatalf("not within 10 s: %s; log:\n%s", what, b.log)
		}
	}
}

// isPass reports whether a reply says nothing.
func isPass(r *wire.Reply) bool { return r.Exit == 0 && len(r.Stdout) == 0 && len(r.Stderr) == 0 }

// reason returns what a reply of PreToolUse tells the model, and its decision.
func reason(t testing.TB, r *wire.Reply) (decision, text string) {
	t.Helper()
	var v struct {
		HookSpecificOutput struct {
			HookEventName            string `json:"hookEventName"`
			PermissionDecision       string `json:"permissionDecision"`
			PermissionDecisionReason string `json:"permissionDecisionReason"`
		} `json:"hookSpecificOutput"`
	}
	if len(r.Stdout) == 0 {
		return "pass", ""
	}
	if err := json.Unmarshal(r.Stdout, &v); err != nil {
		t.Fatalf("stdout %q: %v", r.Stdout, err)
	}
	return v.HookSpecificOutput.PermissionDecision, v.HookSpecificOutput.PermissionDecisionReason
}
