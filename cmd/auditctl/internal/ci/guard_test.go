// SPDX-License-Identifier: Apache-2.0

package ci_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/ci"
	"github.com/tripline-sh/tripline/daemon/control"
)

// wiredFile is what the log of these tests tells of.
const wiredFile = "/home/dev/.claude/settings.json"

// step is a record at a second of the job.
type step struct {
	second int
	kind   record.Kind
	detail map[string]string
	source string
}

func begins(second int) step {
	return step{second, record.DaemonStart, map[string]string{"mode": "guard", "profile": "ci", "on_down": "deny", "version": "v"}, ""}
}

func ends(second int) step { return step{second, record.DaemonStop, nil, ""} }

func says(second int, action, path string) step {
	return step{second, record.ConfigSettings, map[string]string{"announced": "1", "action": action, "path": path}, "control"}
}

func from(source string, s step) step { s.source = source; return s }

// TestWhatTheLogTellsOfTheGuard has finishes that begin at second 100 of the job.
func TestWhatTheLogTellsOfTheGuard(t *testing.T) {
	t.Parallel()
	in, out := says(1, "install", wiredFile), says(50, "uninstall", wiredFile)
	for _, tt := range []struct {
		name     string
		steps    []step
		answered bool
		asPut    bool
		want     string // what is found
	}{
		{"this finish ends a job that went well", []step{begins(0), in, says(101, "uninstall", wiredFile), ends(102)}, true, true, ""},
		{"an earlier finish ended it", []step{begins(0), in, out, ends(51)}, false, false, "before"},
		{"an earlier finish, and the hooks are there again", []step{begins(0), in, out, ends(51)}, false, true, "before"},
		{"the daemon died", []step{begins(0), in}, false, true, "died"},
		{"the daemon died and the hooks went", []step{begins(0), in}, false, false, "died altered"},
		{"the daemon gives no answer and ends all the same", []step{begins(0), in, ends(102)}, false, true, "died"},
		{"the daemon was stopped", []step{begins(0), in, ends(50)}, false, true, "away"},
		{"the daemon was stopped and another answers in its place", []step{begins(0), in, ends(50)}, true, true, "away"},
		{"the daemon died and another answers in its place", []step{begins(0), in}, true, true, "died"},
		{"the hooks were taken out and the daemon went on", []step{begins(0), in, out, ends(102)}, true, false, "altered"},
		{"the hooks were taken out and the daemon was stopped much later", []step{begins(-900), says(-899, "install", wiredFile),
			says(-800, "uninstall", wiredFile), ends(50)}, false, false, "away altered"},
		{"the hooks were put back after they were taken out", []step{begins(0), in, out, says(51, "install", wiredFile), ends(52)}, false, false, "away altered"},
		{"hooks of another file were taken out", []step{begins(0), in, says(50, "uninstall", "/other.json"), ends(51)}, false, false, "away altered"},
		{"an agent tells of a change", []step{begins(0), in, from("hook", out), ends(51)}, false, false, "away altered"},
		{"an agent tells of a change that no daemon took", []step{begins(0), in, from("spool", out), ends(51)}, false, false, "away altered"},
		{"a daemon begins after an end without a word", []step{begins(0), in, begins(20), says(101, "uninstall", wiredFile), ends(102)}, true, true, "died"},
		{"a daemon begins after it was stopped", []step{begins(0), in, ends(10), begins(20), says(101, "uninstall", wiredFile), ends(102)}, true, true, "away"},
		{"a daemon begins after a finish", []step{begins(0), in, out, ends(51), begins(60), ends(61)}, false, false, "away altered"},
		{"a daemon begins again before the agent was wired", []step{begins(-3), ends(-2), begins(0), in, says(101, "uninstall", wiredFile), ends(102)}, true, true, ""},
		{"no agent was ever wired", []step{begins(0), ends(102)}, true, true, "altered"},
		{"there is no daemon in the log", nil, false, true, "died"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := guarded(t, tt.steps)
			r.Judge(ci.End{Began: at(100), Answered: tt.answered, AsPut: tt.asPut, Key: "k"})
			if got := found(r); got != tt.want {
				t.Errorf("found %q, want %q", got, tt.want)
			}
			if (r.Hit(ci.Alarm) != "") != (tt.want != "" && tt.want != "before") {
				t.Errorf("--fail-on alarm: %q", r.Hit(ci.Alarm))
			}
			// The job's file can only make it graver.
			r.Job.Died, r.Job.Altered, r.Job.Finished = true, true, at(1)
			r.Judge(ci.End{Began: at(100), Answered: tt.answered, AsPut: tt.asPut, Key: "k"})
			if !r.Died || !r.Altered || r.Claimed == strings.Contains(tt.want, "before") {
				t.Errorf("with more in the job's file: %q, claimed %v", found(r), r.Claimed)
			}
		})
	}
}

func TestWhatTheJobsFileTellsOtherwise(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256([]byte(wiredFile))
	hidden := says(1, "install", "/home/dev/[redacted]/settings.json")
	hidden.detail["path_sha256"] = hex.EncodeToString(sum[:])
	old := begins(0)
	delete(old.detail, "on_down")
	for _, tt := range []struct {
		name   string
		steps  []step
		change func(*ci.Job)
		want   []string
	}{
		{"nothing", []step{begins(0), says(1, "install", wiredFile)}, func(*ci.Job) {}, nil},
		{"all of it", []step{begins(0), says(1, "install", wiredFile)}, func(j *ci.Job) {
			j.Mode, j.Profile, j.OnDown, j.Settings, j.Agent, j.Key = "observe", "strict", "allow", "/x.json", "codex", "other"
		}, []string{"mode", "profile", "on_down", "settings", "agent", "key"}},
		{"a path that is not in the log", []step{begins(0), hidden}, func(*ci.Job) {}, nil},
		{"another path than the one that is not in the log", []step{begins(0), hidden}, func(j *ci.Job) { j.Settings = "/x.json" }, []string{"settings"}},
		{"the words that stand for a path", []step{begins(0), hidden}, func(j *ci.Job) { j.Settings = hidden.detail["path"] }, []string{"settings"}},
		{"what an older log does not tell", []step{old, says(1, "install", wiredFile)}, func(j *ci.Job) { j.OnDown = "allow" }, nil},
	} {
		r := guarded(t, tt.steps)
		tt.change(r.Job)
		r.Judge(ci.End{Began: at(100), Answered: true, AsPut: true, Key: "k"})
		if d := cmp.Diff(tt.want, r.Forged); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
		if (r.Hit(ci.Alarm) != "") != (tt.want != nil || r.Died) {
			t.Errorf("%s: %q", tt.name, r.Hit(ci.Alarm))
		}
	}
}

func TestWhoVouchesIsSaid(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{"": true, "k": false} {
		r := guarded(t, []step{begins(0), says(1, "install", wiredFile), ends(102)})
		r.Judge(ci.End{Began: at(100), Answered: true, AsPut: true, Key: key})
		if strings.Contains(r.Markdown(), "nothing outside of the job vouches") != want {
			t.Errorf("key %q:\n%s", key, r.Markdown())
		}
	}
}

func at(second int) time.Time {
	return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(second) * time.Second)
}

// guarded reads a log of these records.
func guarded(t *testing.T, steps []step) *ci.Report {
	t.Helper()
	l := &log{}
	for n, s := range steps {
		r := record.Record{Seq: uint64(n + 1), Time: at(s.second), Kind: s.kind, Source: s.source, Detail: s.detail}
		if s.kind == record.ConfigSettings {
			r.Agent = "claude"
		}
		l.events = append(l.events, control.RecordView{Record: r})
	}
	return collect(t, l)
}

func found(r *ci.Report) string {
	var all []string
	for _, f := range []struct {
		name string
		is   bool
	}{{"before", !r.Before.IsZero()}, {"died", r.Died}, {"away", r.Away}, {"altered", r.Altered}} {
		if f.is {
			all = append(all, f.name)
		}
	}
	return strings.Join(all, " ")
}
