// SPDX-License-Identifier: Apache-2.0

package client

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/hooks/spool"
	"github.com/tripline-sh/tripline/hooks/wire"
)

var gates = []string{"PreToolUse", "PreSkillShellCommand", "ConfigChange"}

// commands are what a deny may tell a person to run; the last one is as long as any.
var commands = []string{"", "/home/dev/.local/bin/auditctl start", "/" + strings.Repeat("d", maxCommand-1) + "/auditctl start"}

func TestEveryCannedDenyIsPlainAndBounded(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for f := spool.Absent; f <= spool.Output; f++ {
		for _, event := range gates {
			for _, start := range commands {
				c, _ := classify("claude", event)
				stdout, stderr := canned(c, event, f, start)
				if stderr != "tripline: denied ("+f.Rule()+")\n" {
					t.Errorf("fault %d: stderr is %q", f, stderr)
				}
				if !json.Valid([]byte(stdout)) {
					t.Errorf("fault %d: stdout is not JSON: %s", f, stdout)
				}
				why := reason(f, start)
				if len(why) >= 2000 || strings.ContainsFunc(why, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) {
					t.Errorf("fault %d: the reason is too long or not plain: %q", f, why)
				}
				if !strings.Contains(stdout, why) || !strings.HasSuffix(why, " [rule "+f.Rule()+"]") || !strings.Contains(why, "Do not retry") {
					t.Errorf("fault %d: stdout is %s", f, stdout)
				}
				away := f == spool.Absent || f == spool.Unreachable
				if away != strings.Contains(why, "Only the user may start the daemon, not you") || away && start != "" &&
					(!strings.Contains(why, " the command "+start+" in a terminal") || !strings.Contains(why, " typing ! "+start+" at the prompt")) {
					t.Errorf("fault %d: the reason is %s", f, why)
				}
				if start == "" {
					seen[why] = true
				}
			}
		}
	}
	if len(seen) != int(spool.Output) {
		t.Errorf("%d faults have %d texts", spool.Output, len(seen))
	}
}

func TestTheStartCommandIsBesideTheHook(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	program := func(path string, mode os.FileMode) string {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
		return filepath.Dir(path)
	}
	both := program("both/auditctl", 0o700)
	program("both/tripline", 0o700)
	short := program("short/tripline", 0o700)
	for name, want := range map[string]string{
		both + "/tripline-hook":                     both + "/auditctl start",
		short + "/tripline-hook":                    short + "/tripline start",
		program("none/x", 0o700) + "/tripline-hook": "",
		program("no x/auditctl", 0o700) + "/hook":   "",
		program("q'x/auditctl", 0o700) + "/hook":    "",
		program("d$HOME/auditctl", 0o700) + "/hook": "",
		program("b`id`/auditctl", 0o700) + "/hook":  "",
		program("s;id/auditctl", 0o700) + "/hook":   "",
		program("l\nl/auditctl", 0o700) + "/hook":   "",
		program("\u00fc/auditctl", 0o700) + "/hook": "",
		program("q\"x/auditctl", 0o700) + "/hook":   "",
		program("b\\x/auditctl", 0o700) + "/hook":   "",
		"tripline-hook":              "",
		"./tripline-hook":            "",
		"":                           "",
		"/":                          "",
		"/nonexistent/tripline-hook": "",
		root + strings.Repeat("/both/..", 100) + "/x": "",
	} {
		if got := startCommand(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

// testHook returns a hook whose outputs are pipes, and a function that closes them and returns what was said.
func testHook(t *testing.T, event string) (*hook, func() (stdout, stderr string)) {
	t.Helper()
	pipe := func() (*os.File, *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close(); w.Close() })
		return r, w
	}
	ro, wo := pipe()
	re, we := pipe()
	h := &hook{p: Process{Out: int(wo.Fd()), Err: int(we.Fd()), Signals: -1}, a: args{agent: "claude", event: event}}
	h.class, _ = classify("claude", event)
	h.deadline = time.Now().Add(time.Minute)
	return h, func() (string, string) {
		wo.Close()
		we.Close()
		o, err := io.ReadAll(ro)
		if err != nil {
			t.Fatal(err)
		}
		e, err := io.ReadAll(re)
		if err != nil {
			t.Fatal(err)
		}
		return string(o), string(e)
	}
}

func TestAPanicIsADeny(t *testing.T) {
	t.Parallel()
	for _, event := range append([]string{"PermissionRequest", "Stop", "AnEventOfNextYear"}, gates...) {
		h, said := testHook(t, event)
		exit := h.answer(func() (*wire.Reply, spool.Fault) { panic("boom") })
		stdout, stderr := said()
		var want, wantErr string
		wantExit := 0
		if h.class.gates() {
			want, wantErr = canned(h.class, event, spool.Internal, "")
			wantExit = 2
		}
		if exit != wantExit || stdout != want || stderr != wantErr {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", event, exit, stdout, stderr)
		}
	}
}

func TestStdoutIsWrittenOnce(t *testing.T) {
	t.Parallel()
	h, said := testHook(t, "PreToolUse")
	h.say([]byte("first"), nil, 0)
	exit := h.answer(func() (*wire.Reply, spool.Fault) { panic("after the answer") })
	if stdout, _ := said(); exit != 2 || stdout != "first" {
		t.Errorf("exit %d, stdout %q; want 2 and only the first answer", exit, stdout)
	}
}

func TestParseArgsTakesEveryOption(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]args{
		"-x 64 -n tok -o allow -t 250 -q /q -u 0 -s /s claude Stop": {socket: "/s", spool: "/q", patience: 250 * time.Millisecond, downAllow: true,
			token: "tok", shift: 64, agent: "claude", event: "Stop"},
		"-x 3 -s /s claude Stop":      {socket: "/s", uid: 7, shift: 3, agent: "claude", event: "Stop"},
		"-x 123 -s /s claude Stop":    {socket: "/s", uid: 7, shift: 123, agent: "claude", event: "Stop"},
		"-s /s claude Stop":           {socket: "/s", uid: 7, agent: "claude", event: "Stop"},
		"-s /s claude Stop -- /d":     {socket: "/s", uid: 7, agent: "claude", event: "Stop", daemon: []string{"/d"}},
		"-s /s claude Stop -- /d -- ": {socket: "/s", uid: 7, agent: "claude", event: "Stop", daemon: []string{"/d", "--"}},
		"-s /s -n -- claude Stop -- /d -s x claude Stop": {socket: "/s", uid: 7, token: "--", agent: "claude", event: "Stop",
			daemon: []string{"/d", "-s", "x", "claude", "Stop"}},
	} {
		if got, wrong := parseArgs(strings.Fields(line), 7); !reflect.DeepEqual(got, want) || wrong != "" {
			t.Errorf("%s: got %+v, %q", line, got, wrong)
		}
	}
}

func TestParseArgsWantsAProgramBehindTheMark(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"-s /s claude PreToolUse --", "-s /s claude PreToolUse -- triplined", "-s /s claude PreToolUse -- ./triplined -x",
		"-s /s claude PreToolUse --  /d", "-s /s claude PreToolUse -- -- /d", "-s /s claude PreToolUse /d", "-s /s claude PreToolUse - /d",
		"-s /s claude -- /d", "-s /s -- claude PreToolUse /d", "-- /d", "--", "-s /s claude PreToolUse --- /d",
	} {
		if got, wrong := parseArgs(strings.Split(line, " "), 7); wrong == "" {
			t.Errorf("%q: got %+v", line, got)
		}
	}
}

func TestABrokenLineBlocksNothingThatWaitsForNoVerdict(t *testing.T) {
	t.Parallel()
	for line, harmless := range map[string]bool{
		"-x claude Stop": true, "-x claude Stop -- d": true, "-s /s claude Stop --": true, "-s /s claude SessionStart -- triplined": true,
		"-x claude PreToolUse": false, "-s /s claude PreToolUse -- d": false, "-s /s claude PreToolUse -- claude Stop": false,
		"-s /s claude PreToolUse Stop -- Stop": true, "": false, "--": false, "-- Stop": false,
	} {
		h, said := testHook(t, "Stop")
		h.p.Args = strings.Fields(line)
		exit := Run(h.p)
		stdout, stderr := said()
		if harmless != (exit == 0) || stdout != "" || harmless != (stderr == "") || !harmless && !strings.Contains(stderr, usage) {
			t.Errorf("%q: exit %d, stdout %q, stderr %q", line, exit, stdout, stderr)
		}
	}
}

// A shell in front takes no other codes than shifted ones for an answer, so that all have to be, whatever goes wrong.
func TestEveryExitCodeIsShifted(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]int{
		"-x 64 -s /nowhere/s claude PreToolUse":          66,
		"-x 64 -s /nowhere/s claude ConfigChange":        66,
		"-x 64 -s /nowhere/s claude Stop":                64,
		"-x 64 -o allow -s /nowhere/s claude PreToolUse": 64,
		"-s /nowhere/s -x 3 claude PreToolUse":           5,
		"-x 64 claude PreToolUse":                        66,
		"-x 64 claude Stop":                              64,
		"-x 64 -x 64 claude PreToolUse":                  66,
		"-x 64 -z":                                       66,
		"-x 2 -s /nowhere/s claude PreToolUse":           2, // before it is understood there is nothing to shift by
		"-x 124 -s /nowhere/s claude PreToolUse":         2,
		"-x":                                             2,
	} {
		h, _ := testHook(t, "PreToolUse")
		in, end, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		end.Close()
		h.p.Args, h.p.Started, h.p.In = strings.Fields(line), time.Now(), int(in.Fd())
		defer in.Close()
		if exit := Run(h.p); exit != want {
			t.Errorf("%q: exit %d, want %d", line, exit, want)
		}
	}
}

// Whatever the command line, its parts do not come back in the refusal: one of them is the token.
func FuzzParseArgs(f *testing.F) {
	f.Add("-s\x00/s\x00-n\x00secret-token\x00claude\x00PreToolUse")
	f.Add("-s\x00/s\x00-t\x00-1\x00claude\x00Stop")
	for _, line := range []string{
		"-s /s claude PreToolUse -- /d --on-demand", "-s /s claude PreToolUse --", "-s /s claude PreToolUse -- d", "-s /s -- claude Stop",
		"-n -- -s /s claude Stop -- /d --", "-s /s claude Stop -- -- /d", "-- -- --", "-s -- claude Stop",
	} {
		f.Add(strings.ReplaceAll(line, " ", "\x00"))
	}
	f.Add("-x\x0064\x00-s\x00/s\x00claude\x00PreToolUse")
	f.Add("\x00-\x00--\x00-\xff\x00x")
	f.Fuzz(func(t *testing.T, line string) {
		in := strings.Split(line, "\x00")
		a, wrong := parseArgs(in, 1)
		switch wrong {
		case "":
			if a.socket == "" || a.socket[0] != '/' || a.event == "" || len(a.event) > wire.MaxName || len(a.token) > wire.MaxToken || !knownAgent(a.agent) ||
				a.shift != 0 && (a.shift < minShift || a.shift > maxShift) {
				t.Errorf("took %q for %+v", in, a)
			}
			// What starts the daemon is what stands behind the first mark that is no option's value, and nothing else.
			if n := len(a.daemon); n > 0 && (a.daemon[0][0] != '/' || !slices.Equal(a.daemon, in[len(in)-n:]) || in[len(in)-n-1] != startMark ||
				in[len(in)-n-2] != a.event || in[len(in)-n-3] != a.agent) || n == 0 && in[len(in)-1] != a.event {
				t.Errorf("took %q for %+v", in, a)
			}
		default:
			for _, s := range in {
				if len(s) > 15 && strings.Contains(wrong, s) {
					t.Errorf("%q repeats %q", wrong, s)
				}
			}
		}
	})
}
