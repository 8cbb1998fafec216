// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/audittest"
	"github.com/tripline-sh/tripline/audit/record"
)

// killWriters is how many goroutines append while the process is killed.
const killWriters = 4

func TestWhatWasAcknowledgedSurvivesKill(t *testing.T) {
	t.Parallel()
	if inChild(t, "kill") {
		appendUntilKilled(t)
		return
	}
	const rounds = 10
	dir := t.TempDir()
	acknowledged := map[string]uint64{}
	var o audit.Options
	for round := range rounds {
		o = killRound(t, dir, round, acknowledged)
		got := map[string]uint64{}
		r, err := audit.OpenReader(o.Dir, audit.ReaderOptions{KeyDir: o.KeyDir})
		must(t, err)
		for _, rec := range collect(t, r) {
			got[rec.ID] = rec.Seq
		}
		for id, seq := range acknowledged {
			if got[id] != seq {
				t.Fatalf("round %d: %s was acknowledged as record %d, found at %d", round, id, seq, got[id])
			}
		}
		audittest.CheckOK(t, o)
	}
	t.Logf("%d rounds, %d records acknowledged", rounds, len(acknowledged))
	// And the log goes on.
	l := audittest.NewLog(t, o)
	audittest.Append(t, l, call("after"))
	if gaps := ofKind(collect(t, l), record.Gap); len(gaps) > 0 {
		t.Errorf("gaps: %+v", gaps)
	}
}

// killRound lets a child append, kills it in the middle, and enters what it acknowledged.
func killRound(t *testing.T, dir string, round int, acknowledged map[string]uint64) audit.Options {
	t.Helper()
	cmd := childCommand(t, "TestWhatWasAcknowledgedSurvivesKill", "kill", dir, nil)
	cmd.Env = append(cmd.Env, fmt.Sprint("AUDIT_TEST_ROUND=", round))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines, kill := bufio.NewScanner(out), 40+37*round
	for n := 0; lines.Scan(); {
		var id string
		var seq uint64
		if k, err := fmt.Sscanf(lines.Text(), "ack %s %d", &id, &seq); k != 2 || err != nil {
			if !strings.HasPrefix(lines.Text(), "ack") {
				t.Errorf("child says %q", lines.Text())
			}
			continue // cut off by the kill
		}
		acknowledged[id] = seq
		if n++; n == kill {
			must(t, cmd.Process.Signal(syscall.SIGKILL))
		}
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("child: %v", err)
	}
	return audit.Options{Dir: dir + "/log", KeyDir: dir + "/keys"}
}

// appendUntilKilled is the child: it appends under several writers and says what was acknowledged.
func appendUntilKilled(t *testing.T) {
	o := childOptions()
	o.MaxSegment = 300 << 10 // so that segments change under the kill too
	l := audittest.Open(t, o)
	ctx, cancel := context.WithTimeout(context.Background(), audittest.Patience)
	defer cancel()
	var wg sync.WaitGroup
	for w := range killWriters {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				e := call(fmt.Sprintf("r%s-w%d-%d", os.Getenv("AUDIT_TEST_ROUND"), w, i))
				e.Bodies[0].Data = make([]byte, 1000)
				e.State = []audit.StateOp{{Key: fmt.Sprint("w", w), Value: []byte(e.Record.ID)}}
				r, err := l.Append(ctx, e)
				if err != nil {
					t.Errorf("append: %v", err)
					return
				}
				// One write: a line is whole or lacks its end.
				_, _ = os.Stdout.WriteString(fmt.Sprintf("ack %s %d\n", e.Record.ID, r.Seq))
			}
		})
	}
	wg.Wait()
	t.Error("nobody killed this process")
}
