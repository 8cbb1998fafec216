// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// script is demo.sh, not yet started. Its home is in /tmp, whatever TMPDIR says; the name is in what it prints.
func script(t *testing.T) (cmd *exec.Cmd, out *lockedBuffer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	cmd = exec.CommandContext(ctx, "./demo.sh")
	out = &lockedBuffer{}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	return cmd, out
}

// home is what demo.sh printed as its home.
func home(t *testing.T, out string) string {
	t.Helper()
	_, after, ok := strings.Cut(out, "thrown away (")
	dir, _, ended := strings.Cut(after, ")")
	if !ok || !ended || !strings.HasPrefix(dir, "/tmp/tripline-demo.") {
		t.Fatalf("no home in:\n%s", out)
	}
	return dir
}

// gone fails if anything of a play is left: its home, or a process that has it in its command line or runs a program of it.
func gone(t *testing.T, home string) {
	t.Helper()
	if _, err := os.Lstat(home); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", home, err)
	}
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range processes {
		exe, _ := os.Readlink(p + "/exe")
		line, _ := os.ReadFile(p + "/cmdline")
		if strings.Contains(exe, home) || bytes.Contains(line, []byte(home)) {
			t.Errorf("process %s is left: %s %q", filepath.Base(p), exe, line)
		}
	}
}

func TestTheDemoTellsItsStoryAndLeavesNothing(t *testing.T) {
	t.Parallel()
	cmd, out := script(t)
	began := time.Now()
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text := out.String()
	gone(t, home(t, text))
	if took := time.Since(began); took > time.Minute {
		t.Logf("the demo took %v, building included", took)
	}
	for _, line := range []string{
		"$ sh test.sh  ran and failed", "$ sh test.sh  ran", `$ git commit -qam "stop rm -rf /"  ran`,
		"$ rm -rf src  BLOCKED by delete.project", `$ d=; rm -rf "$HOME/$d"  BLOCKED by delete.home`,
		"$ rm -rf build && sh build.sh  APPROVED, ran once", "$ git push --force origin main  REFUSED by a person",
		"12 calls: 6 ran, 5 blocked, 1 failed", "anchored up to #",
		`tripline_floor_hits_total{rule="delete.home"} 1`, `tripline_approvals_total{outcome="consumed"} 1`,
	} {
		if !strings.Contains(squeezed(text), line) {
			t.Errorf("the story lacks %q:\n%s", line, text)
		}
	}
	for _, bad := range []string{"UNREACHABLE", "panic", "tamper."} {
		if strings.Contains(text, bad) {
			t.Errorf("the story holds %q:\n%s", bad, text)
		}
	}
}

// squeezed makes every run of more than one blank two, so that columns may move.
func squeezed(s string) string {
	var b strings.Builder
	for i, part := range strings.FieldsFunc(strings.ReplaceAll(s, "  ", "\x00"), func(r rune) bool { return r == 0 }) {
		if i > 0 {
			b.WriteString("  ")
		}
		b.WriteString(strings.Trim(part, " "))
	}
	return b.String()
}

func TestADemoThatIsInterruptedLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		cmd, out := script(t)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		deadline := time.Now().Add(2 * time.Minute)
		for !strings.Contains(out.String(), "ran\n") { // the daemon runs, and a call has been judged
			if time.Now().After(deadline) {
				t.Fatalf("the session did not begin:\n%s", out)
			}
			select {
			case <-t.Context().Done():
				t.Fatal("the test ended")
			case <-time.After(5 * time.Millisecond):
			}
		}
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil && !strings.Contains(out.String(), "That took") {
			t.Errorf("%v: the demo ended well in the middle:\n%s", signal, out)
		}
		gone(t, home(t, out.String()))
	}
}

func TestThePlayerRefusesAHomeThatIsSomebodys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	player := filepath.Join(dir, "play")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", player, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	somebodys := filepath.Join(dir, "home")
	if err := os.Mkdir(somebodys, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), player, "../..")
	cmd.Env = []string{"HOME=" + somebodys, "PATH=" + os.Getenv("PATH")}
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "no home that demo.sh made") {
		t.Errorf("%v\n%s", err, out)
	}
	if left, err := os.ReadDir(somebodys); err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}
