// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/contrib/e2e/model"
)

// runner plays a CI service: it hands values from step to step by files, and each step has nothing else of the others.
type runner struct {
	*world
	uid  int
	temp string // RUNNER_TEMP
}

// newRunner makes a home with settings of somebody else's, owned by uid.
func newRunner(t *testing.T, uid int, scenarios map[string][]model.Step) *runner {
	w := newWorld(t, scenarios)
	r := &runner{world: w, uid: uid, temp: filepath.Join(w.home, "_temp")}
	w.write(".claude/settings.json", jobSettings)
	w.write("_temp/env", "")
	w.write("_temp/output", "")
	w.write("_temp/summary", "")
	w.command(w.home, nil, "/bin/chown", "-R", strconv.Itoa(uid), w.home)
	w.command(w.home, nil, "/bin/chmod", "-R", "go-w", w.home)
	return r
}

const jobSettings = `{
    "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}
}
`

// step runs a program as a step of the job; env is what earlier steps put into GITHUB_ENV, and more.
func (r *runner) step(name string, extra []string, args ...string) (stdout, stderr string, code int) {
	r.t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(r.t.Context(), name, args...)
	cmd.Dir = r.project
	cmd.Env = append(r.env("RUNNER_TEMP="+r.temp, "GITHUB_ENV="+r.temp+"/env", "GITHUB_OUTPUT="+r.temp+"/output", "GITHUB_STEP_SUMMARY="+r.temp+"/summary"),
		append(strings.Fields(r.read("_temp/env")), extra...)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if r.uid != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(r.uid), Gid: uint32(r.uid)}
	}
	err := cmd.Run()
	if cmd.Process != nil { // what a step leaves in its group goes with it
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.t.Fatalf("%s: %v", name, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// ctl is a step with auditctl that must end with this code.
func (r *runner) ctl(code int, args ...string) (stdout, stderr string) {
	r.t.Helper()
	out, errs, got := r.step(filepath.Join(os.Getenv(binVar), "auditctl"), nil, args...)
	if got != code {
		r.t.Fatalf("auditctl %q: exit %d, want %d\n%s%s", args, got, code, out, errs)
	}
	return out, errs
}

// agent is the step in which the client runs.
func (r *runner) agent(scenario string) string {
	r.t.Helper()
	out, errs, _ := r.step(os.Getenv(clientVar), []string{"ANTHROPIC_API_KEY=sk-ant-api03-dummy", "ANTHROPIC_BASE_URL=" + r.model.URL(), "DISABLE_TELEMETRY=1",
		"DISABLE_ERROR_REPORTING=1", "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "IS_SANDBOX=1"},
		append([]string{"-p", "go on SCENARIO=" + scenario, "--output-format", "stream-json", "--verbose", "--permission-mode", "bypassPermissions"}, allowed...)...)
	return out + errs
}

func (r *runner) read(rel string) string {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.home, rel))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

// dead reports whether a process has ended; nobody may have waited for it.
func (r *runner) dead(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(b), ") Z ")
}

// output is a value that a step handed on.
func (r *runner) output(name string) string {
	r.t.Helper()
	for line := range strings.Lines(r.read("_temp/output")) {
		if v, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), name+"="); ok {
			return v
		}
	}
	r.t.Fatalf("no output %q", name)
	return ""
}

func TestAJobOfACIService(t *testing.T) {
	for _, uid := range []int{0, 1000} {
		t.Run("as uid "+strconv.Itoa(uid), func(t *testing.T) { wholeJob(t, uid) })
	}
}

func wholeJob(t *testing.T, uid int) {
	job := steps(
		bash("ls"),
		bash("rm -rf src"),
		model.Call{Tool: "Write", Input: map[string]any{"file_path": "PROJECT/notes.txt", "content": "a note\n"}},
		bash("echo done # ##[error]owned\n::error::owned"),
	)
	r := newRunner(t, uid, map[string][]model.Step{"job": job})
	job[2].Calls[0].Input.(map[string]any)["file_path"] = r.project + "/notes.txt"

	out, _ := r.ctl(0, "ci", "start")
	home := strings.TrimSpace(strings.TrimPrefix(out, "TRIPLINE_HOME="))
	if filepath.Dir(home) != r.temp || r.read("_temp/env") != "TRIPLINE_HOME="+home+"\n" || r.output("dir") != home {
		t.Errorf("the job is in %q, GITHUB_ENV %q, GITHUB_OUTPUT %q", home, r.read("_temp/env"), r.read("_temp/output"))
	}
	said := r.agent("job")
	if !r.exists("shop/src/main.go") || !r.exists("shop/notes.txt") {
		t.Errorf("rm -rf src ran, or the Write did not:\n%s", tail([]byte(said)))
	}

	key, artefacts := r.output("key"), filepath.Join(r.home, "artefacts")
	_, errs := r.ctl(4, "ci", "finish", "--dir", r.output("dir"), "--key", key, "--fail-on", "denied", "--out", artefacts,
		"--metrics-textfile", filepath.Join(r.temp, "tripline.prom"))
	if !strings.Contains(errs, "1 call was denied") {
		t.Errorf("finish said: %s", errs)
	}
	if got := r.read(".claude/settings.json"); got != jobSettings {
		t.Errorf("the settings are not restored: %q", got)
	}
	summary := r.read("_temp/summary")
	for _, want := range []string{"**4 calls were seen.** 1 denied", "The log verifies: **OK**", key, "| `Bash` | 3 | 2 | 0 | 0 | 1 | 0 |", "| `Write` | 1 | 1 |",
		"`rm -rf src`", "claude " + clientVersion} {
		if !strings.Contains(summary, want) {
			t.Errorf("the summary lacks %q:\n%s", want, summary)
		}
	}
	if strings.Contains(summary, "**Warning:**") || strings.Contains(summary, "##[") || strings.Contains(summary, "\n::") {
		t.Errorf("the summary holds a warning or a command:\n%s", summary)
	}
	var calls []record.Call
	for line := range strings.Lines(r.read("artefacts/calls.jsonl")) {
		var c record.Call
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		calls = append(calls, c)
	}
	if len(calls) != 4 || len(find(calls, "rm -rf src")) != 1 || find(calls, "rm -rf src")[0].Outcome != record.Blocked || find(calls, "ls")[0].Outcome != record.Ran {
		t.Errorf("calls: %+v", calls)
	}
	if metrics := r.read("_temp/tripline.prom"); !strings.Contains(metrics, "\ntripline_") || strings.Contains(metrics, "\ngo_") {
		t.Errorf("metrics: %.500s", metrics)
	}
	if !strings.Contains(r.read("artefacts/events.jsonl"), `"session.start"`) {
		t.Error("no session among the events")
	}
	r.ctl(0, "ci", "finish", "--fail-on", "never")
	r.ctl(6, "ci", "finish", "--key", strings.Replace(key, "+", "+0", 1)+"x")
	if _, err := os.Stat(home + "/run/hook.sock"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the daemon still has a socket: %v", err)
	}
}

// TestAJobWhoseDaemonDies: what gates is denied from then on, and the summary says that the daemon was gone.
func TestAJobWhoseDaemonDies(t *testing.T) {
	var r *runner
	r = newRunner(t, 0, map[string][]model.Step{"job": {
		{Calls: []model.Call{bash("echo before > before.txt")}},
		{Calls: []model.Call{bash("echo after > after.txt")}, Before: func() {
			pid, err := strconv.Atoi(strings.TrimSpace(r.read("_temp/job/run/triplined.lock")))
			if err != nil || syscall.Kill(pid, syscall.SIGKILL) != nil {
				t.Errorf("the daemon cannot be killed: %v", err)
			}
			r.eventually("the daemon is dead", func() bool { return r.dead(pid) })
		}},
	}})
	r.ctl(0, "ci", "start", "--dir", filepath.Join(r.temp, "job"))
	r.agent("job")
	if !r.exists("shop/before.txt") || r.exists("shop/after.txt") {
		t.Error("the call before the daemon's death did not run, or the one after it did")
	}
	r.ctl(4, "ci", "finish", "--fail-on", "alarm")
	if s := r.read("_temp/summary"); !strings.Contains(s, "the daemon was gone") || !strings.Contains(s, "**1 call was seen.**") || !strings.Contains(s, "**OK**") {
		t.Errorf("summary:\n%s", s)
	}
	if got := r.read(".claude/settings.json"); got != jobSettings {
		t.Errorf("the settings are not restored: %q", got)
	}
}

// TestHooksWiredByHand: the script and the table of hooks/scripts, with the places of an image replaced by ones of this test; the
// first hook starts the daemon. As managed settings they hold against a project that switches hooks off.
func TestHooksWiredByHand(t *testing.T) {
	t.Run("in the user's settings", func(t *testing.T) {
		w := newWorld(t, byHand())
		w.write(".claude/settings.json", w.handTable())
		w.handWired()
	})
	t.Run("as managed settings", func(t *testing.T) {
		w := newWorld(t, byHand())
		dir := ownEtc(t)
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "50-tripline.json"), []byte(w.handTable()), 0o644)); err != nil {
			t.Fatal(err)
		}
		w.write("shop/.claude/settings.json", `{"disableAllHooks": true, "hooks": {"PreToolUse": [{"matcher": "*", "hooks": [{"type": "command", "command": "exit 0"}]}]}}`)
		w.handWired()
	})
}

func byHand() map[string][]model.Step {
	return map[string][]model.Step{"job": steps(bash("ls"), bash("rm -rf src"), bash("echo two"))}
}

// ownEtc lays a directory of this test over /etc, and returns where the client looks for parts of managed settings.
func ownEtc(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	upper, work := filepath.Join(dir, "upper"), filepath.Join(dir, "work")
	if err := errors.Join(os.Mkdir(upper, 0o755), os.Mkdir(work, 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("overlay", "/etc", "overlay", 0, "lowerdir=/etc,upperdir="+upper+",workdir="+work); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount("/etc", unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return "/etc/claude-code/managed-settings.d"
}

// handTable is hooks.json with the places of this world.
func (w *world) handTable() string {
	w.t.Helper()
	table, err := os.ReadFile("../../hooks/scripts/claude/hooks.json")
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := os.ReadFile("../../hooks/scripts/claude/tripline.sh")
	if err != nil {
		w.t.Fatal(err)
	}
	w.write("tripline.sh", string(text))
	bin := os.Getenv(binVar)
	return strings.NewReplacer(
		`"/usr/local/lib/tripline/claude/tripline.sh"`, `"`+w.home+`/tripline.sh", "`+bin+`/tripline-hook"`,
		"/var/lib/tripline", w.home+"/t", "/usr/local/bin/triplined", bin+"/triplined", `--run-dir=`, `--metrics-listen=off", "--run-dir=`,
	).Replace(string(table))
}

// handWired runs the client and looks at what came of it.
func (w *world) handWired() {
	t, place := w.t, filepath.Join(w.home, "t")
	if err := os.MkdirAll(place, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b, err := os.ReadFile(filepath.Join(place, "run/triplined.lock"))
		if pid, perr := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && perr == nil && pid > 1 {
			_ = syscall.Kill(pid, syscall.SIGTERM)
		}
	})
	said := w.claude("job", append([]string{"--permission-mode", "bypassPermissions"}, allowed...)...)
	if !w.exists("shop/src/main.go") {
		t.Error("rm -rf src ran")
	}
	told := w.model.Results("job")
	if len(told) != 3 || told[0].IsError || !told[1].IsError || !strings.Contains(told[1].Text, "delete.project") || told[2].IsError {
		t.Fatalf("the model was told %+v\n%s", told, tail([]byte(said)))
	}
	if strings.Contains(told[1].Text, "tripline.sh") {
		t.Errorf("the model was shown the hook's command line: %s", told[1].Text)
	}
	out := w.command(w.home, nil, "/usr/bin/env", "TRIPLINE_HOME="+place, filepath.Join(os.Getenv(binVar), "auditctl"), "query", "today", "-o", "jsonl")
	if strings.Count(out, "\n") != 3 || !strings.Contains(out, `"outcome":"blocked"`) {
		t.Errorf("on record: %s", out)
	}
}

// TestTheTableIsAPluginsHooksFile lets the client itself judge hooks.json, inside a plugin.
func TestTheTableIsAPluginsHooksFile(t *testing.T) {
	w := newWorld(t, nil)
	table, err := os.ReadFile("../../hooks/scripts/claude/hooks.json")
	if err != nil {
		t.Fatal(err)
	}
	w.write("plugin/hooks/hooks.json", string(table))
	w.write("plugin/.claude-plugin/plugin.json", `{"name": "tripline", "version": "1.0.0", "description": "Judge and record tool calls", "author": {"name": "Tripline"}}`)
	out, errs, code := w.try(w.home, nil, os.Getenv(clientVar), "plugin", "validate", "--strict", filepath.Join(w.home, "plugin"))
	if code != 0 {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	w.write("plugin/hooks/hooks.json", strings.ReplaceAll(string(table), `"block"`, `"blok"`))
	if out, _, code := w.try(w.home, nil, os.Getenv(clientVar), "plugin", "validate", "--strict", filepath.Join(w.home, "plugin")); code == 0 {
		t.Errorf("a broken table is taken, so that the check proves nothing:\n%s", out)
	}
}
