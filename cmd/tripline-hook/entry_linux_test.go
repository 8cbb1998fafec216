// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package main_test

import (
	"debug/elf"
	"debug/gosym"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

const entry = "tripline_entry"

func TestHostileVariables(t *testing.T) {
	t.Parallel()
	clean := underVariables(t, hookPath(t), "", "")
	denied(t, clean, "PreToolUse", "daemon.unreachable")
	for env := range hostile {
		t.Run(env, func(t *testing.T) {
			t.Parallel()
			if got := underVariables(t, hookPath(t), "", env); got != clean {
				t.Errorf("got %+v, with a clean environment %+v", got, clean)
			}
		})
	}
}

// Runs with and without the variable alternate, so that whatever the machine does meanwhile meets both.
func TestHostileVariablesTakeNoTime(t *testing.T) {
	hook := hookPath(t)
	once := func(env string) time.Duration {
		begin := time.Now()
		denied(t, underVariables(t, hook, "", env), "PreToolUse", "daemon.unreachable")
		return time.Since(begin)
	}
	for env := range hostile {
		var clean, under []time.Duration
		for range 9 {
			clean, under = append(clean, once("")), append(under, once(env))
			if t.Failed() {
				t.Fatalf("under %s", env)
			}
		}
		if c, u := median(clean), median(under); u > 10*c {
			t.Errorf("%s: takes %v, with a clean environment %v", env, u, c)
		}
	}
}

// What a shell would tidy up, or a library refuse to pass on, but the kernel takes.
func TestOddEnvironmentsAndArguments(t *testing.T) {
	t.Parallel()
	numbered := func(n int) (env []string) {
		for i := range n {
			env = append(env, fmt.Sprintf("V%d=x", i))
		}
		return env
	}
	bad := "GOMEMLIMIT=x"
	for name, env := range map[string][]string{
		"nothing":                          {},
		"one hostile variable":             {bad},
		"two":                              {bad, "GOTRACEBACK=crash"},
		"one, twice":                       {bad, bad},
		"an empty string":                  {""},
		"an empty string before another":   {"", bad},
		"GO without =":                     {"GO"},
		"GO without = before another":      {"GO", bad},
		"G":                                {"G", "", "GO="},
		"a name without =":                 {"GOMEMLIMIT", "GODEBUG"},
		"only =":                           {"=", "==", "=" + bad},
		"the longest string":               {"GODEBUG=" + strings.Repeat(",", 131072-9)},
		"10,000 entries":                   numbered(10_000),
		"10,000 entries before another":    append(numbered(10_000), bad),
		"10,001 entries after another":     append([]string{bad}, numbered(10_001)...),
		"100,000 empty strings and others": append(make([]string, 100_000), bad, "GODEBUG=inittrace=1"),
	} {
		for _, argv0 := range []string{"tripline-hook", "", bad} {
			for _, args := range [][]string{
				{"-s", "/nonexistent/hook.sock", "claude", "PreToolUse"},
				{"-s", "/nonexistent/hook.sock", "-n", "t", "claude", "PreToolUse"},
				{"-s", "/nonexistent/hook.sock", "-n", "", "-t", "5000", "claude", "PreToolUse"},
			} {
				t.Run(fmt.Sprintf("%s, argv[0] %q, %d arguments", name, argv0, len(args)), func(t *testing.T) {
					t.Parallel()
					denied(t, execute(t, hookPath(t), append([]string{argv0}, args...), env), "PreToolUse", "daemon.unreachable")
				})
			}
		}
		// Old kernels start a program with argc 0, newer ones make that one empty argument.
		for _, argv := range [][]string{{}, {""}, {bad}} {
			t.Run(fmt.Sprintf("%s, argv %q", name, argv), func(t *testing.T) {
				t.Parallel()
				got := execute(t, hookPath(t), argv, env)
				if got.exit != 2 || got.stdout != "" || !strings.HasPrefix(got.stderr, "tripline-hook: want AGENT and EVENT") {
					t.Errorf("got %+v; want exit 2 and the usage", got)
				}
			})
		}
	}
}

// execute runs a program with exactly this argv and this environment.
func execute(t *testing.T, prog string, argv, env []string) result {
	t.Helper()
	dir := t.TempDir()
	files := make([]*os.File, 3)
	for i, name := range []string{"in", "out", "err"} {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	p, err := os.StartProcess(prog, argv, &os.ProcAttr{Dir: "/", Env: env, Files: files})
	if err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(time.Minute, func() { _ = p.Kill() })
	state, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if !timer.Stop() {
		t.Error("the hook hung")
	}
	got := result{exit: state.ExitCode()}
	for name, to := range map[string]*string{"out": &got.stdout, "err": &got.stderr} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		*to = string(b)
	}
	return got
}

// entryFunc returns the name of the function at which the kernel starts a program. It stands in the runtime's own table, which
// stripping leaves.
func entryFunc(t *testing.T, path string) string {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	table, text := f.Section(".gopclntab"), f.Section(".text")
	if table == nil || text == nil || f.Section(".symtab") != nil || f.Section(".interp") != nil {
		t.Fatal("not a static, stripped Go program")
	}
	data, err := table.Data()
	if err != nil {
		t.Fatal(err)
	}
	funcs, err := gosym.NewTable(nil, gosym.NewLineTable(data, text.Addr))
	if err != nil {
		t.Fatal(err)
	}
	fn := funcs.PCToFunc(f.Entry)
	if fn == nil || fn.Entry != f.Entry {
		t.Fatalf("no function begins at the entry point %#x", f.Entry)
	}
	return fn.Name
}

func TestWhereTheProgramStarts(t *testing.T) {
	t.Parallel()
	for _, arch := range []string{"amd64", "arm64"} {
		path, err := buildRelease("linux-"+arch, "GOOS=linux", "GOARCH="+arch)
		if err != nil {
			t.Fatal(err)
		}
		if got := entryFunc(t, path); got != entry {
			t.Errorf("%s: a release starts at %s", arch, got)
		}
	}
	plain, err := buildPlain()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := entryFunc(t, plain), "_rt0_"+runtime.GOARCH+"_linux"; got != want {
		t.Errorf("a plain build starts at %s, want %s", got, want)
	}
}

func TestOtherPlatformsBuildWithoutTheEntry(t *testing.T) {
	t.Parallel()
	if _, err := buildRelease("darwin-arm64", "GOOS=darwin", "GOARCH=arm64"); err != nil {
		t.Error(err)
	}
}

// The entry of the architecture that this is not, where it can be emulated.
func TestHostileVariablesOnTheOtherArchitecture(t *testing.T) {
	t.Parallel()
	other := map[string]struct{ arch, qemu string }{"amd64": {"arm64", "qemu-aarch64"}, "arm64": {"amd64", "qemu-x86_64"}}[runtime.GOARCH]
	qemu, err := exec.LookPath(other.qemu + "-static")
	if err != nil {
		if qemu, err = exec.LookPath(other.qemu); err != nil {
			t.Skipf("SKIPPED, THE ENTRY FOR %s WAS NOT RUN: no %s (Debian: qemu-user-static)", other.arch, other.qemu)
		}
	}
	path, err := buildRelease("other", "GOOS=linux", "GOARCH="+other.arch)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{path, "-s", "/nonexistent/hook.sock", "claude", "PreToolUse"}
	emulated := func(t *testing.T, env []string) result { return execute(t, qemu, append([]string{qemu}, args...), env) }
	clean := emulated(t, []string{})
	denied(t, clean, "PreToolUse", "daemon.unreachable")
	// A harmless one comes first: nothing here limits the memory that the worst would take without the entry.
	for _, env := range append([]string{"GOMEMLIMIT=x", "GO", strings.Repeat("A=b ", 10_001) + "GOMEMLIMIT=x"}, slices.Collect(maps.Keys(hostile))...) {
		if got := emulated(t, strings.Fields(env)); got != clean {
			t.Fatalf("%.40s: got %+v, with a clean environment %+v", env, got, clean)
		}
	}
}
