// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tripline-sh/tripline/contrib/e2e/model"
)

// settle puts the programs into the home's own directory, as make up does, starts the daemon by auditctl and wires the client.
func (w *world) settle() (ctl string) {
	w.t.Helper()
	bin := filepath.Join(w.home, ".local/bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		w.t.Fatal(err)
	}
	for name, from := range map[string]string{"tripline-hook": "tripline-hook", "triplined": "triplined", "auditctl": "auditctl", "tripline": "auditctl"} {
		copyFile(w.t, filepath.Join(os.Getenv(binVar), from), filepath.Join(bin, name))
	}
	w.write(".config/tripline/tripline.yaml", "metrics: {listen: \"off\"}\n")
	ctl = filepath.Join(bin, "auditctl")
	w.t.Cleanup(func() {
		if pid := w.daemonPID(); pid > 0 {
			_ = syscall.Kill(pid, syscall.SIGTERM)
		}
	})
	w.command(w.home, nil, ctl, "start")
	w.command(w.home, nil, ctl, "install", "claude", "--yes")
	return ctl
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	// a child that another test starts meanwhile must not hold the file open: it could not be run then
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err == nil {
		_, err = io.Copy(out, in)
	}
	if err == nil {
		err = out.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// daemonPID is the process that the lock names, 0 if it does not live. Nobody here takes the status of a daemon that has ended.
func (w *world) daemonPID() int {
	b, err := os.ReadFile(filepath.Join(w.home, ".local/state/tripline/run/triplined.lock"))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || pid <= 0 {
		return 0
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil || !strings.Contains(string(stat), "(triplined) ") || strings.Contains(string(stat), "(triplined) Z") {
		return 0
	}
	return pid
}

// daemons counts the living processes that run this home's daemon.
func (w *world) daemons() int {
	n := 0
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(dirs) == 0 {
		w.t.Fatalf("no processes: %v", err)
	}
	for _, dir := range dirs {
		b, err := os.ReadFile(dir + "/cmdline") // empty for one that has ended
		if err == nil && strings.HasPrefix(string(b), filepath.Join(w.home, ".local/bin/triplined")+"\x00") {
			n++
		}
	}
	return n
}

func TestAnAgentsCallStartsTheDaemonThatIsAway(t *testing.T) {
	w := newWorld(t, map[string][]model.Step{"away": {
		{Text: "all at once", Calls: []model.Call{bash("echo one"), bash("ls"), bash("rm -rf src"), bash("echo two")}},
	}})
	w.settle()
	pid := w.daemonPID()
	if pid == 0 {
		t.Fatal("no daemon after start")
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	w.eventually("the daemon is gone", func() bool { return w.daemonPID() == 0 })
	w.claude("away", allowed...)
	if now := w.daemonPID(); now == 0 || now == pid {
		t.Fatalf("daemon %d after the session, %d before", now, pid)
	}
	if n := w.daemons(); n != 1 {
		t.Errorf("%d daemons run", n)
	}
	if !w.exists("shop/src/main.go") {
		t.Error("rm -rf src ran")
	}
	calls := w.calls()
	for _, c := range []string{"echo one", "ls", "echo two"} {
		if got := find(calls, c); len(got) != 1 || got[0].Outcome != "ran" {
			t.Errorf("%s: %+v", c, got)
		}
	}
	if got := find(calls, "rm -rf src"); len(got) != 1 || got[0].Rule != "delete.project" {
		t.Errorf("rm -rf src: %+v", got)
	}
	w.verify()
}

func TestStoppedStaysStoppedAndTheDenialNamesTheStartCommand(t *testing.T) {
	w := newWorld(t, map[string][]model.Step{"stopped": steps(bash("touch made"))})
	ctl := w.settle()
	out := w.command(w.home, nil, ctl, "stop")
	if !strings.Contains(out, "claude") {
		t.Errorf("stop does not say what happens to the agent:\n%s", out)
	}
	w.claude("stopped", allowed...)
	if w.exists("shop/made") || w.daemonPID() != 0 {
		t.Errorf("the call ran, or a hook undid the stop (daemon %d)", w.daemonPID())
	}
	var told string
	for _, r := range w.model.Results("stopped") {
		told += r.Text
	}
	for _, want := range []string{ctl + " start", "! " + ctl + " start"} {
		if !strings.Contains(told, want) {
			t.Errorf("the denial does not hold %q:\n%s", want, told)
		}
	}
	w.command(w.home, nil, ctl, "start")
	if _, errText, code := w.try(w.home, nil, ctl, "doctor"); code != 0 {
		t.Errorf("doctor after the start: exit %d\n%s", code, errText)
	}
}

// A person takes Tripline away under a live session: its next calls run, its settings are what they were, the log stays.
func TestDownUnderALiveSessionLetsItGoOn(t *testing.T) {
	day := steps(bash("touch before"), bash("touch after"), bash("touch later"))
	w := newWorld(t, map[string][]model.Step{"down": day})
	settings := filepath.Join(w.home, ".claude/settings.json")
	const foreign = "{ \"cleanupPeriodDays\" :99}\n\n"
	w.write(".claude/settings.json", foreign)
	w.settle()
	day[1].Before = func() {
		out, errText, code := w.try(w.home, nil, filepath.Join(repo(), "contrib/dev/down.sh"))
		if code != 0 {
			t.Errorf("down: exit %d\n%s%s", code, out, errText)
		}
		if !strings.Contains(out+errText, "1 live session") && !strings.Contains(out+errText, "let go") {
			t.Errorf("down does not speak of the live session:\n%s%s", out, errText)
		}
	}
	w.claude("down", allowed...)
	for _, name := range []string{"before", "after", "later"} {
		if !w.exists("shop/" + name) {
			t.Errorf("touch %s did not run", name)
		}
	}
	if b, err := os.ReadFile(settings); err != nil || string(b) != foreign {
		t.Errorf("the settings are %q, %v", b, err)
	}
	if w.exists(".local/bin/auditctl") || w.daemonPID() != 0 {
		t.Error("down left something running or installed")
	}
	if got := w.calls(); len(got) != 1 || commandOf(got[0]) != "touch before" {
		t.Errorf("on record: %+v", got)
	}
	w.verify()
}

// The process group of the shell that started everything is killed: the daemon lives.
func TestTheDaemonOutlivesTheProcessGroupOfItsStarter(t *testing.T) {
	w := newWorld(t, nil)
	ctl := w.settle()
	w.command(w.home, nil, ctl, "stop")
	cmd := exec.Command("/bin/sh", "-c", ctl+" start && echo up && sleep 300")
	cmd.Env, cmd.Dir = w.env(), "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	buf := make([]byte, 4096)
	for !strings.Contains(said.String(), "\nup\n") {
		n, err := pipe.Read(buf)
		said.Write(buf[:n])
		if err != nil {
			t.Fatalf("%v after %q", err, said.String())
		}
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	_ = cmd.Wait()
	if w.daemonPID() == 0 {
		t.Fatal("the daemon died with the group")
	}
	w.command(w.home, nil, ctl, "events", "today")
}

// The client skips a settings file with a comment as a whole, so that install must not say that it wired one.
func TestAFileThatTheClientSkipsIsNotWired(t *testing.T) {
	w := newWorld(t, map[string][]model.Step{"skipped": steps(bash("touch seen"))})
	witness := filepath.Join(w.home, "hook-ran")
	hook := `{"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [{"type": "command", "command": "touch ` + witness + `"}]}]}}`
	for name, c := range map[string]struct {
		text  string
		skips bool
	}{
		"plain":          {hook, false},
		"comment":        {hook + "\n// mine\n", true},
		"trailing comma": {strings.TrimSuffix(hook, "}") + ",}", true},
		"mark of order":  {"\ufeff" + strings.ReplaceAll(hook, ": ", " :\r\n"), false},
	} {
		w.write(".claude/settings.json", c.text)
		_ = os.Remove(witness)
		w.claude("skipped", allowed...)
		if ran := w.exists("hook-ran"); ran == c.skips {
			t.Errorf("%s: the client ran its hook: %v", name, ran)
		}
		_, errText, code := w.try(w.home, nil, "auditctl", "install", "claude", "--dry-run")
		if refused := code == 1 && strings.Contains(errText, "would not be guarded"); refused != c.skips || !refused && code != 0 {
			t.Errorf("%s: install: exit %d\n%s", name, code, errText)
		}
	}
}
