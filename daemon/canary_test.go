// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/daemon/control"
	"github.com/tripline-sh/tripline/hooks/wire"
)

// metrics is the text of our own metrics.
func (b *bench) metrics() string {
	b.t.Helper()
	text, err := b.client.Metrics(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

// parseSeries reads metrics in the text format.
func parseSeries(t testing.TB, text string) map[string]float64 {
	t.Helper()
	out := make(map[string]float64)
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		i := strings.LastIndexByte(line, ' ')
		if i < 0 || !strings.HasPrefix(line, "tripline_") {
			t.Fatalf("line %q", line)
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(line[i+1:]), 64)
		if err != nil {
			t.Fatal(err)
		}
		out[line[:i]] = v
	}
	return out
}

func (b *bench) canary() string {
	b.t.Helper()
	c, err := b.client.Canary(b.t.Context(), control.CanaryRequest{Proof: control.Proof{Level: "L0"}})
	if err != nil {
		b.t.Fatal(err)
	}
	if d := time.Until(c.Expires); d <= 0 || d > canaryLife || len(c.Session) != len(canaryPrefix)+32 {
		b.t.Fatalf("canary %+v", c)
	}
	return c.Session
}

// as is a Bash call of another session.
func (b *bench) as(session, command, id string) []byte {
	return b.payload("PreToolUse", map[string]any{"session_id": session, "tool_name": "Bash", "tool_input": map[string]any{"command": command}, "tool_use_id": id})
}

func TestACanaryIsJudgedAndRecordedAndCountsForNothing(t *testing.T) {
	t.Parallel()
	b := running(t)
	write(t, b.places.TokenFile, "abc123\n")
	before := parseSeries(t, b.metrics())
	s := b.canary()
	token := func(h *wire.Header) { h.Token = "abc123" }
	if d, text := reason(t, b.send("PreToolUse", b.as(s, "rm -rf /", "1"), token)); d != "deny" || !strings.Contains(text, "[log ") {
		t.Errorf("%s: %s", d, text)
	}
	if r := b.send("PreToolUse", b.as(s, "ls", "2"), token); !isPass(r) {
		t.Errorf("%+v", r)
	}
	rs := b.kinds(record.CallRequested)
	if len(rs) != 2 || rs[0].Source != "canary" || rs[1].Source != "canary" || rs[0].Session != s || !rs[0].Decision.Floor {
		t.Fatalf("records %+v", rs)
	}
	b.eventually("the success", func() bool { return b.metric("tripline_canary_last_success_timestamp_seconds") > 0 })
	after := parseSeries(t, b.metrics())
	for name, v := range after {
		for _, counted := range []string{"tool_calls", "tripwire_hits", "floor_hits", "sessions_active", "alarms", "approvals", "last_event", "hook_duration", "stage_duration"} {
			if strings.HasPrefix(name, "tripline_"+counted) && v != before[name] {
				t.Errorf("%s: %v, was %v", name, v, before[name])
			}
		}
	}
	for _, restart := range []bool{false, true} {
		if restart {
			b.stop()
			b.start()
		}
		if st := b.status(); len(st.Live) != 0 || st.Agents[0].LastEvent != nil || len(st.Alarms) != 0 || st.Anchored != rs[0].Seq {
			t.Errorf("status %+v", st)
		}
	}
	sessions := 0
	must(t, b.client.Sessions(t.Context(), time.Time{}, time.Time{}, func(record.Session) error { sessions++; return nil }))
	if sessions != 0 {
		t.Errorf("%d sessions", sessions)
	}
	if calls := b.calls(); len(calls) != 2 || calls[0].Outcome != record.Blocked || calls[1].Outcome != record.OutcomeUnknown || calls[1].Source != "canary" {
		t.Errorf("calls %+v", calls)
	}
	must(t, b.client.Calls(t.Context(), record.Filter{}, func(c record.Call) error {
		t.Errorf("a test call is listed though nobody asked for it: %+v", c)
		return nil
	}))
}

func TestACanaryAsksNobody(t *testing.T) {
	t.Parallel()
	for _, gate := range []string{"native", "hold"} {
		b := running(t, func(o *Options) { o.Overrides["gate"] = gate })
		r := b.send("PreToolUse", b.as(b.canary(), "git push --force origin main", "1"))
		d, text := reason(t, r)
		if d != "deny" || !strings.Contains(text, ruleCanaryAsk) || !strings.Contains(string(r.Stderr), ruleCanaryAsk) {
			t.Errorf("gate %s: %s: %s", gate, d, text)
		}
		rec := b.one(record.CallRequested)
		if rec.Decision.Verdict != "ask" || rec.Decision.Answer != "deny" || rec.Decision.Card != "" || b.status().Pending != 0 {
			t.Errorf("gate %s: %+v, %d cards", gate, rec.Decision, b.status().Pending)
		}
	}
}

func TestWhatIsNoOutstandingCanaryIsAnOrdinaryEvent(t *testing.T) {
	t.Parallel()
	b := running(t)
	used := b.canary()
	for i := range 3 {
		b.send("PreToolUse", b.as(used, "ls", strconv.Itoa(i)))
	}
	expired := b.canary()
	now := b.d.canaries.open[expired]
	now.until = time.Now().Add(-time.Second)
	b.d.canaries.open[expired] = now
	b.send("PreToolUse", b.as(expired, "ls", "x"))
	b.send("PreToolUse", b.as(canaryPrefix+strings.Repeat("0", 32), "ls", "x"))
	other := b.canary()
	b.send("SessionStart", b.payload("SessionStart", map[string]any{"source": "startup", "session_id": other}))
	sources := ""
	for _, r := range b.kinds(record.CallRequested, record.SessionStart) {
		sources += r.Source + " "
	}
	if sources != "canary canary hook hook hook hook " {
		t.Errorf("sources %s", sources)
	}
	// Another kind of event does not use it up.
	b.send("PreToolUse", b.as(other, "ls", "1"))
	if rs := b.kinds(record.CallRequested); rs[len(rs)-1].Source != "canary" {
		t.Error("the canary was used up")
	}
}

func TestACanaryThroughAHookOfAnotherInstallIsNoSuccess(t *testing.T) {
	t.Parallel()
	b := running(t)
	write(t, b.places.TokenFile, "abc123\n")
	b.send("PreToolUse", b.as(b.canary(), "ls", "1"))
	if rec := b.one(record.CallRequested); rec.Source != "canary" || rec.Detail["token"] == "" {
		t.Errorf("record %+v", rec)
	}
	if n := len(b.kinds(record.TamperToken)); n != 0 {
		t.Errorf("%d alarms", n)
	}
	if at := b.metric("tripline_canary_last_success_timestamp_seconds"); at != 0 {
		t.Errorf("a success at %v", at)
	}
}

func TestCanariesAreFewAndNeedAProof(t *testing.T) {
	t.Parallel()
	b := running(t)
	ask := func(level string) error {
		_, err := b.client.Canary(t.Context(), control.CanaryRequest{Proof: control.Proof{Level: level}})
		return err
	}
	var re *control.ResponseError
	if err := ask(""); !errors.As(err, &re) || re.Status != http.StatusBadRequest {
		t.Errorf("without a proof: %v", err)
	}
	seen := make(map[string]bool)
	for range maxCanaries {
		seen[b.canary()] = true
	}
	if len(seen) != maxCanaries {
		t.Errorf("%d different sessions", len(seen))
	}
	if err := ask("L0"); !errors.As(err, &re) || re.Status != http.StatusTooManyRequests {
		t.Errorf("beyond the bound: %v", err)
	}
	if _, _, ok := b.d.canaries.issue(time.Now().Add(2 * canaryLife)); !ok {
		t.Error("expired ones keep their room")
	}
}
