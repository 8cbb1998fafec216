// SPDX-License-Identifier: Apache-2.0

package view

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync/atomic"
)

// Bounds of one walk. The kernel follows 40 links as well.
const (
	maxLinks = 40
	maxSteps = 2048 // components walked; four times as many may be still to be walked
	maxDepth = 512
	maxPath  = 16 << 10
)

// handle is an open directory of a tree.
type handle int

// tree is the file system below a Reader: the machine's or a test's. Names are single components unless said otherwise.
// Errors are those of this package, fs.ErrNotExist, or anything else for "could not tell".
type tree interface {
	root() (handle, error)
	// dir opens a directory below another one; ".." is its physical parent; a link is not followed.
	dir(parent handle, name string) (handle, error)
	close(h handle)
	stat(parent handle, name string) (Info, error) // not followed; "." is the directory itself
	link(parent handle, name string) (string, error)
	// read opens a regular file and returns its content if that is at most max bytes.
	read(parent handle, name string, max int64) ([]byte, Info, error)
	list(h handle, max int) ([]string, error)
	statBelow(h handle, name string) (Info, error) // name may hold slashes; links are followed
}

// found is where a walk ended: name in the directory at, which the walk's caller closes. If err is nil or the component is
// absent or unreadable, path is the resolved path, with what could not be walked appended as it stands.
type found struct {
	at   handle
	open bool // at is open
	name string
	path string
	info Info
	err  error
	// again, if not "", is the path to walk when what was missing is taken for a directory: a ".." leads back out of it.
	again string
}

// walker follows one path component by component, as the kernel does, and notes what it met.
type walker struct {
	tree  tree
	note  func(Entry)             // nil = nobody asks
	where *atomic.Pointer[string] // nil = the tree cannot hang; else the path that is being looked at
	saw   func(string, Info)      // nil = nobody asks
	at    handle
	open  bool
	dirs  []string // components of at
}

// walk resolves name, an absolute path that need not be clean: ".." is the physical parent. The last component is followed
// if follow is set or the path ends in a slash or "/.".
func (w *walker) walk(name string, follow bool) found {
	if !path.IsAbs(name) || strings.IndexByte(name, 0) >= 0 {
		return found{path: name, err: ErrInvalid}
	}
	if len(name) > maxPath {
		return found{path: path.Clean(name), err: ErrLoop}
	}
	if strings.HasSuffix(name, "/") || strings.HasSuffix(name, "/.") {
		follow = true
	}
	if err := w.restart(); err != nil {
		return w.fail(name, nil, err)
	}
	pending := push(nil, name)
	last, links := "", 0
	for steps := 0; len(pending) > 0; steps++ {
		if steps > maxSteps || len(pending) > 4*maxSteps || len(w.dirs) > maxDepth {
			return w.fail(last, nil, ErrLoop)
		}
		last = pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if last == ".." {
			if err := w.up(); err != nil {
				return w.fail(last, pending, err)
			}
			continue
		}
		info, err := w.look(last)
		if err != nil {
			w.met(last, Entry{Hash: errorHash(err)})
			return w.fail(last, pending, err)
		}
		switch {
		case info.Mode&fs.ModeSymlink != 0 && (len(pending) > 0 || follow):
			target, err := w.tree.link(w.at, last)
			if err != nil {
				return w.fail(last, pending, err)
			}
			w.met(last, Entry{Hash: linkHash(target)})
			if strings.IndexByte(target, 0) >= 0 {
				return w.fail(last, nil, ErrInvalid)
			}
			if links++; links > maxLinks || len(target) > maxPath {
				return w.fail(last, pending, ErrLoop)
			}
			if path.IsAbs(target) {
				if err := w.restart(); err != nil {
					return w.fail(last, pending, err)
				}
			}
			pending = push(pending, target)
		case len(pending) == 0:
			return found{at: w.at, open: w.open, name: last, path: w.join(last), info: info}
		case !info.Mode.IsDir():
			w.met(last, kindEntry(info))
			return w.fail(last, pending, fs.ErrNotExist)
		default:
			w.met(last, Entry{Hash: hashDir})
			if err := w.down(last); err != nil {
				return w.fail(last, pending, err)
			}
		}
	}
	info, err := w.tree.stat(w.at, ".")
	return found{at: w.at, open: w.open, name: ".", path: w.join(""), info: info, err: err}
}

// look is stat, telling first where it looks, and then what it saw.
func (w *walker) look(name string) (Info, error) {
	if w.where == nil && w.saw == nil {
		return w.tree.stat(w.at, name)
	}
	p := w.join(name)
	if w.where != nil {
		w.where.Store(&p)
	}
	info, err := w.tree.stat(w.at, name)
	switch {
	case w.saw == nil:
	case err == nil:
		w.saw(p, info)
	case errors.Is(err, fs.ErrNotExist):
		w.saw(p, Info{})
	}
	return info, err
}

func (w *walker) met(name string, e Entry) {
	if w.note != nil && e.Hash != "" {
		e.Path = w.join(name)
		w.note(e)
	}
}

// fail ends a walk at the component name; pending is what was still to be walked, last first.
func (w *walker) fail(name string, pending []string, err error) found {
	var p strings.Builder
	p.WriteString(w.join(name))
	for i := len(pending) - 1; i >= 0; i-- {
		p.WriteByte('/')
		p.WriteString(pending[i])
	}
	return found{at: w.at, open: w.open, path: path.Clean(p.String()), err: err, again: w.backOut(pending)}
}

// backOut is the path that is left of pending once it has climbed out of a component that is missing, "" if it never does.
func (w *walker) backOut(pending []string) string {
	depth := 1
	for i := len(pending) - 1; i >= 0; i-- {
		switch pending[i] {
		case "", ".":
		case "..":
			depth--
		default:
			depth++
		}
		if depth == 0 {
			rest := slices.Clone(pending[:i])
			slices.Reverse(rest)
			return strings.TrimSuffix(w.join(""), "/") + "/" + strings.Join(rest, "/")
		}
	}
	return ""
}

func (w *walker) join(name string) string {
	if name == "" {
		return "/" + strings.Join(w.dirs, "/")
	}
	if len(w.dirs) == 0 {
		return "/" + name
	}
	return "/" + strings.Join(w.dirs, "/") + "/" + name
}

func (w *walker) restart() error {
	h, err := w.tree.root()
	if err != nil {
		return err
	}
	w.move(h)
	w.dirs = w.dirs[:0]
	return nil
}

func (w *walker) down(name string) error {
	h, err := w.tree.dir(w.at, name)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrBusy // it was a directory a moment ago: somebody changes the path under us
	}
	if err != nil {
		return err
	}
	w.move(h)
	w.dirs = append(w.dirs, name)
	return nil
}

func (w *walker) up() error {
	if len(w.dirs) == 0 {
		return nil
	}
	h, err := w.tree.dir(w.at, "..")
	if err != nil {
		return err
	}
	w.move(h)
	w.dirs = w.dirs[:len(w.dirs)-1]
	return nil
}

func (w *walker) move(h handle) {
	if w.open {
		w.tree.close(w.at)
	}
	w.at, w.open = h, true
}

// done closes what the walk left open.
func (w *walker) done() {
	if w.open {
		w.tree.close(w.at)
		w.open = false
	}
}

// push puts the components of name on the stack, the first one on top.
func push(stack []string, name string) []string {
	parts := strings.Split(name, "/")
	for i := len(parts) - 1; i >= 0; i-- {
		if p := parts[i]; p != "" && p != "." {
			stack = append(stack, p)
		}
	}
	return stack
}
