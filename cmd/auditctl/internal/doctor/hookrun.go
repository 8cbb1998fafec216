// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"syscall"
	"time"
)

// hookRun is what one run of the hook gave.
type hookRun struct {
	code           int
	stdout, stderr []byte
	took           time.Duration
	err            error // it could not be started, or did not end by itself
}

func (h hookRun) ms() float64 { return float64(h.took.Microseconds()) / 1000 }

// maxHookOutput bounds what is kept of each stream.
const maxHookOutput = 64 << 10

// runHook runs a program by its absolute path, with nothing in its environment and in a process group of its own, which is
// killed when the time is over.
func runHook(ctx context.Context, path string, args []string, stdin []byte) hookRun {
	ctx, cancel := context.WithTimeout(ctx, canaryTime)
	defer cancel()
	stdout, stderr := &capped{}, &capped{}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = []string{}
	cmd.Dir = "/"
	cmd.Stdin = bytes.NewReader(stdin)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	begin := time.Now()
	err := cmd.Run()
	run := hookRun{stdout: stdout.b, stderr: stderr.b, took: time.Since(begin)}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		run.err = errors.New("it did not answer in time")
	case errors.As(err, &exit):
		run.code = exit.ExitCode()
	case err != nil:
		run.err = err
	}
	return run
}

// capped keeps the first bytes that are written to it and takes the rest.
type capped struct{ b []byte }

func (c *capped) Write(p []byte) (int, error) {
	c.b = append(c.b, p[:min(len(p), maxHookOutput-len(c.b))]...)
	return len(p), nil
}
