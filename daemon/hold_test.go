// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/daemon/control"
	"github.com/tripline-sh/tripline/hooks/wire"
)

const holdRules = `version: 1
rules:
  - id: deploys
    ask: ["Bash(deploy-tool:*)"]
    gate: hold
    why: "deploys reach customers"
`

// holding starts a daemon with a rule that holds.
func holding(t *testing.T, change ...func(*Options)) *bench {
	t.Helper()
	b := place(t)
	write(t, b.places.RulesDir+"/a.yaml", holdRules)
	return b.start(change...)
}

// hold sends a call that is held and returns once its hook was told to wait.
func (b *bench) hold(command, id string, change ...func(*wire.Header)) net.Conn {
	b.t.Helper()
	c := b.dial()
	if _, err := c.Write(frame(b.t, "claude", "PreToolUse", b.bash(command, id), change...)); err != nil {
		b.t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if r, err := wire.ReadReply(c); err != nil || r.Kind != wire.KindHold {
		b.t.Fatalf("reply %+v, %v; log:\n%s", r, err, b.log)
	}
	b.eventually("the call waits", func() bool {
		for _, card := range b.d.gate.List(false) {
			if card.Waiting {
				return true
			}
		}
		return false
	})
	return c
}

func (b *bench) card() control.Approval {
	b.t.Helper()
	cards, err := b.client.Approvals(b.t.Context(), true)
	if err != nil || len(cards) != 1 {
		b.t.Fatalf("cards %+v, %v", cards, err)
	}
	return cards[0]
}

func (b *bench) decide(id, decision string) {
	b.t.Helper()
	if _, err := b.client.Decide(b.t.Context(), id, control.DecideRequest{Decision: decision, Reason: "because", Proof: control.Proof{Level: "L0"}}); err != nil {
		b.t.Fatal(err)
	}
}

func TestHeldCallRunsOnceAfterApproval(t *testing.T) {
	t.Parallel()
	b := holding(t)
	c := b.hold("deploy-tool prod", "1")
	card := b.card()
	if card.State != "pending" || !card.Waiting || card.Tool != "Bash" || !strings.Contains(string(card.Input), "deploy-tool prod") {
		t.Errorf("card %+v", card)
	}
	if got := b.list(); !strings.HasSuffix(got, "approval.requested") {
		t.Errorf("before the wait: %s", got)
	}
	b.decide(card.ID[:6], "approve")
	if d, text := reason(t, b.final(c)); d != "allow" || !strings.Contains(text, card.ID) {
		t.Errorf("%s %q", d, text)
	}
	if got := b.list(); !strings.HasSuffix(got, "approval.requested approval.approved approval.consumed call.requested") {
		t.Errorf("order: %s", got)
	}
	req := b.one(record.CallRequested)
	if req.Decision.Verdict != "ask" || req.Decision.Answer != "allow" || req.Decision.Card != card.ID || req.Who != "person" || req.WhoBasis != "claimed" {
		t.Errorf("record %+v, %+v", req, req.Decision)
	}
	b.send("PostToolUse", b.post("deploy-tool prod", "1"))
	if fin := b.one(record.CallFinished); fin.Who != "person" || fin.Call != req.ID {
		t.Errorf("end %+v", fin)
	}
	// The same call again: its approval is used up.
	if d, text := reason(t, b.send("PreToolUse", b.bash("deploy-tool prod", "2"))); d != "deny" || !strings.Contains(text, "approval-consumed") {
		t.Errorf("replay: %s %q", d, text)
	}
	b.one(record.ApprovalRefused)
	if st, err := b.d.log.State(heldPrefix); err != nil || len(st) != 0 {
		t.Errorf("calls without a verdict: %v, %v", st, err)
	}
}

func TestHeldCallIsDenied(t *testing.T) {
	t.Parallel()
	b := holding(t)
	c := b.hold("deploy-tool prod", "1")
	b.decide(b.card().ID, "deny")
	r := b.final(c)
	if d, text := reason(t, r); d != "deny" || r.Exit != 2 || !strings.Contains(text, "because") || !strings.Contains(text, "approval-denied") {
		t.Errorf("%s %q", d, text)
	}
	if req := b.one(record.CallRequested); req.Decision.Answer != "deny" || req.Who != "person" {
		t.Errorf("record %+v", req)
	}
}

func TestHoldEndsAndARetryUsesTheLateApproval(t *testing.T) {
	t.Parallel()
	b := holding(t, func(o *Options) { o.Overrides["hold"] = "1s" })
	c := b.hold("deploy-tool prod", "1")
	card := b.card()
	if d, text := reason(t, b.final(c)); d != "deny" || !strings.Contains(text, "auditctl approvals show "+card.ID) {
		t.Errorf("%s %q", d, text)
	}
	b.decide(card.ID, "approve")
	if d, _ := reason(t, b.send("PreToolUse", b.bash("deploy-tool prod", "2"))); d != "allow" {
		t.Errorf("the retry is answered %s", d)
	}
	if d, _ := reason(t, b.send("PreToolUse", b.bash("deploy-tool prod", "3"))); d != "deny" {
		t.Errorf("the third try is answered %s", d)
	}
}

func TestHoldEndsBeforeTheHookGivesUp(t *testing.T) {
	t.Parallel()
	b := holding(t)
	start := time.Now()
	c := b.hold("deploy-tool prod", "1", func(h *wire.Header) { h.Deadline = start.Add(holdMargin + time.Second).UnixNano() })
	if d, text := reason(t, b.final(c)); d != "deny" || !strings.Contains(text, "approval-pending") {
		t.Errorf("%s %q", d, text)
	}
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestWaiterIsReleasedWhenItsHookIsGone(t *testing.T) {
	t.Parallel()
	b := holding(t)
	c := b.hold("deploy-tool prod", "1")
	start := time.Now()
	c.Close()
	b.eventually("the waiter is gone", func() bool { return !b.card().Waiting })
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("took %v", took)
	}
	if card := b.card(); card.State != "pending" {
		t.Errorf("card %+v", card)
	}
	b.eventually("the call is on record", func() bool { return len(b.kinds(record.CallRequested)) == 1 })
	if req := b.one(record.CallRequested); req.Decision.Answer != "deny" {
		t.Errorf("decision %+v", req.Decision)
	}
}

func TestStopTellsHeldCallsTheirCard(t *testing.T) {
	t.Parallel()
	b := holding(t)
	c := b.hold("deploy-tool prod", "1")
	card := b.card()
	took := b.stop()
	r, err := finalReply(c)
	if err != nil {
		t.Fatal(err)
	}
	if d, text := reason(t, r); d != "deny" || !strings.Contains(text, card.ID) {
		t.Errorf("%s %q", d, text)
	}
	if took > 5*time.Second {
		t.Errorf("stopping took %v", took)
	}
	// The card outlives the restart, is approved there, and a retry runs.
	b.start()
	if got := b.card(); got.ID != card.ID || got.State != "pending" || got.Waiting {
		t.Errorf("card %+v", got)
	}
	b.decide(card.ID, "approve")
	if d, _ := reason(t, b.send("PreToolUse", b.bash("deploy-tool prod", "2"))); d != "allow" {
		t.Errorf("the retry is answered %s", d)
	}
	if n := len(b.kinds(record.Gap)); n != 0 {
		t.Errorf("%d gaps after a clean stop", n)
	}
}

func TestStopOfTheAgentCancelsWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	b := holding(t)
	c := b.hold("deploy-tool prod", "1")
	b.send("Stop", b.payload("Stop", nil))
	if d, text := reason(t, b.final(c)); d != "deny" || !strings.Contains(text, "approval-cancelled") {
		t.Errorf("%s %q", d, text)
	}
	b.one(record.ApprovalCancelled)
}

func TestApprovedCallIsJudgedAgain(t *testing.T) {
	t.Parallel()
	b := holding(t)
	c := b.hold("deploy-tool prod", "1")
	write(t, b.places.RulesDir+"/b.yaml", "version: 1\nrules:\n  - id: frozen\n    deny: [\"Bash(deploy-tool:*)\"]\n    why: \"deploys are frozen\"\n")
	b.eventually("the new rule is in force", func() bool { return len(b.kinds(record.ConfigRules)) == 2 })
	b.decide(b.card().ID, "approve")
	if d, text := reason(t, b.final(c)); d != "deny" || !strings.Contains(text, "the rules refuse it now") {
		t.Errorf("%s %q", d, text)
	}
}

func TestUnfinishedHoldIsDeclaredAtTheNextStart(t *testing.T) {
	t.Parallel()
	broken := make(chan struct{})
	b := holding(t, breakLog(isClosed(broken)))
	c := b.hold("deploy-tool prod", "1")
	close(broken) // from here on nothing gets durable, as if the process had died
	c.Close()
	b.eventually("the waiter is gone", func() bool { return !b.card().Waiting })
	_ = b.d.Stop(t.Context())
	b.start()
	gap := b.one(record.Gap)
	if gap.Call == "" || gap.Detail["card"] != b.card().ID {
		t.Errorf("gap %+v", gap)
	}
	if st, err := b.d.log.State(heldPrefix); err != nil || len(st) != 0 {
		t.Errorf("calls without a verdict: %v, %v", st, err)
	}
}

func TestNativeGateAsksTheAgent(t *testing.T) {
	t.Parallel()
	b := place(t)
	write(t, b.places.RulesDir+"/a.yaml", strings.Replace(holdRules, "gate: hold", "gate: native", 1))
	b.start()
	r := b.send("PreToolUse", b.bash("deploy-tool prod", "1"))
	if d, text := reason(t, r); d != "ask" || r.Exit != 0 || len(r.Stderr) != 0 || text == "" || len(text) > 300 {
		t.Errorf("%s %q %+v", d, text, r)
	}
	b.send("PostToolUse", b.post("deploy-tool prod", "1"))
	if fin := b.one(record.CallFinished); fin.Who != "agent-prompt" || fin.WhoBasis != "inferred" {
		t.Errorf("end %+v", fin)
	}
	// A skill's preamble has no prompt: the same rule denies there.
	p := b.payload("PreSkillShellCommand", map[string]any{"tool_name": "Bash", "tool_input": map[string]any{"command": "deploy-tool prod"}, "tool_use_id": "x:preamble-0"})
	if r := b.send("PreSkillShellCommand", p); r.Exit != 2 {
		t.Errorf("preamble: %+v", r)
	}
}

func TestHoldsHaveTheirOwnLimit(t *testing.T) {
	t.Parallel()
	b := holding(t, shrunk(func(l *limits) { l.holds = 1 }))
	c := b.hold("deploy-tool one", "1")
	if d, text := reason(t, b.send("PreToolUse", b.bash("deploy-tool two", "2"))); d != "deny" || !strings.Contains(text, "approval-busy") {
		t.Errorf("%s %q", d, text)
	}
	if r := b.send("PreToolUse", b.bash("ls", "3")); !isPass(r) {
		t.Errorf("others are held up: %+v", r)
	}
	b.decide(b.card().ID, "approve")
	if d, _ := reason(t, b.final(c)); d != "allow" {
		t.Errorf("the held call is answered %s", d)
	}
}

func TestLargeCallIsNotKeptWaiting(t *testing.T) {
	t.Parallel()
	b := holding(t, shrunk(func(l *limits) { l.holdSize = 10 }))
	r := b.send("PreToolUse", b.bash("deploy-tool prod", "1"))
	if d, text := reason(t, r); d != "deny" || !strings.Contains(text, "approval-pending") {
		t.Errorf("%s %q", d, text)
	}
	b.decide(b.card().ID, "approve")
	if d, _ := reason(t, b.send("PreToolUse", b.bash("deploy-tool prod", "2"))); d != "allow" {
		t.Errorf("the retry is answered %s", d)
	}
}

func TestTwoWaitersShareACardAndOneRuns(t *testing.T) {
	t.Parallel()
	b := holding(t)
	first := b.hold("deploy-tool prod", "1")
	second := b.hold("deploy-tool prod", "2")
	b.decide(b.card().ID, "approve")
	one, _ := reason(t, b.final(first))
	two, _ := reason(t, b.final(second))
	if one == two || one != "allow" && two != "allow" {
		t.Errorf("answers %s and %s", one, two)
	}
	if n := len(b.kinds(record.ApprovalConsumed)); n != 1 {
		t.Errorf("%d uses of one approval", n)
	}
}

func TestAFailedRecordNeverReleasesAHeldCall(t *testing.T) {
	t.Parallel()
	for _, kind := range []record.Kind{record.ApprovalRequested, record.ApprovalConsumed, record.CallRequested} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			b := holding(t, breakLog(func(e *audit.Entry) bool { return e.Record.Kind == kind }))
			c := b.dial()
			if _, err := c.Write(frame(t, "claude", "PreToolUse", b.bash("deploy-tool prod", "1"))); err != nil {
				t.Fatal(err)
			}
			if kind != record.ApprovalRequested {
				b.eventually("the call waits", func() bool { l := b.d.gate.List(false); return len(l) == 1 && l[0].Waiting })
				b.decide(b.card().ID, "approve")
			}
			if d, text := reason(t, b.final(c)); d != "deny" {
				t.Errorf("%s %q", d, text)
			}
		})
	}
}
