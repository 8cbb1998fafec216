// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pages are the runbooks, by the name of their alert.
func pages(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("runbooks/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no runbooks: %v", err)
	}
	out := map[string]string{}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSuffix(filepath.Base(path), ".md")] = string(data)
	}
	return out
}

func TestEveryAlertHasARunbookThatBeginsWithACommand(t *testing.T) {
	t.Parallel()
	alerts, _ := rules(t)
	left := pages(t)
	for _, a := range alerts {
		page, ok := left[a.Alert]
		if !ok {
			t.Errorf("%s has no runbook", a.Alert)
			continue
		}
		delete(left, a.Alert)
		if !strings.HasPrefix(page, "# "+a.Alert+"\n\n```\nauditctl ") {
			t.Errorf("the runbook of %s does not begin with its name and a command", a.Alert)
		}
		last := 0
		for _, part := range []string{"\n**Meaning.** ", "\n**Likely causes**\n", "\n**What to do**\n", "\n**Silencing it honestly.** "} {
			at := strings.Index(page, part)
			if at < last {
				t.Errorf("the runbook of %s has no %q in its place", a.Alert, strings.TrimSpace(part))
			}
			last = at
		}
		if lines := strings.Count(page, "\n"); lines > 45 {
			t.Errorf("the runbook of %s has %d lines", a.Alert, lines)
		}
		for _, other := range regexp.MustCompile(`\bTripline[A-Z]\w+`).FindAllString(page, -1) {
			if _, err := os.Stat("runbooks/" + other + ".md"); err != nil {
				t.Errorf("the runbook of %s names %s: %v", a.Alert, other, err)
			}
		}
	}
	for name := range left {
		t.Errorf("the runbook %s belongs to no alert", name)
	}
}

// Every command line of a runbook is one that auditctl knows, flags included: its own help is asked.
func TestCommandsOfRunbooksExist(t *testing.T) {
	t.Parallel()
	auditctl := filepath.Join(t.TempDir(), "auditctl")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", auditctl, "../../cmd/auditctl").CombinedOutput(); err != nil {
		t.Fatalf("auditctl does not build: %v\n%s", err, out)
	}
	help := map[string]string{}
	ask := func(words ...string) string {
		key := strings.Join(words, " ")
		if _, ok := help[key]; !ok {
			cmd := exec.CommandContext(t.Context(), auditctl, append(words, "--help")...)
			cmd.Env = []string{"HOME=" + t.TempDir()}
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("auditctl %s --help: %v", key, err)
			}
			help[key] = string(out)
		}
		return help[key]
	}
	groups := map[string]bool{"approvals": true, "rules": true}
	flag := regexp.MustCompile(`(?:^| )(--[a-z-]+|-[a-z])\b`)
	for name, page := range pages(t) {
		for _, line := range codes(page) {
			words := strings.Fields(line)[1:]
			path := words[:1]
			if groups[words[0]] {
				path = words[:min(2, len(words))]
			}
			text := ask(path...)
			if usage := "auditctl " + strings.Join(path, " "); !strings.Contains(text, usage) {
				t.Errorf("%s: %q: auditctl has no such command", name, line)
				continue
			}
			own, _, _ := strings.Cut(line, " -- ")
			for _, m := range flag.FindAllStringSubmatch(own, -1) {
				if !strings.Contains(text, m[1]+" ") && !strings.Contains(text, m[1]+",") {
					t.Errorf("%s: %q: there is no flag %s", name, line, m[1])
				}
			}
		}
	}
}

// codes are the command lines of a page: in its first block, and between backticks.
func codes(page string) []string {
	var out []string
	for i, part := range strings.Split(page, "`") {
		if i%2 == 0 && !strings.HasPrefix(part, "\nauditctl ") {
			continue
		}
		for line := range strings.Lines(part) {
			if strings.HasPrefix(line, "auditctl ") {
				out = append(out, strings.TrimSpace(line))
			}
		}
	}
	return out
}
