// SPDX-License-Identifier: Apache-2.0

package paths

import (
	"path"
	"strings"
)

// What is ours in a home: files and whole directories, relative to it.
var ownInHome = [...]string{
	".config/tripline", ".local/state/tripline",
	".local/bin/auditctl", ".local/bin/tripline", ".local/bin/triplined", ".local/bin/tripline-hook",
}

// What is ours on the machine. A name that ends in "*" stands for every name that starts so.
var ownOnMachine = [...]string{
	"/etc/tripline", "/var/lib/tripline", "/run/tripline", "/var/run/tripline", "/usr/lib/tripline", "/usr/local/lib/tripline",
	"/usr/bin/tripline*", "/usr/local/bin/tripline*", "/usr/sbin/tripline*", "/usr/local/sbin/tripline*",
	"/etc/systemd/system/tripline*", "/etc/systemd/user/tripline*",
	"/usr/lib/systemd/system/tripline*", "/usr/lib/systemd/user/tripline*",
	"/lib/systemd/system/tripline*", "/lib/systemd/user/tripline*",
	"/usr/local/lib/systemd/system/tripline*", "/usr/local/lib/systemd/user/tripline*",
}

// Directories that hold agents' managed settings.
var settingsOnMachine = [...]string{
	"/etc/claude-code", "/Library/Application Support/ClaudeCode", "/etc/codex", "/etc/gemini-cli",
	"/Library/Application Support/GeminiCli", "/etc/qwen-code", "/etc/cursor", "/Library/Application Support/Cursor",
	"/etc/github-copilot", "/etc/windsurf", "/etc/opencode",
}

// What a recursive operation on a directory of a home would take with it even where it is not there yet.
var heldInHome = [...]string{
	".claude/settings.json", ".codex/config.toml", ".gemini/settings.json", ".qwen/settings.json", ".cursor/hooks.json",
	".copilot/settings.json", ".factory/settings.json", ".kiro/agents", ".config/opencode/opencode.json",
	".config/amp/settings.json", ".codeium/windsurf/hooks.json", ".agents/plugins",
	".config/systemd/user/triplined.service",
}

// protected reports whether p is ours, or an agent's settings file that can carry hooks.
func (c *Classifier) protected(p string) (own, settings bool) {
	for _, o := range c.own {
		if below(p, c.folded(o)) {
			return true, false
		}
	}
	for _, home := range c.homes {
		rel, ok := strings.CutPrefix(p, c.folded(home)+"/")
		if !ok {
			continue
		}
		for _, o := range ownInHome {
			if below(rel, o) {
				return true, false
			}
		}
		if unitInHome(rel) {
			return true, false
		}
		if rel == ".claude.json" {
			return true, true
		}
	}
	for _, o := range ownOnMachine {
		if prefix, ok := strings.CutSuffix(o, "*"); ok && strings.HasPrefix(p, prefix) || below(p, o) {
			return true, false
		}
	}
	if rest, ok := strings.CutPrefix(p, "/run/user/"); ok {
		if _, rest, ok = strings.Cut(rest, "/"); ok && (below(rest, "tripline") || unitIn(rest, "systemd/")) {
			return true, false
		}
	}
	if launchItem(p, "/library/") || unitIn(p, "/run/systemd/") {
		return true, false
	}
	for _, s := range settingsOnMachine {
		if below(p, c.folded(s)) {
			return true, true
		}
	}
	if settingsFile(p) {
		return true, true
	}
	return false, false
}

// unitInHome reports whether a path of a home is a unit of ours, or a link that enables one.
func unitInHome(rel string) bool {
	for _, dir := range []string{".config/systemd/user", ".local/share/systemd/user"} { // user.control and the like, too
		if unitIn(rel, dir) {
			return true
		}
	}
	return launchItem("/"+rel, "/library/")
}

// unitIn reports whether a path below prefix is a unit of ours, a link that enables one, or what is added to one.
func unitIn(p, prefix string) bool {
	rest, ok := strings.CutPrefix(p, prefix)
	return ok && strings.Contains(rest, "/tripline")
}

// launchItem reports whether p is one of our property lists for launchd.
func launchItem(p, library string) bool {
	if len(p) < len(library) || !strings.EqualFold(p[:len(library)], library) {
		return false
	}
	dir, base := path.Split(strings.ToLower(p[len(library):]))
	return (dir == "launchagents/" || dir == "launchdaemons/") && strings.Contains(base, "tripline")
}

// settingsFile reports whether p is, in whatever directory, a file from which an agent takes hooks or plugins that act as
// hooks. Any directory may be a project.
func settingsFile(p string) bool {
	switch path.Base(p) {
	case "opencode.json", "opencode.jsonc":
		return true
	}
	// Each component may be the agent's directory: start after every slash that is followed by a dot.
	for i := 0; i+1 < len(p); i++ {
		if p[i] != '/' || p[i+1] != '.' {
			continue
		}
		dir, rest, ok := strings.Cut(p[i+1:], "/")
		if ok && settingsIn(dir, rest) {
			return true
		}
	}
	return false
}

// settingsIn judges rest, a path in an agent's own directory.
func settingsIn(dir, rest string) bool {
	switch dir {
	case ".claude":
		return rest == "settings.json" || rest == "settings.local.json" || rest == "remote-settings.json" ||
			pluginHooks(rest, "plugins")
	case ".codex":
		return rest == "hooks.json" || rest == "config.toml" || rest == "requirements.toml" ||
			rest == "managed_config.toml" || pluginHooks(rest, "plugins")
	case ".gemini", ".qwen":
		return rest == "settings.json" || rest == "trusted_hooks.json" || rest == "trustedFolders.json" ||
			pluginHooks(rest, "extensions")
	case ".cursor", ".windsurf", ".devin":
		return rest == "hooks.json"
	case ".codeium":
		return rest == "hooks.json" || rest == "windsurf/hooks.json"
	case ".copilot":
		return rest == "settings.json" || rest == "config.json" || below(rest, "hooks") ||
			pluginHooks(rest, "installed-plugins")
	case ".github":
		return below(rest, "hooks") || rest == "copilot/settings.json" || rest == "copilot/settings.local.json"
	case ".factory":
		return rest == "settings.json" || rest == "settings.local.json" || rest == "hooks.json" || below(rest, "hooks")
	case ".kiro":
		return below(rest, "agents") || below(rest, "hooks")
	case ".opencode":
		return below(rest, "plugin") || below(rest, "plugins")
	case ".amp":
		return below(rest, "plugins") || rest == "settings.json"
	case ".agents":
		return pluginHooks(rest, "plugins")
	case ".clinerules", ".cline":
		return below(rest, "hooks")
	case ".config":
		switch agent, rest, _ := strings.Cut(rest, "/"); agent {
		case "opencode":
			return rest == "config.json" || below(rest, "plugin") || below(rest, "plugins")
		case "amp":
			return rest == "settings.json" || below(rest, "plugins")
		}
	}
	return false
}

// pluginHooks reports whether rest is the hook file of a plugin below dir.
func pluginHooks(rest, dir string) bool {
	return inside(rest, dir) && strings.HasSuffix(rest, "/hooks/hooks.json")
}

// holds returns a protected path strictly below p that a recursive operation on p would take with it, by p's text alone.
func (c *Classifier) holds(p string) string {
	for _, o := range c.own {
		if inside(c.folded(o), p) {
			return o
		}
	}
	for _, home := range c.homes {
		h := c.folded(home)
		if below(h, p) {
			return path.Join(home, ownInHome[0])
		}
		rel, ok := strings.CutPrefix(p, h+"/")
		if !ok {
			continue
		}
		for _, list := range [][]string{ownInHome[:], heldInHome[:]} {
			for _, o := range list {
				if inside(o, rel) {
					return path.Join(home, o)
				}
			}
		}
		if strings.EqualFold(rel, "Library/LaunchAgents") {
			return path.Join(home, "Library/LaunchAgents/tripline.plist")
		}
	}
	for _, o := range ownOnMachine {
		if inside(o, p) {
			return strings.TrimSuffix(o, "*")
		}
	}
	if rest, ok := strings.CutPrefix(p, "/run/user/"); ok && !strings.Contains(rest, "/") {
		return p + "/tripline"
	}
	switch base := path.Base(p); base {
	case ".claude", ".gemini", ".qwen":
		return p + "/settings.json"
	case ".codex", ".cursor":
		return p + "/hooks.json"
	}
	return ""
}

// Protects reports whether a recursive operation on dir would take a path of place Tripline with it, and which.
func (c *Classifier) Protects(dir string) (string, bool) {
	held := c.place(dir, true).Holds
	return held, held != ""
}

// Guarded lists paths of place Tripline that may be there: what is ours and the settings of well-known agents, in every known
// home, on the machine and in the project. A pattern or a search that reaches one of them reaches what is protected.
func (c *Classifier) Guarded() []string {
	out := append([]string{}, c.own...)
	for _, home := range c.homes {
		for _, list := range [][]string{ownInHome[:], heldInHome[:]} {
			for _, o := range list {
				out = append(out, path.Join(home, o))
			}
		}
		out = append(out, home+"/.claude.json", home+"/.claude/settings.local.json", home+"/.codex/hooks.json",
			home+"/.config/tripline/tripline.yaml", home+"/.config/tripline/rules.d")
	}
	for _, o := range ownOnMachine {
		if base, ok := strings.CutSuffix(o, "*"); ok && strings.HasSuffix(path.Dir(o), "bin") {
			out = append(out, base, base+"d", base+"-hook")
		} else if ok {
			out = append(out, base+"d.service")
		} else {
			out = append(out, o)
		}
	}
	for _, root := range c.roots {
		for _, o := range []string{".claude/settings.json", ".claude/settings.local.json", ".codex/config.toml", ".codex/hooks.json",
			".gemini/settings.json", ".qwen/settings.json", ".cursor/hooks.json"} {
			out = append(out, path.Join(root, o))
		}
	}
	return out
}
