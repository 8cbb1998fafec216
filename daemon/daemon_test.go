// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tripline-sh/tripline/audit/record"
)

func TestHarmlessCallPassesAndIsRecorded(t *testing.T) {
	t.Parallel()
	b := running(t)
	if r := b.send("PreToolUse", b.bash("ls", "toolu_1")); !isPass(r) {
		t.Fatalf("reply %+v", r)
	}
	if r := b.send("PostToolUse", b.post("ls", "toolu_1")); !isPass(r) {
		t.Fatalf("reply %+v", r)
	}
	req := b.one(record.CallRequested)
	if req.Decision == nil || req.Decision.Answer != "pass" || req.Peer == nil || req.Tool != "Bash" || req.Project != b.project {
		t.Errorf("record %+v, decision %+v", req, req.Decision)
	}
	fin := b.one(record.CallFinished)
	if fin.Call != req.ID || fin.Outcome != record.Ran || fin.Who != "agent-auto" {
		t.Errorf("record %+v", fin)
	}
	calls := b.calls()
	if len(calls) != 1 || calls[0].Outcome != record.Ran || calls[0].Verdict != "pass" || !strings.Contains(string(calls[0].Input), `"ls"`) {
		t.Errorf("calls %+v", calls)
	}
}

func TestDeletionIsDeniedWithTheAnchorOfItsRecord(t *testing.T) {
	t.Parallel()
	b := running(t)
	r := b.send("PreToolUse", b.bash("rm -rf src", "toolu_1"))
	decision, text := reason(t, r)
	req := b.one(record.CallRequested)
	if decision != "deny" || r.Exit != 2 || string(r.Stderr) != "tripline: denied ("+req.Decision.Rule+")\n" {
		t.Fatalf("reply %+v", r)
	}
	if !strings.HasPrefix(req.Decision.Rule, "delete.") || req.Outcome != record.Blocked || req.Who != "rule:"+req.Decision.Rule {
		t.Errorf("record %+v, decision %+v", req, req.Decision)
	}
	var seq uint64
	var root string
	i := strings.LastIndex(text, " [log ")
	if _, err := fmt.Sscanf(text[max(i, 0):], " [log %d %16s]", &seq, &root); err != nil || seq != req.Seq || len(root) != 16 {
		t.Errorf("reason %q, record %d", text, req.Seq)
	}
	if calls := b.calls(); len(calls) != 1 || calls[0].Outcome != record.Blocked {
		t.Errorf("calls %+v", calls)
	}
}

func TestTwoDaemonsLiveInOneProcess(t *testing.T) {
	t.Parallel()
	a, b := running(t), running(t)
	a.send("PreToolUse", a.bash("ls", "1"))
	b.send("PreToolUse", b.bash("rm -rf src", "1"))
	if n := len(a.kinds(record.CallRequested)); n != 1 {
		t.Errorf("%d calls in the first log", n)
	}
	a.stop()
	if d, _ := reason(t, b.send("PreToolUse", b.bash("rm -rf src", "2"))); d != "deny" {
		t.Errorf("the second daemon answers %q after the first one stopped", d)
	}
}

func TestDaemonsOwnProcessIsOnTheFloor(t *testing.T) {
	t.Parallel()
	b := running(t, func(o *Options) { o.Overrides["mode"] = "observe" })
	pid := os.Getpid()
	for _, command := range []string{"kill %d", "kill -9 %d", "sudo kill -STOP %d", "ls; kill %d"} {
		if d, text := reason(t, b.send("PreToolUse", b.bash(fmt.Sprintf(command, pid), "1"))); d != "deny" || !strings.Contains(text, "self.") {
			t.Errorf(command+": %s %q", pid, d, text)
		}
	}
	if d, _ := reason(t, b.send("PreToolUse", b.bash(fmt.Sprintf("kill %d", pid+1), "2"))); d != "pass" {
		t.Errorf("another process: %s", d)
	}
	for _, r := range b.kinds(record.CallRequested) {
		if r.Decision.Answer == "deny" && (!r.Decision.Floor || !r.Decision.Enforced) {
			t.Errorf("decision %+v", r.Decision)
		}
	}
}
