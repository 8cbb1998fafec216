// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Bounds of the expansion of one pattern.
const (
	maxCandidates = 48
	maxListing    = 512
)

// ordinaryName stands for a name that nothing is known of.
const ordinaryName = "tripline-any-name"

// expand lists paths that an absolute shell pattern may stand for: those that are there, those that would be bad to lose, and
// an ordinary name, since the pattern is judged as if it matched something. A pattern whose last part is a bare glob stands
// for its directory, marked by a trailing slash.
func (x *evaluation) expand(pattern string) []string {
	parts := strings.Split(strings.Trim(squeezeSlashes(pattern), "/"), "/")
	bare := false
	for len(parts) > 0 && bareGlob(parts[len(parts)-1]) {
		parts, bare = parts[:len(parts)-1], true
	}
	dirs := []string{"/"}
	for _, part := range parts {
		if !strings.ContainsAny(part, `*?[`) {
			name := unescape(part)
			for i := range dirs {
				dirs[i] = strings.TrimSuffix(dirs[i], "/") + "/" + name
			}
			continue
		}
		var next []string
		for _, d := range dirs {
			for _, name := range x.names(d, part) {
				if p := strings.TrimSuffix(d, "/") + "/" + name; len(next) < maxCandidates && !slices.Contains(next, p) {
					next = append(next, p)
				}
			}
		}
		dirs = next
	}
	if bare {
		for i, d := range dirs {
			dirs[i] = strings.TrimSuffix(d, "/") + "/"
		}
	}
	return dirs
}

// names lists what a pattern may match in a directory: first what would be bad to lose, then what is there.
func (x *evaluation) names(dir, pattern string) []string {
	out := []string{ordinaryName + globSuffix(pattern)}
	matches := func(name string) bool {
		if strings.HasPrefix(name, ".") && !strings.HasPrefix(pattern, ".") && !strings.HasPrefix(pattern, "[") {
			return false
		}
		ok, err := doublestar.Match(strings.ReplaceAll(pattern, "[!", "[^"), name)
		return ok || err != nil
	}
	for _, p := range x.precious() {
		rest, ok := strings.CutPrefix(p, strings.TrimSuffix(path.Clean(dir), "/")+"/")
		if !ok {
			continue
		}
		if name, _, _ := strings.Cut(rest, "/"); matches(name) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	if listing, err := x.view.ReadDir(dir, maxListing); err == nil {
		for _, name := range listing {
			if matches(name) && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// precious lists the paths that a pattern must not hit by chance.
func (x *evaluation) precious() []string {
	out := []string{"/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/opt", "/proc", "/root", "/run", "/sbin", "/srv",
		"/sys", "/usr", "/var", "/tmp/" + ordinaryName}
	for _, h := range x.homes {
		for _, name := range []string{".ssh", ".gnupg", ".aws", ".kube", ".docker", ".config", ".local", "Library",
			".claude/settings.json", ".codex/config.toml", ".gemini/settings.json"} {
			out = append(out, path.Join(h, name))
		}
	}
	if x.root != "" {
		out = append(out, path.Join(x.root, ".git"))
	}
	return out
}

// bareGlob reports whether a component matches whatever is there.
func bareGlob(part string) bool {
	switch part {
	case "*", "**", ".*", "?*", "*?", ".?*", ".??*", ".[!.]*", ".[^.]*", "[!.]*", "[^.]*", "*.*":
		return true
	}
	return false
}

// globSuffix keeps the literal end of a pattern, so that "*.pyc" stands for an ordinary name that ends in .pyc.
func globSuffix(pattern string) string {
	s := pattern[strings.LastIndexAny(pattern, "*?]")+1:]
	return unescape(s)
}

func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func squeezeSlashes(s string) string {
	for strings.Contains(s, "//") {
		s = strings.ReplaceAll(s, "//", "/")
	}
	var parts []string
	for p := range strings.SplitSeq(s, "/") {
		switch {
		case p == ".":
		case p == ".." && len(parts) > 1 && parts[len(parts)-1] != "..":
			parts = parts[:len(parts)-1]
		default:
			parts = append(parts, p)
		}
	}
	if len(parts) == 1 {
		return "/"
	}
	return strings.Join(parts, "/")
}
