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
const ordinaryName = "any-name"

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
		seen := map[string]bool{}
		put := func(dir string, names []string) {
			for _, name := range names {
				if p := strings.TrimSuffix(dir, "/") + "/" + name; !seen[p] && len(next) < maxCandidates {
					seen[p], next = true, append(next, p)
				}
			}
		}
		for _, d := range dirs { // what would be bad to lose in any of them comes before what is there
			put(d, x.notable(d, part))
		}
		for _, d := range dirs {
			put(d, x.listed(d, part))
		}
		dirs = next
	}
	if bare {
		for i, d := range dirs {
			dirs[i] = strings.TrimSuffix(d, "/") + "/"
		}
		last := pattern[strings.LastIndexByte(pattern, '/')+1:]
		for _, d := range dirs[:len(dirs):len(dirs)] {
			// The directory stands for what is in it, but one of its files may be worse to lose than the directory.
			for _, name := range x.guarded()[strings.TrimSuffix(d, "/")] {
				if matchName(last, name) {
					dirs = append(dirs, d+name)
				}
			}
		}
	}
	return dirs
}

// matchName reports whether a pattern may match a name in its directory. A leading dot must be matched by a dot.
func matchName(pattern, name string) bool {
	if strings.HasPrefix(name, ".") && !strings.HasPrefix(pattern, ".") && !strings.HasPrefix(pattern, "[") {
		return false
	}
	ok, err := doublestar.Match(strings.ReplaceAll(pattern, "[!", "[^"), name)
	return ok || err != nil
}

// notable lists what a pattern may match in a directory by its text: an ordinary name, and what would be bad to lose.
func (x *evaluation) notable(dir, pattern string) []string {
	out := []string{ordinaryName + globSuffix(pattern)}
	for _, name := range x.precious()[path.Clean(dir)] {
		if matchName(pattern, name) {
			out = append(out, name)
		}
	}
	return out
}

// listed lists what a pattern matches in a directory now.
func (x *evaluation) listed(dir, pattern string) []string {
	listing, err := x.view.ReadDir(dir, maxListing)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(listing), func(name string) bool { return !matchName(pattern, name) })
}

// precious lists the names that a pattern must not hit by chance, by their directory.
func (x *evaluation) precious() map[string][]string {
	if x.preciousNames != nil {
		return x.preciousNames
	}
	all := []string{"/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/opt", "/proc", "/root", "/run", "/sbin", "/srv",
		"/sys", "/usr", "/var", "/tmp/" + ordinaryName}
	for _, h := range x.homes {
		for _, name := range []string{".ssh", ".gnupg", ".aws", ".kube", ".docker", ".config", ".local", "Library"} {
			all = append(all, path.Join(h, name))
		}
	}
	if x.root != "" {
		all = append(all, path.Join(x.root, ".git"))
	}
	x.preciousNames = byDirectory(append(all, x.paths.Guarded()...), true)
	return x.preciousNames
}

// guarded lists the names of protected files, by their directory.
func (x *evaluation) guarded() map[string][]string {
	if x.guardedNames == nil {
		x.guardedNames = byDirectory(x.paths.Guarded(), false)
	}
	return x.guardedNames
}

// byDirectory splits paths into directory and name; with above, every directory on the way counts as a name as well.
func byDirectory(all []string, above bool) map[string][]string {
	out := map[string][]string{}
	for _, p := range all {
		for p != "/" {
			dir, name := path.Dir(p), path.Base(p)
			if !slices.Contains(out[dir], name) {
				out[dir] = append(out[dir], name)
			}
			if p = dir; !above {
				break
			}
		}
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
