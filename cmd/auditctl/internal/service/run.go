// SPDX-License-Identifier: Apache-2.0

package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Limits of what is run. A start waits for the daemon to say that it is ready, so it has the most time.
const (
	probeTime = 5 * time.Second
	workTime  = 90 * time.Second
	maxOutput = 64 << 10
)

// passed are the variables that a service manager's own client needs.
var passed = [...]string{"HOME", "PATH", "USER", "LOGNAME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "DBUS_SESSION_BUS_ADDRESS"}

// run runs a program of the system by its name and returns what it printed. No pager, no colours, no questions.
func (h *Host) run(ctx context.Context, limit time.Duration, name string, args ...string) (string, error) {
	path, err := h.lookPath(name)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = "/"
	cmd.Env = []string{"LC_ALL=C", "SYSTEMD_PAGER=", "SYSTEMD_COLORS=0"}
	for _, v := range passed {
		if value := h.Getenv(v); value != "" {
			cmd.Env = append(cmd.Env, v+"="+value)
		}
	}
	var stdout, stderr limited
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	if ctx.Err() != nil && err != nil {
		err = fmt.Errorf("%s did not end within %v", name, limit)
	} else if err != nil {
		err = fmt.Errorf("%s %s: %w%s", name, strings.Join(args, " "), err, because(stderr.String()))
	}
	return stdout.String(), err
}

// because is the last line that a program said of its failure, for an error.
func because(stderr string) string {
	text := strings.TrimSpace(stderr)
	if text == "" {
		return ""
	}
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		text = text[i+1:]
	}
	return ": " + text
}

// lookPath finds a program as a shell would, but only at absolute places.
func (h *Host) lookPath(name string) (string, error) {
	for _, dir := range filepath.SplitList(h.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if fi, err := os.Stat(path); filepath.IsAbs(dir) && err == nil && !fi.IsDir() && fi.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, errors.ErrUnsupported)
}

// limited keeps the beginning of what is written to it.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if room := maxOutput - l.Len(); room > 0 {
		l.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
