// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"testing"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
)

// staleLog says that its state is older than the log once was.
type staleLog struct {
	auditLog
	report audit.Report
}

func (l staleLog) Report() audit.Report { return l.report }

func TestApprovalsThatMayHaveBeenUsedAreTakenBack(t *testing.T) {
	t.Parallel()
	for name, report := range map[string]audit.Report{"a stale state": {StateStale: true}, "a lost state": {StateLost: true}, "an ordinary start": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := holding(t)
			b.hold("deploy-tool prod", "1").Close()
			b.eventually("nobody waits", func() bool { return !b.card().Waiting })
			card := b.card()
			b.decide(card.ID, "approve")
			b.stop()
			b.start(func(o *Options) {
				o.seam.openLog = func(ctx context.Context, ao audit.Options) (auditLog, error) {
					l, err := audit.Open(ctx, ao)
					return staleLog{l, report}, err
				}
			})
			for _, r := range b.kinds(record.ApprovalRevoked) {
				if r.Who == "person" {
					t.Errorf("a person is said to have taken it back: %+v", r)
				}
			}
			lost := report.StateStale || report.StateLost
			if got := b.card().State; (got == "revoked") != lost {
				t.Errorf("the card is %s", got)
			}
			if n := len(b.kinds(record.DaemonAlarm)); (n == 1) != lost {
				t.Errorf("%d alarms", n)
			}
			if s := b.status(); (len(s.Alarms) == 1) != lost {
				t.Errorf("status %q", s.Alarms)
			}
			// A retry must be asked about again, or runs on the approval that is known to be good.
			c := b.dial()
			if _, err := c.Write(frame(t, "claude", "PreToolUse", b.bash("deploy-tool prod", "2"))); err != nil {
				t.Fatal(err)
			}
			if !lost {
				if d, _ := reason(t, b.final(c)); d != "allow" {
					t.Errorf("the retry is answered %s", d)
				}
				return
			}
			b.eventually("the retry waits for a new decision", func() bool {
				l := b.d.gate.List(false)
				return len(l) == 1 && l[0].ID != card.ID
			})
		})
	}
}

func TestATamperedSegmentIsAnAlarm(t *testing.T) {
	t.Parallel()
	b := running(t, func(o *Options) {
		o.seam.openLog = func(ctx context.Context, ao audit.Options) (auditLog, error) {
			l, err := audit.Open(ctx, ao)
			return staleLog{l, audit.Report{Tampered: []string{"2026-01-01-000000000001.db"}}}, err
		}
	})
	if r := b.one(record.DaemonAlarm); r.Detail["path"] != "2026-01-01-000000000001.db" {
		t.Errorf("record %+v", r)
	}
	if s := b.status(); len(s.Alarms) != 1 {
		t.Errorf("status %q", s.Alarms)
	}
}
