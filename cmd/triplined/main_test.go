// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/daemon/config"
)

func TestUsage(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		args   []string
		env    map[string]string
		code   int
		stdout string
		stderr string
	}{
		{"version", []string{"--version"}, nil, 0, "triplined ", ""},
		{"help goes to stdout", []string{"--help"}, nil, 0, "--mode", ""},
		{"an unknown flag is a usage error", []string{"--yolo"}, nil, 2, "", "yolo"},
		{"a bad value names the choices", []string{"--mode", "yolo"}, nil, 2, "", "guard, ask, plan, auto, observe"},
		{"arguments are refused", []string{"start"}, nil, 2, "", `unexpected argument "start"`},
		{"retention is refused rather than ignored", []string{"--log-retention=30d"}, nil, 2, "", "never deletes"},
		{"a bad metrics address in the environment is an error", nil, map[string]string{"TRIPLINE_METRICS_LISTEN": "0.0.0.0:1"}, 2, "", "loopback"},
		{"without a home there is nowhere to be", nil, map[string]string{}, 1, "", "TRIPLINE_HOME"},
		{"a relative home of ours is an error", nil, map[string]string{"TRIPLINE_HOME": "x"}, 1, "", "absolute"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), tt.args, func(k string) string { return tt.env[k] }, &stdout, &stderr)
			if code != tt.code || !strings.Contains(strings.ReplaceAll(stdout.String(), " -", " --"), tt.stdout) || !strings.Contains(stderr.String(), tt.stderr) {
				t.Errorf("exit %d, stdout %q, stderr %q", code, stdout.String(), stderr.String())
			}
		})
	}
}

func TestEveryKeyIsAFlag(t *testing.T) {
	t.Parallel()
	def := config.Default()
	for _, key := range config.Keys() {
		overrides, _, err := parseFlags([]string{"--" + flagName(key) + "=" + def.Get(key)}, func(string) string { return "" }, nil)
		if err != nil || overrides[key] != def.Get(key) {
			t.Errorf("%s: %v, %v", key, overrides, err)
		}
		if h := help(key, def.Get(key)); strings.HasPrefix(h, " ") {
			t.Errorf("%s has no help", key)
		}
	}
}

func TestRunServesUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	home, err := os.MkdirTemp("", "tl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	env := map[string]string{"TRIPLINE_HOME": filepath.Join(home, "t"), "HOME": home, "TRIPLINE_METRICS_LISTEN": "off"}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stderr lockedBuffer
	done := make(chan int, 1)
	go func() { done <- run(ctx, nil, func(k string) string { return env[k] }, &bytes.Buffer{}, &stderr) }()
	socket := filepath.Join(home, "t", "run", "hook.sock")
	for deadline := time.Now().Add(10 * time.Second); ; {
		c, err := net.Dial("unix", socket)
		if err == nil {
			c.Close()
			break
		}
		select {
		case code := <-done:
			t.Fatalf("exit %d: %s", code, stderr.String())
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("does not serve: %s", stderr.String())
		}
	}
	var second bytes.Buffer
	if code := run(t.Context(), nil, func(k string) string { return env[k] }, &bytes.Buffer{}, &second); code != 1 || !strings.Contains(second.String(), "another triplined is running (pid ") {
		t.Errorf("second start: exit %d, %s", code, second.String())
	}
	cancel()
	if code := <-done; code != 0 {
		t.Errorf("exit %d: %s", code, stderr.String())
	}
	for _, want := range []string{"TRIPLINE_HOME is in force", `"message":"ready"`, "genesis_key", `"clean":true`} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("stderr lacks %q: %s", want, stderr.String())
		}
	}
	if _, err := os.Stat(socket); err == nil {
		t.Error("the socket was left behind")
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
