// SPDX-License-Identifier: Apache-2.0

package gitfile

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // it is what git names objects by, not a protection of ours
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"io/fs"
	"strconv"
	"time"

	"github.com/tripline-sh/tripline/tripwires/view"
)

// Kinds of entries, as in the upper bits of st_mode.
const (
	modeType    = 0o170000
	modeRegular = 0o100000
	modeLink    = 0o120000
	modeGitlink = 0o160000
)

// maxCompare bounds a file that is compared by content.
const maxCompare = 4 << 20

// field returns one of the ten numbers: ctime and mtime (seconds, nanoseconds), dev, ino, mode, uid, gid, size.
func (e entry) field(i int) uint32 { return binary.BigEndian.Uint32(e.stat[4*i:]) }

func (e entry) mode() uint32 { return e.field(6) }

// restorable reports whether git holds a content for this path that a checkout would write: no conflict, no mere intent
// to add, not outside of a sparse checkout, no submodule.
func (e entry) restorable() bool {
	return e.flags&flagStage == 0 && e.extended&(extIntentToAdd|extSkipWorktree) == 0 &&
		(e.mode()&modeType == modeRegular || e.mode()&modeType == modeLink)
}

// matches compares what the file system says with what it said when git last saw that the content is the one it holds.
// Every field must be equal: a tool that leaves some of them out makes its files count as modified, never the reverse.
func (e entry) matches(i view.Info) bool {
	return e.kind(i) &&
		e.field(0) == seconds(i.CTimeNS) && e.field(1) == nanos(i.CTimeNS) &&
		e.field(2) == seconds(i.MTimeNS) && e.field(3) == nanos(i.MTimeNS) &&
		e.field(5) == uint32(i.Ino) && e.field(7) == i.UID && e.field(8) == i.GID && e.field(9) == uint32(i.Size)
}

// kind compares type and executable bit.
func (e entry) kind(i view.Info) bool {
	if e.mode()&modeType == modeLink {
		return i.Mode&fs.ModeSymlink != 0
	}
	return i.Mode.IsRegular() && e.mode()&0o100 == i.RawMode&0o100
}

// sameContent compares the file itself, for what the times leave open: written in the instant in which the index was, or
// touched. Content that git would convert when adding it is not recognised and counts as modified.
func (e entry) sameContent(name string, i view.Info, r view.Reader) bool {
	if !e.kind(i) || !i.Mode.IsRegular() || i.Size > maxCompare {
		return false
	}
	if size := e.field(9); size != 0 && size != uint32(i.Size) {
		return false
	}
	data, err := r.ReadFile(name, maxCompare)
	if err != nil {
		return false
	}
	var h hash.Hash
	if len(e.oid) == sha256.Size {
		h = sha256.New()
	} else {
		h = sha1.New() //nolint:gosec // see above
	}
	h.Write([]byte("blob " + strconv.Itoa(len(data)) + "\x00"))
	h.Write(data)
	return bytes.Equal(h.Sum(nil), e.oid)
}

func seconds(ns int64) uint32 { return uint32(floorDiv(ns)) }

func nanos(ns int64) uint32 { return uint32(ns - floorDiv(ns)*int64(time.Second)) }

func floorDiv(ns int64) int64 {
	s := ns / int64(time.Second)
	if ns%int64(time.Second) < 0 {
		s--
	}
	return s
}
