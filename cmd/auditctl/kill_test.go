// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestKillingTheDaemonLosesNoCallThatWasAllowed kills the daemon ten times under four clients that use the real hook. What a client
// was allowed to run must be on record, and the log must verify.
func TestKillingTheDaemonLosesNoCallThatWasAllowed(t *testing.T) {
	t.Parallel()
	const kills, clients = 10, 4
	bin := build(t)
	home, err := os.MkdirTemp("", "tl") // short, for the socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	env := []string{"HOME=" + home, "PATH=/usr/bin:/bin", "TRIPLINE_METRICS_LISTEN=off"}
	run := func(stdin string, name string, args ...string) (string, error) {
		cmd := exec.Command(filepath.Join(bin, name), args...)
		var out bytes.Buffer
		cmd.Env, cmd.Stdin, cmd.Stdout = env, strings.NewReader(stdin), &out
		err := cmd.Run()
		return out.String(), err
	}
	start := func() *exec.Cmd {
		d := exec.Command(filepath.Join(bin, "triplined"))
		d.Env = env
		if err := d.Start(); err != nil {
			t.Error(err)
			return nil
		}
		for deadline := time.Now().Add(20 * time.Second); ; {
			if _, err := run("", "auditctl", "approvals", "list"); err == nil {
				return d
			}
			if time.Now().After(deadline) {
				t.Error("the daemon does not come up")
				return d
			}
		}
	}

	stop := make(chan struct{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	var allowed []string
	denied := 0
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(allowed)
	}
	socket := filepath.Join(home, ".local/state/tripline/run/hook.sock")
	daemon := start()
	for c := range clients {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				id := fmt.Sprintf("toolu_%d_%d", c, n)
				payload := `{"session_id":"kill","transcript_path":"","cwd":"/","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"` + id + `"}`
				out, err := run(payload, "tripline-hook", "-s", socket, "claude", "PreToolUse")
				mu.Lock()
				switch {
				case err == nil && out == "":
					allowed = append(allowed, id)
				case strings.Contains(out, `"deny"`):
					denied++
				default:
					t.Errorf("the hook answered neither pass nor deny: %v %q", err, out)
				}
				mu.Unlock()
			}
		})
	}
	for range kills {
		want := count() + 2*clients // some work between two kills
		for deadline := time.Now().Add(20 * time.Second); count() < want && time.Now().Before(deadline); {
			select {
			case <-t.Context().Done():
			case <-time.After(5 * time.Millisecond):
			}
		}
		_ = daemon.Process.Signal(syscall.SIGKILL)
		_ = daemon.Wait()
		if daemon = start(); daemon == nil {
			break
		}
	}
	close(stop)
	wg.Wait()
	defer func() {
		_ = daemon.Process.Signal(syscall.SIGTERM)
		_ = daemon.Wait()
	}()

	out, err := run("", "auditctl", "query", "today", "--session", "kill", "-o", "jsonl", "--limit", "0")
	if err != nil {
		t.Fatalf("query: %v", err)
	}
	recorded := map[string]int{}
	for line := range strings.Lines(out) {
		var c struct {
			ID string `json:"tool_use_id"`
		}
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		recorded[c.ID]++
	}
	lost := 0
	for _, id := range allowed {
		if recorded[id] == 0 {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d allowed calls have no record", lost, len(allowed))
	}
	if len(allowed) < kills*clients {
		t.Errorf("only %d calls were allowed: the test shows nothing", len(allowed))
	}
	if out, err := run("", "auditctl", "verify"); err != nil {
		t.Errorf("verify: %v\n%s", err, out)
	}
	t.Logf("%d kills, %d clients: %d calls allowed, %d lost, %d denied while no daemon answered, %d on record", kills, clients, len(allowed), lost, denied, len(recorded))
}
