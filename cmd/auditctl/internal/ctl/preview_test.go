// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/tripline-sh/tripline/cmd/auditctl/internal/preview"
	"github.com/tripline-sh/tripline/hooks/event"
)

// previewApp is a program at a terminal of so many columns.
func previewApp(out *bytes.Buffer, width int) *app {
	return &app{Env: Env{
		Out: out, Err: out, Getenv: func(string) string { return "" }, Exe: "/nowhere/auditctl", Name: "auditctl", Width: width,
		Now: func() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) },
	}}
}

func previewCall(at, project, command string) preview.Call {
	when, err := time.Parse("2006-01-02 15:04", at)
	if err != nil {
		panic(err)
	}
	input, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		panic(err)
	}
	return preview.Call{Time: when, Project: project, Tool: "Bash", Input: input, Verdict: event.Ask, Rule: "r"}
}

func TestTheAnswerIsInPlainWords(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	to := from.AddDate(0, 0, 7)
	noon := from.Add(12 * time.Hour)
	for _, tt := range []struct {
		name  string
		o     previewOptions
		s     preview.Summary
		reply string
	}{
		{"nothing in the way", previewOptions{since: "30d"}, preview.Summary{Days: 12}, "No prompts and no blocks, on 12 days with agent calls in the last 30 days."},
		{"seldom is told in all", previewOptions{since: "30d"}, preview.Summary{Days: 12, Asked: 11, Denied: 1}, "11 prompts in all and 1 block in all, on 12 days with agent calls in the last 30 days."},
		{"often is told by the day, rounded", previewOptions{since: "90d"}, preview.Summary{Days: 2, Asked: 3001, Denied: 2}, "About 1,501 prompts a day and about 1 block a day, on 2 days with agent calls in the last 90 days."},
		{"one day", previewOptions{since: "yesterday"}, preview.Summary{Days: 1, Asked: 2}, "2 prompts and no blocks, on the one day with agent calls since 1 Nov 2026."},
		{"calls without a time", previewOptions{since: "30d"}, preview.Summary{Asked: 2}, "2 prompts and no blocks, in the last 30 days."},
		{"an end", previewOptions{since: "30d", until: "x"}, preview.Summary{Days: 1, To: &to}, "No prompts and no blocks, on the one day with agent calls from 1 Nov 2026 to 7 Nov 2026."},
		{"an end within a day", previewOptions{since: "30d", until: "x"}, preview.Summary{Days: 1, To: &noon}, "No prompts and no blocks, on the one day with agent calls from 1 Nov 2026 to 1 Nov 2026 12:00."},
		{"mode observe", previewOptions{since: "30d"}, preview.Summary{Days: 1, Asked: 9, Denied: 3, Floor: 1, Mode: "observe"},
			"No prompts and 1 block, on the one day with agent calls in the last 30 days."},
	} {
		tt.s.From = &from
		if got := previewApp(nil, 0).answer(&tt.o, &tt.s); got != tt.reply {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.reply)
		}
	}
}

func TestTheSameCallsShareALine(t *testing.T) {
	t.Parallel()
	call := previewCall
	denied := call("2026-11-20 10:00", "/w/shop", "rm -rf dist")
	denied.Verdict = event.Deny
	noTime := call("2026-11-20 10:00", "/w/shop", "odd")
	noTime.Time = time.Time{}
	write := call("2026-11-20 10:00", "/w/shop", "")
	write.Tool, write.Input = "Write", []byte(`{"file_path":"/etc/hosts","content":"x"}`)
	edit := write
	edit.Tool, edit.Input = "Edit", []byte(`{"file_path":"/w/shop/src/a.go","content":"x"}`)
	calls := []preview.Call{
		noTime,
		call("2025-11-20 10:00", "/w/shop", "old"), call("2026-01-20 10:00", "/w/shop", "old"),
		call("2026-11-20 10:00", "/w/shop", "rm -rf dist"), denied, write, edit,
		call("2026-11-20 10:01", "/w/site", "rm -rf dist"),
		call("2026-11-20 10:07", "/w/shop", "rm -rf dist"),
		call("2026-11-21 09:00", "/w/shop", "once"), call("2026-11-21 09:00", "/w/shop", "once"), call("2026-11-21 09:30", "/w/shop", "morning"), call("2026-11-21 11:30", "/w/shop", "morning"),
		call("2026-11-22 10:00", "/w/shop", "rm -rf dist"),
	}
	calls[3].Refused, calls[3].RefusedBy, calls[3].Today = "user-rejected", "user_reject", true
	rep := &preview.Report{Calls: calls, Rules: []preview.Rule{{Rule: "r", Layer: "user", Asked: 14, Denied: 1, Why: "a why"}}}
	for limit, want := range map[int]string{
		0: `
r  1 denied, 14 asked  a why
  3x  ask*  shop  20 Nov 10:00 to 22 Nov 10:00  you refused 1  rm -rf dist
  2x  ask   shop  21 Nov 09:30 to 11:30                        morning
  2x  ask   shop  21 Nov 09:00                                 once
  2x  ask   shop  20 Nov 2025 to 20 Jan 2026                   old
      ask   site  20 Nov 10:01                                 rm -rf dist
      deny  shop  20 Nov 10:00                                 rm -rf dist
      ask   shop  20 Nov 10:00                                 Write /etc/hosts
      ask   shop  20 Nov 10:00                                 Edit src/a.go
      ask   shop  -                                            odd
  and 1 more call, too old to be held
  this is a rule of the user's own files: auditctl rules show r
`,
		2: `
r  1 denied, 14 asked  a why
  3x  ask*  shop  20 Nov 10:00 to 22 Nov 10:00  you refused 1  rm -rf dist
  2x  ask   shop  21 Nov 09:30 to 11:30                        morning
  and 10 more calls; --limit 0 shows all
  this is a rule of the user's own files: auditctl rules show r
`,
	} {
		var b strings.Builder
		previewApp(nil, 100).previewRule(&b, &previewOptions{limit: limit}, &rep.Rules[0], rep.Calls, projectNames(rep))
		if b.String() != want {
			t.Errorf("limit %d:\n%s\nwant\n%s", limit, b.String(), want)
		}
	}
}

func TestARefusalIsNamedAfterWhoRefused(t *testing.T) {
	t.Parallel()
	for in, want := range map[[2]string]string{
		{"user-rejected", "user_reject"}: "you refused",
		{"user-rejected", ""}:            "you refused",
		{"user-rejected", "config"}:      "agent refused", // it could ask nobody
		{"permission-rule", ""}:          "agent refused",
		{"permission-rule", "config"}:    "agent refused",
		{"automode-blocked", ""}:         "agent refused",
		{"permission-rule", "hook"}:      "hook refused",
		{"interrupted", ""}:              "cancelled",
		{"cancelled", "config"}:          "cancelled",
		{"user-rejected", "user_abort"}:  "cancelled",
		{"something new", "\x1b[1m"}:     "refused",
	} {
		if got := refuser(&preview.Call{Refused: in[0], RefusedBy: in[1]}); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestNoLineOfAPreviewIsWiderThanTheScreen(t *testing.T) {
	t.Parallel()
	from := time.Date(2019, 11, 1, 0, 0, 0, 0, time.UTC)
	rep := &preview.Report{Summary: preview.Summary{
		From: &from, To: &from, Calls: 98_765_432, Sessions: 1_234_567, Projects: 34_567, Days: 20_000, AsBefore: 12_345_678, Asked: 76_543_210, Denied: 9_876_543, Stopped: 99.99, Refused: 1_234_567,
		Today: 5, PassedToday: 1_234_567, TooLarge: 1_234_567, LeftOut: 1_234_567, Mode: "observe", Busiest: &preview.Day{Date: "2026-11-30", Asked: 1_234_567},
	}}
	for i, name := range []string{"delete.project", strings.Repeat("long-name.", 20), "wide.名前"} {
		r := preview.Rule{Rule: name, Layer: "builtin", Why: strings.Repeat("a reason 理由 ", 15), Asked: 76_543_210, Denied: 9_876_543, AllProjects: 1000, Relax: "auditctl rules relax", Worst: "/w/p"}
		r.Projects = []string{"/w/" + strings.Repeat("p", 300), "/v/\x1b[2J" + strings.Repeat("名", 50), "/w/p"}
		r.Floor = i == 1
		for _, p := range r.Projects {
			for n := range 1200 {
				c := previewCall("2019-11-30 12:34", p, fmt.Sprintf("rm -rf 名前\n\u202e %s %d", strings.Repeat("w", 300), n%3))
				c.Time = c.Time.AddDate(0, n/100, n)
				c.Rule, c.Today, c.Refused = name, true, "permission-rule"
				rep.Calls = append(rep.Calls, c)
			}
		}
		rep.Rules = append(rep.Rules, r)
	}
	for _, width := range []int{80, 100, 250} {
		var out bytes.Buffer
		a := previewApp(&out, width)
		if err := a.previewTable(&previewOptions{since: "30d", until: "x", limit: 2}, rep); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			line = strings.TrimSuffix(line, "\n")
			long := strings.HasPrefix(line, "long-name.") // names are not broken
			if n := runewidth.StringWidth(line); n > min(width, 100) && !long {
				t.Errorf("%d columns at %d: %s", n, width, line)
			}
			if strings.ContainsAny(line, "\x1b\u202e") {
				t.Errorf("hostile text: %q", line)
			}
		}
		if !strings.Contains(out.String(), "3 denied") || strings.Count(out.String(), "x  ask*") != 6 {
			t.Errorf("at %d:\n%s", width, out.String())
		}
	}
}
