// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"errors"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
)

// Errors that callers test for.
var (
	// ErrClosed says that the log was closed.
	ErrClosed = errors.New("audit log is closed")
	// ErrUnavailable says that a record could not be made durable, or that it is not known whether it was. Nothing may be
	// allowed on its account.
	ErrUnavailable = errors.New("audit log is unavailable")
	// ErrLocked says that another process holds the log; ask it instead.
	ErrLocked = errors.New("audit log is held by another process")
	// ErrNotFound says that no record matches.
	ErrNotFound = errors.New("no such record")
	// ErrAmbiguous says that an id prefix matches more than one call.
	ErrAmbiguous = errors.New("ambiguous id prefix")
	// ErrInvalid says that an Entry can never be stored as it is: too large, a bad name. Nothing was written.
	ErrInvalid = errors.New("invalid entry")
	// ErrDamaged says that part of the log could not be read; everything that could be was delivered before.
	ErrDamaged = errors.New("part of the audit log cannot be read")
)

// Limits of one Entry. Callers cut bodies far below them.
const (
	MaxRecord     = 1 << 20 // bytes of a record's JSON
	MaxBody       = 4 << 20 // bytes of one body
	MaxBodies     = 16      // bodies of one record
	MaxStateKey   = 512     // bytes of a state key
	MaxStateValue = 4 << 20 // bytes of a state value
)

// RawBody is a body to be stored beside its record. It is already redacted and cut: Data is what is stored, Full the length
// before both, Redacted the number of secrets taken out. Names are lower-case words, unique within a record.
type RawBody struct {
	Name           string
	Data           []byte
	Full, Redacted int
	Cut            bool
}

// StateOp sets a key of the state that outlives restarts and segment changes, in the transaction of the record that explains
// it. A nil Value deletes the key.
type StateOp struct {
	Key   string
	Value []byte
}

// Entry is what Append writes. V, Seq and Bodies of the Record are filled in, ID and Time when zero, and Call of a
// call.requested record when empty (its own ID). The caller must not change anything that an Entry refers to until Append
// has returned, and not at all if Append returned because of its context.
type Entry struct {
	Record record.Record
	Bodies []RawBody
	State  []StateOp
}

// Receipt says where a record lies. Root is the short root: the first 16 hex characters of the root of its segment's tree at
// the moment when this record was its last leaf. Seq and Root together are an anchor that Verify can check.
type Receipt struct {
	Seq  uint64
	ID   string
	Root string
	Time time.Time
}

// CommitInfo tells about one group commit. With Err set nothing of it was acknowledged.
type CommitInfo struct {
	Records  int
	Duration time.Duration
	Err      error
	Size     uint64 // sequence number of the last record
	Bytes    int64  // of the live segment's file that are in use
	RollErr  error  // a new segment was due and could not be made; the old one goes on and it is tried again in a minute
}

// Options of Open. Dir and KeyDir are required.
type Options struct {
	Dir           string           // the segments
	KeyDir        string           // log.key, log.pub, last.checkpoint
	Now           func() time.Time // default time.Now
	MaxSegment    int64            // bytes in use after which a new segment is begun; default 256 MiB
	CommitTimeout time.Duration    // after which a commit's outcome counts as unknown; default 5 s
	MaxGroup      int              // records in one commit at most; default 256
	// OnCommit is called after each commit and must not block or call the log: the writer waits for it.
	OnCommit func(CommitInfo)

	seam seam // faults for tests
}

// Report says what Open found and did. It is empty on an ordinary start except for FirstRun.
type Report struct {
	FirstRun    bool     // there was no log before: show VerifierKey to a person
	Quarantined []string // damaged files, now renamed
	Skipped     []string // files with a segment's name that are no segment of this log; they were left alone
	Lost        uint64   // records that once were and are no more; declared by a gap record
	StateLost   bool     // the state could not be read from a damaged segment and starts empty
	StateStale  bool     // the state is older than the log once was: what was decided or used up since then is forgotten
	Tampered    []string // readable segments that contradict their checkpoint; nothing more is written to them
}

// ReaderOptions of OpenReader. One of them should be set, else no signature can be checked. VerifierKey wins.
type ReaderOptions struct {
	KeyDir      string // where log.pub and last.checkpoint are
	VerifierKey string // the note verifier key that was printed at the first start
}

// BodiesFunc loads the bodies of the record it came with, name to stored bytes. It is valid during the callback.
type BodiesFunc func() (map[string][]byte, error)

// Range selects records by time (From inclusive, To exclusive) and sequence number (from FromSeq). Zero does not restrict.
type Range struct {
	From, To time.Time
	FromSeq  uint64
}

// Anchor is a position that something outside the log has seen. Root is a prefix of the root in hex (as in Receipt, at least
// 16 characters) or the whole root in base64 (as in a checkpoint).
type Anchor struct {
	Seq  uint64
	Root string
}
