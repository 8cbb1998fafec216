// SPDX-License-Identifier: Apache-2.0

package paths

import (
	"path"
	"slices"
	"strings"
)

// credentialDirs are the directories of a home whose every file is a credential. Relative to the home, lower case.
var credentialDirs = [...]string{".ssh", ".gnupg", ".aws", ".kube", ".docker", ".config/gcloud"}

// openTop reports whether a direct child of "/" is not the machine's own.
func openTop(p string) bool {
	switch p {
	case "/home", "/tmp", "/mnt", "/media", "/Users", "/users":
		return true
	}
	return false
}

// systemDir reports whether everything below a direct child of "/" is the machine's own.
func systemDir(top string) bool {
	switch top {
	case "/bin", "/boot", "/etc", "/opt", "/proc", "/run", "/sbin", "/srv", "/sys", "/usr", "/var",
		"/System", "/Library", "/system", "/library":
		return true
	}
	return strings.HasPrefix(top, "/lib")
}

// systemTop reports whether p is "/", a direct child of it that is the machine's own, or a direct child of a system
// directory.
func (c *Classifier) systemTop(p string) bool {
	if p == "/" {
		return true
	}
	dir := path.Dir(p)
	if dir == "/" {
		return !openTop(p)
	}
	return path.Dir(dir) == "/" && (systemDir(dir) || dir == "/root" && !slices.Contains(c.homes, "/root"))
}

// BuildDir reports whether a directory of this name is well known to be made by a build, and made again by the next one.
func BuildDir(name string) bool {
	switch name {
	case "node_modules", "bower_components", "jspm_packages", "target", "dist", "build", "_build", "out",
		".next", ".nuxt", ".output", ".svelte-kit", ".angular", ".turbo", ".vite", ".parcel-cache", ".cache",
		"storybook-static", ".docusaurus", ".venv", "venv", "__pycache__", ".pytest_cache", ".mypy_cache",
		".ruff_cache", ".hypothesis", ".tox", ".nox", ".eggs", "htmlcov", "coverage", ".nyc_output", ".gradle",
		".dart_tool", "DerivedData", ".build", "elm-stuff", ".stack-work", "dist-newstyle",
		"zig-cache", ".zig-cache", "zig-out", "cmake-build-debug", "cmake-build-release", ".serverless",
		".ipynb_checkpoints":
		return true
	}
	return len(name) > len(".egg-info") && strings.HasSuffix(name, ".egg-info")
}

// buildRoot returns the nearest build directory that is p or holds it, relative to the project's root.
func (c *Classifier) buildRoot(p string) (string, bool) {
	for _, root := range c.roots {
		if len(p) <= len(root) || p[len(root)] != '/' || c.folded(p[:len(root)]) != c.folded(root) {
			continue
		}
		for rel := p[len(root)+1:]; rel != ""; {
			slash := strings.LastIndexByte(rel, '/')
			if BuildDir(rel[slash+1:]) {
				return rel, true
			}
			rel = rel[:max(slash, 0)]
		}
	}
	return "", false
}

// sensitive says what a file is besides its place.
func (c *Classifier) sensitive(p string) string {
	base := path.Base(p)
	if envFile(base) {
		return "env-file"
	}
	switch base {
	case "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk":
		return "secret-file"
	}
	for _, home := range c.homes {
		if rel, ok := strings.CutPrefix(p, c.folded(home)+"/"); ok {
			if s := sensitiveInHome(rel); s != "" {
				return s
			}
		}
	}
	return sensitiveInSystem(p)
}

// envFile reports whether a name is that of a file of secrets in environment form. Its templates hold none.
func envFile(base string) bool {
	rest, ok := strings.CutPrefix(base, ".env")
	if !ok {
		return false
	}
	switch rest {
	case "", "rc":
		return true
	case ".example", ".sample", ".template", ".dist":
		return false
	}
	return strings.ContainsRune("._-", rune(rest[0]))
}

func sensitiveInHome(rel string) string {
	switch rel {
	case ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv",
		".zprofile", ".zlogin", ".zlogout", ".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".logout", ".xprofile",
		".xinitrc", ".xsession", ".pam_environment", ".config/fish/config.fish":
		return "shell-start"
	case ".bash_history", ".zsh_history", ".zhistory", ".sh_history", ".ksh_history", ".history", ".python_history",
		".psql_history", ".mysql_history", ".mariadb_history", ".sqlite_history", ".rediscli_history",
		".node_repl_history", ".irb_history", ".lesshst", ".local/share/fish/fish_history":
		return "history"
	case ".netrc", ".git-credentials", ".pypirc", ".vault-token", ".pgpass", ".my.cnf", ".config/gh/hosts.yml",
		".config/hub", ".config/git/credentials":
		return "secret-file"
	}
	switch {
	case below(rel, ".config/fish/conf.d"), below(rel, ".config/environment.d"), below(rel, ".config/fish/functions"):
		return "shell-start"
	case below(rel, ".config/systemd"), below(rel, ".local/share/systemd"), below(rel, ".config/autostart"),
		below(rel, "Library/LaunchAgents"), below(rel, "library/launchagents"):
		return "unit"
	case below(rel, ".azure"), below(rel, ".config/op"), below(rel, ".password-store"):
		return "secret-file"
	}
	return ""
}

func sensitiveInSystem(p string) string {
	switch p {
	case "/etc/profile", "/etc/bash.bashrc", "/etc/bashrc", "/etc/environment", "/etc/zshrc", "/etc/zshenv",
		"/etc/zprofile", "/etc/csh.cshrc", "/etc/csh.login":
		return "shell-start"
	case "/etc/crontab", "/etc/anacrontab":
		return "crontab"
	case "/etc/shadow", "/etc/gshadow", "/etc/sudoers":
		return "secret-file"
	}
	switch {
	case below(p, "/etc/profile.d"), below(p, "/etc/zsh"), below(p, "/etc/fish"):
		return "shell-start"
	case below(p, "/var/spool/cron"), below(p, "/usr/lib/cron"), strings.HasPrefix(p, "/etc/cron."):
		return "crontab"
	case below(p, "/etc/systemd"), below(p, "/usr/lib/systemd"), below(p, "/lib/systemd"), below(p, "/etc/init.d"),
		below(p, "/usr/local/lib/systemd"), below(p, "/run/systemd/system"),
		slices.ContainsFunc([]string{"/Library/LaunchAgents", "/Library/LaunchDaemons", "/library/launchagents",
			"/library/launchdaemons"}, func(dir string) bool { return below(p, dir) }):
		return "unit"
	}
	return ""
}
