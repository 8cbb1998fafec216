// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patient is a home with an install in it. Marker is a file that every foreign program in it makes when it runs.
type patient struct {
	t               *testing.T
	home, bin, cwd  string
	env             []string
	settings, state string
	marker          string
	daemon          *exec.Cmd
}

// newPatient installs the programs that build made, and wires the agent if the case says so. Programs are linked: they may be
// replaced and removed, but not written to.
func newPatient(t *testing.T, programs string) *patient {
	t.Helper()
	home, err := os.MkdirTemp("", "td") // short: sockets lie below
	if err != nil {
		t.Fatal(err)
	}
	if home, err = filepath.EvalSymlinks(home); err != nil {
		t.Fatal(err)
	}
	p := &patient{t: t, home: home, bin: filepath.Join(home, ".local/bin"), cwd: filepath.Join(home, "shop"), marker: filepath.Join(home, "ran"),
		settings: filepath.Join(home, ".claude/settings.json"), state: filepath.Join(home, ".local/state/tripline")}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	t.Cleanup(p.stop)
	p.env = []string{"HOME=" + home, "PATH=" + p.bin + ":/usr/bin:/bin", "TZ=UTC", "TRIPLINE_METRICS_LISTEN=off"}
	for _, dir := range []string{p.bin, p.cwd, filepath.Join(p.cwd, ".git"), filepath.Join(home, ".claude")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"tripline-hook", "triplined", "auditctl"} {
		p.link(filepath.Join(programs, name), filepath.Join(p.bin, name))
	}
	return p
}

func (p *patient) link(from, to string) {
	p.t.Helper()
	if os.Link(from, to) == nil {
		return
	}
	p.copy(from, to)
}

func (p *patient) copy(from, to string) {
	p.t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		p.t.Fatal(err)
	}
	// a child that another test starts meanwhile must not hold the file open: it could not be run then
	syscall.ForkLock.RLock()
	err = os.WriteFile(to, b, 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *patient) write(path, text string) string {
	p.t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.home, path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// trap is a program that nobody may run.
func (p *patient) trap(path string) string {
	p.t.Helper()
	path = p.write(path, "#!/bin/sh\n: >"+p.marker+"\nexit 0\n")
	if err := os.Chmod(path, 0o755); err != nil {
		p.t.Fatal(err)
	}
	return path
}

func (p *patient) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *patient) read(path string) string {
	p.t.Helper()
	b, err := os.ReadFile(path)
	p.must(err)
	return string(b)
}

// change edits the agent's settings, which must hold old.
func (p *patient) change(old, new string, n int) {
	p.t.Helper()
	text := p.read(p.settings)
	if !strings.Contains(text, old) {
		p.t.Fatalf("%q is not in the settings", old)
	}
	p.write(p.settings, strings.Replace(text, old, new, n))
}

// foreign adds a handler to the agent's settings, before ours.
func (p *patient) foreign(event, handler string) {
	p.t.Helper()
	p.change(`"`+event+`": [`, `"`+event+`": [{"hooks": [`+handler+`]},`, 1)
}

func (p *patient) run(args ...string) (stdout, stderr string, code int) {
	p.t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(filepath.Join(p.bin, "auditctl"), args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = p.env, p.cwd, &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		p.t.Fatal(err)
	}
	return out.String(), errs.String(), code
}

func (p *patient) start() {
	p.t.Helper()
	p.daemon = exec.Command(filepath.Join(p.bin, "triplined"))
	p.daemon.Env, p.daemon.Dir = p.env, "/"
	var log bytes.Buffer
	p.daemon.Stderr = &log
	p.must(p.daemon.Start())
	deadline := time.Now().Add(30 * time.Second)
	for {
		if _, _, code := p.run("status"); code != 7 {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("the daemon does not come up: %s", &log)
		}
		time.Sleep(20 * time.Millisecond) // a poll, bounded by the deadline above
	}
}

func (p *patient) stop() {
	if p.daemon != nil {
		_ = p.daemon.Process.Signal(syscall.SIGTERM)
		_ = p.daemon.Wait()
		p.daemon = nil
	}
}

func (p *patient) wire() {
	p.t.Helper()
	if out, errs, code := p.run("install", "claude", "--yes"); code != 0 {
		p.t.Fatalf("install: %s%s", out, errs)
	}
}

func (p *patient) setenv(kv string) { p.env = append(p.env, kv) } // the last one counts

// found is what doctor says.
type found struct {
	Outcome string
	Canary  struct {
		Ran, Wired bool
		Why        string
		Recorded   int
	}
	Problems []struct{ ID, Severity, Text, Command, Evidence string }
}

func (p *patient) doctor() (found, int) {
	p.t.Helper()
	out, errs, code := p.run("doctor", "-o", "json")
	var f found
	if err := json.Unmarshal([]byte(out), &f); err != nil {
		p.t.Fatalf("%v: %s%s", err, out, errs)
	}
	return f, code
}

// Broken set-ups, each with what doctor must call it and the command that must mend it. Notes are not counted, unless they
// are what the case is about.
func TestDoctorNamesWhatIsBrokenAndWhatMendsIt(t *testing.T) {
	t.Parallel()
	programs := build(t)
	plain := filepath.Join(t.TempDir(), "tripline-hook")
	if out, err := exec.Command("go", "build", "-o", plain, "../tripline-hook").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const denyX = "version: 1\nrules:\n  - id: x\n    deny: [\"Bash(x:*)\"]\n    match: [\"x y\"]\n    no_match: [\"z\"]\n"
	const ours = `{"type":"command","command":"HOOK","args":["-s","SOCK","-n","TOKEN","claude","PreToolUse"],"onFailure":"continue","timeout":1}`
	local := func(p *patient) string { // a copy of our handler, weaker
		return strings.NewReplacer("HOOK", p.bin+"/tripline-hook", "SOCK", p.state+"/run/hook.sock", "TOKEN", strings.TrimSpace(p.read(p.state+"/keys/install.token"))).Replace(ours)
	}
	shorter := "export TRIPLINE_HOME=/a/short/directory # yours, in every shell that asks"
	if dir := fmt.Sprintf("/run/user/%d", os.Getuid()); exists(dir) {
		shorter = "export XDG_RUNTIME_DIR=" + dir
	}
	for _, c := range []struct {
		name   string
		before func(*patient) // the daemon starts and the agent is wired
		down   bool           // no daemon runs when doctor comes
		bare   bool           // the agent is not wired
		after  func(*patient)
		want   string // id=command, for all findings above a note, and those with ! in front
		canary bool   // test calls are sent
	}{
		{name: "nothing", canary: true},
		{name: "nothing, and no agent is wired", bare: true, canary: true, want: "!wiring.none=auditctl install claude"},
		{name: "no daemon runs", down: true, want: "daemon.down=auditctl start"},
		{name: "a person stopped the daemon", down: true, want: "daemon.stopped=auditctl start",
			after: func(p *patient) { p.write(p.state+"/run/stopped", "") }},
		{name: "the control socket is gone", want: "daemon.mute=auditctl restart",
			after: func(p *patient) { p.must(os.Remove(p.state + "/run/control.sock")) }},
		{name: "the daemon's program was replaced since it started", canary: true, want: "daemon.replaced=auditctl restart",
			after: func(p *patient) {
				p.must(os.Remove(p.bin + "/triplined"))
				p.copy(programs+"/triplined", p.bin+"/triplined")
			}},
		{name: "another program stands in the hook's place", want: "programs.foreign=make up",
			after: func(p *patient) { p.must(os.Remove(p.bin + "/tripline-hook")); p.trap(p.bin + "/tripline-hook") }},
		{name: "/bin/true stands in the hook's place", want: "programs.foreign=make up",
			after: func(p *patient) {
				p.must(os.Remove(p.bin + "/tripline-hook"))
				p.link("/bin/true", p.bin+"/tripline-hook")
			}},
		{name: "another program of ours stands in the hook's place", want: "programs.foreign=make up",
			after: func(p *patient) {
				p.must(os.Remove(p.bin + "/tripline-hook"))
				p.link(programs+"/triplined", p.bin+"/tripline-hook")
			}},
		{name: "the hook is gone", want: "programs.missing=make up wiring.binary=make up",
			after: func(p *patient) { p.must(os.Remove(p.bin + "/tripline-hook")) }},
		{name: "others may write to the programs' directory", want: "programs.writable=chmod go-w BIN",
			after: func(p *patient) { p.must(os.Chmod(p.bin, 0o777)) }},
		{name: "the hook was built without its entry", canary: true, want: "entry.plain=make up",
			after: func(p *patient) { p.must(os.Remove(p.bin + "/tripline-hook")); p.link(plain, p.bin+"/tripline-hook") }},
		{name: "hooks are switched off in the user's settings", canary: false, want: "wiring.differs= switches.disable_all=${EDITOR:-vi} SETTINGS",
			after: func(p *patient) {
				p.change(`{`, `{"disableAllHooks": true,`, 1)
				p.change(`"timeout": 150`, `"timeout": 151`, 1)
			}},
		{name: "hooks are switched off in the user's settings only", canary: true, want: "switches.disable_all=${EDITOR:-vi} SETTINGS",
			after: func(p *patient) { p.change(`{`, `{"disableAllHooks": true,`, 1) }},
		{name: "hooks are switched off in the project", canary: true, want: "switches.disable_all=${EDITOR:-vi} HOME/shop/.claude/settings.local.json",
			after: func(p *patient) { p.write("shop/.claude/settings.local.json", `{"disableAllHooks":true}`) }},
		{name: "the project blinds commands", canary: true, want: "switches.blinding=${EDITOR:-vi} HOME/shop/.claude/settings.json",
			after: func(p *patient) {
				p.write("shop/.claude/settings.json", `{"env":{"BASH_ENV":"./x","LD_PRELOAD":"./y","GOMEMLIMIT":"x","EDITOR":"z"}}`)
			}},
		{name: "the project blinds commands, seen from below", canary: true, want: "switches.blinding=${EDITOR:-vi} HOME/shop/.claude/settings.json",
			after: func(p *patient) {
				p.write("shop/.claude/settings.json", `{"env":{"PATH":"./bin"}}`)
				p.write("shop/src/deep/x", "")
				p.cwd = filepath.Join(p.cwd, "src/deep")
			}},
		{name: "the project has a copy of our handler", canary: true, want: "foreign.project=${EDITOR:-vi} HOME/shop/.claude/settings.json",
			after: func(p *patient) {
				p.write("shop/.claude/settings.json", `{"hooks":{"PreToolUse":[{"matcher":"*","hooks":[`+local(p)+`]}]}}`)
			}},
		{name: "a handler runs our hook through a shell", want: "foreign.user=${EDITOR:-vi} SETTINGS",
			after: func(p *patient) {
				p.foreign("PreToolUse", `{"type":"command","command":": >`+p.marker+`; `+p.bin+`/tripline-hook claude PreToolUse"}`)
			}},
		{name: "a handler runs our hook with one argument more", want: "foreign.user=${EDITOR:-vi} SETTINGS",
			after: func(p *patient) { p.foreign("PreToolUse", strings.Replace(local(p), `["-s"`, `["-x","-s"`, 1)) }},
		{name: "a foreign handler stands beside ours", canary: true,
			after: func(p *patient) {
				p.foreign("PreToolUse", `{"type":"command","command":"`+p.trap("foreign.sh")+`"}`)
			}},
		{name: "our path was replaced by another of that name", want: "wiring.differs=auditctl install claude",
			after: func(p *patient) { p.change(p.bin+"/tripline-hook", p.trap("evil/tripline-hook"), -1) }},
		{name: "our path was replaced for one event", want: "wiring.differs=auditctl install claude",
			after: func(p *patient) { p.change(p.bin+"/tripline-hook", p.trap("evil/tripline-hook"), 1) }},
		{name: "the entries would start another daemon", want: "wiring.differs=auditctl install claude",
			after: func(p *patient) { p.change(p.bin+"/triplined", p.trap("evil/triplined"), -1) }},
		{name: "a copy of our entry runs in the background", want: "wiring.differs=auditctl install claude",
			after: func(p *patient) { p.change(`"timeout": 150`, `"async": true, "timeout": 150`, 1) }},
		{name: "an entry has another matcher", want: "wiring.differs=auditctl install claude",
			after: func(p *patient) { p.change(`"matcher": "*"`, `"matcher": "Write"`, 1) }},
		{name: "a gate event does not block on failure", want: "wiring.differs=auditctl install claude",
			after: func(p *patient) { p.change(`"onFailure": "block"`, `"onFailure": "continue"`, 1) }},
		{name: "the entries ask another socket", want: "wiring.differs=auditctl install claude",
			after: func(p *patient) { p.change("/run/hook.sock", "/run/fake.sock", -1) }},
		{name: "events are not registered", want: "wiring.differs=auditctl install claude",
			after: func(p *patient) { p.change(`"PreToolUse": [`, `"WorktreeCreate": [`, 1) }},
		{name: "the token file holds another token", want: "wiring.differs=auditctl install claude",
			after: func(p *patient) { p.write(p.state+"/keys/install.token", strings.Repeat("0f", 16)+"\n") }},
		{name: "the token file is gone", want: "wiring.token=auditctl install claude",
			after: func(p *patient) { p.must(os.Remove(p.state + "/keys/install.token")) }},
		{name: "the settings are no JSON", want: "wiring.unreadable=${EDITOR:-vi} SETTINGS",
			after: func(p *patient) { p.write(p.settings, `{"hooks":`) }},
		{name: "the settings are a pipe", want: "wiring.unreadable=${EDITOR:-vi} SETTINGS",
			after: func(p *patient) { p.must(os.Remove(p.settings)); p.must(syscall.Mkfifo(p.settings, 0o600)) }},
		{name: "an entry of somebody else makes the agent drop the file", canary: true, want: "wiring.dropped=${EDITOR:-vi} SETTINGS",
			after: func(p *patient) { p.foreign("PreToolUse", `{"type":"command","command":"x","onFailure":"abort"}`) }},
		{name: "others may write to the settings", want: "wiring.mode=chmod go-w SETTINGS",
			after: func(p *patient) { p.must(os.Chmod(p.settings, 0o666)) }},
		{name: "the settings are a link out of their folder", want: "wiring.link=ls -l SETTINGS",
			after: func(p *patient) {
				p.must(os.Rename(p.settings, p.home+"/elsewhere.json"))
				p.must(os.Symlink(p.home+"/elsewhere.json", p.settings))
			}},
		{name: "others may write to the state", canary: true, want: "files.writable=chmod 700 STATE",
			after: func(p *patient) { p.must(os.Chmod(p.state, 0o777)) }},
		{name: "others may read the signing key", canary: true, want: "files.readable=chmod 600 STATE/keys/log.key",
			after: func(p *patient) { p.must(os.Chmod(p.state+"/keys/log.key", 0o644)) }},
		{name: "others may write to the rules", canary: true, want: "files.writable=chmod 600 HOME/.config/tripline/rules.d/mine.yaml",
			after: func(p *patient) {
				p.must(os.Chmod(p.write(".config/tripline/rules.d/mine.yaml", denyX), 0o666))
			}},
		{name: "a rules file does not load", canary: true, want: "rules.broken=${EDITOR:-vi} HOME/.config/tripline/rules.d/mine.yaml",
			after: func(p *patient) {
				p.write(".config/tripline/rules.d/mine.yaml", "version: 1\nrules:\n  - id: x\n    denny: [\"Bash(x)\"]\n")
			}},
		{name: "loosened rules wait", canary: true, want: "rules.loosening=auditctl rules reload --dry-run",
			before: func(p *patient) {
				p.write(".config/tripline/rules.d/mine.yaml", denyX)
			},
			after: func(p *patient) {
				p.must(os.Remove(p.home + "/.config/tripline/rules.d/mine.yaml"))
				p.until("loosening", func() bool { out, _, _ := p.run("status"); return strings.Contains(out, "1 loosening change") })
			}},
		{name: "the configuration does not load", down: true, want: "daemon.down=auditctl start config.broken=${EDITOR:-vi} HOME/.config/tripline/tripline.yaml",
			after: func(p *patient) { p.write(".config/tripline/tripline.yaml", "mode: chaos\n") }},
		{name: "the metrics' port is taken", canary: true, want: "metrics.port=${EDITOR:-vi} HOME/.config/tripline/tripline.yaml && auditctl restart",
			before: func(p *patient) {
				ln, err := net.Listen("tcp", "127.0.0.1:0")
				p.must(err)
				p.t.Cleanup(func() { ln.Close() })
				p.env = slices.DeleteFunc(p.env, func(kv string) bool { return strings.HasPrefix(kv, "TRIPLINE_METRICS") })
				p.write(".config/tripline/tripline.yaml", fmt.Sprintf("metrics:\n  listen: %s\n", ln.Addr()))
			}},
		{name: "the socket's path is too long", down: true, bare: true, want: "daemon.down=auditctl start sockets.long=" + shorter,
			before: func(p *patient) { p.setenv("XDG_STATE_HOME=" + p.home + "/" + strings.Repeat("d", 90)) }},
		{name: "the clock was ahead", down: true, want: "daemon.down=auditctl start clock.behind=date -u",
			after: func(p *patient) {
				later := time.Now().Add(48 * time.Hour)
				logs, err := filepath.Glob(p.state + "/log/*.db")
				if err != nil || len(logs) == 0 {
					p.t.Fatal("no log")
				}
				p.must(os.Chtimes(logs[0], later, later))
			}},
		{name: "events wait in the spool", down: true, want: "daemon.down=auditctl start spool.pending=auditctl start",
			after: func(p *patient) { p.write(p.state+"/spool/1-2-3", "x") }},
		{name: "PATH finds the kernel's tool first", canary: true, want: "path.kernel=export PATH=\"$HOME/.local/bin:$PATH\"",
			after: func(p *patient) { p.trap("sbin/auditctl"); p.setenv("PATH=" + p.home + "/sbin:" + p.bin) }},
		{name: "PATH finds the kernel's tool first, and ours by its other name", canary: true, want: "!path.kernel=export PATH=\"$HOME/.local/bin:$PATH\"",
			after: func(p *patient) {
				p.link(programs+"/auditctl", p.bin+"/tripline")
				p.trap("sbin/auditctl")
				p.setenv("PATH=" + p.home + "/sbin:" + p.bin)
			}},
		{name: "PATH finds another install first", canary: true, want: "path.copy=export PATH=\"$HOME/.local/bin:$PATH\"",
			after: func(p *patient) {
				p.must(os.Mkdir(p.home+"/other", 0o700))
				p.copy(programs+"/auditctl", p.home+"/other/auditctl")
				p.setenv("PATH=" + p.home + "/other:" + p.bin)
			}},
		{name: "PATH finds nothing of ours", canary: true, want: "path.missing=export PATH=\"$HOME/.local/bin:$PATH\"",
			after: func(p *patient) { p.setenv("PATH=/nonexistent:" + p.home) }},
		{name: "the agent is too old", canary: true, want: "agent.old=claude update",
			after: func(p *patient) {
				p.trap(".local/share/claude/versions/2.1.42")
				p.must(os.Symlink(p.home+"/.local/share/claude/versions/2.1.42", p.bin+"/claude"))
			}},
		{name: "the agent does not know onFailure", canary: true, want: "agent.fails_open=claude update",
			after: func(p *patient) {
				p.trap("lib/node_modules/@anthropic-ai/claude-code/cli.js")
				p.write("lib/node_modules/@anthropic-ai/claude-code/package.json", `{"name":"@anthropic-ai/claude-code","version":"2.1.197"}`)
				p.must(os.Symlink(p.home+"/lib/node_modules/@anthropic-ai/claude-code/cli.js", p.bin+"/claude"))
			}},
		{name: "an old agent wrote the newest transcript", canary: true, want: "agent.old=claude update",
			after: func(p *patient) {
				p.write(".claude/projects/-shop/1.jsonl", `{"type":"user","version":"2.0.1"}`+"\n")
			}},
		{name: "nothing tells the agent's version", canary: true, want: "!agent.unknown=claude --version",
			after: func(p *patient) { p.trap(".local/bin/claude") }},
		{name: "this shell starts the agent without hooks", canary: true, want: "switches.env=unset CLAUDE_CODE_SIMPLE",
			after: func(p *patient) { p.setenv("CLAUDE_CODE_SIMPLE=1") }},
		{name: "this shell starts the agent with other settings", canary: true, want: "switches.config_dir=unset CLAUDE_CONFIG_DIR !wiring.none=auditctl install claude",
			after: func(p *patient) { p.write("other/x", ""); p.setenv("CLAUDE_CONFIG_DIR=" + p.home + "/other") }},
		{name: "the service manager starts what is not there", canary: true, want: "service.unit=auditctl restart",
			after: func(p *patient) {
				p.write(".config/systemd/user/tripline.service", "[Service]\nExecStart=\"/opt/gone/triplined\" --x\n")
			}},
		{name: "the service manager listens elsewhere", canary: true, want: "service.unit=auditctl restart",
			after: func(p *patient) {
				p.write(".config/systemd/user/tripline.service", "[Service]\nExecStart=\""+p.bin+"/triplined\"\n")
				p.write(".config/systemd/user/tripline-hook.socket", "[Socket]\nListenStream=/run/user/0/tripline/hook.sock\n")
			}},
		{name: "an agent's shell", canary: true, want: "!shell.agent=",
			after: func(p *patient) { p.setenv("CLAUDECODE=1") }},
		{name: "names that would move a terminal", canary: true, want: "switches.blinding=${EDITOR:-vi} 'HOME/\\u001b[2J\u202eevil'/.claude/settings.json",
			after: func(p *patient) {
				p.cwd = filepath.Join(p.home, "\x1b[2J\u202eevil")
				p.write(p.cwd+"/.claude/settings.json", `{"env":{"LD_\u001b]0;x\u0007":"1"}}`)
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t, programs)
			if c.before != nil {
				c.before(p)
			}
			if !c.down || !c.bare {
				p.start()
			}
			if !c.bare {
				p.wire()
			}
			if c.down {
				p.stop()
			}
			if c.after != nil {
				c.after(p)
			}
			f, code := p.doctor()
			p.check(f, code, c.want)
			if f.Canary.Ran != c.canary || c.canary && (f.Canary.Recorded != 2 || f.Canary.Wired == c.bare && c.name != "this shell starts the agent with other settings") {
				t.Errorf("canary %+v", f.Canary)
			}
			out, errs, _ := p.run("doctor", "-v")
			clean(t, out+errs)
			out, errs, _ = p.run("status")
			clean(t, out+errs)
			if _, err := os.Lstat(p.marker); err == nil {
				t.Error("something was run that install did not write")
			}
		})
	}
}

// check compares what was found with want, a list of id=command. A finding with ! in front is a note.
func (p *patient) check(f found, code int, want string) {
	p.t.Helper()
	fill := strings.NewReplacer("TRIPLINE_HOME", "TRIPLINE_HOME", "HOME", p.home, "SETTINGS", p.settings, "STATE", p.state, "BIN", p.bin)
	var ids []string
	problem := false
	for _, one := range splitWant(want) {
		id, command, _ := strings.Cut(one, "=")
		note := strings.HasPrefix(id, "!")
		id = strings.TrimPrefix(id, "!")
		if !note {
			ids = append(ids, id)
		}
		hit := false
		for _, q := range f.Problems {
			if q.ID != id {
				continue
			}
			hit = true
			if note != (q.Severity == "note") {
				p.t.Errorf("%s is a %s", id, q.Severity)
			}
			// paths are compared as far as they are plain; hostile ones only have to be there
			if want := strings.ReplaceAll(command, "'$HOME", "'HOME"); !strings.Contains(want, "\\u") && want != "" && q.Command != expand(fill, want) {
				p.t.Errorf("%s: the command is %q, want %q", id, q.Command, expand(fill, want))
			}
		}
		if !hit {
			p.t.Errorf("%s was not found", id)
		}
	}
	var got []string
	for _, q := range f.Problems {
		problem = problem || q.Severity == "problem"
		if q.Severity != "note" && !slices.Contains(got, q.ID) {
			got = append(got, q.ID)
		}
	}
	slices.Sort(ids)
	slices.Sort(got)
	if !slices.Equal(ids, got) {
		p.t.Errorf("found %q, want %q\n%+v", got, ids, f.Problems)
	}
	if problem != (code == 1) || problem != (f.Outcome == "problem") || code > 1 {
		p.t.Errorf("exit code %d, outcome %s", code, f.Outcome)
	}
}

// expand fills in paths, and leaves the shell's own $HOME alone.
func expand(fill *strings.Replacer, command string) string {
	parts := strings.Split(command, "$HOME")
	for i := range parts {
		parts[i] = fill.Replace(parts[i])
	}
	return strings.Join(parts, "$HOME")
}

// splitWant splits at the spaces before an id.
func splitWant(want string) []string {
	var out []string
	for _, word := range strings.Fields(want) {
		id, _, ok := strings.Cut(word, "=")
		if ok && strings.Contains(id, ".") && !strings.ContainsAny(id, "/$") && len(out) >= 0 && !strings.HasPrefix(id, "XDG") {
			out = append(out, word)
		} else if len(out) > 0 {
			out[len(out)-1] += " " + word
		}
	}
	return out
}

func (p *patient) until(what string, ok func() bool) {
	p.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			p.t.Fatalf("%s: waited in vain", what)
		}
		time.Sleep(20 * time.Millisecond) // a poll, bounded by the deadline above
	}
}

// clean fails if a text for people could move a terminal, or has a line that wraps where it need not.
func clean(t *testing.T, text string) {
	t.Helper()
	for _, r := range text {
		if r != '\n' && (r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e) {
			t.Errorf("%U in %q", r, text)
			return
		}
	}
}
