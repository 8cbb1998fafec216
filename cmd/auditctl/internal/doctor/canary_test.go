// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/daemon/control"
	"github.com/tripline-sh/tripline/hooks/install"
)

// script is a hook that answers as it is told. It leaves what it was given beside it.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tripline-hook")
	// a child that another test starts meanwhile must not hold the file open: it could not be run then
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheHookRunsInACleanEnvironment(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "x")
	t.Setenv("TRIPLINE_HOME", "/x")
	path := script(t, `/usr/bin/env; echo "args $*"; pwd; cat; exit 2`)
	run := runHook(context.Background(), path, []string{"-s", "a b"}, []byte("stdin"))
	out := string(run.stdout)
	if run.err != nil || run.code != 2 || strings.Contains(out, "GOMEMLIMIT") || strings.Contains(out, "TRIPLINE_HOME") || strings.Contains(out, "HOME=") ||
		!strings.Contains(out, "args -s a b\n") || !strings.HasSuffix(out, "/\nstdin") {
		t.Errorf("%+v %q", run, out)
	}
}

func TestAHookThatHangsIsEndedWithAllItsChildren(t *testing.T) {
	t.Parallel()
	pidfile := filepath.Join(t.TempDir(), "pid")
	path := script(t, `sleep 300 & echo $! >`+pidfile+`; wait`)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan hookRun)
	go func() { done <- runHook(ctx, path, nil, nil) }()
	var b []byte
	for start := time.Now(); len(b) == 0; b, _ = os.ReadFile(pidfile) {
		if time.Since(start) > 9*time.Second {
			t.Fatal("the script does not start")
		}
		time.Sleep(5 * time.Millisecond) // a poll, bounded by the deadline above
	}
	cancel()
	if run := <-done; run.err == nil {
		t.Errorf("%+v", run)
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(b)) + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") { // gone, or waits for a parent that is gone
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("a child lives on")
		}
		time.Sleep(10 * time.Millisecond) // a poll, bounded by the deadline above
	}
}

func TestAHookThatFloodsIsCut(t *testing.T) {
	t.Parallel()
	run := runHook(context.Background(), script(t, `head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2`), nil, nil)
	if run.err != nil || len(run.stdout) != maxHookOutput || len(run.stderr) != maxHookOutput {
		t.Errorf("%v: %d, %d", run.err, len(run.stdout), len(run.stderr))
	}
}

const denial = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"x"}}`

func TestAnswersAreJudged(t *testing.T) {
	t.Parallel()
	f := healthy(t)
	for _, c := range []struct {
		name string
		deny bool
		run  hookRun
		want string
	}{
		{"a denial", true, hookRun{code: 2, stdout: []byte(denial)}, ""},
		{"a denial with exit code 0", true, hookRun{stdout: []byte(denial)}, "canary.not_denied"},
		{"exit code 2 without a denial", true, hookRun{code: 2, stderr: []byte("x")}, "canary.not_denied"},
		{"/bin/true", true, hookRun{}, "canary.not_denied"},
		{"an ask", true, hookRun{stdout: []byte(strings.Replace(denial, `"deny"`, `"ask"`, 1))}, "canary.not_denied"},
		{"a denial for another event", true, hookRun{code: 2, stdout: []byte(strings.Replace(denial, "PreToolUse", "Stop", 1))}, "canary.not_denied"},
		{"silence passes", false, hookRun{}, ""},
		{"an allow passes", false, hookRun{stdout: []byte(strings.Replace(denial, `"deny"`, `"allow"`, 1))}, ""},
		{"an ask does not pass", false, hookRun{stdout: []byte(strings.Replace(denial, `"deny"`, `"ask"`, 1))}, "canary.not_passed"},
		{"text is no pass", false, hookRun{stdout: []byte("hello")}, "canary.not_passed"},
		{"exit code 1 is no pass", false, hookRun{code: 1}, "canary.not_passed"},
		{"a hook that cannot be run", false, hookRun{err: errors.New("no such file")}, "canary.failed"},
	} {
		if p, bad := judgeReply(f, "ls", c.deny, c.run); p.ID != c.want || bad != (c.want != "") {
			t.Errorf("%s: %+v", c.name, p)
		}
	}
	full := `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"the audit log cannot be written"}}`
	if p, _ := judgeReply(f, "ls", false, hookRun{code: 2, stdout: []byte(full)}); !strings.Contains(p.Text, "did not pass: the audit log cannot be written") {
		t.Errorf("the reason is not said: %+v", p)
	}
}

// fakeDaemon hands out canaries and remembers calls of that many of them.
func fakeDaemon(t *testing.T, recorded int, source string) *control.Client {
	t.Helper()
	dir, err := os.MkdirTemp("", "td")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	ln, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/canary", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(control.CanaryResponse{Session: CanarySession + "1"})
	})
	mux.HandleFunc("GET /v1/calls", func(w http.ResponseWriter, _ *http.Request) {
		for i := range recorded {
			_ = json.NewEncoder(w).Encode(record.Call{ID: strconv.Itoa(i), Session: CanarySession + "1", Source: source})
		}
	})
	server := &http.Server{Handler: mux}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(ln) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return &control.Client{Socket: ln.Addr().String()}
}

// obedient answers as the two calls want it.
const obedient = `case $(cat) in *"rm -rf /"*) echo '` + denial + `'; exit 2;; esac`

// ready are facts under which a canary runs the given hook.
func ready(t *testing.T, hook string, recorded int, source string) *Facts {
	t.Helper()
	f := healthy(t)
	f.UID = os.Getuid()
	f.Client = fakeDaemon(t, recorded, source)
	p := readProgram("tripline-hook", hook, f.UID)
	p.Ours, p.Loose = true, "" // the script stands for one of ours
	f.Programs = []Program{p}
	f.Hook.Binary = hook
	var err error
	if f.User.Wanted, err = install.Wanted(f.Hook); err != nil {
		t.Fatal(err)
	}
	f.User.Installed, f.User.Current = f.User.Wanted, true
	text := "{}"
	change, err := install.Plan(install.Options{Path: filepath.Join(t.TempDir(), "x", "settings.json"), Owner: os.Getuid(), Binary: hook, Socket: f.Hook.Socket,
		Spool: f.Hook.Spool, ServerUID: 1000, Token: f.Token})
	if err == nil {
		text = string(change.New)
	}
	if f.User.Settings.Settings, err = install.Inspect([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestTheCanaryEndsInWhatItSaw(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, hook, source string
		recorded           int
		want               string
	}{
		{"all is well", obedient, "canary", 2, "canary.ok"},
		{"a hook that does nothing", ":", "canary", 2, "canary.not_denied"},
		{"a hook that denies everything", "cat >/dev/null; echo '" + denial + "'; exit 2", "canary", 2, "canary.not_passed"},
		{"a call that is not on record", obedient, "canary", 1, "canary.unrecorded"},
		{"calls that are on record as an agent's", obedient, "hook", 2, "canary.unrecorded"},
		{"a hook that replaces itself", obedient + `; echo "# more" >>"$0"`, "canary", 2, "canary.swapped"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := ready(t, script(t, c.hook), c.recorded, c.source)
			got, r := RunCanary(context.Background(), f)
			if !got.Ran || !got.Wired || len(r.Findings) != 1 || r.Findings[0].ID != c.want {
				t.Errorf("%+v %+v", got, r)
			}
		})
	}
}

// Every condition alone keeps the hook from being run.
func TestTheCanaryRunsNothingUnlessEveryConditionHolds(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(f *Facts){
		"no daemon":                              func(f *Facts) { f.Status = nil },
		"the hook was not built from our source": func(f *Facts) { f.Programs[0].Ours = false },
		"the hook cannot be read":                func(f *Facts) { f.Programs[0].Err = errors.New("x") },
		"the hook cannot be executed":            func(f *Facts) { f.Programs[0].Perm = 0o644 },
		"others may change the hook":             func(f *Facts) { f.Programs[0].Loose = "/tmp" },
		"programs of different sources": func(f *Facts) {
			f.Programs[0].Revision = "a"
			f.Programs = append(f.Programs, Program{Ours: true, Revision: "b"})
		},
		"no program was looked at":                  func(f *Facts) { f.Programs = nil },
		"settings that cannot be read":              func(f *Facts) { f.User.Err = errors.New("x") },
		"settings that install refuses":             func(f *Facts) { f.User.PlanErr = errors.New("x") },
		"settings that differ by a byte":            func(f *Facts) { f.User.Current = false },
		"a handler more than ours":                  func(f *Facts) { f.User.Handlers = append(f.User.Handlers, f.User.Handlers[0]) },
		"a wired agent without a token file":        func(f *Facts) { f.Token = "" },
		"install would write another binary":        func(f *Facts) { f.User.Wanted[0].Command += "2"; f.Programs[0].Path += "3" },
		"the daemon hands out no canary":            func(f *Facts) { f.Client = &control.Client{Socket: "/nonexistent/s"} },
		"install would not register the gate event": func(f *Facts) { f.User.Wanted = f.User.Wanted[1:] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			marker := filepath.Join(t.TempDir(), "ran")
			f := ready(t, script(t, ": >"+marker), 2, "canary")
			f.User.Wanted = slices.Clone(f.User.Wanted)
			spoil(f)
			c, r := RunCanary(context.Background(), f)
			if c.Ran || c.Why == "" || len(r.Findings) != 1 || r.Findings[0].ID != "canary.skipped" {
				t.Errorf("%+v %+v", c, r)
			}
			if _, err := os.Lstat(marker); err == nil {
				t.Error("the hook was run")
			}
		})
	}
}

func TestAnUnwiredCanaryHasNoToken(t *testing.T) {
	t.Parallel()
	seen := filepath.Join(t.TempDir(), "args")
	f := ready(t, script(t, `echo "$*" >>`+seen+"\n"+obedient), 2, "canary")
	f.Token, f.User.Installed, f.User.Handlers, f.User.Current = "", nil, nil, false
	c, r := RunCanary(context.Background(), f)
	if !c.Ran || c.Wired || r.Findings[0].ID != "canary.ok" {
		t.Errorf("%+v %+v", c, r)
	}
	b, err := os.ReadFile(seen)
	if want := "-s " + f.Hook.Socket + " -u 1000 -q " + f.Hook.Spool + " -t 140000 claude PreToolUse\n"; err != nil || string(b) != want+want {
		t.Errorf("%q, want %q twice (%v)", b, want, err)
	}
}
