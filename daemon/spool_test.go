// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/hooks/agents"
	"github.com/tripline-sh/tripline/hooks/agents/claude"
	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/hooks/spool"
	"github.com/tripline-sh/tripline/hooks/wire"
)

// spooled leaves an event in the spool, as a hook without a daemon does.
func (b *bench) spooled(event string, payload []byte, m spool.Meta) {
	b.t.Helper()
	if err := os.MkdirAll(b.places.SpoolDir, 0o700); err != nil {
		b.t.Fatal(err)
	}
	m.Read = uint64(len(payload))
	now := time.Now().UnixNano()
	h := wire.Header{Agent: "claude", Event: event, Deadline: now, Started: now, Sent: now}
	if err := spool.Write(b.places.SpoolDir, m, h, payload); err != nil {
		b.t.Fatal(err)
	}
}

func TestSpoolIsIngestedAtStart(t *testing.T) {
	t.Parallel()
	b := place(t)
	b.spooled("PreToolUse", b.bash("ls", "1"), spool.Meta{Answer: spool.Passed, Fault: spool.Absent})
	b.spooled("PostToolUse", b.post("ls", "1"), spool.Meta{Answer: spool.Silent, Fault: spool.Absent})
	b.spooled("PreToolUse", b.bash("ls", "2"), spool.Meta{Answer: spool.Denied, Fault: spool.Timeout, Flags: spool.FlagSent})
	b.spooled("PreToolUse", []byte("garbage"), spool.Meta{Answer: spool.Denied, Fault: spool.Absent})
	b.spooled("PreToolUse", []byte("garbage that passed"), spool.Meta{Answer: spool.Passed, Fault: spool.Absent})
	b.start()
	b.eventually("the spool is empty", func() bool {
		left, err := filepath.Glob(filepath.Join(b.places.SpoolDir, "*.evt"))
		return err == nil && len(left) == 0
	})
	req := b.kinds(record.CallRequested)
	if len(req) != 4 {
		t.Fatalf("records %s", b.list())
	}
	for _, r := range req {
		if !r.Late || r.Source != "spool" || r.Peer != nil || r.Detail["fault"] == "" {
			t.Errorf("record %+v", r)
		}
	}
	if req[0].Decision.Answer != "pass" || req[0].Decision.Failure != "daemon.unreachable" || req[0].Outcome != "" {
		t.Errorf("a call that passed: %+v", req[0].Decision)
	}
	if req[1].Decision.Answer != "deny" || req[1].Decision.Rule != "daemon.timeout" || req[1].Detail["sent"] != "1" {
		t.Errorf("a call that was denied: %+v", req[1].Decision)
	}
	if req[2].Outcome != record.Blocked || req[3].Outcome == record.Blocked || req[3].Decision.Answer != "pass" {
		t.Errorf("calls that cannot be read: %+v, %+v", req[2], req[3])
	}
	if fin := b.one(record.CallFinished); fin.Call != req[0].ID || !fin.Late {
		t.Errorf("end %+v", fin)
	}
	if n := len(b.kinds(record.TamperToken)); n != 0 {
		t.Errorf("%d alarms about tokens of spooled events", n)
	}
}

func TestIngestionIsIdempotent(t *testing.T) {
	t.Parallel()
	b := running(t)
	b.spooled("PreToolUse", b.bash("ls", "1"), spool.Meta{Answer: spool.Passed, Fault: spool.Absent})
	names, err := filepath.Glob(filepath.Join(b.places.SpoolDir, "*.evt"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	data, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	b.d.spool.ingest(t.Context())
	b.one(record.CallRequested)
	// As if the daemon had died between the record and the removal, twice.
	for range 2 {
		if err := os.WriteFile(names[0], data, 0o600); err != nil {
			t.Fatal(err)
		}
		b.stop()
		b.start()
		b.eventually("the spool is empty", func() bool {
			_, err := os.Stat(names[0])
			return err != nil
		})
	}
	b.one(record.CallRequested)
	// Names do not pile up in the state: the next entry takes the old ones off.
	b.spooled("PreToolUse", b.bash("ls", "2"), spool.Meta{Answer: spool.Passed, Fault: spool.Absent})
	b.d.spool.ingest(t.Context())
	if st, err := b.d.log.State(spoolPrefix); err != nil || len(st) != 1 {
		t.Errorf("state %v, %v", st, err)
	}
}

func TestAnEntryThatCannotBeRemovedIsIngestedOnce(t *testing.T) {
	t.Parallel()
	b := running(t)
	b.spooled("PreToolUse", b.bash("ls", "1"), spool.Meta{Answer: spool.Passed, Fault: spool.Absent})
	names, err := filepath.Glob(filepath.Join(b.places.SpoolDir, "*.evt"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	data, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		b.d.spool.ingest(t.Context())
		write(t, names[0], string(data)) // as if it had never been removed
		b.spooled("PreToolUse", b.bash("ls", "x"+itoa(uint64(i))), spool.Meta{Answer: spool.Passed, Fault: spool.Absent})
	}
	b.d.spool.ingest(t.Context())
	n := 0
	for _, r := range b.kinds(record.CallRequested) {
		if r.ToolUseID == "1" {
			n++
		}
	}
	if all := len(b.kinds(record.CallRequested)); n != 1 || all != 5 {
		t.Errorf("ingested %d times; %d records", n, all)
	}
	b.spooled("PreToolUse", b.bash("ls", "last"), spool.Meta{Answer: spool.Passed, Fault: spool.Absent})
	b.d.spool.ingest(t.Context())
	if st, err := b.d.log.State(spoolPrefix); err != nil || len(st) > 2 {
		t.Errorf("state %v, %v", st, err)
	}
}

func TestDroppedAndForeignThingsInTheSpoolAreDeclared(t *testing.T) {
	t.Parallel()
	b := place(t)
	write(t, filepath.Join(b.places.SpoolDir, spool.DroppedName), "xxx")
	write(t, filepath.Join(b.places.SpoolDir, "not-an-entry"), "x")
	if err := os.Symlink("/etc/passwd", filepath.Join(b.places.SpoolDir, "1700000000000000000-1-1-10.evt")); err != nil {
		t.Fatal(err)
	}
	b.start()
	b.eventually("both are declared", func() bool {
		dropped, bad := "", ""
		for _, g := range b.kinds(record.Gap) {
			dropped += g.Detail["lost_spool_full"]
			bad += g.Detail["lost_spool_bad"]
		}
		return dropped == "3" && bad != ""
	})
}

func TestBatchLooksIntoTheSpoolBeforeItAlarms(t *testing.T) {
	t.Parallel()
	b := running(t)
	b.spooled("PreToolUse", b.bash("ls", "1"), spool.Meta{Answer: spool.Passed, Fault: spool.Absent})
	b.spooled("PostToolUse", b.post("ls", "1"), spool.Meta{Answer: spool.Silent, Fault: spool.Absent})
	b.batch(batchCall("ls", "1", "ok"))
	if n := len(b.kinds(record.TamperUnrecorded)); n != 0 {
		t.Errorf("%d false alarms", n)
	}
}

func TestEventsThatWereSentAndSpooledCountOnce(t *testing.T) {
	t.Parallel()
	b := running(t)
	sent := spool.Meta{Answer: spool.Denied, Fault: spool.Timeout, Flags: spool.FlagSent}
	// The daemon judged the call, but its hook had given up and denied it.
	b.send("PreToolUse", b.bash("ls", "1"))
	b.spooled("PreToolUse", b.bash("ls", "1"), sent)
	// The daemon recorded the end, but its hook did not hear so.
	b.send("PreToolUse", b.bash("ls x", "2"))
	b.send("PostToolUse", b.post("ls x", "2"))
	sent.Answer = spool.Silent
	b.spooled("PostToolUse", b.post("ls x", "2"), sent)
	b.d.spool.ingest(t.Context())
	req := b.kinds(record.CallRequested)
	if len(req) != 2 || len(b.kinds(record.CallFinished)) != 1 {
		t.Errorf("records %s", b.list())
	}
	if r := b.one(record.CallRejected); r.Call != req[0].ID || r.Outcome != record.Blocked || !r.Late {
		t.Errorf("record %+v", r)
	}
	calls := b.calls()
	if len(calls) != 2 || calls[0].Outcome != record.Blocked || calls[1].Outcome != record.Ran {
		t.Errorf("calls %+v", calls)
	}
}

func TestWhatHooksDecidedByThemselvesIsCounted(t *testing.T) {
	t.Parallel()
	b := place(t)
	for i, m := range []spool.Meta{
		{Answer: spool.Denied, Fault: spool.Absent}, {Answer: spool.Denied, Fault: spool.Unreachable}, {Answer: spool.Denied, Fault: spool.Impostor},
		{Answer: spool.Denied, Fault: spool.Timeout}, {Answer: spool.Denied, Fault: spool.Internal},
		{Answer: spool.Passed, Fault: spool.Absent}, {Answer: spool.Passed, Fault: spool.Absent},
	} {
		b.spooled("PreToolUse", b.bash("ls", itoa(uint64(i))), m)
	}
	b.spooled("PreToolUse", []byte("garbage"), spool.Meta{Answer: spool.Denied, Fault: spool.Absent})
	b.spooled("PreToolUse", []byte("garbage"), spool.Meta{Answer: spool.Passed, Fault: spool.Absent})
	b.spooled("ConfigChange", b.payload("ConfigChange", map[string]any{"source": "user_settings"}), spool.Meta{Answer: spool.Denied, Fault: spool.Absent})
	b.spooled("Stop", b.payload("Stop", nil), spool.Meta{Answer: spool.Silent, Fault: spool.Absent})
	b.start()
	b.eventually("all are ingested", func() bool { return b.metric("tripline_spool_ingested_total") == 11 })
	for series, want := range map[string]float64{
		`tripline_fail_closed_total{reason="daemon-away"}`:  5,
		`tripline_fail_closed_total{reason="hook-timeout"}`: 1,
		`tripline_fail_closed_total{reason="hook-failed"}`:  1,
		`tripline_hook_fail_open_total`:                     3,
		`tripline_fail_closed_total{reason="other"}`:        0,
	} {
		if got := b.metric(series); got != want {
			t.Errorf("%s is %v, want %v", series, got, want)
		}
	}
}

// fragile is an adapter that some payloads make panic.
type fragile struct{ agents.Adapter }

func (f fragile) Decode(name string, payload []byte) (*event.Event, error) {
	if strings.Contains(string(payload), "fragile") {
		panic("secret-value-of-a-panic")
	}
	return f.Adapter.Decode(name, payload)
}

func TestASpooledEventThatPanicsIsRecordedOnce(t *testing.T) {
	t.Parallel()
	b := place(t)
	b.spooled("PreToolUse", []byte("fragile"), spool.Meta{Answer: spool.Denied, Fault: spool.Absent})
	b.spooled("PreToolUse", []byte("fragile"), spool.Meta{Answer: spool.Passed, Fault: spool.Absent})
	b.spooled("Stop", []byte("fragile"), spool.Meta{Answer: spool.Silent, Fault: spool.Absent})
	b.spooled("PreToolUse", b.bash("ls", "1"), spool.Meta{Answer: spool.Passed, Fault: spool.Absent})
	b.start(func(o *Options) { o.Adapters = []agents.Adapter{fragile{claude.Adapter{}}} })
	b.eventually("all are ingested", func() bool { return b.metric("tripline_spool_ingested_total") == 4 })
	req := b.kinds(record.CallRequested)
	if len(req) != 3 || req[0].Decision.Failure != "panic" || req[0].Decision.Answer != "deny" || req[1].Decision.Answer != "pass" || !req[0].Late {
		t.Errorf("records %+v", req)
	}
	if r := b.one(record.SessionEvent); r.Event != "Stop" || r.Detail["failure"] != "internal.panic" {
		t.Errorf("record %+v", r)
	}
	if strings.Contains(b.log.String(), "secret-value") {
		t.Error("the panic's value is in the daemon's log")
	}
}

func TestSpooledEventsDoNotActOnTheLiveSession(t *testing.T) {
	t.Parallel()
	b := place(t)
	settings := filepath.Join(b.home, ".claude", "settings.json")
	write(t, settings, `{"model":"x"}`)
	write(t, b.places.RulesDir+"/a.yaml", holdRules)
	b.start()
	silent := spool.Meta{Answer: spool.Silent, Fault: spool.Absent}
	b.spooled("SessionEnd", b.payload("SessionEnd", map[string]any{"reason": "other"}), silent)
	b.spooled("Stop", b.payload("Stop", nil), silent)
	start := b.payload("SessionStart", map[string]any{"source": "startup"})
	b.send("SessionStart", start)
	b.send("PreToolUse", b.bash("ls", "1"))
	held := b.hold("deploy-tool prod", "2")

	// The file changes while no daemon looks; a spooled start must not make that the measure.
	write(t, settings, `{"model":"x","disableAllHooks":true}`)
	b.spooled("SessionStart", start, silent)
	b.d.spool.ingest(t.Context())
	if r := b.send("ConfigChange", b.payload("ConfigChange", map[string]any{"source": "user_settings", "file_path": settings})); isPass(r) {
		t.Errorf("the change passes: %+v", r)
	}
	b.send("PostToolUse", b.post("ls", "1"))
	if fin := b.one(record.CallFinished); fin.Call == "" {
		t.Errorf("a spooled end of the session made the daemon forget its calls: %+v", fin)
	}
	if n := b.d.sessions.active(time.Now())["claude"]; n != 1 {
		t.Errorf("%d sessions are active", n)
	}
	if card := b.card(); card.State != "pending" || !card.Waiting {
		t.Errorf("a spooled stop cancelled what waits now: %+v", card)
	}
	b.decide(b.card().ID, "approve")
	if d, _ := reason(t, b.final(held)); d != "allow" {
		t.Errorf("the held call is answered %s", d)
	}
	// Nor after a restart.
	b.send("PreToolUse", b.bash("ls", "3"))
	b.stop()
	b.start()
	b.send("PostToolUse", b.post("ls", "3"))
	if fin := b.kinds(record.CallFinished); fin[len(fin)-1].Call == "" || b.d.sessions.active(time.Now())["claude"] != 1 {
		t.Errorf("the restarted daemon forgot the session: %+v", fin)
	}
}
