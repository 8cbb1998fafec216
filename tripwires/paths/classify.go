// SPDX-License-Identifier: Apache-2.0

package paths

import (
	"errors"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"
)

// New makes the Classifier of one decision. It looks for the project's root through the Reader.
func New(o Options) *Classifier {
	c := &Classifier{r: o.Reader, cwd: cleanAbs(o.Cwd), fold: runtime.GOOS == "darwin"}
	for _, h := range o.Homes {
		if h = cleanAbs(h); counts(h) {
			c.homes = c.both(c.homes, h)
		}
	}
	for _, p := range o.Own {
		if p = cleanAbs(p); p != "" && p != "/" {
			c.own = c.both(c.own, p)
		}
	}
	c.root = c.findRoot(cleanAbs(o.Project), cleanAbs(o.FirstCwd))
	if c.root != "" {
		c.roots = c.both(nil, c.root)
	}
	return c
}

// findRoot returns the override, or the nearest ancestor of cwd that has a .git, or the first directory, if it counts.
func (c *Classifier) findRoot(override, first string) string {
	if override != "" {
		if counts(override) {
			return override
		}
		return ""
	}
	if c.r != nil && c.cwd != "" {
		for dir := c.cwd; dir != "/"; dir = path.Dir(dir) {
			if !counts(dir) {
				continue
			}
			if _, err := c.r.Lstat(dir + "/.git"); err == nil {
				return dir
			}
		}
	}
	if first == "" {
		first = c.cwd
	}
	if counts(first) {
		return first
	}
	return ""
}

// both adds p and what it resolves to.
func (c *Classifier) both(list []string, p string) []string {
	if !slices.Contains(list, p) {
		list = append(list, p)
	}
	if c.r == nil {
		return list
	}
	if real, err := c.r.Quiet().Resolve(p); err == nil && counts(real) && !slices.Contains(list, real) {
		list = append(list, real)
	}
	return list
}

// counts reports whether a directory may be a home or a project's root: one that is a part of the machine would turn the
// machine's own files into somebody's work.
func counts(dir string) bool {
	if dir == "" || dir == "/" {
		return false
	}
	if path.Dir(dir) == "/" && dir != "/root" {
		return false
	}
	for _, top := range []string{"/etc", "/boot", "/proc", "/sys", "/dev"} {
		if below(dir, top) {
			return false
		}
	}
	return true
}

// Place judges a path, links followed to the end: what writing to it would hit. A path that is not absolute, or that has
// a NUL where a part is unknown, is Outside and Denied.
func (c *Classifier) Place(abs string) Result { return c.place(abs, true) }

// PlaceName judges a path as rm and mv see it: the last component is not followed, unless the path ends in a slash.
func (c *Classifier) PlaceName(abs string) Result {
	return c.place(abs, Follows(abs))
}

// ChildPlace judges what an unknown name directly in dir stands for, such as a bare glob: the directory itself.
func (c *Classifier) ChildPlace(dir string) Result { return c.place(dir, true) }

func (c *Classifier) place(abs string, follow bool) Result {
	if !path.IsAbs(abs) || strings.IndexByte(abs, 0) >= 0 {
		return Result{Place: Outside, Path: abs, Denied: true}
	}
	clean := path.Clean(abs)
	res := c.lexical(clean)
	res.Path = clean
	if sink(clean) {
		res.Sink = true
		return res
	}
	if deep(abs) {
		res.Denied, res.Deep = true, true
		return res
	}
	// Before cleaning, for a ".." after such a link, and after, for one before it.
	for _, p := range []string{squeeze(abs), clean} {
		if real, ok := c.magic(p); ok {
			abs, res.Path = real, path.Clean(real)
			res = worse(res, c.lexical(res.Path))
			break
		}
	}
	if c.r == nil {
		return res
	}
	real, err := c.resolve(abs, follow)
	if err != nil {
		res.Denied = true
		return res
	}
	res.Path = real
	if real != clean {
		res = worse(res, c.lexical(real))
	}
	return c.compare(res, real, follow)
}

// resolve follows every link, or every one but the last.
func (c *Classifier) resolve(abs string, follow bool) (string, error) {
	if follow {
		return c.r.Resolve(abs)
	}
	dir, base := path.Split(abs)
	if path.Clean(dir) == dir[:max(len(dir)-1, 1)] {
		dir = dir[:max(len(dir)-1, 1)]
	}
	real, ok := c.dirs[dir]
	if !ok {
		real.path, real.err = c.r.Resolve(dir)
		if c.dirs == nil {
			c.dirs = make(map[string]resolved)
		}
		c.dirs[dir] = real
	}
	if real.err != nil {
		return "", real.err
	}
	return path.Join(real.path, base), nil
}

// deep reports whether a path is longer than is followed.
func deep(p string) bool {
	return len(p) > maxLength || strings.Count(p, "/") > maxComponents
}

// Text judges a path by its text alone: nothing is looked up. It is never weaker than what the text says, and Denied, since
// the machine may say worse. Relative paths are Outside.
func (c *Classifier) Text(abs string) Result {
	if !path.IsAbs(abs) || strings.IndexByte(abs, 0) >= 0 {
		return Result{Place: Outside, Path: abs, Denied: true}
	}
	res := c.lexical(path.Clean(abs))
	res.Sink, res.Denied = sink(res.Path), true
	return res
}

// magic turns a process's root and working directory under /proc into what they are for the agent, not for us.
func (c *Classifier) magic(p string) (string, bool) {
	changed := false
	for range 8 {
		parts := strings.SplitN(strings.TrimPrefix(p, "/"), "/", 4)
		if len(parts) < 3 || parts[0] != "proc" || !process(parts[1]) {
			break
		}
		if parts[2] == "task" && len(parts) == 4 { // /proc/N/task/N/cwd
			_, rest, ok := strings.Cut(parts[3], "/")
			if !ok {
				break
			}
			p = "/proc/self/" + rest
			continue
		}
		rest := ""
		if len(parts) == 4 {
			rest = "/" + parts[3]
		}
		switch {
		case parts[2] == "root":
			p = "/" + strings.TrimPrefix(rest, "/")
		case parts[2] == "cwd" && c.cwd != "":
			p = c.cwd + rest
		default:
			return p, changed
		}
		changed = true
	}
	return p, changed
}

func process(s string) bool {
	if s == "self" || s == "thread-self" {
		return true
	}
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// sink reports whether p is one of the streams of /dev that take everything.
func sink(p string) bool {
	switch p {
	case "/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/stdin", "/dev/stdout", "/dev/stderr":
		return true
	}
	if n, ok := strings.CutPrefix(p, "/dev/fd/"); ok {
		return n != "" && strings.Trim(n, "0123456789") == ""
	}
	if n, ok := strings.CutPrefix(p, "/proc/self/fd/"); ok {
		return n != "" && strings.Trim(n, "0123456789") == ""
	}
	return false
}

// severity orders places by what the deletion table says of them; it is not the order of matching.
func severity(p Place) int {
	switch p {
	case Tripline:
		return 7
	case Device:
		return 6
	case HomeRoot:
		return 5
	case ProjectRoot:
		return 4
	case System:
		return 3
	case Outside:
		return 2
	case Project:
		return 1
	}
	return 0
}

// worse joins two readings of one path: the worse place, every mark of either; Path, Exists and Info are a's.
func worse(a, b Result) Result {
	if severity(b.Place) > severity(a.Place) || b.Place == a.Place && b.SystemTop {
		a.Place = b.Place
	}
	a.Credentials = a.Credentials || b.Credentials
	a.Settings = a.Settings || b.Settings
	a.SystemTop = a.SystemTop || b.SystemTop
	a.Denied = a.Denied || b.Denied
	if a.Sensitive == "" {
		a.Sensitive = b.Sensitive
	}
	if a.Holds == "" {
		a.Holds = b.Holds
	}
	// What is a build directory by one reading only is not one.
	a.BuildDir = a.BuildDir && b.BuildDir
	if !a.BuildDir {
		a.BuildRoot = ""
	} else if b.BuildRoot != "" {
		a.BuildRoot = b.BuildRoot
	}
	return a
}

// lexical judges the text of a clean absolute path.
func (c *Classifier) lexical(p string) Result {
	q := p
	if c.fold {
		q = strings.ToLower(unprivate(p))
	}
	r := Result{Path: p, SystemTop: c.systemTop(q), Sensitive: c.sensitive(q), Holds: c.holds(q)}
	r.Place, r.Credentials, r.Settings = c.first(q)
	if r.Place == Project {
		r.BuildRoot, r.BuildDir = c.buildRoot(p)
	}
	return r
}

// first returns the first place of the list that matches.
func (c *Classifier) first(p string) (place Place, credentials, settings bool) {
	if own, set := c.protected(p); own {
		return Tripline, false, set
	}
	if below(p, "/dev") && p != "/dev" && !sink(p) {
		return Device, false, false
	}
	if home, creds := c.homeRoot(p); home {
		return HomeRoot, creds, false
	}
	for _, root := range c.roots {
		root = c.folded(root)
		if below(root, p) || below(p, root+"/.git") {
			return ProjectRoot, false, false
		}
	}
	for _, root := range c.roots {
		if below(p, c.folded(root)) {
			return Project, false, false
		}
	}
	switch {
	case inside(p, "/tmp"), inside(p, "/var/tmp"):
		return Temp, false, false
	case c.system(p):
		return System, false, false
	}
	return Outside, false, false
}

func (c *Classifier) homeRoot(p string) (is, credentials bool) {
	for _, home := range c.homes {
		home = c.folded(home)
		if below(home, p) {
			return true, false
		}
		rel, ok := strings.CutPrefix(p, home+"/")
		if !ok {
			continue
		}
		switch rel {
		case ".config", ".local", c.folded("Library"):
			return true, false
		}
		for _, dir := range credentialDirs {
			if below(rel, dir) {
				return true, true
			}
		}
	}
	return false, false
}

// system reports whether p is the machine's own.
func (c *Classifier) system(p string) bool {
	if p == "/" {
		return true
	}
	top := p
	if i := strings.IndexByte(p[1:], '/'); i >= 0 {
		top = p[:i+1]
	}
	switch {
	case top == "/root":
		return !slices.Contains(c.homes, "/root")
	case top == p:
		return !openTop(p)
	}
	return systemDir(top)
}

func (c *Classifier) folded(s string) string {
	if c.fold {
		return strings.ToLower(unprivate(s))
	}
	return s
}

// unprivate undoes the links by which macOS keeps /tmp, /var and /etc in /private.
func unprivate(p string) string {
	if rest, ok := strings.CutPrefix(p, "/private"); ok {
		for _, top := range []string{"/tmp", "/var", "/etc"} {
			if below(rest, top) {
				return rest
			}
		}
	}
	return p
}

// below reports whether p is dir or something in it.
func below(p, dir string) bool {
	return p == dir || inside(p, dir)
}

// inside reports whether p is strictly in dir.
func inside(p, dir string) bool {
	if dir == "/" {
		return len(p) > 1
	}
	return len(p) > len(dir)+1 && p[len(dir)] == '/' && p[:len(dir)] == dir
}

// absent reports whether an error of the Reader says that there is nothing, rather than that it could not be told.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) }

func cleanAbs(p string) string {
	if !path.IsAbs(p) || strings.IndexByte(p, 0) >= 0 {
		return ""
	}
	return path.Clean(p)
}
