// SPDX-License-Identifier: Apache-2.0

// Package view is the only way in which a decision reads the machine. Every read is bounded and non-blocking, opens
// regular files only, and is remembered in a read set, so that an approval can be bound to what was seen.
package view

import (
	"errors"
	"io/fs"
)

// Errors that callers may test. ErrDenied (the daemon may not read it) is told apart from fs.ErrNotExist (it is not there):
// the first is "could not tell", never "absent".
var (
	ErrDenied     = errors.New("permission denied")
	ErrNotRegular = errors.New("not a regular file")
	ErrTooLarge   = errors.New("larger than the limit")
	ErrBusy       = errors.New("too many reads under way")
	ErrLoop       = errors.New("too many symbolic links or components")
	ErrInvalid    = errors.New("not an absolute path without NUL")
)

// Entry is one item of a read set: a path that a decision depended on and what was there.
type Entry struct {
	Path string `json:"path"`
	Dev  uint64 `json:"dev,omitempty"`
	Ino  uint64 `json:"ino,omitempty"`
	Size int64  `json:"size,omitempty"`
	// Hash is the hex SHA-256 of the content when it was read, "absent", or "denied". What was met without being read is
	// "link:" and the hex SHA-256 of a symbolic link's text, "dir", "file" (identity and size as noted), "other" (a FIFO,
	// a device), or "present" (neither directory nor link). "overflow" ends a read set that met its bound: it never compares equal.
	Hash string `json:"hash,omitempty"`
	// Code is set when it was read as something that the call will run (ReadCode).
	Code bool `json:"code,omitempty"`
}

// Info is what Lstat and Stat return.
type Info struct {
	Mode    fs.FileMode
	Size    int64
	Dev     uint64
	Ino     uint64
	MTimeNS int64
	CTimeNS int64
	UID     uint32
	GID     uint32
	RawMode uint32 // st_mode as the kernel has it
	Nlink   uint64
}

// Reader is what the decision packages need. One Reader serves one decision and is not safe for concurrent use. The real
// one is made by Pool.Reader; tests use Memory. Besides the errors named below every method may return ErrBusy (no slot, a
// file system that does not answer, or the context's end), ErrLoop or ErrInvalid: all of them mean "could not tell".
type Reader interface {
	// Lstat does not follow the last component. Absent: fs.ErrNotExist. Not allowed: ErrDenied.
	Lstat(path string) (Info, error)
	// Readlink returns the text of a symbolic link; ErrNotRegular if path is something else.
	Readlink(path string) (string, error)
	// ReadFile returns at most max bytes of a regular file that is not larger than max, and adds it to the read set.
	ReadFile(path string, max int64) ([]byte, error)
	// ReadCode is ReadFile for what the call will run: a script, a file of statements. Its entry, absence included, is marked as
	// Code: it must be the same when the call runs, while what the call works on may change by the call itself.
	ReadCode(path string, max int64) ([]byte, error)
	// Resolve follows symbolic links component by component (bounded) and returns the absolute clean result. A component
	// that does not exist is taken for a directory that could be made: what follows it is appended as it stands, and a ".." leads
	// back out of it. The result resolves to itself. ErrDenied if a component cannot be read.
	Resolve(path string) (string, error)
	// ReadDir lists at most max names of a directory.
	ReadDir(path string, max int) ([]string, error)
	// StatBelow looks at many names below dir at once, links followed, and is never part of the read set. The result has
	// one Info a name; one whose Ino is 0 is not there or could not be read. Name a directory before what is in it: what is
	// below a missing one is not looked for.
	StatBelow(dir string, names []string) ([]Info, error)
	// Quiet returns a Reader on the same decision whose reads are not added to the read set: for what is derived anew at
	// every evaluation and changes without meaning anything (a git index).
	Quiet() Reader
	// ReadSet returns what was read so far, in order of first use.
	ReadSet() []Entry
}
