// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"bytes"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tripline-sh/tripline/hooks/spool"
	"github.com/tripline-sh/tripline/hooks/wire"
)

// TestClosedDescriptors runs the hook with each combination of closed standard descriptors. What the hook opens must not land on them,
// and an answer that needs stdout must not be taken for leave to go on.
func TestClosedDescriptors(t *testing.T) {
	t.Parallel()
	frames := map[string][]byte{
		"a pass": frame(wire.KindFinal, 0, "", ""),
		"an ask": frame(wire.KindFinal, 0, "stdout", ""),
		"a deny": frame(wire.KindFinal, 2, "stdout", "stderr"),
	}
	for closed := range 8 {
		in, out, errs := closed&1 != 0, closed&2 != 0, closed&4 != 0
		var redirect []string
		for bit, r := range []string{"0<&-", "1>&-", "2>&-"} {
			if closed&(1<<bit) != 0 {
				redirect = append(redirect, r)
			}
		}
		script := `exec "$0" "$@" ` + strings.Join(redirect, " ")
		for name, b := range frames {
			for _, event := range []string{"PreToolUse", "Stop"} {
				t.Run(name+" to "+event+", "+strings.Join(redirect, " "), func(t *testing.T) {
					t.Parallel()
					sent := make(chan []byte, 1)
					sock := serve(t, func(c *net.UnixConn) {
						_, payload, err := request(c)
						if err != nil {
							t.Errorf("the server got no request: %v", err)
						}
						sent <- payload
						c.Write(b)
						if rest, _ := io.ReadAll(c); len(rest) > 0 {
							t.Errorf("the server got %q behind the request", rest)
						}
					})
					_, wait := startProgram(t, strings.NewReader("{}"), nil, "/bin/sh", "-c", script, hookPath(t), "-s", sock, "claude", event)
					got := wait()

					var want result
					switch {
					case name == "a deny":
						want = result{"stdout", "stderr", 2}
					case name == "an ask" && out && event == "PreToolUse":
						want = result{"", "tripline: denied (hook.output)\n", 2}
					case name == "an ask":
						want = result{stdout: "stdout"}
					}
					if out {
						want.stdout = ""
					}
					if errs {
						want.stderr = ""
					}
					if got != want {
						t.Errorf("got %+v, want %+v", got, want)
					}
					if payload, want := string(<-sent), map[bool]string{false: "{}", true: ""}[in]; payload != want {
						t.Errorf("the server got the payload %q, want %q", payload, want)
					}
				})
			}
		}
	}
}

func TestClosedDescriptorsWithoutADaemon(t *testing.T) {
	t.Parallel()
	for redirect, wantErr := range map[string]string{
		"1>&-": "tripline: denied (daemon.unreachable)\n", "2>&-": "", "1>&- 2>&-": "", "0<&- 1>&- 2>&-": "",
	} {
		t.Run(redirect, func(t *testing.T) {
			t.Parallel()
			_, wait := startProgram(t, nil, nil, "/bin/sh", "-c", `exec "$0" "$@" `+redirect, hookPath(t), "-s", "/nonexistent/s", "claude", "PreToolUse")
			if got := wait(); got.exit != 2 || got.stderr != wantErr || strings.Contains(redirect, "1>&-") && got.stdout != "" {
				t.Errorf("got %+v, want exit 2 and stderr %q", got, wantErr)
			}
		})
	}
}

// TestAnswersThatNobodyCanHear: an agent takes half an answer, or none, for leave to go on, unless the exit code is 2.
func TestAnswersThatNobodyCanHear(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 200_000)
	for name, open := range map[string]func(t *testing.T) *os.File{
		"a full disk": func(t *testing.T) *os.File { return openFile(t, "/dev/full", os.O_WRONLY) },
		"nowhere":     func(t *testing.T) *os.File { return openFile(t, os.DevNull, os.O_WRONLY) },
		"a descriptor for reading": func(t *testing.T) *os.File {
			return openFile(t, filepath.Join(t.TempDir(), "f"), os.O_RDONLY|os.O_CREATE)
		},
		"a pipe without a reader": func(t *testing.T) *os.File {
			r, w := pipe(t)
			r.Close()
			return w
		},
		"a pipe that is full": func(t *testing.T) *os.File {
			_, w := pipe(t)
			fill(t, w)
			return w
		},
	} {
		for _, event := range []string{"PreToolUse", "ConfigChange", "PermissionRequest", "Stop"} {
			t.Run("an answer to "+event+" into "+name, func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "spool")
				cmd := exec.Command(hookPath(t), "-s", serve(t, answer(frame(wire.KindFinal, 0, big, ""))), "-q", dir, "claude", event)
				var errs bytes.Buffer
				cmd.Env, cmd.Stdout, cmd.Stderr = []string{}, open(t), &errs
				_ = cmd.Run()
				want, wantErr := 0, ""
				if events[event] == gate {
					want, wantErr = 2, "tripline: denied (hook.output)\n"
					if e := spooled(t, dir); e.Meta.Answer != spool.Denied || e.Meta.Fault != spool.Output || e.Meta.Flags != spool.FlagSent {
						t.Errorf("spooled %+v", e.Meta)
					}
				}
				if got := cmd.ProcessState.ExitCode(); got != want || errs.String() != wantErr {
					t.Errorf("exit %d, stderr %q; want %d, %q", got, errs.String(), want, wantErr)
				}
			})
		}
	}
}

func TestASlowReaderGetsEverything(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("0123456789abcde\n", 16000)
	for name, nonblock := range map[string]bool{"from a blocking pipe": false, "from a non-blocking pipe": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, w := pipe(t)
			if nonblock {
				raw, err := w.SyscallConn()
				if err != nil {
					t.Fatal(err)
				}
				if err := raw.Control(func(fd uintptr) { syscall.SetNonblock(int(fd), true) }); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command(hookPath(t), "-s", serve(t, answer(frame(wire.KindFinal, 0, big, ""))), "claude", "PreToolUse")
			cmd.Env, cmd.Stdout = []string{}, w
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			w.Close()
			var got []byte
			b := make([]byte, 777)
			for {
				n, err := r.Read(b)
				got = append(got, b[:n]...)
				if err != nil {
					break
				}
			}
			if err := cmd.Wait(); err != nil || string(got) != big {
				t.Errorf("got %d of %d bytes, %v", len(got), len(big), err)
			}
		})
	}
}

// TestAPoorProcess runs the hook where it cannot open or write files.
func TestAPoorProcess(t *testing.T) {
	t.Parallel()
	sock := serve(t, answer(frame(wire.KindFinal, 0, "", "")))
	for name, tc := range map[string]struct{ limit, sock, rule string }{
		"no descriptor left":        {"-n 3", sock, "hook.internal"},
		"no file may grow":          {"-f 0", "/nonexistent/s", "daemon.unreachable"},
		"no file may grow, refused": {"-f 0", stale(t), "daemon.unreachable"},
	} {
		for _, event := range []string{"PreToolUse", "Stop"} {
			t.Run(name+", "+event, func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "spool")
				_, wait := startProgram(t, strings.NewReader("{}"), nil, "/bin/sh", "-c", "ulimit "+tc.limit+`; exec "$0" "$@"`,
					hookPath(t), "-s", tc.sock, "-q", dir, "claude", event)
				if got := wait(); event == "Stop" {
					silent(t, got)
				} else {
					denied(t, got, event, tc.rule)
				}
				if left, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); len(left) > 0 {
					t.Errorf("left %q behind", left)
				}
			})
		}
	}
}

func openFile(t *testing.T, path string, flag int) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// fill leaves no room in a pipe.
func fill(t *testing.T, w *os.File) {
	t.Helper()
	raw, err := w.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Control(func(fd uintptr) {
		syscall.SetNonblock(int(fd), true)
		for b := make([]byte, 4096); len(b) > 0; {
			if _, err := syscall.Write(int(fd), b); err != nil {
				b = b[:len(b)/2]
			}
		}
		syscall.SetNonblock(int(fd), false)
	})
	if err != nil {
		t.Fatal(err)
	}
}
