// SPDX-License-Identifier: Apache-2.0

package view

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"slices"
	"strings"
)

// What an Entry's Hash says of a path that was met but not read.
const (
	hashAbsent   = "absent"
	hashDenied   = "denied"
	hashDir      = "dir"
	hashFile     = "file"
	hashOther    = "other"
	hashPresent  = "present"
	hashLink     = "link:"
	hashOverflow = "overflow"
)

// maxEntries bounds a read set. A decision that looks at more cannot be bound to an approval.
const maxEntries = 8192

// readSet collects entries in order of first use, one a path.
type readSet struct {
	entries []Entry
	at      map[string]int
}

func newReadSet() *readSet { return &readSet{at: make(map[string]int)} }

func (s *readSet) add(e Entry) {
	i, ok := s.at[e.Path]
	switch {
	case ok:
		if rank(e.Hash) > rank(s.entries[i].Hash) {
			e.Code = s.entries[i].Code
			s.entries[i] = e
		}
	case len(s.entries) < maxEntries:
		s.at[e.Path] = len(s.entries)
		s.entries = append(s.entries, e)
	case len(s.entries) == maxEntries:
		s.entries = append(s.entries, Entry{Hash: hashOverflow})
	}
}

// markCode marks the entry for path as what will run.
func (s *readSet) markCode(path string) {
	if i, ok := s.at[path]; ok {
		s.entries[i].Code = true
	}
}

// Binding returns the entries of a read set that must be the same whenever the call is made again: what will run, and the
// links that say where. What the call merely works on changes by the call itself.
func Binding(entries []Entry) []Entry {
	var out []Entry
	for _, e := range entries {
		if e.Code || strings.HasPrefix(e.Hash, hashLink) || e.Hash == hashOverflow {
			out = append(out, e)
		}
	}
	return out
}

// Code returns the entries of a read set that will run. They must be the same after the call, too.
func Code(entries []Entry) []Entry {
	var out []Entry
	for _, e := range entries {
		if e.Code {
			out = append(out, e)
		}
	}
	return out
}

// rank orders entries for the same path by how much they bind: content over identity over kind.
func rank(hash string) int {
	switch {
	case len(hash) == hex.EncodedLen(sha256.Size):
		return 2
	case hash == hashFile, strings.HasPrefix(hash, hashLink):
		return 1
	}
	return 0
}

func (s *readSet) list() []Entry { return slices.Clone(s.entries) }

// Recheck compares a read set with what r sees now and returns the paths that differ, in the set's order; nil means that
// nothing changed. A file with the same content counts as the same file. What cannot be told counts as changed.
func Recheck(entries []Entry, r Reader) []string {
	var changed []string
	for _, e := range entries {
		if !same(e, r) {
			changed = append(changed, e.Path)
		}
	}
	return changed
}

func same(e Entry, r Reader) bool {
	if rank(e.Hash) == 2 {
		data, err := r.ReadFile(e.Path, e.Size) // one that grew is an error
		return err == nil && contentHash(data) == e.Hash
	}
	if strings.HasPrefix(e.Hash, hashLink) {
		target, err := r.Readlink(e.Path)
		return err == nil && linkHash(target) == e.Hash
	}
	info, err := r.Lstat(e.Path)
	if err != nil {
		return errorHash(err) == e.Hash
	}
	if e.Hash == hashPresent {
		return !info.Mode.IsDir() && info.Mode&fs.ModeSymlink == 0
	}
	now := kindEntry(info)
	now.Path, now.Code = e.Path, e.Code
	return now == e
}

// errorHash is the Hash for what could not be looked at, "" if that says nothing about the path.
func errorHash(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return hashAbsent
	case errors.Is(err, ErrDenied):
		return hashDenied
	}
	return ""
}

// kindEntry describes what was met but not read. A directory is its kind alone, since one made anew under the same name is
// the same target; a file is its identity and size.
func kindEntry(i Info) Entry {
	switch {
	case i.Mode.IsDir():
		return Entry{Hash: hashDir}
	case i.Mode.IsRegular():
		return Entry{Dev: i.Dev, Ino: i.Ino, Size: i.Size, Hash: hashFile}
	}
	return Entry{Hash: hashOther}
}

func linkHash(target string) string { return hashLink + contentHash([]byte(target)) }

func contentHash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
