// SPDX-License-Identifier: Apache-2.0

// Package paths names places: it says of a path what losing it would mean, for the known homes, the project, and the
// machine. A path is judged as it is written and as the file system resolves it; the worse place counts.
package paths

import (
	"path"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/view"
)

// Place is where a path lies, as the first of the list that matches.
type Place string

// The places, in order of matching.
const (
	Tripline    Place = "tripline"     // Tripline itself, and agents' settings that can carry hooks
	Device      Place = "device"       // /dev, but for its harmless streams
	HomeRoot    Place = "home-root"    // a home, what is above it, its bases, and credentials
	ProjectRoot Place = "project-root" // the project's root, what is above it, and its .git
	Project     Place = "project"      // below the project's root
	Temp        Place = "temp"         // strictly inside /tmp or /var/tmp
	System      Place = "system"       // the machine's own directories
	Outside     Place = "outside-project"
)

// Result is what is known of one path.
type Result struct {
	Place Place
	// Path is the path as the file system resolves it; the clean form of what was asked for where nothing was resolved.
	Path string
	// Credentials is set for a home's keys and cloud credentials (Place is then HomeRoot).
	Credentials bool
	// Settings is set for an agent's settings file that can carry hooks (Place is then Tripline).
	Settings bool
	// SystemTop is set for "/", a system directory itself and its direct children.
	SystemTop bool
	// Sensitive says what else the file is: "env-file", "shell-start", "crontab", "unit", "history", "secret-file", or "".
	Sensitive string
	// BuildDir is set when the path is, or is below, a directory in the project that has a well-known build name;
	// BuildRoot is the nearest one, relative to the project's root. Whether it is regenerable, gitfile knows.
	BuildDir  bool
	BuildRoot string
	// Holds is a path of place Tripline below this one, which a recursive operation would take with it; "" if none is known.
	Holds string
	// Sink is set for /dev/null and the other streams to which writing harms nothing.
	Sink bool
	// Exists and Info say what is there now, links followed as asked; Exists is false when it could not be told.
	Exists bool
	Info   view.Info
	// Denied is set when the path could not be resolved: Place is then what its text says, and the truth may be worse.
	Denied bool
	// Deep is set with Denied when the path is longer than is followed: what its links lead to is not known.
	Deep bool
}

// Bounds of a path that is followed. The kernel takes no longer one than maxLength in one piece.
const (
	maxLength     = 4096
	maxComponents = 512
)

// Options make a Classifier.
type Options struct {
	Homes    []string // known homes, absolute; the worst counts
	Cwd      string   // the agent's current directory; "" = unknown
	FirstCwd string   // the session's first directory; "" = Cwd
	Project  string   // overrides the project's root
	Own      []string // files and directories of this install beyond the well-known ones
	Reader   view.Reader
}

// Classifier names the places of one decision. It is not safe for concurrent use.
type Classifier struct {
	r     view.Reader // nil = text only
	cwd   string
	root  string
	roots []string    // root as written and as resolved
	homes []string    // homes as written and as resolved
	own   []string    // Own, as written and as resolved
	fold  bool        // the disk takes A for a
	known *identities // made when first needed
	dirs  map[string]resolved
}

// resolved is what a directory's links lead to.
type resolved struct {
	path string
	err  error
}

// Root returns the project's root, "" if there is none.
func (c *Classifier) Root() string { return c.root }

// Roots returns the project's root as written and as resolved.
func (c *Classifier) Roots() []string { return c.roots }

// Cwd returns the directory that the classifier was made for.
func (c *Classifier) Cwd() string { return c.cwd }

// Abs makes word absolute, relative to cwd ("" = the classifier's own), and cleans it where that does not change its
// meaning: a ".." that follows a symbolic link stays, since the kernel goes to the parent of the link's target. A trailing
// slash or "/." goes; see Follows. It returns "" if neither word nor cwd is absolute.
func (c *Classifier) Abs(cwd, word string) string {
	if cwd == "" {
		cwd = c.cwd
	}
	p := word
	if !path.IsAbs(p) {
		if !path.IsAbs(cwd) {
			return ""
		}
		p = cwd + "/" + word
	}
	clean := path.Clean(p)
	if c.r == nil || !strings.Contains(p, "..") {
		return clean
	}
	if deep(p) {
		return squeeze(p)
	}
	if real, err := c.r.Resolve(p); err == nil {
		if straight, err := c.r.Resolve(clean); err == nil && straight == real {
			return clean
		}
	}
	return squeeze(p)
}

// squeeze drops "." and empty components, and nothing else.
func squeeze(p string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(p, "/") {
		if part != "" && part != "." {
			b.WriteByte('/')
			b.WriteString(part)
		}
	}
	if b.Len() == 0 {
		return "/"
	}
	return b.String()
}

// Follows reports whether a word names what its link points to even for a program that takes names, such as rm: it ends
// in a slash, "/." or "/..", or is "." or "..".
func Follows(word string) bool {
	base := word[strings.LastIndexByte(word, '/')+1:]
	return base == "" && word != "" || base == "." || base == ".."
}
