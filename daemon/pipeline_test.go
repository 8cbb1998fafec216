// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/hooks/agents"
	"github.com/tripline-sh/tripline/hooks/agents/claude"
	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/hooks/wire"
)

func TestUndecodableEvents(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		event   string
		payload string
		deny    bool
	}{
		{"garbage on a gate event is denied", "PreToolUse", "\x00\xff garbage", true},
		{"nothing on a gate event is denied", "PreToolUse", "", true},
		{"an array on a gate event is denied", "PreToolUse", "[]", true},
		{"another event's payload is denied", "PreToolUse", `{"session_id":"s","cwd":"/","hook_event_name":"PostToolUse"}`, true},
		{"a case variant of a known key is denied", "PreToolUse", `{"session_id":"s","cwd":"/","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"rm -rf ~","Command":"ls"},"tool_use_id":"x"}`, true},
		{"a settings change that cannot be read is denied", "ConfigChange", "{", true},
		{"garbage elsewhere is silent", "PostToolUse", "garbage", false},
		{"garbage on an unknown event is silent", "NoSuchEvent", "garbage", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := running(t)
			r := b.send(tt.event, []byte(tt.payload))
			if tt.deny == isPass(r) {
				t.Fatalf("reply %+v", r)
			}
			if tt.deny && (r.Exit != 2 || string(r.Stderr) != "tripline: denied (input.undecodable)\n") {
				t.Errorf("reply %d %q", r.Exit, r.Stderr)
			}
			b.one(record.TamperUndecodable)
			if tt.event == "PreToolUse" {
				c := b.one(record.CallRequested)
				if c.Decision.Failure != "undecodable" || c.Decision.Answer != "deny" || c.Outcome != record.Blocked {
					t.Errorf("record %+v", c.Decision)
				}
			}
		})
	}
}

func TestUnknownAgentsAndEvents(t *testing.T) {
	t.Parallel()
	tests := []struct {
		agent, event string
		exit         uint8
	}{
		{"nobody", "PreToolUse", 2},
		{"nobody", "SomethingElse", 2},
		{"nobody", "PostToolUse", 0},
		{"", "", 2},
		{"claude", "SomethingElse", 0},
	}
	b := running(t)
	for _, tt := range tests {
		before := len(b.records())
		c := b.dial()
		if _, err := c.Write(frame(t, tt.agent, tt.event, b.payload(tt.event, nil))); err != nil {
			t.Fatal(err)
		}
		r := b.final(c)
		if r.Exit != tt.exit || len(r.Stdout) != 0 || (len(r.Stderr) > 0) != (tt.exit == 2) {
			t.Errorf("%s %s: %+v", tt.agent, tt.event, r)
		}
		if len(b.records()) == before {
			t.Errorf("%s %s left no record", tt.agent, tt.event)
		}
	}
}

func TestPanicInAnyStageDenies(t *testing.T) {
	t.Parallel()
	for _, stage := range []string{"decode", "enrich", "analyse", "decide", "gate", "redact", "append", "encode"} {
		t.Run(stage, func(t *testing.T) {
			t.Parallel()
			b := running(t, func(o *Options) {
				o.seam.stage = func(_, s string) {
					if s == stage {
						panic("secret-value-of-a-panic")
					}
				}
			})
			r := b.send("PreToolUse", b.bash("ls", "1"))
			if r.Exit != 2 || !strings.Contains(string(r.Stderr), "internal.panic") {
				t.Fatalf("reply %+v", r)
			}
			if r := b.send("PostToolUse", b.post("ls", "1")); !isPass(r) {
				t.Errorf("an observer's reply: %+v", r)
			}
			b.eventually("the panic is on record", func() bool {
				for _, r := range b.kinds(record.CallRequested, record.Gap) {
					if r.Kind == record.Gap && r.Detail["lost_panic"] != "" || r.Decision != nil && r.Decision.Failure == "panic" {
						return true
					}
				}
				return false
			})
			if strings.Contains(b.log.String(), "secret-value") {
				t.Error("the panic's value is in the daemon's log")
			}
		})
	}
}

// brokenLog fails to append while broken is set.
type brokenLog struct {
	auditLog
	fail func(*audit.Entry) bool
}

func (l *brokenLog) Append(ctx context.Context, e *audit.Entry) (audit.Receipt, error) {
	if l.fail(e) {
		return audit.Receipt{}, fmt.Errorf("%w: no space left on device", audit.ErrUnavailable)
	}
	return l.auditLog.Append(ctx, e)
}

// breakLog makes a daemon whose log fails for some entries.
func breakLog(fail func(*audit.Entry) bool) func(*Options) {
	return func(o *Options) {
		o.seam.openLog = func(ctx context.Context, ao audit.Options) (auditLog, error) {
			l, err := audit.Open(ctx, ao)
			if err != nil {
				return nil, err
			}
			return &brokenLog{l, fail}, nil
		}
	}
}

func TestNothingRunsThatCannotBeRecorded(t *testing.T) {
	t.Parallel()
	broken := true
	b := running(t, breakLog(func(e *audit.Entry) bool { return broken && e.Record.Session != "" }))
	r := b.send("PreToolUse", b.bash("ls", "1"))
	if d, text := reason(t, r); d != "deny" || r.Exit != 2 || !strings.Contains(text, "log.unavailable") {
		t.Fatalf("reply %+v", r)
	}
	if r := b.send("PostToolUse", b.post("ls", "1")); !isPass(r) {
		t.Errorf("an observer's reply: %+v", r)
	}
	b.eventually("the loss is declared", func() bool {
		n := 0
		for _, g := range b.kinds(record.Gap) {
			var k int
			fmt.Sscan(g.Detail["lost_log"], &k)
			n += k
		}
		return n == 2
	})
}

func TestStartFailsWhereNothingCanBeRecorded(t *testing.T) {
	t.Parallel()
	b := place(t)
	err := b.tryStart(breakLog(func(*audit.Entry) bool { return true }))
	if !errors.Is(err, audit.ErrUnavailable) {
		t.Fatalf("error %v", err)
	}
	// Everything was given back: the same places serve a healthy daemon.
	b.start()
	if r := b.send("PreToolUse", b.bash("ls", "1")); !isPass(r) {
		t.Errorf("reply %+v", r)
	}
}

func TestSlowLogDeniesBeforeTheHookGivesUp(t *testing.T) {
	t.Parallel()
	b := running(t, func(o *Options) {
		o.seam.openLog = func(ctx context.Context, ao audit.Options) (auditLog, error) {
			l, err := audit.Open(ctx, ao)
			return &slowLog{l}, err
		}
	})
	start := time.Now()
	r := b.send("PreToolUse", b.bash("ls", "1"), func(h *wire.Header) { h.Deadline = start.Add(time.Second).UnixNano() })
	if d, _ := reason(t, r); d != "deny" || time.Since(start) > time.Second {
		t.Errorf("%s after %v", d, time.Since(start))
	}
}

// slowLog never gets calls durable.
type slowLog struct{ auditLog }

func (l *slowLog) Append(ctx context.Context, e *audit.Entry) (audit.Receipt, error) {
	if e.Record.Kind == record.CallRequested {
		<-ctx.Done()
		return audit.Receipt{}, ctx.Err()
	}
	return l.auditLog.Append(ctx, e)
}

func TestEventsBeyondTheLimit(t *testing.T) {
	t.Parallel()
	b := running(t)
	big := bytes.Repeat([]byte("x"), 1<<20)
	for _, tt := range []struct {
		event string
		deny  bool
		kind  record.Kind
	}{
		{"PreToolUse", true, record.CallRequested},
		{"PostToolUse", false, record.SessionEvent},
	} {
		c := b.dial()
		if _, err := c.Write(frame(t, "claude", tt.event, nil, func(h *wire.Header) { h.Flags = wire.FlagStream })); err != nil {
			t.Fatal(err)
		}
		for range 33 {
			if _, err := c.Write(big); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		r := b.final(c)
		if tt.deny == isPass(r) {
			t.Errorf("%s: %+v", tt.event, r)
		}
		rec := b.one(tt.kind)
		if rec.Detail["payload_len"] != fmt.Sprint(33<<20) || len(rec.Detail["payload_sha256"]) != 64 {
			t.Errorf("%s: detail %v", tt.event, rec.Detail)
		}
	}
}

func TestRepliesOfConfigChangeAndObserversAreExact(t *testing.T) {
	t.Parallel()
	b := running(t)
	r := b.send("ConfigChange", b.payload("ConfigChange", map[string]any{"source": "user_settings", "file_path": b.home + "/.claude/settings.json"}))
	var v struct{ Decision, Reason string }
	if err := json.Unmarshal(r.Stdout, &v); err != nil || v.Decision != "block" || v.Reason == "" || r.Exit != 2 || string(r.Stderr) != "tripline: denied (settings.change)\n" {
		t.Errorf("reply %+v, %v", r, err)
	}
	for _, event := range []string{"SessionStart", "UserPromptSubmit", "Stop", "SubagentStart", "SubagentStop", "CwdChanged", "Notification",
		"PreCompact", "PostCompact", "InstructionsLoaded", "StopFailure", "PermissionDenied", "SessionEnd"} {
		before := len(b.records())
		if r := b.send(event, b.payload(event, nil)); !isPass(r) {
			t.Errorf("%s: %+v", event, r)
		}
		if len(b.records()) == before {
			t.Errorf("%s left no record", event)
		}
	}
}

// isClosed fails every entry once c is closed.
func isClosed(c <-chan struct{}) func(*audit.Entry) bool {
	return func(*audit.Entry) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
}

// vague is an adapter that decodes every event as one that waits for no verdict.
type vague struct{ agents.Adapter }

func (v vague) Decode(name string, payload []byte) (*event.Event, error) {
	ev, err := v.Adapter.Decode(name, payload)
	if ev != nil {
		ev.Kind = event.KindOther
	}
	return ev, err
}

func TestAGateEventIsNeverTakenForAnother(t *testing.T) {
	t.Parallel()
	b := running(t, func(o *Options) { o.Adapters = []agents.Adapter{vague{claude.Adapter{}}} })
	for _, name := range []string{"PreToolUse", "PreSkillShellCommand", "ConfigChange"} {
		p := b.payload(name, map[string]any{"tool_name": "Bash", "tool_input": map[string]any{"command": "rm -rf src"}, "tool_use_id": "1", "source": "user_settings"})
		if r := b.send(name, p); isPass(r) {
			t.Errorf("%s passes", name)
		}
	}
	if r := b.send("Stop", b.payload("Stop", nil)); !isPass(r) {
		t.Errorf("another event: %+v", r)
	}
}

func TestJudgementsThatHangAreBoundedAndDenied(t *testing.T) {
	t.Parallel()
	b := running(t, shrunk(func(l *limits) { l.conns, l.answer = 2, 200*time.Millisecond }))
	// As if two judgements had been given up and still ran.
	b.d.judging <- struct{}{}
	b.d.judging <- struct{}{}
	if r := b.send("PreToolUse", b.bash("ls", "1")); r.Exit != 2 || !strings.Contains(string(r.Stderr), "internal.deadline") {
		t.Errorf("reply %+v", r)
	}
	<-b.d.judging
	for range 5 {
		if r := b.send("PreToolUse", b.bash("ls", "2")); !isPass(r) {
			t.Errorf("afterwards: %+v", r)
		}
	}
	<-b.d.judging
}

func TestACallIsOnRecordAsBlockedThatFailsAfterItsVerdict(t *testing.T) {
	t.Parallel()
	var once sync.Once
	b := running(t, func(o *Options) {
		o.seam.stage = func(name, stage string) {
			if name == "PreToolUse" && stage == "encode" {
				once.Do(func() { panic("x") })
			}
		}
	})
	if r := b.send("PreToolUse", b.bash("ls", "1")); r.Exit != 2 {
		t.Fatalf("reply %+v", r)
	}
	calls := b.calls()
	if len(calls) != 1 || calls[0].Outcome != record.Blocked || calls[0].Who != "rule:internal.panic" {
		t.Errorf("calls %+v", calls)
	}
	ids := make(map[string]bool)
	for _, r := range b.records() {
		if ids[r.ID] {
			t.Errorf("two records have the id %s", r.ID)
		}
		ids[r.ID] = true
	}
	// Should it run all the same, that is seen.
	b.send("PostToolUse", b.post("ls", "1"))
	b.one(record.TamperDeniedRan)
}

func TestARefusalWithoutTimeIsRecordedAfterItsReply(t *testing.T) {
	t.Parallel()
	b := running(t)
	c := b.dial()
	whole := frame(t, "claude", "PreToolUse", b.bash("ls", "1"), func(h *wire.Header) { h.Deadline = time.Now().Add(400 * time.Millisecond).UnixNano() })
	if _, err := c.Write(whole[:len(whole)-5]); err != nil {
		t.Fatal(err)
	}
	if r := b.final(c); r.Exit != 2 || !strings.Contains(string(r.Stderr), "internal.slow") {
		t.Errorf("reply %+v", r)
	}
	b.eventually("it is on record", func() bool { return len(b.kinds(record.CallRequested)) == 1 })
	if r := b.one(record.CallRequested); r.Decision.Failure != "deadline" || r.Outcome != record.Blocked {
		t.Errorf("record %+v", r)
	}
	if n := len(b.kinds(record.Gap)); n != 0 {
		t.Errorf("%d gaps", n)
	}
}
