// SPDX-License-Identifier: Apache-2.0

// The tests of this package run the real binary, built once, against servers that they play themselves.
package main_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/hooks/spool/ingest"
	"github.com/tripline-sh/tripline/hooks/wire"
)

var binDir string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "hook")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binDir = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// build compiles a package into a file called name, static and stripped, but with no entry of its own.
func build(dir, name, pkg string) (string, error) {
	out := filepath.Join(binDir, name)
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, pkg)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build %s: %w\n%s", pkg, err, b)
	}
	return out, nil
}

// buildRelease compiles the hook with the script that builds a release, for this platform or, with GOOS and GOARCH in env, another.
func buildRelease(dir string, env ...string) (string, error) {
	dir = filepath.Join(binDir, dir)
	cmd := exec.Command("../../contrib/dev/build.sh", dir, "tripline-hook")
	cmd.Env = append(os.Environ(), env...)
	if b, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, b)
	}
	return filepath.Join(dir, "tripline-hook"), nil
}

var buildHook = sync.OnceValues(func() (string, error) { return buildRelease("release") })

func hookPath(t testing.TB) string {
	t.Helper()
	path, err := buildHook()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// result is what an agent sees of a hook.
type result struct {
	stdout, stderr string
	exit           int // -1 if a signal ended it
}

// start runs the hook with an empty environment. The command is killed at the test's end or after a minute.
func start(t testing.TB, stdin io.Reader, args ...string) (*exec.Cmd, func() result) {
	t.Helper()
	return startProgram(t, stdin, nil, hookPath(t), args...)
}

func startProgram(t testing.TB, stdin io.Reader, env []string, prog string, args ...string) (*exec.Cmd, func() result) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, prog, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &errs
	cmd.Env = append([]string{}, env...)
	cmd.Dir = "/"
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, func() result {
		err := cmd.Wait()
		if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok && !errors.Is(err, syscall.EPIPE) {
			t.Errorf("wait: %v", err)
		}
		if ctx.Err() != nil {
			t.Error("the hook hung")
		}
		return result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
	}
}

func run(t testing.TB, stdin string, args ...string) result {
	t.Helper()
	_, wait := start(t, strings.NewReader(stdin), args...)
	return wait()
}

// shortDir returns a temporary directory whose path leaves room for a socket's name.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// serve runs one handler for every connection to a new socket and returns its path. The connection is closed after the handler, and
// all handlers are waited for at the test's end.
func serve(t testing.TB, handle func(c *net.UnixConn)) string {
	t.Helper()
	path := filepath.Join(shortDir(t), "hook.sock")
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.AcceptUnix()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				handle(c)
			})
		}
	})
	t.Cleanup(func() {
		ln.Close()
		wg.Wait()
	})
	return path
}

// request reads a whole request.
func request(c io.Reader) (*wire.Header, []byte, error) {
	h, err := wire.ReadHeader(c)
	if err != nil {
		return nil, nil, err
	}
	if h.Stream() {
		b, err := io.ReadAll(c)
		return h, b, err
	}
	b := make([]byte, h.PayloadLen)
	_, err = io.ReadFull(c, b)
	return h, b, err
}

// frame encodes a reply; a hold if kind says so.
func frame(kind, exit uint8, stdout, stderr string) []byte {
	b, err := wire.AppendReply(nil, &wire.Reply{Kind: kind, Exit: exit, Stdout: []byte(stdout), Stderr: []byte(stderr)})
	if err != nil {
		panic(err)
	}
	return b
}

// answer is a handler that reads the request and writes b.
func answer(b []byte) func(*net.UnixConn) {
	return func(c *net.UnixConn) {
		if _, _, err := request(c); err == nil {
			c.Write(b)
		}
	}
}

// untilGone blocks until the hook has hung up.
func untilGone(c *net.UnixConn) { io.Copy(io.Discard, c) }

// stale returns the path of a socket that nobody listens on.
func stale(t testing.TB) string {
	t.Helper()
	path := filepath.Join(shortDir(t), "stale.sock")
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	ln.SetUnlinkOnClose(false)
	ln.Close()
	return path
}

// denied checks the exact form of a canned deny: the native JSON, the rule on stderr, exit code 2.
func denied(t *testing.T, got result, event, rule string) {
	t.Helper()
	wantErr := "tripline: denied (" + rule + ")\n"
	prefix, suffix := `{"hookSpecificOutput":{"hookEventName":"`+event+`","permissionDecision":"deny","permissionDecisionReason":"`, `"}}`
	if event == "ConfigChange" {
		prefix, suffix = `{"decision":"block","reason":"`, `"}`
	}
	if got.exit != 2 || got.stderr != wantErr || !strings.HasPrefix(got.stdout, prefix) || !strings.HasSuffix(got.stdout, suffix) ||
		!strings.Contains(got.stdout, "[rule "+rule+"]") {
		t.Errorf("got exit %d, stdout %q, stderr %q; want exit 2, stdout %s...%s, stderr %q", got.exit, got.stdout, got.stderr, prefix, suffix, wantErr)
	}
}

func silent(t *testing.T, got result) {
	t.Helper()
	if got != (result{}) {
		t.Errorf("got exit %d, stdout %q, stderr %q; want exit 0 and no output", got.exit, got.stdout, got.stderr)
	}
}

// spooled returns the only entry of a spool.
func spooled(t *testing.T, dir string) *ingest.Entry {
	t.Helper()
	s, err := ingest.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.Scan(10)
	if err != nil || len(res.Names) != 1 || len(res.Bad) != 0 || res.Dropped != 0 {
		t.Fatalf("scan of the spool: %+v, %v; want one entry", res, err)
	}
	e, err := s.Load(res.Names[0])
	if err != nil {
		t.Fatal(err)
	}
	return e
}
