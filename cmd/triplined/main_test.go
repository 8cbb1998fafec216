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

	"github.com/tripline-sh/tripline/daemon"
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
		{"a relative directory is refused", []string{"--home", "x"}, nil, 2, "", "not an absolute path"},
		{"a relative run directory is refused", []string{"--run-dir=./x"}, nil, 2, "", "not an absolute path"},
		{"a relative log file is refused", []string{"--log-file=x.log"}, nil, 2, "", "not an absolute path"},
		{"an unknown starter is refused", []string{"--started-by=cron"}, nil, 2, "", "systemd, launchd, person, hook"},
		{"a hook is who asks on demand", []string{"--on-demand", "--started-by=person"}, nil, 2, "", "--on-demand is for hooks"},
		{"a relative home of ours is an error", nil, map[string]string{"TRIPLINE_HOME": "x"}, 1, "", "absolute"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), tt.args, func(k string) string { return tt.env[k] }, nil, &stdout, &stderr)
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
		o, err := parseFlags([]string{"--" + flagName(key) + "=" + def.Get(key)}, func(string) string { return "" }, nil)
		if err != nil || o.overrides[key] != def.Get(key) {
			t.Errorf("%s: %+v, %v", key, o, err)
		}
		if h := help(key, def.Get(key)); strings.HasPrefix(h, " ") {
			t.Errorf("%s has no help", key)
		}
	}
}

func TestPlacesComeFromFlagsOrElseFromTheEnvironment(t *testing.T) {
	t.Parallel()
	env := map[string]string{"HOME": "/home/u", "TRIPLINE_HOME": "/t"}
	tests := []struct {
		name       string
		args       []string
		hook, home string
		log        string // of messages
		starter    string
	}{
		{"no flag: the environment", nil, "/t/run/hook.sock", "/home/u", "", "person"},
		{"a log file says nothing of places", []string{"--log-file=/l"}, "/t/run/hook.sock", "/home/u", "/l", "person"},
		{"one flag: the environment has no say", []string{"--home=/home/v"}, "/home/v/.local/state/tripline/run/hook.sock", "/home/v", "", "person"},
		{"all flags", []string{"--home=/h", "--config-dir=/c", "--state-dir=/s", "--run-dir=/r", "--started-by=launchd"}, "/r/hook.sock", "/h", "", "launchd"},
		{"on demand", []string{"--on-demand", "--home=/h"}, "/h/.local/state/tripline/run/hook.sock", "/h", "/h/.local/state/tripline/triplined.log", "hook"},
		{"on demand with a log file", []string{"--on-demand", "--home=/h", "--log-file=/l"}, "/h/.local/state/tripline/run/hook.sock", "/h", "/l", "hook"},
	}
	for _, tt := range tests {
		o, err := parseFlags(tt.args, func(k string) string { return env[k] }, nil)
		if err != nil {
			t.Fatal(err)
		}
		p, err := o.places(func(k string) string { return env[k] })
		if err != nil || p.HookSocket != tt.hook || p.Home != tt.home || o.logPath(p) != tt.log || o.starter(nil) != tt.starter {
			t.Errorf("%s: %+v, log %q, started by %s, %v", tt.name, p, o.logPath(p), o.starter(nil), err)
		}
	}
	o, err := parseFlags(nil, func(string) string { return "" }, nil)
	if err != nil || o.starter(&daemon.Manager{}) != "systemd" {
		t.Errorf("under a service manager: %+v, %v", o, err)
	}
}

// What auditctl hands to a hook or a unit is what the daemon reads.
func TestThePlacesOfThisUserComeBackThroughFlags(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want, err := config.FindPlaces(func(k string) string {
		return map[string]string{"HOME": dir, "XDG_CONFIG_HOME": dir + "/c", "XDG_RUNTIME_DIR": dir}[k]
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{want.ShortDirs().Args(), want.Dirs().Args()} {
		o, err := parseFlags(args, func(string) string { return "" }, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := o.places(func(string) string { return "/elsewhere" }); err != nil || got != want {
			t.Errorf("%q give %+v, %v; want %+v", args, got, err, want)
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
	if err := os.MkdirAll(filepath.Join(home, "t", "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "t", "run", "stopped"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stderr lockedBuffer
	done := make(chan int, 1)
	go func() { done <- run(ctx, nil, func(k string) string { return env[k] }, nil, &bytes.Buffer{}, &stderr) }()
	socket := filepath.Join(home, "t", "run", "hook.sock")
	marker := filepath.Join(home, "t", "run", "stopped")
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
	if code := run(t.Context(), nil, func(k string) string { return env[k] }, nil, &bytes.Buffer{}, &second); code != 1 || !strings.Contains(second.String(), "another triplined is running (pid ") {
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
	if _, err := os.Stat(marker); err == nil {
		t.Error("a person's start left the stopped marker")
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
