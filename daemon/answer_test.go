// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/tripwires"
)

func TestTheRuleIsTheLastThingOfARefusal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ reason, anchor, rule, end string }{
		"with an anchor":    {"refused.", " [log 13 1ee942fa150826ac]", "delete.project", "refused. [log 13 1ee942fa150826ac] [rule delete.project]"},
		"without a record":  {"refused.", "", "log.unavailable", "refused. [rule log.unavailable]"},
		"a text too long":   {strings.Repeat("é", 3000), " [log 13 1ee942fa150826ac]", "delete.project", "… [log 13 1ee942fa150826ac] [rule delete.project]"},
		"a rule too long":   {strings.Repeat("x", 3000), "", strings.Repeat("r", 300), "…]"},
		"a hostile rule":    {"refused.", "", "a\x1b]0;x\u202eb\nc", `[rule a\x1b]0;x\u202eb\nc]`},
		"a text of no rule": {"refused.", "", "", "refused."},
	} {
		got := ending(c.reason, c.anchor, c.rule)
		if !strings.HasSuffix(got, c.end) || len(got) > maxReason || !utf8.ValidString(got) {
			t.Errorf("%s: %d bytes, ...%q, want ...%q", name, len(got), got[max(len(got)-120, 0):], c.end)
		}
	}
	x := &exchange{verdict: event.Verdict{Rule: "approval-denied"}, dec: tripwires.Decision{Rule: "deploys"}}
	if got := x.shownRule(); got != "deploys" {
		t.Errorf("of a refused approval: %q", got)
	}
	x.dec.Rule = ""
	if got := x.shownRule(); got != "approval-denied" {
		t.Errorf("without a rule that asked: %q", got)
	}
}

func TestEveryFailureEndsInItsRule(t *testing.T) {
	t.Parallel()
	for _, f := range []failure{failUndecodable, failUnknownAgent, failTooLarge, failPanic, failDeadline, failLog, failBusy, failSlow, failStopping} {
		if got := ending(f.text(), "", f.rule); !strings.HasSuffix(got, " [rule "+f.rule+"]") || !strings.Contains(got, "Do not retry") {
			t.Errorf("%q", got)
		}
	}
}
