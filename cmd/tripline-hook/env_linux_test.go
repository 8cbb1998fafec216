// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tripline-sh/tripline/hooks/wire"
)

// The variables that the Go runtime reads before main. Most change nothing that an agent sees. Two end the process before it can say
// anything: no code of the hook can help that, so this table states what an agent sees then, which its entry has to count as a
// refusal. The exit code 0 is not among it, nor is a byte on stdout.
func TestHostileGoVariables(t *testing.T) {
	t.Parallel()
	const denies, dies = "denies as ever", "dies before main"
	for env, want := range map[string]string{
		"GOMEMLIMIT=x GOTRACEBACK=crash": dies, // SIGABRT
		"GOMEMLIMIT=x":                   dies, // exit 2, with the runtime's message
		"GOMAXPROCS=99999999":            dies, // killed or out of memory

		"GOMAXPROCS=x":                           denies,
		"GOMAXPROCS=-1":                          denies,
		"GOMEMLIMIT=1":                           denies,
		"GOGC=1":                                 denies,
		"GOGC=off":                               denies,
		"GOGC=x":                                 denies,
		"GOTRACEBACK=crash":                      denies,
		"GOCOVERDIR=/nonexistent":                denies,
		"GODEBUG=x=y,,=,z":                       denies,
		"GODEBUG=cpu.all=off":                    denies,
		"GODEBUG=sbrk=1":                         denies,
		"GODEBUG=gcstoptheworld=2,gccheckmark=1": denies,
		"GODEBUG=asyncpreemptoff=1":              denies,
		"GODEBUG=fips140=only":                   denies,
		"GODEBUG=inittrace=1,gctrace=1,schedtrace=": denies,
	} {
		t.Run(env+" "+want, func(t *testing.T) {
			t.Parallel()
			// With little memory, the many processors of the second one cannot take the machine down.
			const script = `ulimit -c 0; ulimit -v 1500000; exec "$0" "$@"`
			args := []string{"-c", script, hookPath(t), "-s", "/nonexistent/hook.sock", "claude", "PreToolUse"}
			_, wait := startProgram(t, strings.NewReader("{}"), strings.Fields(env), "/bin/sh", args...)
			got := wait()
			if want == dies {
				if got.stdout != "" || got.exit == 0 {
					t.Errorf("exit %d, stdout %q; want a failure without stdout", got.exit, got.stdout)
				}
			} else {
				// Traces may stand before our line.
				if i := strings.LastIndex(got.stderr, "tripline: "); i > 0 {
					got.stderr = got.stderr[i:]
				}
				denied(t, got, "PreToolUse", "daemon.unreachable")
			}

			args[1] = `exec /usr/bin/env -i "$0" "$@"`
			_, wait = startProgram(t, strings.NewReader("{}"), strings.Fields(env), "/bin/sh", args...)
			denied(t, wait(), "PreToolUse", "daemon.unreachable")
		})
	}
}

// What a dynamic program would load into itself, a static one does not look at.
func TestALibraryToPreloadHasNoEffect(t *testing.T) {
	t.Parallel()
	lib := filepath.Join(t.TempDir(), "evil.so")
	if err := os.WriteFile(lib, []byte("not a library"), 0o700); err != nil {
		t.Fatal(err)
	}
	sock := serve(t, answer(frame(wire.KindFinal, 2, "out", "err")))
	_, wait := startProgram(t, strings.NewReader("{}"),
		[]string{"LD_PRELOAD=" + lib, "LD_AUDIT=" + lib, "LD_LIBRARY_PATH=/nonexistent", "LD_BIND_NOW=1"}, hookPath(t), "-s", sock, "claude", "PreToolUse")
	if got, want := wait(), (result{"out", "err", 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
