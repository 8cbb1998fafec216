// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Bounds of a listing.
const (
	maxFiles = 200_000
	maxDirs  = 100_000
	maxNames = 100_000 // in one directory
	maxNest  = 8       // directories below subagents
)

// Tree is a client's directory of transcripts. Nothing outside of it is ever opened, and nothing in it is changed. It is safe
// for concurrent use.
type Tree struct {
	root *os.Root
}

// File is one transcript of a tree.
type File struct {
	Path     string // below the tree, with slashes
	Size     int64
	Modified time.Time
	Main     string // for a subagent's transcript, the path of its session's own; else ""
}

// Open opens the transcripts below the client's directory (~/.claude, or what CLAUDE_CONFIG_DIR names). The error wraps
// fs.ErrNotExist if the client kept none.
func Open(dir string) (*Tree, error) {
	root, err := os.OpenRoot(path.Join(dir, "projects"))
	if err != nil {
		return nil, fmt.Errorf("transcripts of %q: %w", dir, errors.Unwrap(err))
	}
	return &Tree{root: root}, nil
}

// Close releases the directory.
func (t *Tree) Close() error { return t.root.Close() }

// Files lists the transcripts, sorted by path: projects/PROJECT/*.jsonl, and agent-*.jsonl anywhere below
// projects/PROJECT/SESSION/subagents. Links are not followed, other files not looked at. What could not be listed is counted;
// the only error is that of ctx.
func (t *Tree) Files(ctx context.Context) ([]File, Stats, error) {
	w := walk{tree: t, ctx: ctx}
	w.dir(".", func(project fs.DirEntry) {
		if !w.isDir(project) {
			return
		}
		w.dir(project.Name(), func(e fs.DirEntry) {
			p := path.Join(project.Name(), e.Name())
			switch {
			case strings.HasSuffix(e.Name(), ".jsonl"):
				w.file(p, e, "")
			case w.isDir(e):
				w.subagents(path.Join(p, "subagents"), p+".jsonl", 0)
			}
		})
	})
	slices.SortFunc(w.files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return w.files, w.stats, ctx.Err()
}

type walk struct {
	tree  *Tree
	ctx   context.Context
	files []File
	stats Stats
	dirs  int
}

// subagents lists a directory that need not be there.
func (w *walk) subagents(p, main string, nest int) {
	if info, err := w.tree.root.Lstat(p); err != nil || !info.IsDir() {
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			w.stats.Links++
		}
		return
	}
	w.dir(p, func(e fs.DirEntry) {
		at := path.Join(p, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "agent-") && strings.HasSuffix(e.Name(), ".jsonl"):
			w.file(at, e, main)
		case !w.isDir(e):
		case nest >= maxNest:
			w.stats.Beyond++
		default:
			w.subagents(at, main, nest+1)
		}
	})
}

// isDir tells directories from the rest, and counts links.
func (w *walk) isDir(e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink != 0 {
		w.stats.Links++
	}
	return e.IsDir()
}

// dir calls fn for the entries of a directory.
func (w *walk) dir(p string, fn func(fs.DirEntry)) {
	if w.ctx.Err() != nil {
		return
	}
	if w.dirs++; w.dirs > maxDirs {
		w.stats.Beyond++
		return
	}
	f, err := w.tree.root.OpenFile(p, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_DIRECTORY, 0)
	if err != nil {
		w.stats.Unreadable++
		return
	}
	entries, err := f.ReadDir(maxNames)
	if err != nil && !errors.Is(err, io.EOF) {
		w.stats.Unreadable++
	}
	if len(entries) == maxNames {
		w.stats.Beyond++
	}
	_ = f.Close() // before going down: a deep tree must not hold many descriptors
	for _, e := range entries {
		fn(e)
	}
}

func (w *walk) file(p string, e fs.DirEntry, main string) {
	switch {
	case e.Type()&fs.ModeSymlink != 0:
		w.stats.Links++
		return
	case e.IsDir():
		return
	case !e.Type().IsRegular():
		w.stats.Irregular++
		return
	case len(w.files) >= maxFiles:
		w.stats.Beyond++
		return
	}
	info, err := e.Info()
	if err != nil || !info.Mode().IsRegular() {
		return // it is gone, or something else by now
	}
	w.files = append(w.files, File{Path: p, Size: info.Size(), Modified: info.ModTime(), Main: main})
}

var errIrregular = errors.New("not a regular file")

// open opens a transcript for reading if it is a regular file and no link.
func (t *Tree) open(p string) (f *os.File, size int64, err error) {
	before, err := t.root.Lstat(p)
	if err != nil {
		return nil, 0, err
	}
	if !before.Mode().IsRegular() {
		return nil, 0, errIrregular
	}
	f, err = t.root.OpenFile(p, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || !os.SameFile(before, info) { // it became a link
		_ = f.Close()
		return nil, 0, errIrregular
	}
	return f, info.Size(), nil
}

// ReadFile is Read for a transcript of a tree, from an offset that an earlier reading returned, or 0. It ends where the file
// ended when it was opened. A file that cannot be opened or read is counted and no error. A file that is shorter than the
// offset is another one by now: it is read from its begin.
func (r *Reader) ReadFile(ctx context.Context, t *Tree, file File, from int64, v *Visitor) (next int64, s Stats, err error) {
	f, size, err := t.open(file.Path)
	switch {
	case errors.Is(err, errIrregular):
		return from, Stats{Irregular: 1}, nil
	case err != nil:
		return from, Stats{Unreadable: 1}, nil
	}
	defer f.Close() //nolint:errcheck // read only: closing loses nothing
	if size < from {
		from = 0
	}
	src := &source{r: io.NewSectionReader(f, from, size-from)}
	next, s, err = r.Read(ctx, src, from, v)
	if err != nil && src.failed {
		s.Unreadable++ // the file, not the visitor, is at fault
		err = nil
	}
	return next, s, err
}

// source notes that reading failed.
type source struct {
	r      io.Reader
	failed bool
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.failed = s.failed || err != nil && !errors.Is(err, io.EOF)
	return n, err
}

// FirstCwd returns the directory in which the session of a transcript began, "" if it cannot be told. For a subagent it is
// that of its session.
func (r *Reader) FirstCwd(t *Tree, file File) string {
	for _, p := range []string{file.Main, file.Path} {
		if p == "" {
			continue
		}
		f, _, err := t.open(p)
		if err != nil {
			continue
		}
		cwd := r.firstCwd(f)
		_ = f.Close()
		if cwd != "" {
			return cwd
		}
	}
	return ""
}
