// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/daemon/control"
	"github.com/tripline-sh/tripline/hooks/spool"
	"github.com/tripline-sh/tripline/hooks/wire"
)

// alarmKinds are the kinds of records that need a person.
var alarmKinds = []record.Kind{
	record.TamperToken, record.TamperRewritten, record.TamperSettings, record.TamperPolicy, record.TamperScriptChanged,
	record.TamperDeniedRan, record.TamperUnrecorded, record.TamperUndecodable, record.Gap, record.DaemonAlarm, record.CommitUnknown,
}

// counted reports whether the alarms since the daemon's start are counted, each kind as often as it is on record.
func (b *bench) counted() bool {
	b.t.Helper()
	want := make(map[record.Kind]int)
	for _, r := range b.records() {
		if !r.Time.Before(b.d.started.Round(0)) {
			want[r.Kind]++
		}
	}
	for _, k := range alarmKinds {
		if b.metric(`tripline_alarms_total{kind="`+string(k)+`"}`) != float64(want[k]) {
			return false
		}
	}
	return b.metric(`tripline_alarms_total{kind="other"}`) == 0
}

func TestEveryRecordThatNeedsAPersonIsCountedOnce(t *testing.T) {
	t.Parallel()
	change := func(b *bench) []byte {
		return b.payload("ConfigChange", map[string]any{"source": "user_settings", "file_path": filepath.Join(b.home, ".claude", "settings.json")})
	}
	tests := []struct {
		name   string
		kind   record.Kind
		before func(b *bench)
		change func(*Options)
		do     func(b *bench)
	}{
		{"a gate event that cannot be read", record.TamperUndecodable, nil, nil, func(b *bench) { b.send("PreToolUse", []byte("garbage")) }},
		{"another event that cannot be read", record.TamperUndecodable, nil, nil, func(b *bench) { b.send("PostToolUse", []byte("garbage")) }},
		{"a settings change that cannot be read", record.TamperUndecodable, nil, nil, func(b *bench) { b.send("ConfigChange", []byte("{")) }},
		{"a settings change that is refused", record.TamperSettings, nil, nil, func(b *bench) { b.send("ConfigChange", change(b)) }},
		{"a settings change whose judgement fails", record.TamperSettings, nil, func(o *Options) {
			o.seam.stage = func(name, stage string) {
				if name == "ConfigChange" && stage == "decide" {
					panic("x")
				}
			}
		}, func(b *bench) { b.send("ConfigChange", change(b)) }},
		{"a managed settings change", record.TamperPolicy, nil, nil, func(b *bench) {
			b.send("ConfigChange", b.payload("ConfigChange", map[string]any{"source": "policy_settings"}))
		}},
		{"a wrong token", record.TamperToken, func(b *bench) { write(b.t, b.places.TokenFile, "right\n") }, nil, func(b *bench) {
			b.send("PreToolUse", b.bash("ls", "1"), func(h *wire.Header) { h.Token = "wrong" })
		}},
		{"a denied call that ran", record.TamperDeniedRan, nil, nil, func(b *bench) {
			b.send("PreToolUse", b.bash("rm -rf src", "1"))
			b.send("PostToolUse", b.post("rm -rf src", "1"))
		}},
		{"a rewritten call", record.TamperRewritten, nil, nil, func(b *bench) {
			b.send("PreToolUse", b.bash("ls", "1"))
			b.send("PostToolUse", b.post("ls -l", "1"))
		}},
		{"a call without a request", record.TamperUnrecorded, nil, nil, func(b *bench) { b.batch(batchCall("ls", "1", "ok")) }},
		{"an unreadable event in the spool", record.TamperUndecodable, func(b *bench) {
			b.spooled("PreToolUse", []byte("garbage"), spool.Meta{Answer: spool.Denied, Fault: spool.Absent})
			b.spooled("Stop", []byte("garbage"), spool.Meta{Answer: spool.Silent, Fault: spool.Absent})
		}, nil, func(*bench) {}},
		{"a denied call whose end comes through the spool", record.TamperDeniedRan, func(b *bench) {
			b.spooled("PreToolUse", b.bash("ls", "1"), spool.Meta{Answer: spool.Denied, Fault: spool.Absent})
			b.spooled("PostToolUse", b.post("ls", "1"), spool.Meta{Answer: spool.Silent, Fault: spool.Absent})
		}, nil, func(*bench) {}},
		{"dropped events", record.Gap, func(b *bench) { write(b.t, filepath.Join(b.places.SpoolDir, spool.DroppedName), "xxx") }, nil, func(*bench) {}},
		{"a loss", record.Gap, nil, nil, func(b *bench) { b.d.gaps.add("log", 2) }},
		{"an alarm of the daemon's own", record.DaemonAlarm, nil, nil, func(b *bench) {
			if _, err := b.d.log.Append(b.t.Context(), &audit.Entry{Record: record.Record{Kind: record.DaemonAlarm}}); err != nil {
				b.t.Error(err)
			}
		}},
		{"a commit whose outcome is unknown", record.CommitUnknown, nil, nil, func(b *bench) {
			segments, err := filepath.Glob(filepath.Join(b.places.LogDir, "*.db"))
			if err != nil || len(segments) != 1 || os.Remove(segments[0]) != nil {
				b.t.Fatal(segments, err)
			}
			b.eventually("the log works again", func() bool { return isPass(b.send("PreToolUse", b.bash("ls", "1"))) })
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := place(t)
			if tt.before != nil {
				tt.before(b)
			}
			if tt.change != nil {
				b.start(tt.change)
			} else {
				b.start()
			}
			tt.do(b)
			b.eventually("it is on record", func() bool { return len(b.kinds(tt.kind)) > 0 })
			b.eventually("all alarms are counted", b.counted)
			if !strings.Contains(b.log.String(), `"kind":"`+string(tt.kind)+`"`) {
				t.Error("the daemon's own log does not tell")
			}
		})
	}
}

func TestALogThatLostRecordsIsCountedAtStart(t *testing.T) {
	t.Parallel()
	b := running(t)
	b.send("PreToolUse", b.bash("ls", "1"))
	b.stop()
	segments, err := filepath.Glob(filepath.Join(b.places.LogDir, "*.db"))
	if err != nil || len(segments) != 1 || os.Remove(segments[0]) != nil {
		t.Fatal(segments, err)
	}
	b.start()
	if len(b.kinds(record.Gap)) == 0 || !b.counted() {
		t.Errorf("records %s", b.list())
	}
}

func TestLogBytesIsTheSizeOfAllFiles(t *testing.T) {
	t.Parallel()
	b := running(t, func(o *Options) {
		o.seam.openLog = func(ctx context.Context, ao audit.Options) (auditLog, error) {
			ao.MaxSegment = 1 << 17
			return audit.Open(ctx, ao)
		}
	})
	size := func() (sum float64, segments int) {
		files, err := os.ReadDir(b.places.LogDir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			fi, err := f.Info()
			if err != nil {
				t.Fatal(err)
			}
			sum += float64(fi.Size())
			if filepath.Ext(f.Name()) == ".db" {
				segments++
			}
		}
		return sum, segments
	}
	last := 0.0
	b.eventually("the log has three segments", func() bool {
		b.send("UserPromptSubmit", b.payload("UserPromptSubmit", map[string]any{"prompt": strings.Repeat("many words ", 3000)}))
		b.d.log.measure()
		now := b.metric("tripline_log_bytes")
		if now < last {
			t.Errorf("it dropped from %v to %v", last, now)
		}
		last = now
		_, n := size()
		return n >= 3
	})
	b.eventually("the sizes agree", func() bool {
		want, _ := size()
		return b.metric("tripline_log_bytes") == want
	})
}

func TestVerificationsThatFailAreCounted(t *testing.T) {
	t.Parallel()
	b := running(t)
	b.send("PreToolUse", b.bash("ls", "1"))
	verify := func(req control.VerifyRequest) string {
		v, err := b.client.Verify(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		return v.Outcome
	}
	for i, tt := range []struct {
		req    control.VerifyRequest
		ok     bool
		failed float64
	}{
		{control.VerifyRequest{}, true, 0},
		{control.VerifyRequest{Key: "tripline+00000000+xx"}, false, 1},
		{control.VerifyRequest{Anchors: []control.Anchor{{Seq: 1, Root: "00000000deadbeef"}}}, false, 2},
		{control.VerifyRequest{Key: b.d.log.VerifierKey()}, true, 2},
	} {
		if got := verify(tt.req); (got == "OK") != tt.ok || b.metric("tripline_log_verify_failures_total") != tt.failed {
			t.Errorf("%d: %s, %v counted", i, got, b.metric("tripline_log_verify_failures_total"))
		}
	}
}

func TestActiveSessionsAreCounted(t *testing.T) {
	t.Parallel()
	b := running(t)
	event := func(name, session string) {
		b.send(name, b.payload(name, map[string]any{"session_id": session, "source": "startup", "reason": "other"}))
	}
	active := func(n float64) func() bool {
		return func() bool { return b.metric(`tripline_sessions_active{agent="claude"}`) == n }
	}
	event("SessionStart", "a")
	event("SessionStart", "b")
	event("SessionStart", "b") // compacted: the same session
	event("Stop", "c")         // its start was not seen
	b.eventually("two are active", active(2))
	event("SessionEnd", "a")
	b.eventually("one is left", active(1))
	b.stop()
	b.start()
	b.eventually("one is known after a restart", active(1))
	if n := b.d.sessions.active(time.Now().Add(sessionLife + time.Minute))["claude"]; n != 0 {
		t.Errorf("%d are active after a silent day", n)
	}
}
