// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/audittest"
)

// injected is how many records the child of the fault tests appends.
const injected = 12

// strace returns its path, or skips: without it the kernel cannot be made to fail.
func strace(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("NOT TESTED: failing system calls, since strace is not installed")
	}
	if out, err := exec.Command(path, "-f", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		t.Skipf("NOT TESTED: failing system calls, since strace may not trace here: %v %s", err, out)
	}
	return path
}

// appendAcknowledged is the child: it appends records one by one and says which were acknowledged.
func appendAcknowledged(t *testing.T, o audit.Options) {
	l, err := audit.Open(context.Background(), o)
	if err != nil {
		fmt.Println("unopened", err)
		return
	}
	for i := range injected {
		e := call(fmt.Sprint("i", i))
		e.Bodies[0].Data = make([]byte, 3000)
		r, err := l.Append(context.Background(), e)
		switch {
		case err == nil:
			_, _ = os.Stdout.WriteString(fmt.Sprintf("ack %s %d\n", e.Record.ID, r.Seq))
		case errors.Is(err, audit.ErrUnavailable):
			fmt.Println("unavailable")
			waitFor(t, "recovery", func() bool { return l.Err() == nil })
		default:
			t.Errorf("append: %v", err)
		}
	}
	if err := l.Close(context.Background()); err != nil {
		fmt.Println("unclosed", err)
	}
}

func TestNoFailingSystemCallMakesTheLogLie(t *testing.T) {
	t.Parallel()
	if inChild(t, "inject") {
		appendAcknowledged(t, childOptions())
		return
	}
	tool := strace(t)
	var failed, killed atomic.Int64 // in the middle of appending, which is what this is about
	t.Cleanup(func() {
		if !t.Failed() && (failed.Load() < 3 || killed.Load() < 1) {
			t.Errorf("only %d faults and %d kills hit a commit", failed.Load(), killed.Load())
		}
		t.Logf("%d faults and %d kills hit a commit", failed.Load(), killed.Load())
	})
	for _, fault := range []string{
		"fdatasync:error=EIO", "fdatasync:signal=KILL",
		"fsync:error=EIO", "fsync:signal=KILL",
		"pwrite64:error=ENOSPC", "pwrite64:error=EIO", "pwrite64:signal=KILL",
		"ftruncate:error=ENOSPC", "linkat:error=EIO", "renameat:signal=KILL",
	} {
		for _, when := range []int{2, 5, 9, 16} {
			t.Run(fmt.Sprint(fault, " at ", when), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				cmd := childCommand(t, "TestNoFailingSystemCallMakesTheLogLie", "inject", dir, nil)
				name, _, _ := strings.Cut(fault, ":")
				cmd.Args = append([]string{tool, "-f", "-qq", "-o", os.DevNull, "-e", "trace=" + name, "-e", "inject=" + fault + ":when=" + strconv.Itoa(when)}, append([]string{cmd.Path}, cmd.Args[1:]...)...)
				cmd.Path, cmd.Env = tool, append(cmd.Env, "GOMAXPROCS=1") // strace counts per thread
				var out, errs bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &errs
				err := cmd.Run()
				if err != nil && !strings.Contains(fault, "KILL") {
					t.Fatalf("child: %v\n%s%s", err, out.String(), errs.String())
				}
				failed.Add(int64(strings.Count(out.String(), "unavailable")))
				acknowledged := map[string]uint64{}
				for line := range strings.Lines(out.String()) {
					var id string
					var seq uint64
					if n, err := fmt.Sscanf(line, "ack %s %d", &id, &seq); n == 2 && err == nil {
						acknowledged[id] = seq
					}
				}
				if n := len(acknowledged); strings.Contains(fault, "KILL") && n > 0 && n < injected {
					killed.Add(1)
				}
				o := audit.Options{Dir: filepath.Join(dir, "log"), KeyDir: filepath.Join(dir, "keys")}
				l := audittest.NewLog(t, o) // verified at the end
				for _, r := range collect(t, l) {
					if seq, ok := acknowledged[r.ID]; ok && seq != r.Seq {
						t.Errorf("%s was acknowledged as %d and is %d", r.ID, seq, r.Seq)
					}
					delete(acknowledged, r.ID)
				}
				if len(acknowledged) > 0 {
					t.Errorf("acknowledged and not there: %v", acknowledged)
				}
				audittest.Append(t, l, call("after"))
			})
		}
	}
}

func TestEachCommitIsSyncedTwice(t *testing.T) {
	t.Parallel()
	switch {
	case inChild(t, "sync"):
		appendAcknowledged(t, childOptions())
		return
	case inChild(t, "nosync"):
		appendAcknowledged(t, audit.WithoutSync(childOptions()))
		return
	}
	tool := strace(t)
	count := func(role string) (syncs int) {
		dir := t.TempDir()
		trace := filepath.Join(dir, "trace")
		cmd := childCommand(t, "TestEachCommitIsSyncedTwice", role, dir, nil)
		cmd.Args = append([]string{tool, "-f", "-qq", "-o", trace, "-e", "trace=fdatasync"}, append([]string{cmd.Path}, cmd.Args[1:]...)...)
		cmd.Path = tool
		if out, err := cmd.CombinedOutput(); err != nil || strings.Count(string(out), "ack ") != injected {
			t.Fatalf("child: %v\n%s", err, out)
		}
		b, err := os.ReadFile(trace)
		must(t, err)
		return strings.Count(string(b), "fdatasync(")
	}
	if n := count("sync"); n < 2*injected {
		t.Errorf("%d fdatasync for %d commits", n, injected)
	}
	// The count can tell: without syncing it is another.
	if n := count("nosync"); n >= injected {
		t.Errorf("%d fdatasync without syncing: this test cannot fail", n)
	}
}
