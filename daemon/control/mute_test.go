// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// A suspended daemon: the kernel takes connections for it, and nobody answers.
func TestADaemonThatDoesNotAnswerIsGivenUp(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := &Client{Socket: path, Patience: 50 * time.Millisecond}
	for name, ask := range map[string]func(context.Context) error{
		"status":    func(ctx context.Context) error { _, err := c.Status(ctx); return err },
		"approvals": func(ctx context.Context) error { _, err := c.Approvals(ctx, true); return err },
		"approval":  func(ctx context.Context) error { _, err := c.Approval(ctx, "x"); return err },
		"decide":    func(ctx context.Context) error { _, err := c.Decide(ctx, "x", DecideRequest{}); return err },
		"rules":     func(ctx context.Context) error { _, err := c.Rules(ctx); return err },
		"reload":    func(ctx context.Context) error { _, err := c.Reload(ctx, ReloadRequest{}); return err },
		"announce":  func(ctx context.Context) error { _, err := c.Announce(ctx, AnnounceRequest{}); return err },
		"canary":    func(ctx context.Context) error { _, err := c.Canary(ctx, CanaryRequest{}); return err },
		"metrics":   func(ctx context.Context) error { _, err := c.Metrics(ctx); return err },
		"verify":    func(ctx context.Context) error { _, err := c.Verify(ctx, VerifyRequest{}); return err },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		if err := ask(ctx); !errors.Is(err, ErrMute) || errors.Is(err, ErrUnreachable) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := c.Status(ctx); errors.Is(err, ErrMute) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the caller gave up first: %v", err)
	}
}
