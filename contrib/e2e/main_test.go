// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package e2e runs the real Claude Code client against a scripted model server, with Tripline installed as a person would
// install it. Everything happens in private namespaces: only loopback, an own /tmp and /home, nothing of this machine's user.
package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// clientVersion is the version that the tests were written for.
const clientVersion = "2.1.332"

// Environment of the inner process.
const (
	jailVar   = "TRIPLINE_E2E_JAIL"
	binVar    = "TRIPLINE_E2E_BIN"
	clientVar = "TRIPLINE_E2E_CLIENT"
	goVar     = "GOCACHE"
	modVar    = "GOMODCACHE"
)

// previousRelease is the commit that upgrades are tested from.
const previousRelease = "0280c383aa7e6f6a9b9fb9cb6df216a55324ee96"

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run starts itself again inside private namespaces; the inner process runs the tests.
func run(m *testing.M) int {
	if os.Getenv(jailVar) == "1" {
		if err := enter(); err != nil {
			fmt.Fprintln(os.Stderr, "e2e: the namespaces cannot be prepared:", err)
			return 1
		}
		return m.Run()
	}
	client, why := prepare()
	if why != "" {
		fmt.Fprintln(os.Stderr, "e2e: SKIPPED, NOTHING WAS TESTED:", why)
		if os.Getenv("TRIPLINE_E2E") == "1" {
			fmt.Fprintln(os.Stderr, "e2e: TRIPLINE_E2E=1 makes that a failure")
			return 1
		}
		return 0
	}
	bin, err := os.MkdirTemp(filepath.Join(repo(), ".cache"), "e2e-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	defer os.RemoveAll(bin)
	if err := os.Chmod(bin, 0o755); err != nil { // one test runs the daemon as another user
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	build := exec.Command(filepath.Join(repo(), "contrib/dev/build.sh"), bin)
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e: the programs do not build:", err)
		return 1
	}
	if err := buildPrevious(filepath.Join(bin, "previous")); err != nil {
		fmt.Fprintln(os.Stderr, "e2e: no upgrade can be tested:", err)
	}
	caches, err := exec.Command("go", "env", goVar, modVar).Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e: go env:", err)
		return 1
	}
	cache := strings.Fields(string(caches))
	if len(cache) != 2 || os.MkdirAll(cache[0], 0o700) != nil || os.MkdirAll(cache[1], 0o755) != nil {
		fmt.Fprintf(os.Stderr, "e2e: go keeps nothing: %q\n", caches)
		return 1
	}
	args := []string{"-m", "-n", "-p", "-i", "-f", "--kill-child", "--mount-proc", "--propagation", "private", "--", os.Args[0]}
	for _, arg := range os.Args[1:] {
		if !strings.HasPrefix(arg, "-test.testlogfile=") { // it lies below /tmp, which the inner process does not see
			args = append(args, arg)
		}
	}
	cmd := exec.Command("unshare", args...)
	cmd.Env = append(os.Environ(), jailVar+"=1", binVar+"="+bin, clientVar+"="+client, goVar+"="+cache[0], modVar+"="+cache[1])
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return exit.ExitCode()
	case err != nil:
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	return 0
}

// prepare finds (or, with TRIPLINE_E2E=1, fetches) the client and checks that namespaces can be made; why is "" if all is well.
func prepare() (client, why string) {
	client = filepath.Join(repo(), ".cache/claude-"+clientVersion, "node_modules/@anthropic-ai/claude-code-linux-x64/claude")
	if _, err := os.Stat(client); err != nil {
		if os.Getenv("TRIPLINE_E2E") != "1" {
			return "", "the client is not in the cache; TRIPLINE_E2E=1 fetches it (384 MB from npm)"
		}
		fetch := exec.Command(filepath.Join(repo(), "contrib/e2e/fetch-claude.sh"), clientVersion)
		fetch.Stdout, fetch.Stderr = os.Stderr, os.Stderr
		if err := fetch.Run(); err != nil {
			return "", fmt.Sprintf("the client could not be fetched: %v", err)
		}
	}
	if out, err := exec.Command("unshare", "-m", "-n", "-p", "-i", "-f", "--mount-proc", "true").CombinedOutput(); err != nil {
		return "", fmt.Sprintf("private namespaces cannot be made (root is needed): %v %s", err, strings.TrimSpace(string(out)))
	}
	return client, ""
}

// buildPrevious builds the programs of the previous release. A checkout without its history has none.
func buildPrevious(dir string) error {
	src, err := os.MkdirTemp("", "tripline-previous-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(src)
	for _, args := range [][]string{
		{"git", "-C", repo(), "archive", "-o", filepath.Join(src, "source.tar"), previousRelease},
		{"tar", "-C", src, "-xf", filepath.Join(src, "source.tar")},
		{filepath.Join(src, "contrib/dev/build.sh"), dir},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w %s", args[0], err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}

// repo is the root of this checkout.
func repo() string {
	wd, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	return filepath.Dir(filepath.Dir(wd))
}

// enter gives the inner process its own /tmp and /home, hides the machine's managed settings, and brings loopback up. The programs
// and the client may lie below what it hides, so they are mounted again where they can be seen.
func enter() error {
	shown := []struct{ variable, at string }{{binVar, "/home/programs"}, {clientVar, "/home/client"}, {goVar, "/home/gocache"}, {modVar, "/home/gomod"}}
	fds := make([]int, len(shown))
	for i, s := range shown {
		dir := os.Getenv(s.variable)
		if s.variable == clientVar {
			dir = filepath.Dir(dir)
		}
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open %s: %w", dir, err)
		}
		defer unix.Close(fd)
		fds[i] = fd
	}
	for _, dir := range []string{"/tmp", "/home"} {
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=4g"); err != nil {
			return fmt.Errorf("mount %s: %w", dir, err)
		}
	}
	for i, s := range shown {
		if err := os.Mkdir(s.at, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", fds[i]), s.at, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s: %w", s.at, err)
		}
		to := s.at
		if s.variable == clientVar {
			to = filepath.Join(to, filepath.Base(os.Getenv(clientVar)))
		}
		if err := os.Setenv(s.variable, to); err != nil {
			return err
		}
	}
	if _, err := os.Stat("/etc/claude-code"); err == nil {
		if err := unix.Mount("tmpfs", "/etc/claude-code", "tmpfs", unix.MS_NOSUID, "size=1m"); err != nil {
			return fmt.Errorf("hide /etc/claude-code: %w", err)
		}
	}
	if err := os.Chmod("/tmp", 0o1777|os.ModeSticky); err != nil {
		return err
	}
	return loopbackUp()
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ifr.SetUint16(uint16(syscall.IFF_UP | syscall.IFF_RUNNING))
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr)
}
