// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tripline-sh/tripline/hooks/wire"
)

// What a hook without its own entry does under a variable that the Go runtime reads before main.
const (
	denies = "denies as ever"
	speaks = "denies after words of the runtime's"
	dies   = "dies before main"
)

// hostile is the variables that the Go runtime reads before main, and what they do to a hook without its own entry. With the entry
// it denies as ever under all of them.
var hostile = map[string]string{
	"GOMEMLIMIT=x GOTRACEBACK=crash": dies, // SIGABRT
	"GOMEMLIMIT=x":                   dies, // exit 2, with the runtime's message
	"GOMEMLIMIT=":                    denies,
	"GOMAXPROCS=99999999":            dies, // minutes, and all memory; out of memory where it is limited

	"GOMAXPROCS=x":                           denies,
	"GOMAXPROCS=-1":                          denies,
	"GOMAXPROCS=2000":                        denies, // but takes many times as long
	"GOMEMLIMIT=1":                           denies, // as well
	"GOGC=1":                                 denies,
	"GOGC=off":                               denies,
	"GOGC=x":                                 denies,
	"GOTRACEBACK=crash":                      denies,
	"GOTRACEBACK=x":                          denies,
	"GOCOVERDIR=/nonexistent":                denies,
	"GODEBUG=x=y,,=,z":                       denies,
	"GODEBUG=cpu.all=off":                    denies,
	"GODEBUG=cpu.nothing=on":                 speaks,
	"GODEBUG=sbrk=1":                         denies,
	"GODEBUG=gcstoptheworld=2,gccheckmark=1": denies,
	"GODEBUG=asyncpreemptoff=1":              denies,
	"GODEBUG=fips140=only":                   denies,
	"GODEBUG=inittrace=1,gctrace=1,schedtrace=": speaks,
}

// underVariables runs a hook that finds no daemon. With little memory, many processors cannot take the machine down.
func underVariables(t *testing.T, hook, prefix, env string) result {
	t.Helper()
	const script = `ulimit -c 0; ulimit -v 1500000; exec `
	_, wait := startProgram(t, strings.NewReader("{}"), strings.Fields(env),
		"/bin/sh", "-c", script+prefix+` "$0" "$@"`, hook, "-s", "/nonexistent/hook.sock", "claude", "PreToolUse")
	return wait()
}

var buildPlain = sync.OnceValues(func() (string, error) { return build(".", "tripline-hook-plain", ".") })

// A hook that was not built as a release is: no code of its own comes before the runtime's, so this states what an agent sees then,
// which its entry for the hook has to count as a refusal. The exit code 0 is not among it, nor is a byte on stdout.
func TestHostileVariablesWithoutTheEntry(t *testing.T) {
	t.Parallel()
	plain, err := buildPlain()
	if err != nil {
		t.Fatal(err)
	}
	for env, want := range hostile {
		t.Run(env+" "+want, func(t *testing.T) {
			t.Parallel()
			got := underVariables(t, plain, "", env)
			if want == dies {
				if got.stdout != "" || got.exit == 0 || strings.Contains(got.stderr, "tripline:") {
					t.Errorf("exit %d, stdout %q, stderr %q; want a failure before main", got.exit, got.stdout, got.stderr)
				}
			} else {
				i := strings.LastIndex(got.stderr, "tripline: ")
				if want == speaks && i <= 0 {
					t.Errorf("stderr %q; want words of the runtime's", got.stderr)
				}
				got.stderr = got.stderr[max(i, 0):]
				denied(t, got, "PreToolUse", "daemon.unreachable")
			}
			denied(t, underVariables(t, plain, "/usr/bin/env -i", env), "PreToolUse", "daemon.unreachable")
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
