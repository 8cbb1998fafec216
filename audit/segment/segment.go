// SPDX-License-Identifier: Apache-2.0

// Package segment is one file of the log: a bbolt database that is only appended to. Nothing else imports bbolt.
//
// Buckets; numbers are big-endian, 8 bytes:
//
//	meta        "segment"       -> JSON of record.SegmentMeta, written once
//	record      seq             -> leaf bytes
//	body        seq ‖ name      -> salt (32 bytes) ‖ stored bytes
//	hash        index           -> hash, by tlog's stored hash index; leaf 0 is record First
//	checkpoint  "latest"        -> signed checkpoint of the whole segment
//	            size            -> the same at some smaller sizes, about every 256 records
//	            "range"         -> earliest and latest record time, Unix nanoseconds
//	state       key             -> value; not part of the tree
//
// The root at any earlier size follows from the stored hashes, so older checkpoints need not be kept for comparing roots.
// The few that are kept tell where a forged history begins.
//
// bbolt maps the file into memory, and a file that is damaged or cut short under it makes it panic or fault. Every entry
// point here turns both into ErrDamaged; after that only Close may be called, and it may hang, so that the caller must be
// ready to abandon it.
package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/tripline-sh/tripline/audit/record"
)

// Errors that callers test for.
var (
	// ErrDamaged says that the file is a segment, or was one, and cannot be read.
	ErrDamaged = errors.New("segment is damaged")
	// ErrForeign says that the thing with this name is no segment of this log. It was not opened for writing.
	ErrForeign = errors.New("not a segment of this log")
	// ErrLocked says that another process has the segment open for writing.
	ErrLocked = errors.New("segment is locked")
	// ErrMoved says that the path no longer leads to the open file, or that the file was cut short.
	ErrMoved = errors.New("segment file was removed, replaced or truncated")
)

var (
	bucketMeta       = []byte("meta")
	bucketRecord     = []byte("record")
	bucketBody       = []byte("body")
	bucketHash       = []byte("hash")
	bucketCheckpoint = []byte("checkpoint")
	bucketState      = []byte("state")

	keySegment = []byte("segment")
	keyLatest  = []byte("latest")
	keyRange   = []byte("range")
)

// allocStep is by how much a growing file grows. Each step costs one more fsync.
const allocStep = 4 << 20

// Options of Open and Create.
type Options struct {
	LogID   string        // of the log that the segment must belong to
	Timeout time.Duration // for the file lock; required
	MapSize int           // address space to reserve when writing, so that growing needs no new mapping
	Write   bool          // open for appending; else read-only
	NoSync  bool          // never in production: shows that crash tests can fail
}

// Segment is an open segment. Its methods may be called concurrently, except that there is one appender, and Close waits
// for nobody.
type Segment struct {
	path    string
	name    Name
	db      *bolt.DB
	file    *os.File // db's, for Intact; db closes it
	id      os.FileInfo
	mapSize int // the map is at least this large
	meta    *record.SegmentMeta
	head    Head                // owned by the appender; what Open found in a reader
	edge    map[int64]tlog.Hash // owned by the appender: the hashes that the next append needs
}

// Head describes a segment as of its last transaction.
type Head struct {
	Size       uint64 // number of records
	Root       tlog.Hash
	Checkpoint []byte // signed, of Size and Root unless somebody tampered
	From, To   time.Time
	Used       int64 // bytes of the file in use
}

// Last returns the sequence number of the last record of a segment that starts at first.
func (h Head) Last(first uint64) uint64 { return first + h.Size - 1 }

// Open opens an existing segment.
func Open(path string, o Options) (*Segment, error) {
	name, err := probe(path)
	if err != nil {
		return nil, err
	}
	s := &Segment{path: path, name: name}
	err = guard(func() error {
		if err := s.open(path, o); err != nil {
			return err
		}
		if err := s.load(o.LogID); err != nil || !o.Write {
			return err
		}
		return s.loadTree()
	})
	if err != nil {
		s.abandon()
		return nil, fmt.Errorf("segment %q: %w", name.File(), err)
	}
	return s, nil
}

// open opens the database file itself.
func (s *Segment) open(path string, o Options) error {
	db, err := bolt.Open(path, 0o600, &bolt.Options{
		Timeout:         max(o.Timeout, time.Millisecond),
		FreelistType:    bolt.FreelistMapType,
		ReadOnly:        !o.Write,
		InitialMmapSize: o.MapSize,
		NoStatistics:    true,
		NoSync:          o.NoSync,
		OpenFile: func(path string, flag int, mode os.FileMode) (*os.File, error) {
			f, err := os.OpenFile(path, flag|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, mode)
			s.file = f
			return f, err
		},
	})
	var errno syscall.Errno
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return ErrLocked
	case errors.As(err, &errno): // the file system says no; the file may be all right
		return err
	case err != nil:
		return fmt.Errorf("%w: %v", ErrDamaged, err)
	}
	db.AllocSize = allocStep
	s.db, s.mapSize = db, o.MapSize
	s.id, err = s.file.Stat()
	return err
}

// load reads description and head.
func (s *Segment) load(logID string) error {
	return s.db.View(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketMeta)
		if b == nil {
			return ErrForeign
		}
		m, err := record.UnmarshalMeta(b.Get(keySegment))
		if err != nil {
			return fmt.Errorf("%w: %v", ErrForeign, err)
		}
		if m.Log != logID && logID != "" {
			return fmt.Errorf("%w: it belongs to log %q", ErrForeign, m.Log)
		}
		if m.Name != s.name.File() || m.First != s.name.First {
			return fmt.Errorf("%w: its name was %q", ErrForeign, m.Name)
		}
		s.meta = m
		s.head, err = readHead(tx, m.First)
		return err
	})
}

// loadTree reads what appending needs of the tree.
func (s *Segment) loadTree() (err error) {
	if s.head.Size == 0 {
		return fmt.Errorf("%w: it has no records", ErrDamaged)
	}
	if s.edge, err = edgeOf(s.head.Size, s); err != nil {
		return err
	}
	s.head.Root, err = s.RootAt(s.head.Size)
	return err
}

// Tip returns the head after the last Append, or as Open found it, Root included when open for writing. Only the appender
// may call it.
func (s *Segment) Tip() Head { return s.head }

// Name returns the segment's name.
func (s *Segment) Name() Name { return s.name }

// Meta returns the segment's description. The caller must not change it.
func (s *Segment) Meta() *record.SegmentMeta { return s.meta }

// Intact returns ErrMoved unless the path still leads to the open file and the file is as long as it was.
func (s *Segment) Intact() error {
	fi, err := os.Lstat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ErrMoved
	case err != nil:
		return err
	case !os.SameFile(fi, s.id), fi.Size() < s.head.Used:
		return ErrMoved
	}
	return nil
}

// Here says whether the path still leads to the open file, short or not.
func (s *Segment) Here() bool {
	fi, err := os.Lstat(s.path)
	return err == nil && os.SameFile(fi, s.id)
}

// Close closes the file.
func (s *Segment) Close() error {
	return guard(s.db.Close)
}

// abandon closes the file of a database that could not be opened. If bbolt panicked the mapping stays, and a mapping keeps
// the file lock, so that is released by hand.
func (s *Segment) abandon() {
	if s.db != nil {
		_ = s.Close() // it was not written to
	} else if s.file != nil {
		// bbolt may have closed it already; then both fail, and that is all right.
		_ = syscall.Flock(int(s.file.Fd()), syscall.LOCK_UN)
		_ = s.file.Close()
	}
}

// guard calls fn and turns panics and memory faults into ErrDamaged.
func guard(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, p)
		}
	}()
	return fn()
}
