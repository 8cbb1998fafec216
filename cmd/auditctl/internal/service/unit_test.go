// SPDX-License-Identifier: Apache-2.0

package service

import (
	"encoding/xml"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

func plain() Install {
	return Install{
		Program:    "/home/u/.local/bin/triplined",
		Args:       []string{"--home=/home/u", "--config-dir=/home/u/.config/tripline", "--state-dir=/home/u/.local/state/tripline", "--run-dir=/run/user/1000/tripline"},
		HookSocket: "/run/user/1000/tripline/hook.sock", ControlSocket: "/run/user/1000/tripline/control.sock",
		LogFile: "/home/u/.local/state/tripline/triplined.log",
	}
}

// odd is an install in places whose names mean something to every format that they are written in.
func odd() Install {
	dir := `/home/a "b" 100% $HOME \n <&>'c';`
	return Install{
		Program: dir + "/bin/triplined", Args: []string{"--home=" + dir, "--run-dir=/r", "", ";", "100%", "$$x", "--metrics-listen=[::1]:0"},
		HookSocket: dir + "/hook.sock", ControlSocket: dir + "/control.sock", LogFile: dir + "/l",
	}
}

func texts(in Install) map[string][]byte {
	return map[string][]byte{
		serviceUnit: serviceText(&in), hookUnit: socketText("agents' hooks", "hook", in.HookSocket),
		controlUnit: socketText("auditctl", "control", in.ControlSocket), Label + ".plist": plistText(&in),
	}
}

func TestUnitsAreAsReviewed(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]Install{"plain": plain(), "odd": odd()} {
		for file, got := range texts(in) {
			golden := filepath.Join("testdata", name+"."+file)
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", name, file, diff)
			}
		}
	}
}

// What a user's manager cannot do makes the unit fail there, and no checker notices.
func TestUserUnitsAskForNothingThatNeedsPrivileges(t *testing.T) {
	t.Parallel()
	in := plain()
	needs := regexp.MustCompile(`(?m)^(CapabilityBoundingSet|AmbientCapabilities|ProtectKernel\w*|ProtectClock|PrivateDevices|PrivateTmp|ProtectSystem|ProtectHome|ProtectControlGroups|ProtectHostname|ProtectProc|PrivateUsers|DynamicUser|User|Group|DeviceAllow|RootDirectory)=`)
	for name, text := range texts(in) {
		if m := needs.Find(text); m != nil {
			t.Errorf("%s has %s", name, m)
		}
	}
}

func TestSystemdAcceptsTheUnits(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("SKIPPED: systemd-analyze is not here, the units were compared with the golden files only")
	}
	base := t.TempDir()
	for name, in := range map[string]Install{"plain": plain(), "blanks": odd()} {
		// the program and its directory must be there
		home := filepath.Join(base, "a b %h $HOME "+name)
		in.Program = filepath.Join(home, "triplined")
		in.HookSocket, in.ControlSocket = filepath.Join(home, "hook.sock"), filepath.Join(home, "control.sock")
		if err := os.MkdirAll(home, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(in.Program, []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		units := filepath.Join(base, name+"-units")
		if err := os.Mkdir(units, 0o700); err != nil {
			t.Fatal(err)
		}
		args := []string{"--user", "verify", "--recursive-errors=yes", "--man=no"}
		for file, text := range texts(in) {
			if strings.HasSuffix(file, ".plist") {
				continue
			}
			path := filepath.Join(units, file)
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
			args = append(args, path)
		}
		cmd := exec.Command(analyze, args...)
		cmd.Env = []string{"HOME=" + base, "XDG_RUNTIME_DIR=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "SYSTEMD_UNIT_PATH=" + units + ":"}
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Contains(string(out), "tripline") {
			t.Errorf("%s: verify: %v\n%s", name, err, out)
		}
		// 6.2 of 10: most of what counts there needs privileges that a user's manager has not
		cmd = exec.Command(analyze, "security", "--offline=true", "--threshold=63", filepath.Join(units, serviceUnit))
		cmd.Env = []string{"HOME=" + base, "PATH=" + os.Getenv("PATH")}
		out, err = cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: security: %v\n%s", name, err, out)
		}
	}
}

func TestThePropertyListHoldsTheCommandLineAsItIs(t *testing.T) {
	t.Parallel()
	for _, in := range []Install{plain(), odd()} {
		d := xml.NewDecoder(strings.NewReader(string(plistText(&in))))
		var got []string
		inArray := false
		for {
			tok, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			switch tok := tok.(type) {
			case xml.StartElement:
				inArray = inArray || tok.Name.Local == "array"
				if inArray && tok.Name.Local == "string" {
					var s string
					if err := d.DecodeElement(&s, &tok); err != nil {
						t.Fatal(err)
					}
					got = append(got, s)
				}
			case xml.EndElement:
				if tok.Name.Local == "array" {
					inArray = false
				}
			}
		}
		want := append(append([]string{in.Program}, in.Args...), "--started-by", "launchd", "--log-file", in.LogFile)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestPathsThatNoUnitCouldHoldAreRefused(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*Install){
		"a newline in the program":     func(in *Install) { in.Program = "/a\nExecStart=/b/triplined" },
		"a newline in an argument":     func(in *Install) { in.Args = []string{"--home=/a\n[Service]"} },
		"a control character":          func(in *Install) { in.HookSocket = "/a\x1b[2J" },
		"bytes that are no text":       func(in *Install) { in.ControlSocket = "/a\xff" },
		"a relative program":           func(in *Install) { in.Program = "bin/triplined" },
		"no log":                       func(in *Install) { in.LogFile = "" },
		"an escape character in a log": func(in *Install) { in.LogFile = "/a\x7f" },
	} {
		in := plain()
		spoil(&in)
		if m, _, err := Detect(t.Context(), Host{OS: "linux", Getenv: func(string) string { return "" }}, in); err == nil {
			t.Errorf("%s: %v", name, m)
		}
	}
}
