// SPDX-License-Identifier: Apache-2.0

package paths

import (
	"errors"
	"path"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/view"
)

// maxKeys bounds how many files of one credential directory are compared.
const maxKeys = 256

// id is a file's identity whatever it is called.
type id struct{ dev, ino uint64 }

// identities are what is protected, by identity: a hard link, a bind mount, a process's root, or another spelling on a disk
// that folds case reaches the same file by a path that says nothing of it.
type identities struct {
	path    map[id]string // the path by which we know it
	unsure  bool          // some could not be looked at in time
	keys    bool          // the credential files are in path
	watched []string      // credential directories
}

// compare adds to res what real is by identity, and whether it exists.
func (c *Classifier) compare(res Result, real string, follow bool) Result {
	info, err := c.r.Lstat(real)
	switch {
	case err == nil:
		res.Exists, res.Info = true, info
	case !absent(err):
		res.Denied = true
	}
	if c.known == nil {
		c.known = c.identify()
	}
	res.Denied = res.Denied || c.known.unsure
	if res.Exists && info.Mode.IsRegular() && info.Nlink > 1 {
		c.addKeys()
	}
	names := prefixes(real)
	infos, err := c.r.StatBelow("/", names)
	if err != nil {
		res.Denied = true
		return res
	}
	if n := len(infos); n > 0 && !follow {
		infos[n-1] = info // the name itself, not what it links to
	}
	for i, at := range infos {
		known, ok := c.known.path[id{at.Dev, at.Ino}]
		if !ok || at.Ino == 0 {
			continue
		}
		if prefix := "/" + names[i]; known != prefix {
			res = worse(res, c.keepBuild(res, c.lexical(path.Join(known, real[len(prefix):]))))
		}
	}
	return c.probe(res, real)
}

// keepBuild lets an alias not take away what the path itself is: only a worse place counts.
func (c *Classifier) keepBuild(res, alias Result) Result {
	alias.BuildDir, alias.BuildRoot = res.BuildDir, res.BuildRoot
	return alias
}

// identify looks at everything protected that is there.
func (c *Classifier) identify() *identities {
	k := &identities{path: make(map[id]string)}
	for i := len(c.homes) - 1; i >= 0; i-- { // the first home's names last, so that they win
		home := c.homes[i]
		names := []string{".", ".config", ".local", ".local/bin", ".local/state", ".config/systemd", ".config/systemd/user",
			".config/opencode", ".config/amp", ".claude", ".claude.json", ".claude/settings.local.json", ".codex",
			".codex/hooks.json", ".gemini", ".qwen", ".cursor", ".copilot", ".factory", ".kiro", ".codeium", ".agents"}
		names = append(names, ownInHome[:]...)
		names = append(names, heldInHome[:]...)
		names = append(names, credentialDirs[:]...)
		c.look(k, home, names)
		for _, dir := range credentialDirs {
			k.watched = append(k.watched, path.Join(home, dir))
		}
	}
	var names []string
	for _, o := range c.own {
		names = append(names, o[1:])
	}
	for _, o := range ownOnMachine {
		if !strings.HasSuffix(o, "*") {
			names = append(names, o[1:])
		}
	}
	for _, dir := range []string{"usr/bin/", "usr/local/bin/"} {
		names = append(names, dir+"tripline", dir+"triplined", dir+"tripline-hook")
	}
	if c.root != "" {
		root := c.root[1:]
		names = append(names, root, root+"/.git", root+"/.claude", root+"/.codex", root+"/.gemini", root+"/.qwen",
			root+"/.cursor", root+"/.claude/settings.json", root+"/.claude/settings.local.json",
			root+"/.codex/hooks.json", root+"/.codex/config.toml", root+"/.gemini/settings.json",
			root+"/.qwen/settings.json", root+"/.cursor/hooks.json")
	}
	c.look(k, "/", append(names, "."))
	return k
}

func (c *Classifier) look(k *identities, dir string, names []string) {
	infos, err := c.r.StatBelow(dir, names)
	if err != nil {
		k.unsure = k.unsure || !absent(err) && !errors.Is(err, view.ErrDenied)
		return
	}
	for i, at := range infos {
		if at.Ino != 0 {
			k.path[id{at.Dev, at.Ino}] = path.Join(dir, names[i])
		}
	}
}

// addKeys adds the files of the credential directories: a file with several names may be one of them.
func (c *Classifier) addKeys() {
	if c.known.keys {
		return
	}
	c.known.keys = true
	for _, dir := range c.known.watched {
		if names, err := c.r.Quiet().ReadDir(dir, maxKeys); err == nil && len(names) > 0 {
			c.look(c.known, dir, names)
		}
	}
}

// probe looks for settings that a directory with a common name really holds.
func (c *Classifier) probe(res Result, real string) Result {
	if res.Holds != "" || !res.Exists || !res.Info.Mode.IsDir() {
		return res
	}
	var names []string
	switch path.Base(real) {
	case ".github":
		names = []string{"hooks", "copilot/settings.json", "copilot/settings.local.json"}
	case ".copilot", ".factory", ".amp":
		names = []string{"settings.json", "hooks.json", "hooks", "plugins"}
	case ".kiro", ".clinerules", ".cline", ".windsurf", ".devin", ".opencode", ".agents":
		names = []string{"hooks", "hooks.json", "agents", "plugin", "plugins"}
	default:
		return res
	}
	infos, err := c.r.StatBelow(real, names)
	if err != nil {
		res.Denied = true
		return res
	}
	for i, at := range infos {
		if at.Ino != 0 {
			res.Holds = path.Join(real, names[i])
			break
		}
	}
	return res
}

// prefixes returns every leading part of a clean absolute path, without the first slash.
func prefixes(p string) []string {
	var list []string
	for i := 1; i < len(p); i++ {
		if p[i] == '/' {
			list = append(list, p[1:i])
		}
	}
	if len(p) > 1 {
		list = append(list, p[1:])
	}
	return list
}
