// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/daemon/config"
)

// This test binary plays an agent and its hook when these are set.
const (
	roleEnv   = "TRIPLINE_TEST_ROLE"
	socketEnv = "TRIPLINE_TEST_SOCKET"
	frameEnv  = "TRIPLINE_TEST_FRAME"
	homeEnv   = "TRIPLINE_TEST_HOME"
)

// TestRole is no test: it is what the other processes of tests run.
func TestRole(t *testing.T) {
	switch os.Getenv(roleEnv) {
	case "agent": // starts its hook, and ends with its own stdin: the hook lives on
		hook := exec.Command(os.Args[0], "-test.run=^TestRole$")
		hook.Env = append(os.Environ(), roleEnv+"=hook")
		if err := hook.Start(); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	case "daemon": // serves at its places until it is killed
		b := &bench{t: t, log: &syncBuffer{}, home: os.Getenv(homeEnv)}
		var err error
		if b.places, err = config.FindPlaces(os.Getenv); err != nil {
			t.Fatal(err)
		}
		b.start()
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	case "hook": // sends its frame and waits for the end
		data, err := os.ReadFile(os.Getenv(frameEnv))
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("unix", os.Getenv(socketEnv))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write(data)
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		_, _ = io.Copy(io.Discard, c)
		os.Exit(0)
	}
}

func TestWaiterIsReleasedWhenItsAgentIsGone(t *testing.T) {
	t.Parallel()
	b := holding(t)
	file := filepath.Join(b.home, "frame")
	if err := os.WriteFile(file, frame(t, "claude", "PreToolUse", b.bash("deploy-tool prod", "1")), 0o600); err != nil {
		t.Fatal(err)
	}
	agent := exec.Command(os.Args[0], "-test.run=^TestRole$")
	agent.Env = append(os.Environ(), roleEnv+"=agent", socketEnv+"="+b.places.HookSocket, frameEnv+"="+file)
	stdin, err := agent.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	b.eventually("the call waits", func() bool {
		cards := b.d.gate.List(false)
		return len(cards) == 1 && cards[0].Waiting
	})
	stdin.Close()
	_ = agent.Wait()
	start := time.Now()
	b.eventually("the waiter is gone", func() bool { return !b.card().Waiting })
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("took %v", took)
	}
	b.eventually("the call is on record", func() bool { return len(b.kinds(record.CallRequested)) == 1 })
	req := b.one(record.CallRequested)
	if req.Decision.Answer != "deny" || int(req.Peer.AgentPID) != agent.Process.Pid || req.Peer.AgentExe == "" {
		t.Errorf("record %+v, peer %+v", req.Decision, req.Peer)
	}
	if card := b.card(); card.State != "pending" {
		t.Errorf("card %+v", card)
	}
}
