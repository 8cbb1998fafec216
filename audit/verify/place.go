// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/tripline-sh/tripline/audit/record"
)

// minShort is the length of the shortest root that says anything, in hex characters.
const minShort = 16

// CheckRoot says whether s can be the root of an Anchor.
func CheckRoot(s string) error {
	if _, full := fullRoot(s); full || s == "" {
		return nil
	}
	if _, err := hex.DecodeString(s[:len(s)&^1]); err != nil || len(s) < minShort || len(s) > 2*tlog.HashSize {
		return errors.New("a root is 16 to 64 hex characters, or 44 characters of base64")
	}
	return nil
}

// fullRoot reads a root in base64.
func fullRoot(s string) (tlog.Hash, bool) {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil || len(b) != tlog.HashSize {
		return tlog.Hash{}, false
	}
	return tlog.Hash(b), true
}

// rootMatches says whether h is the root that s means.
func rootMatches(h tlog.Hash, s string) bool {
	if full, ok := fullRoot(s); ok {
		return h == full
	}
	return strings.HasPrefix(hex.EncodeToString(h[:]), strings.ToLower(s))
}

// follows checks the place of a segment behind the one before it.
func (r *run) follows(m *record.SegmentMeta) *finding {
	end := uint64(0) // the last record that must be there before this segment
	switch {
	case r.prev == nil && m.Prev != nil:
		return found(Gap, m.Prev.First, "segment %s, which %s follows, is missing", m.Prev.Name, m.Name)
	case m.Prev == nil && r.prev != nil:
		return found(Forked, m.First, "segment %s begins a log of its own behind %s", m.Name, r.prev.name.File)
	case m.Prev != nil:
		if f := r.linked(m); f != nil {
			return f
		}
		end = m.Prev.First + m.Prev.Size - 1
	}
	if m.First == end+1 && m.Lost == nil {
		return nil
	}
	if l := m.Lost; l != nil && l.First == end+1 && l.Last == m.First-1 {
		r.warn("gap: records %d to %d are gone, declared as %s in record %d", l.First, l.Last, l.Cause, m.First)
		return nil
	}
	return found(Gap, end+1, "records %d to %d are missing and nothing declares it", end+1, m.First-1)
}

// linked compares a segment's link with the segment before it.
func (r *run) linked(m *record.SegmentMeta) *finding {
	p, l := r.prev, m.Prev
	switch {
	case l.Name != p.name.File && l.First > p.name.First:
		return found(Gap, p.end()+1, "segment %s, which %s follows, is missing", l.Name, m.Name)
	case l.Name != p.name.File:
		return found(Forked, p.name.First, "segment %s follows %s, and %s lies between them", m.Name, l.Name, p.name.File)
	case !p.sound: // told already
	case p.size < l.Size:
		return found(Truncated, p.end()+1, "segment %s holds %d records, it held %d when %s was begun", p.name.File, p.size, l.Size, m.Name)
	case p.size > l.Size:
		return found(Forked, p.name.First+l.Size, "segment %s grew after %s was begun", p.name.File, m.Name)
	case p.roots[l.Size].String() != l.Root:
		return found(Forked, p.name.First, "segment %s is not the one that %s followed", p.name.File, m.Name)
	}
	return nil
}

// meet compares a segment with the anchors that lie in it.
func (r *run) meet(p *part) *finding {
	for _, a := range r.anchors {
		if a.Seq < p.name.First {
			continue
		}
		root, ok := p.roots[a.Seq-p.name.First+1]
		if !ok {
			continue
		}
		if !rootMatches(root, a.Root) {
			return found(Forked, a.Seq, "up to record %d the log is not the one that was seen outside it", a.Seq)
		}
		a.met = true
	}
	return nil
}
