// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mattn/go-runewidth"

	"github.com/tripline-sh/tripline/cmd/auditctl/internal/doctor"
	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/daemon/control"
	"github.com/tripline-sh/tripline/hooks/agents/claude"
	"github.com/tripline-sh/tripline/hooks/install"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// tuesday is when all of these tests happen.
var tuesday = time.Date(2026, 11, 24, 12, 17, 0, 0, time.FixedZone("CET", 3600))

// screenFacts are those of a machine on which all is well.
func screenFacts(t *testing.T) *doctor.Facts {
	t.Helper()
	places, err := config.FindPlaces(func(name string) string { return map[string]string{"HOME": "/home/dev"}[name] })
	if err != nil {
		t.Fatal(err)
	}
	last := tuesday.Add(-12 * time.Second)
	f := &doctor.Facts{
		Inputs: doctor.Inputs{Self: "auditctl", Exe: "/home/dev/.local/bin/auditctl", Version: "0.3.0", UID: 1000, Now: tuesday, Places: places,
			Getenv: func(string) string { return "" }},
		Config: config.Default(),
		Status: &control.Status{
			Version: "0.3.0", PID: 4242, Started: tuesday.Add(-3*time.Hour - 5*time.Minute), Mode: "guard", Profile: "standard", OnDown: "deny",
			MetricsAddr: "127.0.0.1:9717", Size: 18204, RuleSet: "3fa9c1d2aabbccdd", Rules: 69, StartedBy: "systemd",
			Verified: &control.Checked{Size: 18100, At: tuesday.Add(-2 * time.Hour)}, Anchored: 17012,
			Agents: []control.AgentStatus{{Agent: "claude", LastEvent: &last, Sessions: 1}},
			Live:   []control.LiveSession{{Agent: "claude", Session: "11111111-aaaa-bbbb-cccc-222222222222", PID: 77, Cwd: "/home/dev/shop", LastEvent: last}},
		},
		Disk: doctor.Disk{Path: "/home/dev/.local/state/tripline/log", Kind: "ext4", Free: 120e9, Total: 500e9},
		Log:  doctor.LogFacts{Segments: 3, Bytes: 12_345_678, Last: last, Day: "2026-11-24"},
	}
	f.User.Path = "/home/dev/.claude/settings.json"
	f.User.Current = true
	f.Agent.Installed, f.Agent.Found = claude.Version{Major: 2, Minor: 1, Patch: 332}, true
	f.Token = "00112233445566778899aabbccddeeff"
	f.User.Wanted, err = install.Wanted(install.Options{Path: f.User.Path, Binary: "/home/dev/.local/bin/tripline-hook",
		Socket: places.HookSocket, Spool: places.SpoolDir, ServerUID: 1000, Token: f.Token})
	if err != nil {
		t.Fatal(err)
	}
	f.User.Installed = f.User.Wanted
	for _, e := range f.User.Wanted {
		f.User.Handlers = append(f.User.Handlers, install.Handler{Event: e.Under, Ours: true})
	}
	return f
}

// screen is what status prints about facts, without the check of wiring, which looks for programs on this machine.
func screen(t *testing.T, f *doctor.Facts, env Env) (string, *statusView) {
	t.Helper()
	var checks []doctor.Check
	for _, c := range doctor.Checks() {
		if c.Quick && (c.ID != "wiring" || !f.User.Wired()) {
			checks = append(checks, c)
		}
	}
	var out bytes.Buffer
	a := &app{Env: env}
	if a.Getenv == nil {
		a.Getenv = func(string) string { return "" }
	}
	v := newStatusView(f, doctor.Findings(doctor.Run(context.Background(), checks, f)))
	if err := a.printStatus(&out, v); err != nil {
		t.Fatal(err)
	}
	return out.String(), v
}

func TestStatusScreens(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(f *doctor.Facts){
		"all-well": func(*doctor.Facts) {},
		"trouble": func(f *doctor.Facts) {
			s := f.Status
			s.Mode, s.Pending, s.RulesError = "observe", 2, "/home/dev/.config/tripline/rules.d/mine.yaml:3:5: unknown key denny"
			s.Alarms = []string{"the hooks of claude were taken out of /home/dev/.claude/settings.json", "a call that was denied ran all the same"}
			s.Verified, s.Anchored, s.MetricsAddr, s.Version = nil, 0, "", "0.2.0"
			s.Started = tuesday.AddDate(0, 0, -9)
			s.Live = nil
			f.Listen, f.PortTaken = f.Config.MetricsListen, true
			f.Waiting = []control.Approval{{Requested: tuesday.Add(-4 * time.Minute)}, {Requested: tuesday.Add(-time.Hour)}}
			f.Disk.Free = 31e6
		},
		"loosening": func(f *doctor.Facts) { f.Status.Loosening = []string{"rule x removed", "mode: guard -> observe"} },
		"down": func(f *doctor.Facts) {
			f.Status, f.StatusErr = nil, &control.UnreachableError{Socket: f.Places.ControlSocket, Err: errors.New("no such file")}
		},
		"down-fresh": func(f *doctor.Facts) {
			f.Status, f.StatusErr = nil, &control.UnreachableError{Socket: f.Places.ControlSocket, Err: errors.New("no such file")}
			f.User = doctor.UserSettings{Settings: doctor.Settings{Path: f.User.Path}}
			f.Agent = doctor.AgentFacts{}
			f.Log = doctor.LogFacts{}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := screenFacts(t)
			change(f)
			text, v := screen(t, f, Env{})
			golden(t, "status/"+name+".txt", text)
			for line := range strings.Lines(text) {
				if runewidth.StringWidth(strings.TrimSuffix(line, "\n")) > screenWidth {
					t.Errorf("a line is too long: %q", line)
				}
			}
			var out bytes.Buffer
			if err := writeJSON(&out, v); err != nil {
				t.Fatal(err)
			}
			golden(t, "status/"+name+".json", out.String())
			for _, q := range v.Problems {
				if q.Severity == doctor.Problem && q.Command == "" {
					t.Errorf("%s has no command", q.ID)
				}
			}
		})
	}
}

func TestStatusIsColouredOnATerminalOnly(t *testing.T) {
	t.Parallel()
	f := screenFacts(t)
	f.Disk.Free = 1
	on := Env{OutTTY: true, Width: 60}
	if text, _ := screen(t, f, on); !strings.Contains(text, red+"problem"+reset) || !strings.Contains(text, green+"daemon"+reset) {
		t.Errorf("no colours: %q", text)
	}
	for _, off := range []Env{
		{}, {OutTTY: true, Getenv: func(name string) string { return map[string]string{"NO_COLOR": "1"}[name] }},
		{OutTTY: true, Getenv: func(name string) string { return map[string]string{"TERM": "dumb"}[name] }},
	} {
		if text, _ := screen(t, f, off); strings.Contains(text, "\x1b") {
			t.Errorf("colours: %q", text)
		}
	}
}

func TestHostileTextIsHarmlessInStatusDoctorAndAgents(t *testing.T) {
	t.Parallel()
	for _, h := range hostile {
		f := screenFacts(t)
		f.Self, f.User.Path, f.Places.LogDir, f.Disk.Kind, f.Disk.Free = h, h, h, h, 1
		f.Places.ConfigFile = h
		s := f.Status
		s.Version, s.StartedBy, s.Mode, s.Profile, s.OnDown, s.MetricsAddr, s.RuleSet, s.RulesError = h, h, h, h, h, h, h, h
		s.Alarms, s.Loosening = []string{h}, []string{h}
		s.Live[0].Cwd, s.Live[0].Session = h, h
		f.Agent.Program = h
		f.Absent = []doctor.OtherAgent{{Name: h, Dir: h}}
		f.Others = []doctor.Settings{{Scope: "project", Path: h, Settings: install.Settings{DisableAll: true, Env: []string{"LD_" + h}}}}
		f.Units = []doctor.Unit{{Path: h, Program: h}}
		f.DaemonExe, f.UnderAgent = h, h
		f.Programs = []doctor.Program{{Name: "tripline-hook", Path: h, Loose: h, Ours: true, Perm: 0o755, Revision: h}, {Name: h, Err: errors.New(h)}, {Name: h, Path: h}}
		f.Hits = []doctor.Hit{{Name: "auditctl", Path: h}}
		f.Files = []doctor.File{{Path: h, Kind: "key", Perm: 0o777, UID: 1000}}
		f.Listen, f.PortTaken, s.MetricsAddr = h, true, ""
		text, v := screen(t, f, Env{})
		clean(t, "status", text)
		var out bytes.Buffer
		a := &app{Env: Env{Out: &out, Getenv: func(string) string { return "" }}}
		results := doctor.Run(context.Background(), doctor.Checks(), f)
		d := &doctorView{Checks: results, Problems: doctor.Findings(results)}
		if err := errors.Join(a.printDoctor(&out, d, true), a.printAgents(&out, coverage(f), tuesday), writeJSON(&out, v), writeJSON(&out, d), writeJSON(&out, coverage(f))); err != nil {
			t.Fatal(err)
		}
		clean(t, "doctor, agents and JSON", out.String())
	}
}

func TestAgentsScreen(t *testing.T) {
	t.Parallel()
	f := screenFacts(t)
	f.Absent = []doctor.OtherAgent{{Name: "codex", Dir: "/home/dev/.codex"}}
	f.User.Handlers = f.User.Handlers[1:]
	f.Agent.Transcript = claude.Version{Major: 2, Minor: 1, Patch: 197}
	views := coverage(f)
	var out bytes.Buffer
	a := &app{Env: Env{Getenv: func(string) string { return "" }}}
	if err := a.printAgents(&out, views, tuesday); err != nil {
		t.Fatal(err)
	}
	golden(t, "status/agents.txt", out.String())
	out.Reset()
	if err := writeJSON(&out, views); err != nil {
		t.Fatal(err)
	}
	golden(t, "status/agents.json", out.String())
	var back []map[string]any
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || len(back) != 2 {
		t.Errorf("%v", err)
	}
}

func TestWrapKeepsEveryWordAndNoLineIsLonger(t *testing.T) {
	t.Parallel()
	for _, text := range append([]string{"", "one", "a b c", strings.Repeat("word ", 100), strings.Repeat("x", 250), "漢字 " + strings.Repeat("漢", 120)}, hostile...) {
		for _, width := range []int{1, 2, 7, 60} {
			lines := wrap(text, width)
			if got, want := strings.Join(strings.Fields(strings.Join(lines, "")), ""), strings.Join(strings.Fields(text), ""); got != want {
				t.Errorf("%q at %d: %q", text, width, lines)
			}
			for _, l := range lines {
				if runewidth.StringWidth(l) > max(width, 2) && width > 1 {
					t.Errorf("%q at %d: %q is too long", text, width, l)
				}
			}
		}
	}
}
