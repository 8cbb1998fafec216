// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"fmt"
	"strings"
	"testing"
)

func TestPermissionListsAreReadFromTolerantJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":   "{[] [] []}",
		"{}": "{[] [] []}",
		`{"permissions":{"deny":["Bash(rm:*)"],"ask":[],"allow":["Read"]}}`:                             "{[Bash(rm:*)] [] [Read]}",
		"{ // mine\n\"permissions\": {\"deny\": [\"A\", /* x */ \"B\",], \"defaultMode\": \"plan\",},}": "{[A B] [] []}",
		"\ufeff{\"permissions\":{\"allow\":[\"\\u0042ash\"]}}":                                          "{[] [] [Bash]}",
		`{"hooks":{},"permissions":{}}`:                                                                 "{[] [] []}",
	} {
		p, err := ReadPermissions([]byte(text))
		if got := fmt.Sprint(p); err != nil || got != want {
			t.Errorf("%q: %v, %s, want %s", text, err, got, want)
		}
	}
	for _, text := range []string{"[", "[]", `{"permissions":[]}`, `{"permissions":null}`, `{"permissions":{"deny":"Bash"}}`, `{"permissions":{"deny":[1]}}`,
		`{"permissions":{},"permissions":{}}`, `{"permissions":{"deny":[],"deny":[]}}`, "\xff", strings.Repeat("[", 20000)} {
		if p, err := ReadPermissions([]byte(text)); err == nil || len(p.Deny)+len(p.Ask)+len(p.Allow) > 0 {
			t.Errorf("%.40q: read as %v", text, p)
		}
	}
}

func TestPermissionsAreTranslated(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]string{
		"Bash":                    "[Bash]",
		"Bash(*)":                 "[Bash]",
		"Bash(npm run test:*)":    "[Bash(npm run test:*)]",
		"Bash(npm run test *)":    "[Bash(npm run test:*)]",
		"Bash(npm run build)":     "[Bash(npm run build)]",
		"Read(~/x/**)":            "[Read(~/x/**)]",
		"Read(~/.zshrc)":          "[Read(~/.zshrc) Read(~/.zshrc/**)]",
		"Read(//etc/shadow)":      "[Read(/etc/shadow) Read(/etc/shadow/**)]",
		"Read(.env)":              "[Read(.env) Read(**/.env/**)]",
		"Read(./secrets/)":        "[Read(./secrets) Read(./secrets/**)]",
		"Edit(/src/**)":           "[Edit(./src/**)]",
		"MultiEdit(docs/*)":       "[Edit(docs/*)]",
		"Write(*)":                "[Write(*)]",
		"Grep(secrets)":           "[Read(secrets) Read(**/secrets/**)]",
		"WebFetch(domain:x.test)": "[WebFetch(domain:x.test)]",
		"WebFetch(*)":             "[WebFetch]",
		"WebSearch":               "[WebSearch]",
		"mcp__server":             "[mcp__server]",
		"mcp__server__tool":       "[mcp__server__tool]",
		"mcp__server__*":          "[mcp__server__*]",
		"mcp__server__tool(*)":    "[mcp__server__tool]",
		"Bash(git * main)":        "",
		"Bash(ls*)":               "",
		"Bash(:*)":                "[Bash]",
		"Bash()":                  "",
		"Bash(git":                "",
		"Task(Explore)":           "",
		"Read(!x)":                "",
		"Read(../x)":              "",
		"Read(a/../b)":            "",
		"Read(~other/x)":          "",
		" Bash":                   "",
		"":                        "",
		"Bash(a\nb)":              "",
		"Read(a\x00)":             "",
	} {
		got, why := Permission(entry, true)
		if want == "" {
			if len(got) > 0 || why == "" {
				t.Errorf("%q: got %q, why %q", entry, got, why)
			}
			continue
		}
		if fmt.Sprint(got) != want || why != "" {
			t.Errorf("%q: got %q (%s), want %s", entry, got, why, want)
		}
	}
	if got, _ := Permission("Read(/x)", false); fmt.Sprint(got) != "[Read(~/.claude/x) Read(~/.claude/x/**)]" {
		t.Errorf("in a user's settings: %q", got)
	}
}

func FuzzPermission(f *testing.F) {
	for _, s := range []string{"Bash(npm run test:*)", "Read(~/x/**)", "WebFetch(domain:x)", "mcp__server__tool", "Edit(//a/b)", "Read(!a)", "Bash(a\\)", "Read(\"'\u202e)"} {
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, entry string, project bool) {
		got, why := Permission(entry, project)
		if (len(got) == 0) == (why == "") || len(got) > 2 {
			t.Fatalf("%q: %q, %q", entry, got, why)
		}
		for _, p := range got {
			if p == "" || len(p) > len(entry)+len("Read(~/.claude/**)")+8 || strings.ContainsAny(p, "\n\x00") {
				t.Fatalf("%q: %q", entry, p)
			}
		}
	})
}
