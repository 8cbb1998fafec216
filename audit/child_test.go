// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tripline-sh/tripline/audit"
)

// Some tests need a process of their own: to be killed, to have limits, to run as somebody else. They start this test
// program again, with these variables.
const (
	childRole = "AUDIT_TEST_CHILD"
	childDir  = "AUDIT_TEST_DIR"
)

// inChild says whether this is the process that a test started for itself.
func inChild(t *testing.T, role string) bool {
	t.Helper()
	return os.Getenv(childRole) == role
}

// childOptions are the log of a child.
func childOptions() audit.Options {
	dir := os.Getenv(childDir)
	return audit.Options{Dir: filepath.Join(dir, "log"), KeyDir: filepath.Join(dir, "keys")}
}

// childCommand prepares the child process of a test.
func childCommand(t *testing.T, test, role, dir string, as *syscall.Credential) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	if as != nil {
		// Somebody else needs a program and a directory that they can reach.
		program, err := os.ReadFile(exe)
		must(t, err)
		exe = filepath.Join(dir, "child.test")
		// a child that another test starts meanwhile must not hold the file open: it could not be run then
		syscall.ForkLock.RLock()
		err = os.WriteFile(exe, program, 0o755)
		syscall.ForkLock.RUnlock()
		must(t, err)
		must(t, os.Chmod(dir, 0o777))
	}
	cmd := exec.Command(exe, "-test.run=^"+test+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), childRole+"="+role, childDir+"="+dir, "TMPDIR="+dir)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	t.Cleanup(func() {
		if cmd.Process != nil {
			_ = cmd.Process.Kill() // it has ended, unless the test failed
		}
	})
	return cmd
}

// runChild runs the child of a test; its failure is the test's.
func runChild(t *testing.T, test, role string, as *syscall.Credential) {
	t.Helper()
	dir := t.TempDir()
	if as != nil {
		var err error
		dir, err = os.MkdirTemp("/tmp", "audit-child") // t.TempDir lies below a directory of ours only
		must(t, err)
		t.Cleanup(func() { _ = os.RemoveAll(dir) }) // best effort
	}
	cmd := childCommand(t, test, role, dir, as)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("child: %v\n%s", err, out.String())
	}
	t.Logf("child: %s", out.String())
}

// unprivileged is somebody whom file modes bind: nil if we are.
func unprivileged(t *testing.T) *syscall.Credential {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	return &syscall.Credential{Uid: 65534, Gid: 65534}
}

// ignoreFileSizeSignal turns the signal that comes with a write beyond the limit into an error of the write.
func ignoreFileSizeSignal() { signal.Ignore(syscall.SIGXFSZ) }
