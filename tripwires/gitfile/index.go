// SPDX-License-Identifier: Apache-2.0

package gitfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sort"
	"strings"
)

// The layout of an index: a header (signature, version, count), entries, extensions, and a hash of all of it. Numbers are
// big-endian. An entry is ten 32-bit numbers of stat data, the object's name, 16 bits of flags, from version 3 on perhaps
// 16 more, and the path: up to version 3 ended by NULs so that the entry's length is a multiple of eight, in version 4
// told as a change of the path before it.
const (
	headerSize = 12
	statSize   = 40
	minEntry   = statSize + 20 + 2

	flagAssumeValid = 1 << 15
	flagExtended    = 1 << 14
	flagStage       = 3 << 12

	extSkipWorktree = 1 << 14
	extIntentToAdd  = 1 << 13

	maxName = 16 << 10
	// All paths of a version 4 index together; a small file can tell of a great many bytes.
	maxNames = 256 << 20
)

var errIndex = errors.New("not an index that this reader knows")

// index is a parsed index. Entries are in git's order: by path as bytes, then by stage.
type index struct {
	entries    []entry
	ignoreCase bool
	submodules bool // there is at least one
}

// entry is one path of the index. Its slices share the index's bytes.
type entry struct {
	name     []byte
	stat     []byte // the ten numbers
	oid      []byte
	flags    uint16
	extended uint16
}

func parseIndex(data []byte, hashSize int, ignoreCase bool) (*index, error) {
	if len(data) < headerSize+hashSize || string(data[:4]) != "DIRC" {
		return nil, errIndex
	}
	version := binary.BigEndian.Uint32(data[4:])
	count := binary.BigEndian.Uint32(data[8:])
	if version < 2 || version > 4 {
		return nil, fmt.Errorf("index version %d: %w", version, errIndex)
	}
	body := data[headerSize : len(data)-hashSize]
	if count > maxEntries || int(count) > len(body)/minEntry {
		return nil, fmt.Errorf("%d entries: %w", count, errIndex)
	}
	p := parser{rest: body, version: version, hashSize: hashSize, names: maxNames}
	idx := &index{entries: make([]entry, 0, count), ignoreCase: ignoreCase}
	var last entry
	for range count {
		e, err := p.entry(last.name)
		if err != nil {
			return nil, err
		}
		if c := bytes.Compare(last.name, e.name); c > 0 || c == 0 && last.flags&flagStage >= e.flags&flagStage {
			return nil, fmt.Errorf("entries out of order: %w", errIndex)
		}
		idx.submodules = idx.submodules || e.mode()&modeType == modeGitlink
		idx.entries = append(idx.entries, e)
		last = e
	}
	return idx, extensions(p.rest)
}

type parser struct {
	rest     []byte
	version  uint32
	hashSize int
	names    int // bytes of paths that may still be made
}

func (p *parser) entry(before []byte) (entry, error) {
	fixed := statSize + p.hashSize + 2
	if len(p.rest) < fixed {
		return entry{}, errIndex
	}
	e := entry{stat: p.rest[:statSize:statSize], oid: p.rest[statSize : statSize+p.hashSize]}
	e.flags = binary.BigEndian.Uint16(p.rest[fixed-2:])
	if e.flags&flagExtended != 0 {
		if p.version < 3 || len(p.rest) < fixed+2 {
			return entry{}, errIndex
		}
		e.extended = binary.BigEndian.Uint16(p.rest[fixed:])
		fixed += 2
	}
	var used int
	var err error
	if p.version == 4 {
		e.name, used, err = p.changed(before, p.rest[fixed:])
	} else {
		e.name, used, err = p.padded(fixed)
	}
	if err != nil {
		return entry{}, err
	}
	if !plain(e.name) {
		return entry{}, fmt.Errorf("a path that git would not write: %w", errIndex)
	}
	p.rest = p.rest[fixed+used:]
	return e, nil
}

// padded reads a path that ends in one to eight NULs.
func (p *parser) padded(fixed int) ([]byte, int, error) {
	tail := p.rest[fixed:]
	n := bytes.IndexByte(tail[:min(len(tail), maxName+1)], 0)
	if n < 0 {
		return nil, 0, errIndex
	}
	used := (fixed+n+8)&^7 - fixed
	if used > len(tail) || len(bytes.Trim(tail[n:used], "\x00")) > 0 {
		return nil, 0, errIndex
	}
	return tail[:n:n], used, nil
}

// changed reads a path that is told as how many bytes of the one before it to drop, and what to add.
func (p *parser) changed(before, tail []byte) ([]byte, int, error) {
	drop, used, ok := offset(tail)
	if !ok || drop > len(before) {
		return nil, 0, errIndex
	}
	tail = tail[used:]
	n := bytes.IndexByte(tail[:min(len(tail), maxName+1)], 0)
	keep := len(before) - drop
	if n < 0 || keep+n > maxName {
		return nil, 0, errIndex
	}
	if p.names -= keep + n; p.names < 0 {
		return nil, 0, errIndex
	}
	name := make([]byte, 0, keep+n)
	name = append(append(name, before[:keep]...), tail[:n]...)
	return name, used + n + 1, nil
}

// offset reads a number of seven bits a byte, most significant first, each further byte counting one more.
func offset(b []byte) (n, used int, ok bool) {
	for i, c := range b[:min(len(b), 4)] {
		n = n<<7 | int(c&0x7f)
		if c&0x80 == 0 {
			return n, i + 1, true
		}
		n++
	}
	return 0, 0, false
}

// plain reports whether a path is relative and has no empty, "." or ".." component. A trailing slash is a directory of a
// sparse index, which extensions refuses.
func plain(name []byte) bool {
	for len(name) > 0 {
		i := bytes.IndexByte(name, '/')
		part := name
		if i >= 0 {
			part = name[:i]
		}
		if len(part) == 0 || string(part) == "." || string(part) == ".." {
			return false
		}
		if i < 0 {
			return true
		}
		name = name[i+1:]
		if len(name) == 0 {
			return true
		}
	}
	return false
}

// extensions refuses the ones that change what the entries mean: those whose name does not start with a capital letter, a
// split index ("link") and a sparse one ("sdir") among them.
func extensions(b []byte) error {
	for len(b) > 0 {
		if len(b) < 8 {
			return errIndex
		}
		size := binary.BigEndian.Uint32(b[4:])
		if b[0] < 'A' || b[0] > 'Z' {
			return fmt.Errorf("extension %.4q: %w", b[:4], errIndex)
		}
		if uint64(size) > uint64(len(b)-8) {
			return errIndex
		}
		b = b[8+size:]
	}
	return nil
}

// lower returns the place of the first entry that is not before name.
func (x *index) lower(name string) int {
	return sort.Search(len(x.entries), func(i int) bool { return string(x.entries[i].name) >= name })
}

// under reports whether an entry is rel or below it.
func (x *index) under(rel string) bool {
	if rel == "." {
		return len(x.entries) > 0
	}
	if x.ignoreCase {
		for i := range x.entries {
			n := x.entries[i].name
			if len(n) >= len(rel) && strings.EqualFold(string(n[:len(rel)]), rel) && (len(n) == len(rel) || n[len(rel)] == '/') {
				return true
			}
		}
		return false
	}
	if i := x.lower(rel); i < len(x.entries) && string(x.entries[i].name) == rel {
		return true
	}
	dir := rel + "/"
	i := x.lower(dir)
	return i < len(x.entries) && strings.HasPrefix(string(x.entries[i].name), dir)
}

// find returns the entry of rel; one of a conflict is its first stage.
func (x *index) find(rel string) (entry, bool) {
	if i := x.lower(rel); i < len(x.entries) && string(x.entries[i].name) == rel {
		return x.entries[i], true
	}
	return entry{}, false
}

// inSubmodule reports whether rel is strictly below a submodule, whose files another index tracks.
func (x *index) inSubmodule(rel string) bool {
	if !x.submodules {
		return false
	}
	for i := range len(rel) {
		if rel[i] != '/' {
			continue
		}
		if e, ok := x.find(rel[:i]); ok && e.mode()&modeType == modeGitlink {
			return true
		}
	}
	return false
}
