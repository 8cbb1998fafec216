// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tripline-sh/tripline/cmd/auditctl/internal/ctl"
)

const committed = "../../../../contrib/docs/cli.md"

func TestTheReferenceIsThatOfTheProgram(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "cli.md")
	if err := run([]string{"cli", file}); err != nil {
		t.Fatal(err)
	}
	made, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(made, kept) {
		t.Error("contrib/docs/cli.md is not what the program says of itself: run `make docs`")
	}
}

func TestEveryCommandHasAManPage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := run([]string{"man", dir}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"auditctl", "auditctl-query", "auditctl-approvals-approve"} {
		b, err := os.ReadFile(filepath.Join(dir, name+".1"))
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.Contains(string(b), ".SH SYNOPSIS") {
			t.Errorf("%s.1 is no man page", name)
		}
	}
}

func TestTheSynopsisOfAGroupTellsOfCommands(t *testing.T) {
	t.Parallel()
	dir := manPages(t)
	for name, want := range map[string]string{
		"auditctl":        `\fBauditctl COMMAND\fP`,
		"auditctl-rules":  `\fBauditctl rules COMMAND\fP`,
		"auditctl-verify": `\fBauditctl verify [flags]\fP`,
	} {
		if page := read(t, filepath.Join(dir, name+".1")); !strings.Contains(page, ".SH SYNOPSIS\n"+want+"\n") {
			t.Errorf("%s.1 does not say %s", name, want)
		}
	}
}

func TestManPagesHaveADateAndNoTabs(t *testing.T) {
	t.Parallel()
	dir := manPages(t)
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(pages) < 30 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, name := range pages {
		page := read(t, name)
		if !strings.Contains(page, ` "1" "2001-09-09" "Tripline"`) {
			t.Errorf("%s has no date: %.80q", filepath.Base(name), page)
		}
		if text, _, _ := strings.Cut(page, ".SH EXAMPLE"); strings.Contains(text, "\t") {
			t.Errorf("%s has tabs", filepath.Base(name))
		}
	}
	if page := read(t, filepath.Join(dir, "auditctl-query.1")); !strings.Contains(page, ".TP\n\\fB--agent\\fP=\"\"\nonly this agent\n") {
		t.Errorf("options are no list:\n%s", page)
	}
	mandoc, err := exec.LookPath("mandoc")
	if err != nil {
		t.Log("NOT LINTED: there is no mandoc on this machine")
		return
	}
	out, err := exec.Command(mandoc, append([]string{"-T", "lint", "-W", "warning"}, pages...)...).CombinedOutput()
	if err != nil || len(out) != 0 {
		t.Errorf("mandoc: %v\n%s", err, out)
	}
}

func TestTheDateOfThePagesDoesNotDependOnTheDay(t *testing.T) {
	t.Parallel()
	for epoch, want := range map[string]string{"": revised, "0": "1970-01-01", "1000000000": "2001-09-09"} {
		if got, err := manDate(epoch); got != want || err != nil {
			t.Errorf("%q: %q, %v", epoch, got, err)
		}
	}
	if _, err := manDate("today"); err == nil {
		t.Error("no number was taken")
	}
}

// manPages renders all pages with a date of 2001.
func manPages(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := man(ctl.Tree("auditctl"), dir, "2001-09-09"); err != nil {
		t.Fatal(err)
	}
	return dir
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestEveryCommandSaysWhatItDoesAndHowItExits(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	page(&b, ctl.Tree("auditctl"))
	for _, part := range strings.Split(b.String(), "\n## ")[1:] {
		title, text, _ := strings.Cut(part, "\n")
		if group := strings.Contains(b.String(), "\n## "+title+" "); !group && !strings.Contains(text, "Exit codes:") {
			t.Errorf("%s does not list its exit codes", title)
		}
	}
}

func TestBadArguments(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"cli"}, {"pdf", "x"}} {
		if run(args) == nil {
			t.Errorf("%q is taken", args)
		}
	}
}
