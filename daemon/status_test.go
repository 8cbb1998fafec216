// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/daemon/control"
	"github.com/tripline-sh/tripline/daemon/internal/proc"
)

func TestStatusOfAnIdleDaemonIsComplete(t *testing.T) {
	t.Parallel()
	b := running(t)
	st := b.status()
	if st.StartedBy != "person" || st.Verified != nil || st.Anchored != 0 || st.Live == nil || len(st.Live) != 0 {
		t.Errorf("status %+v", st)
	}
	if st.Disk.LogBytes <= 0 || st.Disk.FreeBytes <= 0 || st.Disk.TotalBytes < st.Disk.FreeBytes || st.Disk.FileSystem == "" {
		t.Errorf("disk %+v", st.Disk)
	}
	if d := cmp.Diff([]control.AgentStatus{{Agent: "claude"}}, st.Agents); d != "" {
		t.Error(d)
	}
	if b.metric("tripline_disk_free_bytes") <= 0 || b.metric(`tripline_last_event_timestamp_seconds{agent="claude"}`) != 0 || b.metric("tripline_log_failing") != 0 {
		t.Error("metrics differ from the status")
	}
	b.stop()
	b.start(func(o *Options) { o.StartedBy = "systemd" })
	if st := b.status(); st.StartedBy != "systemd" {
		t.Errorf("started by %q", st.StartedBy)
	}
}

func TestTheNewestVerificationIsOnRecordAndOutlivesARestart(t *testing.T) {
	t.Parallel()
	b := running(t)
	v, err := b.client.Verify(t.Context(), control.VerifyRequest{})
	if err != nil || v.Outcome != "OK" {
		t.Fatalf("%+v, %v", v, err)
	}
	for range 2 {
		st := b.status()
		if st.Verified == nil || st.Verified.Size != v.Size || time.Since(st.Verified.At) > time.Minute {
			t.Fatalf("verified %+v, want %d", st.Verified, v.Size)
		}
		b.stop()
		b.start()
	}
	// One that fails is on record too, and is not the newest that ended in OK.
	if v, err := b.client.Verify(t.Context(), control.VerifyRequest{Key: "another"}); err != nil || v.Outcome != "KEY" {
		t.Fatalf("%+v, %v", v, err)
	}
	if st := b.status(); st.Verified == nil || st.Verified.Size != v.Size {
		t.Errorf("verified %+v", st.Verified)
	}
	rs := b.kinds(record.DaemonVerify)
	if len(rs) != 2 || rs[0].Detail["outcome"] != "OK" || rs[0].Detail["size"] != itoa(v.Size) || rs[1].Detail["outcome"] != "KEY" || rs[0].Who != "person" {
		t.Errorf("records %+v", rs)
	}
}

func TestTheHighestAnchorOutlivesARestart(t *testing.T) {
	t.Parallel()
	b := running(t)
	b.send("PreToolUse", b.bash("rm -rf src", "1"))
	b.send("PreToolUse", b.bash("ls", "2"))
	want := b.kinds(record.CallRequested)[0].Seq
	for range 2 {
		if st := b.status(); st.Anchored != want {
			t.Errorf("anchored %d, want %d", st.Anchored, want)
		}
		b.stop()
		b.start()
	}
}

func TestAgentsAndTheirSessionsOutliveARestart(t *testing.T) {
	t.Parallel()
	b := running(t)
	b.send("SessionStart", b.payload("SessionStart", map[string]any{"source": "startup"}))
	b.send("PreToolUse", b.bash("ls", "1"))
	b.send("SessionStart", b.payload("SessionStart", map[string]any{"source": "startup", "session_id": "s-2", "cwd": filepath.Join(b.project, "src")}))
	b.send("SessionStart", b.payload("SessionStart", map[string]any{"source": "startup", "session_id": "s-3"}))
	b.send("SessionEnd", b.payload("SessionEnd", map[string]any{"session_id": "s-3", "reason": "other"}))
	agent, ok := proc.Agent(int32(b.d.pid))
	for range 2 {
		st := b.status()
		if len(st.Agents) != 1 || st.Agents[0].LastEvent == nil || st.Agents[0].Sessions != 2 || time.Since(*st.Agents[0].LastEvent) > time.Minute {
			t.Fatalf("agents %+v", st.Agents)
		}
		if at := b.metric(`tripline_last_event_timestamp_seconds{agent="claude"}`); at < float64(b.records()[0].Time.Unix()) {
			t.Errorf("metric %v", at)
		}
		var got []string
		for _, l := range st.Live {
			got = append(got, l.Session+" "+l.Cwd)
			if l.Agent != "claude" || l.LetGo || ok && l.PID != int(agent.PID) || l.LastEvent.IsZero() {
				t.Errorf("live %+v, agent %d", l, agent.PID)
			}
		}
		if d := cmp.Diff([]string{"s-1 " + b.project, "s-2 " + filepath.Join(b.project, "src")}, got); d != "" {
			t.Error(d)
		}
		b.stop()
		b.start()
	}
}

func TestASessionLivesAsLongAsItsAgentsProcess(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("/bin/sh", "-c", "read x")
	in, err := cmd.StdinPipe()
	must(t, err, cmd.Start())
	agent, err := proc.Lookup(int32(cmd.Process.Pid))
	must(t, err)
	now := time.Now()
	s := newSessions()
	s.note(sessionKey{"claude", "runs"}, sighting{at: now.Add(-time.Hour), agent: agent})
	reused := agent
	reused.Start--
	s.note(sessionKey{"claude", "number was given anew"}, sighting{at: now, agent: reused})
	s.note(sessionKey{"claude", "unknown process"}, sighting{at: now.Add(-time.Minute)})
	s.note(sessionKey{"claude", "unknown process, long ago"}, sighting{at: now.Add(-time.Hour)})
	s.note(sessionKey{"claude", "silent for days"}, sighting{at: now.Add(-2 * sessionLife), agent: agent})
	s.note(sessionKey{"claude", "ended"}, sighting{at: now, agent: agent})
	s.end(sessionKey{"claude", "ended"}, time.Time{})
	// Read back from the log, where only the number of the process is.
	s.note(sessionKey{"claude", "read back"}, sighting{at: now.Add(time.Second), agent: proc.Process{PID: agent.PID}})
	s.note(sessionKey{"claude", "read back, and older than the process"}, sighting{at: now.Add(-2 * time.Hour), agent: proc.Process{PID: agent.PID}})
	s.note(sessionKey{"claude", "read back, and gone"}, sighting{at: now, agent: proc.Process{PID: 1 << 30}})
	s.settle()
	names := func() (out []string) {
		for _, l := range s.live(now) {
			out = append(out, l.Session)
		}
		return out
	}
	if d := cmp.Diff([]string{"runs", "unknown process", "read back"}, names()); d != "" {
		t.Error(d)
	}
	in.Close()
	_ = cmd.Wait()
	if d := cmp.Diff([]string{"unknown process"}, names()); d != "" {
		t.Error(d)
	}
}

func TestASessionLetsGoWhenItTellsOfAnAnnouncedUninstall(t *testing.T) {
	t.Parallel()
	b := running(t)
	b.wire("")
	event := func(name, session string, extra map[string]any) {
		t.Helper()
		extra["session_id"] = session
		if r := b.send(name, b.payload(name, extra)); !isPass(r) {
			t.Fatalf("%s: %+v", name, r)
		}
	}
	letGo := func() map[string]bool {
		out := make(map[string]bool)
		for _, l := range b.status().Live {
			out[l.Session] = l.LetGo
		}
		return out
	}
	changed := map[string]any{"source": "user_settings", "file_path": b.settingsFile()}
	for _, s := range []string{"a", "b", "c"} {
		event("SessionStart", s, map[string]any{"source": "startup"})
	}
	event("ConfigChange", "a", changed) // of the install: nobody goes for that
	b.unwire()
	if got := letGo(); got["a"] || got["b"] || len(got) != 3 {
		t.Errorf("before any word of the sessions: %v", got)
	}
	event("ConfigChange", "a", changed)
	event("ConfigChange", "b", changed)
	want := map[string]bool{"a": true, "b": true, "c": false}
	if d := cmp.Diff(want, letGo()); d != "" {
		t.Error(d)
	}
	b.stop()
	b.start()
	if d := cmp.Diff(want, letGo()); d != "" {
		t.Errorf("after a restart: %s", d)
	}
	// A hook that is called later shows that the session did not.
	event("Stop", "b", map[string]any{})
	want["b"] = false
	if d := cmp.Diff(want, letGo()); d != "" {
		t.Error(d)
	}
}

func TestMetricsOverTheControlSocketAreOurs(t *testing.T) {
	t.Parallel()
	b := running(t)
	text, err := b.client.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	series := parseSeries(t, string(text))
	if _, ok := series["tripline_canary_last_success_timestamp_seconds"]; !ok || len(series) < 100 {
		t.Errorf("%d series", len(series))
	}
}

func TestAFloorHitAndAWaitingApprovalAreSeenInTheMetrics(t *testing.T) {
	t.Parallel()
	b := running(t)
	b.send("PreToolUse", b.bash("rm -rf /", "1"))
	rule := b.kinds(record.CallRequested)[0].Decision.Rule
	b.eventually("the floor", func() bool { return b.metric("tripline_floor_hits_total{rule="+strconv.Quote(rule)+"}") == 1 })
	b.send("PreToolUse", b.bash("rm -rf src", "2"))
	total := 0.0
	for s, v := range parseSeries(t, b.metrics()) {
		if len(s) > 27 && s[:27] == "tripline_floor_hits_total{r" {
			total += v
		}
	}
	if total != 1 {
		t.Errorf("%v floor hits", total)
	}
	if b.metric("tripline_approval_oldest_seconds") != 0 {
		t.Error("nobody waits")
	}
}
