// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tripline-sh/tripline/contrib/e2e/model"
)

// previous puts the previous release's programs into the home's own directory.
func (w *world) previous() {
	w.t.Helper()
	from := filepath.Join(os.Getenv(binVar), "previous")
	if _, err := os.Stat(filepath.Join(from, "auditctl")); err != nil {
		w.t.Skipf("SKIPPED: NO UPGRADE WAS TESTED: the previous release (%.7s) could not be built, its history is needed: git fetch --unshallow", previousRelease)
	}
	if err := os.MkdirAll(filepath.Join(w.home, ".local/bin"), 0o755); err != nil {
		w.t.Fatal(err)
	}
	for name, file := range map[string]string{"tripline-hook": "tripline-hook", "triplined": "triplined", "auditctl": "auditctl", "tripline": "auditctl"} {
		to := filepath.Join(w.home, ".local/bin", name)
		copyFile(w.t, filepath.Join(from, file), to+".new")
		if err := os.Rename(to+".new", to); err != nil {
			w.t.Fatal(err)
		}
	}
	w.write(".config/tripline/tripline.yaml", "metrics: {listen: \"off\"}\n")
	if err := os.Chmod(filepath.Join(w.home, ".config/tripline"), 0o700); err != nil { // doctor minds
		w.t.Fatal(err)
	}
}

// run starts the daemon of the home's own directory as the previous release's scripts do, and waits until it answers.
func (w *world) run() {
	w.t.Helper()
	cmd := exec.Command(filepath.Join(w.home, ".local/bin/triplined"))
	cmd.Env, cmd.Dir, cmd.SysProcAttr = w.env(), "/", &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { // ends with the daemon, which the cleanup ends
		defer close(ended)
		_ = cmd.Wait()
	}()
	w.t.Cleanup(func() {
		if pid := w.daemonPID(); pid > 0 {
			_ = syscall.Kill(pid, syscall.SIGTERM)
		}
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
	})
	w.eventually("the daemon answers", func() bool {
		_, _, code := w.try("/", nil, w.ctl(), "approvals", "list", "-o", "json")
		return code == 0
	})
}

func (w *world) ctl() string { return filepath.Join(w.home, ".local/bin/auditctl") }

// up runs make up's script. Builds with other tags are other bytes.
func (w *world) up(tags string, args ...string) string {
	w.t.Helper()
	path, err := exec.LookPath("go")
	if err != nil {
		path = "/usr/local/go/bin/go"
	}
	cmd := exec.CommandContext(w.t.Context(), filepath.Join(repo(), "contrib/dev/up.sh"), args...)
	cmd.Env = w.env("PATH="+filepath.Join(w.home, ".local/bin")+":"+filepath.Dir(path)+":/usr/local/bin:/usr/bin:/bin", "GOPROXY=off", "GOTOOLCHAIN=local",
		"GOFLAGS=-buildvcs=false -tags="+tags, goVar+"="+os.Getenv(goVar), modVar+"="+os.Getenv(modVar))
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Errorf("up: %v\n%s", err, out)
	}
	return string(out)
}

// cards are the approvals that wait.
func (w *world) cards() (ids []string) {
	out, _, _ := w.try(w.home, nil, w.ctl(), "approvals", "list", "-o", "json")
	var cards []struct{ ID string }
	_ = json.Unmarshal([]byte(out), &cards)
	for _, c := range cards {
		ids = append(ids, c.ID)
	}
	return ids
}

// noTamper asserts that nothing was ever taken for tampering and that nothing is wrong now.
func (w *world) noTamper() {
	w.t.Helper()
	if out, errText, code := w.try(w.home, nil, w.ctl(), "events", "--kind", "tamper", "today"); code != 3 {
		w.t.Errorf("tamper events: exit %d\n%s%s", code, out, errText)
	}
	if out, errText, code := w.try(w.home, nil, w.ctl(), "doctor"); code != 0 {
		w.t.Errorf("doctor: exit %d\n%s%s", code, out, errText)
	}
}

// Two sessions are live while the previous release gives way to this one, and this one to the next: one has a call that waits for a
// person, the other makes one call after the other. The new entries come under both.
func TestAnUpgradeUnderLiveSessionsLosesNothingAndRaisesNoAlarm(t *testing.T) {
	deploy := bash("./deploy.sh prod")
	day := steps(bash("touch first"), deploy, bash("rm -rf src"), deploy, bash("touch revived"), bash("touch next"), bash("rm -rf src"))
	const many = 60
	var busy []model.Step
	for i := range many {
		busy = append(busy, steps(bash(fmt.Sprintf("touch busy-%d", i)))...)
	}
	w := newWorld(t, map[string][]model.Step{"day": day, "busy": busy})
	w.previous()
	w.write("shop/deploy.sh", "#!/bin/sh\necho deployed >> deployed.txt\n")
	if err := os.Chmod(filepath.Join(w.project, "deploy.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.write(".config/tripline/rules.d/deploys.yaml", "version: 1\nrules:\n  - id: deploys\n    ask: [\"Bash(./deploy.sh:*)\"]\n    gate: hold\n    why: deploys reach customers\n")
	w.run()
	w.command(w.home, nil, w.ctl(), "install", "claude", "--yes")

	var wg sync.WaitGroup
	defer wg.Wait()
	var cards []string
	begun, upgraded := make(chan struct{}), make(chan struct{})
	busy[10].Before = func() { close(begun) }
	busy[many-5].Before = func() { <-upgraded }
	day[1].Before = func() {
		wg.Go(func() {
			defer close(upgraded)
			w.eventually("a card waits", func() bool { cards = w.cards(); return len(cards) == 1 })
			<-begun
			if said := w.up("", "claude"); !strings.Contains(said, "--on-demand") || !strings.Contains(said, "nothing starts it again") {
				t.Errorf("up does not tell what the entries lack, or does not mend them:\n%s", said)
			}
		})
	}
	day[3].Before = func() {
		<-upgraded
		if now := w.cards(); !slices.Equal(now, cards) {
			t.Errorf("cards %q after the upgrade, %q before", now, cards)
		}
		w.command(w.home, nil, w.ctl(), "approvals", "approve", cards[0], "--reason", "go ahead")
	}
	day[4].Before = func() { // when the live session has taken the new entries up, they start a daemon that is away
		session := find(w.calls(), "touch first")[0].Session
		w.eventually("the session has told of its new entries", func() bool {
			out, _, _ := w.try(w.home, nil, w.ctl(), "events", "today", "--kind", "config.settings", "-o", "jsonl")
			return slices.ContainsFunc(strings.Split(out, "\n"), func(line string) bool {
				return strings.Contains(line, session) && strings.Contains(line, "announced by a person")
			})
		})
		_ = syscall.Kill(w.daemonPID(), syscall.SIGKILL)
		w.eventually("the daemon is gone", func() bool { return w.daemonPID() == 0 })
	}
	day[5].Before = func() { w.up("next", "claude") }
	wg.Go(func() { w.claude("busy", allowed...) })
	w.claude("day", allowed...)
	wg.Wait()

	for _, name := range []string{"first", "revived", "next", "src/main.go"} {
		if !w.exists("shop/" + name) {
			t.Errorf("%s is not there", name)
		}
	}
	if got, err := os.ReadFile(filepath.Join(w.project, "deployed.txt")); err != nil || string(got) != "deployed\n" {
		t.Errorf("deployed.txt = %q, %v; want one run", got, err)
	}
	calls := w.calls()
	denied := 0
	for i := range many {
		name := fmt.Sprintf("busy-%d", i)
		got := find(calls, "touch "+name)
		if len(got) != 1 {
			t.Errorf("touch %s is on record %d times", name, len(got))
			continue
		}
		if ran := w.exists("shop/" + name); ran != (got[0].Outcome == "ran") {
			t.Errorf("touch %s ran: %v, on record: %+v", name, ran, got[0])
		} else if !ran {
			denied++
		}
	}
	// the entries of the previous release start no daemon: what comes in the moment between the two is refused, and only that
	t.Logf("%d of %d calls came between the daemons", denied, many)
	if denied > many/4 {
		t.Errorf("%d of %d calls were refused", denied, many)
	}
	w.noTamper()
	w.verify()
}

// A log goes to this release, back to the previous one and here again, and stays one log.
func TestALogGoesThroughADowngrade(t *testing.T) {
	w := newWorld(t, map[string][]model.Step{"one": steps(bash("touch one")), "two": steps(bash("touch two"), bash("rm -rf src")), "three": steps(bash("touch three"))})
	w.previous()
	w.run()
	w.command(w.home, nil, w.ctl(), "install", "claude", "--yes")
	w.up("", "claude")
	w.claude("one", allowed...)
	w.command(w.home, nil, w.ctl(), "stop")

	w.previous()
	w.run()
	w.claude("two", allowed...) // the older hook does not know its newer arguments
	if w.exists("shop/two") {
		t.Error("a call ran unjudged")
	}
	w.command(w.home, nil, w.ctl(), "install", "claude", "--yes")
	w.claude("two", allowed...)
	w.command(w.home, nil, w.ctl(), "verify")
	w.command(w.home, nil, w.ctl(), "query", "today")
	w.command(w.home, nil, w.ctl(), "events", "today")

	w.up("next", "claude")
	w.claude("three", allowed...)
	for _, name := range []string{"one", "two", "three", "src/main.go"} {
		if !w.exists("shop/" + name) {
			t.Errorf("%s is not there", name)
		}
	}
	calls := w.calls()
	for _, c := range []string{"touch one", "touch two", "rm -rf src", "touch three"} {
		if got := find(calls, c); len(got) != 1 {
			t.Errorf("%s: %+v", c, got)
		}
	}
	// The previous release kept no account of its entries: that they were changed meanwhile is told, and over with the next install.
	if out, errText, code := w.try(w.home, nil, w.ctl(), "doctor"); code != 0 {
		t.Errorf("doctor: exit %d\n%s%s", code, out, errText)
	}
	w.verify()
}
