// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"strings"
)

// checkSwitches looks for what makes the agent run no hook of ours. All of it is silent: no event is delivered then.
func checkSwitches(_ context.Context, f *Facts) []Finding {
	var out []Finding
	for _, name := range []string{"CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE"} {
		if on(f.Getenv(name)) {
			out = append(out, Finding{ID: "switches.env", Severity: Problem, Command: "unset " + name,
				Text: name + " is set in this shell: claude started from it runs no hook of the user's settings"})
		}
	}
	if f.Home != nil && wired(f.Home) && !f.User.Wired() {
		out = append(out, Finding{ID: "switches.config_dir", Severity: Problem, Command: "unset CLAUDE_CONFIG_DIR", Evidence: f.User.Path,
			Text: "CLAUDE_CONFIG_DIR is set in this shell: claude started from it reads other settings than the ones that are wired"})
	}
	out = append(out, f.switchesOf(&f.User.Settings)...)
	managedHooks := false
	for i := range f.Others {
		managedHooks = managedHooks || f.Others[i].Scope == "managed" && mentionsUs(&f.Others[i])
	}
	for i := range f.Others {
		s := &f.Others[i]
		if s.Err != nil {
			if s.Scope == "managed" {
				out = append(out, Finding{ID: "switches.managed_broken", Severity: Problem, Command: "sudo " + edit(s.Path), Evidence: s.Path,
					Text: "the administrator's settings cannot be read: claude refuses to start, or our hooks do not count: " + s.Err.Error()})
			}
			continue
		}
		out = append(out, f.switchesOf(s)...)
		if s.Scope == "managed" && s.ManagedOnly && !managedHooks {
			out = append(out, Finding{ID: "switches.managed_only", Severity: Problem, Command: "sudo " + edit(s.Path), Evidence: s.Path,
				Text: "the administrator allows managed hooks only (allowManagedHooksOnly), and ours are not among them: the entries in the user's settings are not run"})
		}
	}
	return out
}

// switchesOf looks at what one file switches off or blinds.
func (f *Facts) switchesOf(s *Settings) []Finding {
	var out []Finding
	command := edit(s.Path)
	if s.Scope == "managed" {
		command = "sudo " + command
	}
	if s.DisableAll {
		out = append(out, Finding{ID: "switches.disable_all", Severity: Problem, Command: command, Evidence: s.Path,
			Text: "disableAllHooks is true in the " + s.Scope + " settings: claude runs no hook" + where(s.Scope)})
	}
	var blind []string
	for _, name := range s.Env {
		if blinding(name, s.Scope) {
			blind = append(blind, name)
		}
	}
	if len(blind) > 0 {
		p := Finding{ID: "switches.blinding", Severity: Problem, Command: command, Evidence: s.Path,
			Text: "the " + s.Scope + " settings set variables that can make commands do something else than what we judge, or switch hooks off: " + some(blind)}
		if s.Scope == "user" || s.Scope == "managed" {
			p.Severity = Warning // the person's own
		}
		out = append(out, p)
	}
	return out
}

func where(scope string) string {
	if scope == "project" || scope == "local" {
		return " in this project"
	}
	return ""
}

func wired(s *Settings) bool {
	for _, h := range s.Handlers {
		if h.Ours {
			return true
		}
	}
	return false
}

func mentionsUs(s *Settings) bool {
	for _, h := range s.Handlers {
		if h.Mentions("tripline-hook") {
			return true
		}
	}
	return false
}

// on reports whether the agent takes a variable's value for yes.
func on(value string) bool {
	switch strings.ToLower(value) {
	case "", "0", "false", "no", "off":
		return false
	}
	return true
}

// blinding reports whether a variable that a settings file sets can switch hooks off, end the hook, or make every command run
// something else. A person's own PATH is their business; a project's is not.
func blinding(name, scope string) bool {
	switch name {
	case "PATH":
		return scope == "project" || scope == "local"
	case "BASH_ENV", "ENV", "ZDOTDIR", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND", "SHELL", "CLAUDE_CODE_SHELL", "CLAUDE_CODE_SHELL_PREFIX", "CLAUDE_CODE_SIMPLE",
		"CLAUDE_CODE_SAFE_MODE", "CLAUDE_CONFIG_DIR", "GOMEMLIMIT", "GOMAXPROCS", "GODEBUG", "GOTRACEBACK", "GOGC":
		return true
	}
	for _, prefix := range []string{"LD_", "DYLD_", "TRIPLINE_", "BASH_FUNC_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
