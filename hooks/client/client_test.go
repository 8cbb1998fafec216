// SPDX-License-Identifier: Apache-2.0

package client

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/hooks/spool"
	"github.com/tripline-sh/tripline/hooks/wire"
)

var gates = []string{"PreToolUse", "PreSkillShellCommand", "ConfigChange"}

func TestEveryCannedDenyIsPlainAndBounded(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for f := spool.Absent; f <= spool.Output; f++ {
		for _, event := range gates {
			c, _ := classify("claude", event)
			stdout, stderr := canned(c, event, f)
			if stderr != "tripline: denied ("+f.Rule()+")\n" {
				t.Errorf("fault %d: stderr is %q", f, stderr)
			}
			if !json.Valid([]byte(stdout)) {
				t.Errorf("fault %d: stdout is not JSON: %s", f, stdout)
			}
			why := reason(f)
			if len(why) >= 2000 || strings.ContainsFunc(why, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) {
				t.Errorf("fault %d: the reason is too long or not plain: %q", f, why)
			}
			if !strings.Contains(stdout, why) || !strings.Contains(why, "(rule "+f.Rule()+")") || !strings.Contains(why, "Do not retry") {
				t.Errorf("fault %d: stdout is %s", f, stdout)
			}
			seen[why] = true
		}
	}
	if len(seen) != int(spool.Output) {
		t.Errorf("%d faults have %d texts", spool.Output, len(seen))
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
			want, wantErr = canned(h.class, event, spool.Internal)
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
	got, wrong := parseArgs(strings.Fields("-n tok -o allow -t 250 -q /q -u 0 -s /s claude Stop"), 7)
	want := args{socket: "/s", uid: 0, spool: "/q", patience: 250 * time.Millisecond, downAllow: true, token: "tok", agent: "claude", event: "Stop"}
	if got != want || wrong != "" {
		t.Errorf("got %+v, %q", got, wrong)
	}
	if got, wrong := parseArgs([]string{"-s", "/s", "claude", "Stop"}, 7); got != (args{socket: "/s", uid: 7, agent: "claude", event: "Stop"}) || wrong != "" {
		t.Errorf("without options, got %+v, %q", got, wrong)
	}
}

// Whatever the command line, its parts do not come back in the refusal: one of them is the token.
func FuzzParseArgs(f *testing.F) {
	f.Add("-s\x00/s\x00-n\x00secret-token\x00claude\x00PreToolUse")
	f.Add("-s\x00/s\x00-t\x00-1\x00claude\x00Stop")
	f.Add("\x00-\x00--\x00-\xff\x00x")
	f.Fuzz(func(t *testing.T, line string) {
		in := strings.Split(line, "\x00")
		a, wrong := parseArgs(in, 1)
		switch wrong {
		case "":
			if a.socket == "" || a.socket[0] != '/' || a.event == "" || len(a.event) > wire.MaxName || len(a.token) > wire.MaxToken || !knownAgent(a.agent) {
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
