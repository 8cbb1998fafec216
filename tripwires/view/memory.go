// SPDX-License-Identifier: Apache-2.0

package view

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Memory is a file system for tests. It is itself the Reader of one decision; NewReader makes one for another decision on
// the same files. Parents are made as needed. It is not safe for concurrent use.
type Memory struct {
	reader
	nodes *memTree
}

var _ Reader = (*Memory)(nil)

// NewMemory returns an empty file system.
func NewMemory() *Memory {
	t := &memTree{}
	t.add(0, "", fs.ModeDir|0o755)
	return &Memory{reader: reader{tree: t, ctx: context.Background(), set: newReadSet()}, nodes: t}
}

// NewReader returns a Reader with an empty read set.
func (m *Memory) NewReader() Reader {
	return &reader{tree: m.nodes, ctx: context.Background(), set: newReadSet()}
}

// AddFile makes or replaces a regular file.
func (m *Memory) AddFile(name string, data []byte) {
	n := m.nodes.make(name, 0o644)
	n.data = bytes.Clone(data)
	n.info.Size = int64(len(data))
}

// AddLink makes or replaces a symbolic link; target is kept as it stands.
func (m *Memory) AddLink(name, target string) {
	n := m.nodes.make(name, fs.ModeSymlink|0o777)
	n.target = target
	n.info.Size = int64(len(target))
}

// AddHardLink makes name another name of the file old, which must exist.
func (m *Memory) AddHardLink(name, old string) {
	n := m.nodes.find(old)
	if n == nil {
		panic(fmt.Sprintf("no file %q to link to", old))
	}
	m.nodes.make(name, 0o644)
	parent := m.nodes.find(path.Dir(path.Clean(name)))
	parent.names[path.Base(name)] = n.at
	n.info.Nlink++
}

// AddDir makes a directory; one that exists stays.
func (m *Memory) AddDir(name string) {
	if n := m.nodes.find(name); n == nil || !n.info.Mode.IsDir() {
		m.nodes.make(name, fs.ModeDir|0o755)
	}
}

// AddFIFO makes or replaces a FIFO.
func (m *Memory) AddFIFO(name string) { m.nodes.make(name, fs.ModeNamedPipe|0o644) }

// Remove removes a name and what is below it.
func (m *Memory) Remove(name string) {
	if parent := m.nodes.find(path.Dir(path.Clean(name))); parent != nil {
		delete(parent.names, path.Base(name))
	}
}

// Deny makes a path unreadable: a directory can then not be passed through, a file not be opened. Their own Lstat works.
func (m *Memory) Deny(name string) {
	n := m.nodes.find(name)
	if n == nil {
		n = m.nodes.make(name, fs.ModeDir)
	}
	n.denied = true
}

// SetInfo lets a test change what Lstat says of a path that exists.
func (m *Memory) SetInfo(name string, change func(*Info)) {
	if n := m.nodes.find(name); n != nil {
		change(&n.info)
	}
}

// memTree is the tree of a Memory; a handle is an index of nodes.
type memTree struct{ nodes []*memNode }

type memNode struct {
	at, parent int
	info       Info
	data       []byte
	target     string
	denied     bool
	names      map[string]int
}

func (t *memTree) add(parent int, name string, mode fs.FileMode) *memNode {
	at := len(t.nodes)
	raw := uint32(mode.Perm())
	switch mode.Type() {
	case fs.ModeDir:
		raw |= 0o040000
	case fs.ModeSymlink:
		raw |= 0o120000
	case fs.ModeNamedPipe:
		raw |= 0o010000
	default:
		raw |= 0o100000
	}
	n := &memNode{at: at, parent: parent, names: make(map[string]int), info: Info{Mode: mode, RawMode: raw, Dev: 1,
		Ino: uint64(at) + 2, MTimeNS: 1e18 + int64(at), CTimeNS: 1e18 + int64(at), UID: 1000, GID: 1000, Nlink: 1}}
	t.nodes = append(t.nodes, n)
	if name != "" {
		t.nodes[parent].names[name] = at
	}
	return n
}

// make adds a node at name, through existing directories only (links on the way are replaced by directories).
func (t *memTree) make(name string, mode fs.FileMode) *memNode {
	parts := push(nil, path.Clean("/"+name))
	at := 0
	for i := len(parts) - 1; i > 0; i-- {
		next, ok := t.nodes[at].names[parts[i]]
		if !ok || !t.nodes[next].info.Mode.IsDir() {
			next = t.add(at, parts[i], fs.ModeDir|0o755).at
		}
		at = next
	}
	if len(parts) == 0 {
		return t.nodes[0]
	}
	return t.add(at, parts[0], mode)
}

func (t *memTree) find(name string) *memNode {
	at := 0
	parts := push(nil, path.Clean("/"+name))
	for i := len(parts) - 1; i >= 0; i-- {
		next, ok := t.nodes[at].names[parts[i]]
		if !ok {
			return nil
		}
		at = next
	}
	return t.nodes[at]
}

func (t *memTree) root() (handle, error) { return 0, nil }

func (t *memTree) close(handle) {}

func (t *memTree) child(parent handle, name string) (*memNode, error) {
	p := t.nodes[parent]
	switch name {
	case ".":
		return p, nil
	case "..":
		return t.nodes[p.parent], nil
	}
	if p.denied {
		return nil, ErrDenied
	}
	at, ok := p.names[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return t.nodes[at], nil
}

func (t *memTree) dir(parent handle, name string) (handle, error) {
	n, err := t.child(parent, name)
	if err != nil {
		return 0, err
	}
	if !n.info.Mode.IsDir() {
		return 0, fs.ErrNotExist
	}
	return handle(n.at), nil
}

func (t *memTree) stat(parent handle, name string) (Info, error) {
	n, err := t.child(parent, name)
	if err != nil {
		return Info{}, err
	}
	return n.info, nil
}

func (t *memTree) link(parent handle, name string) (string, error) {
	n, err := t.child(parent, name)
	if err != nil {
		return "", err
	}
	return n.target, nil
}

func (t *memTree) read(parent handle, name string, max int64) ([]byte, Info, error) {
	n, err := t.child(parent, name)
	switch {
	case err != nil:
		return nil, Info{}, err
	case n.denied:
		return nil, n.info, ErrDenied
	case int64(len(n.data)) > max:
		return nil, n.info, ErrTooLarge
	}
	return bytes.Clone(n.data), n.info, nil
}

func (t *memTree) list(h handle, max int) ([]string, error) {
	n := t.nodes[h]
	if n.denied {
		return nil, ErrDenied
	}
	var names []string
	for name := range n.names {
		names = append(names, name)
	}
	slices.Sort(names)
	return names[:min(len(names), max)], nil
}

func (t *memTree) statBelow(h handle, name string) (Info, error) {
	if !strings.HasPrefix(name, "/") {
		name = t.name(int(h)) + "/" + name
	}
	w := walker{tree: t}
	f := w.walk(name, true)
	return f.info, f.err
}

func (t *memTree) name(at int) string {
	var parts []string
	for at != 0 {
		p := t.nodes[at].parent
		for name, child := range t.nodes[p].names {
			if child == at {
				parts = append(parts, name)
				break
			}
		}
		at = p
	}
	slices.Reverse(parts)
	return "/" + strings.Join(parts, "/")
}
