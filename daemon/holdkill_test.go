// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bufio"
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/hooks/wire"
)

// pausedLog keeps some entries back until it is told to write them.
type pausedLog struct {
	auditLog
	slow func(*audit.Entry) bool
	gate chan struct{}
	come chan struct{} // one token for each entry that waits
}

func (l *pausedLog) Append(ctx context.Context, e *audit.Entry) (audit.Receipt, error) {
	if l.slow(e) {
		l.come <- struct{}{}
		select {
		case <-l.gate:
		case <-ctx.Done():
			return audit.Receipt{}, ctx.Err()
		}
	}
	return l.auditLog.Append(ctx, e)
}

func TestNoHookIsToldToWaitBeforeItsRequestIsDurable(t *testing.T) {
	t.Parallel()
	for _, joins := range []bool{false, true} {
		t.Run(map[bool]string{false: "the first call", true: "a call that joins the card of another"}[joins], func(t *testing.T) {
			t.Parallel()
			l := &pausedLog{gate: make(chan struct{}), come: make(chan struct{}, 8)}
			l.slow = func(e *audit.Entry) bool {
				return e.Record.Kind == record.ApprovalRequested && (e.Record.Detail["joined"] != "") == joins
			}
			b := holding(t, func(o *Options) {
				o.seam.openLog = func(ctx context.Context, ao audit.Options) (auditLog, error) {
					log, err := audit.Open(ctx, ao)
					l.auditLog = log
					return l, err
				}
			})
			if joins {
				b.hold("deploy-tool prod", "1")
			}
			c := b.dial()
			if _, err := c.Write(frame(t, "claude", "PreToolUse", b.bash("deploy-tool prod", "2"))); err != nil {
				t.Fatal(err)
			}
			<-l.come
			_ = c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
			if r, err := wire.ReadReply(c); err == nil {
				t.Fatalf("answered before the record is durable: %+v", r)
			}
			close(l.gate)
			_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
			if r, err := wire.ReadReply(c); err != nil || r.Kind != wire.KindHold {
				t.Fatalf("reply %+v, %v", r, err)
			}
			var last record.Record
			for _, r := range b.kinds(record.ApprovalRequested) {
				last = r
			}
			if last.ToolUseID != "2" || last.Call == "" || last.Detail["card"] != b.card().ID || len(last.Bodies) == 0 {
				t.Errorf("record %+v", last)
			}
		})
	}
}

func TestHeldCallsOutliveTheDeathOfTheDaemon(t *testing.T) {
	t.Parallel()
	b := place(t)
	write(t, b.places.RulesDir+"/a.yaml", holdRules)
	child := exec.Command(os.Args[0], "-test.run=^TestRole$")
	child.Env = append(os.Environ(), roleEnv+"=daemon", homeEnv+"="+b.home, "HOME="+b.home, "TRIPLINE_HOME="+b.places.TriplineHome)
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	kill := sync.OnceFunc(func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	})
	defer kill()
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "ready"; {
	}

	// Two hooks wait: the second one joins the card of the first.
	var waiting []net.Conn
	for _, id := range []string{"1", "2"} {
		c := b.dial()
		if _, err := c.Write(frame(t, "claude", "PreToolUse", b.bash("deploy-tool prod", id))); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		if r, err := wire.ReadReply(c); err != nil || r.Kind != wire.KindHold {
			t.Fatalf("reply %+v, %v", r, err)
		}
		waiting = append(waiting, c)
	}
	before := b.card()
	kill()
	for _, c := range waiting {
		if r, err := wire.ReadReply(c); err == nil {
			t.Errorf("a dead daemon answered: %+v", r)
		}
	}

	b.start()
	requested, gaps := b.kinds(record.ApprovalRequested), b.kinds(record.Gap)
	if len(requested) != 2 || len(gaps) != 2 {
		t.Fatalf("records %s", b.list())
	}
	for _, r := range requested {
		found := false
		for _, g := range gaps {
			found = found || g.Call == r.Call && g.Detail["card"] == before.ID && strings.Contains(g.Detail["what"], "verdict")
		}
		if !found {
			t.Errorf("the call %s has no verdict and no gap", r.Call)
		}
	}
	if st, err := b.d.log.State(heldPrefix); err != nil || len(st) != 0 {
		t.Errorf("calls without a verdict: %v, %v", st, err)
	}
	card := b.card()
	if card.ID != before.ID || card.State != "pending" || card.Waiting || !card.Expires.Equal(before.Expires) {
		t.Errorf("card %+v, before %+v", card, before)
	}
	if v, err := b.d.log.Verify(t.Context()); err != nil || v.Outcome != "OK" {
		t.Errorf("verify: %+v, %v", v, err)
	}

	for i, c := range b.calls() {
		if c.Card != before.ID || c.Rule != "deploys" || c.Reason == "" || c.Answer != "" {
			t.Errorf("call %d is shown as %+v", i, c)
		}
	}
	// An approval now lets exactly one of many retries run.
	b.decide(card.ID, "approve")
	answers := make(chan string, 8)
	var wg sync.WaitGroup
	for i := range cap(answers) {
		c := b.dial()
		f := frame(t, "claude", "PreToolUse", b.bash("deploy-tool prod", itoa(uint64(10+i))))
		wg.Go(func() {
			_, _ = c.Write(f)
			r, err := finalReply(c)
			switch {
			case err != nil:
				answers <- err.Error()
			case strings.Contains(string(r.Stdout), `"allow"`):
				answers <- "allow"
			default:
				answers <- "deny"
			}
		})
	}
	wg.Wait()
	close(answers)
	n := map[string]int{}
	for a := range answers {
		n[a]++
	}
	if n["allow"] != 1 || n["deny"] != cap(answers)-1 || len(b.kinds(record.ApprovalConsumed)) != 1 {
		t.Errorf("answers %v, records %s", n, b.list())
	}
}
