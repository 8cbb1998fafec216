// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tailscale/hujson"

	"github.com/tripline-sh/tripline/hooks/install"
)

const oneLine = `{"model": "opus", "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}, "permissions": {"allow": ["Bash(ls)", "Read"]}}` + "\n"

// changedLines are the lines of a diff that it takes out and puts in.
func changedLines(diff string) (out []string) {
	for line := range strings.Lines(diff) {
		if strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "+++ ") {
			continue
		}
		if line[0] == '+' || line[0] == '-' {
			out = append(out, line)
		}
	}
	return out
}

func TestAFileOnOneLineIsShownWithAnEntryALine(t *testing.T) {
	t.Parallel()
	o := options(t)
	write(t, o.Path, oneLine)
	c, err := install.Plan(o)
	if err != nil {
		t.Fatal(err)
	}
	check := func(c *install.Change, wantNote string) {
		t.Helper()
		diff, note := c.Readable()
		if note != wantNote {
			t.Errorf("note %q, want %q", note, wantNote)
		}
		if !strings.Contains(diff, "\n       {\"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]}") && // a line of context, or one that gets a comma
			!strings.Contains(diff, "-      {\"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]}") {
			t.Errorf("the foreign entry has no line of its own:\n%s", diff)
		}
		for _, line := range changedLines(diff) {
			if strings.Count(line, "tripline-hook") > 1 || len(line) > 400 {
				t.Errorf("a line has more than an entry: %s", line)
			}
		}
		if got := patch(t, string(install.Broken(c.Old)), diff); got != string(install.Broken(c.New)) {
			t.Errorf("the diff makes\n%s", got)
		}
		if got := patch(t, string(c.Old), c.Diff()); got != string(c.New) {
			t.Errorf("the exact diff makes\n%s", got)
		}
	}
	more := len(c.New) - len(c.Old)
	check(c, "shown with one entry a line; the file keeps its own layout: from line 1 on, 0 bytes go and "+strconv.Itoa(more)+" come")
	if !bytes.HasPrefix(c.New, []byte(oneLine[:80])) || bytes.Count(c.New, []byte("\n")) != 1 {
		t.Errorf("the file lost its layout: %s", c.New)
	}
	write(t, o.Path, string(c.New))
	back, err := install.PlanRemoval(o.Path, o.Owner)
	if err != nil || string(back.New) != oneLine {
		t.Fatalf("%v: %s", err, back.New)
	}
	check(back, "shown with one entry a line; the file keeps its own layout: from line 1 on, "+strconv.Itoa(more)+" bytes go and 0 come")
}

func TestAFileOnManyLinesIsShownAsItIs(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "{\n  \"model\": \"opus\"\n}\n", "{\n\t\"hooks\": {\n\t\t\"Stop\": [" + ourGroup("Stop") + "]\n\t},\n\t\"env\": {\"A\": \"b\"}\n}\n"} {
		o := options(t)
		if text != "" {
			write(t, o.Path, text)
		}
		c, err := install.Plan(o)
		if err != nil {
			t.Fatal(err)
		}
		if diff, note := c.Readable(); diff != c.Diff() || note != "" {
			t.Errorf("%q: %q\n%s", text, note, diff)
		}
	}
}

func TestBreakingLinesChangesNothingButBlanks(t *testing.T) {
	t.Parallel()
	texts := []string{oneLine, `{"a":[],"b":{},"c":[ ],"//":"/* { */","d":[1,/* [ */2], // {` + "\n" + `"e":"\"}"}`, "{\r\n\"a\":1,\r\n\"b\":[1,2]}"}
	for _, f := range files {
		texts = append(texts, f.text)
	}
	for _, text := range texts {
		sameJSON(t, []byte(text))
	}
	if got, want := string(install.Broken([]byte(`{"a":[],"h":{"S":[{"x":[1,2]}, {"y":2}]}}`))), "{\n  \"a\":[],\n  \"h\":{\n    \"S\":[\n      {\"x\":[1,2]},\n      {\"y\":2}\n    ]\n  }\n}"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if install.Broken(nil) != nil {
		t.Error("no file became one")
	}
}

func sameJSON(t *testing.T, text []byte) {
	t.Helper()
	got := install.Broken(text)
	want, err := hujson.Minimize(slices.Clone(text))
	if err != nil {
		return // it must not fail, that is all
	}
	if got, err = hujson.Minimize(got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%q, %v became %q", want, err, got)
	}
	if twice := install.Broken(install.Broken(text)); !bytes.Equal(twice, install.Broken(text)) {
		t.Errorf("%q: breaking it again makes %q", text, twice)
	}
}

func FuzzBroken(f *testing.F) {
	for _, file := range files {
		f.Add([]byte(file.text))
	}
	f.Add([]byte(oneLine))
	f.Add([]byte(`{"a":[1,/* [ */2], // {` + "\n" + `"e":"\"}"}`))
	f.Fuzz(sameJSON)
}
