// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/daemon/control"
)

// hostile are texts that an agent could put anywhere, one for each trick.
var hostile = []string{
	"\x1b[2J\x1b]0;owned\x07", "a\u202eb\u2066c", "\u009b31m", "line\nbreak\rreturn\ttab", "=HYPERLINK(\"http://x\")", "+1+1", "-1", "@SUM(1)",
	"zero\u200bwidth\ufeff", "\U000e0041tag", "nul\x00", "bad\xff\xfeutf8", "<script>alert(1)</script>", "`code` | pipe", strings.Repeat("w\u0300", 300), "",
}

// clean fails if text could do anything to a terminal but print.
func clean(t *testing.T, what, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("%s: not UTF-8: %q", what, text)
	}
	for _, r := range text {
		if r != '\n' && r != '\t' && !show.Visible(r) {
			t.Errorf("%s: %U in %q", what, r, text)
			return
		}
	}
}

func TestHostileTextIsHarmlessOnEverySurface(t *testing.T) {
	t.Parallel()
	for _, h := range hostile {
		input, _ := json.Marshal(map[string]string{"command": h})
		c := record.Call{ID: "01hq0000000000000000000000", Session: h, Agent: h, Tool: h, ToolUseID: h, Cwd: h, Rule: h, Who: h, Error: h, Verdict: "deny", Input: input, Enforced: true}
		for _, f := range []format{formatTable, formatJSON, formatJSONL, formatCSV} {
			var out bytes.Buffer
			a := &app{Env: Env{Out: &out, Err: &out, Getenv: func(string) string { return "" }, Now: c.Time.Local}}
			w := a.callWriter(f)
			if err := w.add(c); err != nil {
				t.Fatal(err)
			}
			if err := w.finish(0); err != nil {
				t.Fatal(err)
			}
			clean(t, string(f), out.String())
			switch f {
			case formatJSONL:
				var back record.Call
				if err := json.Unmarshal(out.Bytes(), &back); err != nil {
					t.Errorf("%q: %v", h, err)
				} else if utf8.ValidString(h) && back.Session != h {
					t.Errorf("jsonl changed %q to %q", h, back.Session)
				}
				if strings.Count(out.String(), "\n") != 1 {
					t.Errorf("jsonl: more than one line for %q", h)
				}
			case formatCSV:
				rows, err := csv.NewReader(&out).ReadAll()
				if err != nil || len(rows) != 2 {
					t.Errorf("csv of %q: %d rows, %v", h, len(rows), err)
					continue
				}
				for _, cell := range rows[1] {
					if cell != "" && strings.ContainsRune("=+-@", rune(cell[0])) {
						t.Errorf("csv: a spreadsheet would run %q", cell)
					}
				}
			}
		}
		var out bytes.Buffer
		v := control.RecordView{Record: record.Record{Kind: record.CallRequested, Agent: h, Session: h, Tool: h, Detail: map[string]string{"k": h},
			Bodies: []record.Commitment{{Name: "input"}}}, Bodies: map[string]string{"input": h}}
		if err := printRecord(&out, v); err != nil {
			t.Fatal(err)
		}
		clean(t, "show", out.String())
		clean(t, "events", show.Line(eventWords(&v.Record, v.Bodies), 0))
	}
}

func TestATableFitsItsTerminalAndKeepsItsColumns(t *testing.T) {
	t.Parallel()
	tab := &table{header: []string{"A", "B", "LAST"}}
	tab.add("x", "deny ⛔", strings.Repeat("long ", 50))
	tab.add("longer", "日本語", "short")
	var out bytes.Buffer
	if err := tab.print(&out, 60); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	for _, l := range lines {
		if n := runewidth.StringWidth(l); n > 60 {
			t.Errorf("%d columns: %q", n, l)
		}
	}
	at := func(l, word string) int { return runewidth.StringWidth(l[:strings.Index(l, word)]) }
	if at(lines[0], "LAST") != at(lines[1], "long") || at(lines[0], "LAST") != at(lines[2], "short") {
		t.Errorf("columns do not line up:\n%s", out.String())
	}
}

func TestAnchorsArePastedAsADenialShowsThem(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"4711 0011223344556677", "4711:0011223344556677", "[log 4711 0011223344556677]", "log 4711 0011223344556677"} {
		got, err := parseAnchors([]string{text})
		if err != nil || len(got) != 1 || got[0].Seq != 4711 || got[0].Root != "0011223344556677" {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "4711", "x 0011223344556677", "0 0011223344556677", "4711 short", "1 2 3", "-1 0011223344556677"} {
		if got, err := parseAnchors([]string{text}); exitCode(err) != exitUsage {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}
