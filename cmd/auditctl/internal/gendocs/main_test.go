// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
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
