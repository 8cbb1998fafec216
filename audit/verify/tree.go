// SPDX-License-Identifier: Apache-2.0

package verify

import "golang.org/x/mod/sumdb/tlog"

// tree is a Merkle tree of RFC 6962 that keeps only what it needs to grow: the roots of its complete subtrees, largest
// first. It is worked out anew here, so that a wrong stored hash cannot vouch for itself.
type tree struct {
	n    uint64
	edge []tlog.Hash
}

// add appends a leaf and returns the hashes that became complete, the leaf's first: what the log stored for it.
func (t *tree) add(leaf tlog.Hash) []tlog.Hash {
	done := []tlog.Hash{leaf}
	h := leaf
	for bits := t.n; bits&1 == 1; bits >>= 1 {
		h = tlog.NodeHash(t.edge[len(t.edge)-1], h)
		t.edge = t.edge[:len(t.edge)-1]
		done = append(done, h)
	}
	t.edge = append(t.edge, h)
	t.n++
	return done
}

// root returns the root of a tree that has leaves.
func (t *tree) root() tlog.Hash {
	h := t.edge[len(t.edge)-1]
	for i := len(t.edge) - 2; i >= 0; i-- {
		h = tlog.NodeHash(t.edge[i], h)
	}
	return h
}
