// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
)

type seam struct{}

// Log is the log of one process. It is safe for concurrent use.
type Log struct{}

// Open opens the log, creating directories (0700), key (0600) and first segment when there are none.
func Open(ctx context.Context, o Options) (*Log, error) { return nil, ErrUnavailable }

// Append makes e durable and returns its receipt. Concurrent callers share a commit.
func (l *Log) Append(ctx context.Context, e *Entry) (Receipt, error) {
	return Receipt{}, ErrUnavailable
}

// State returns a copy of all state entries whose key has the prefix.
func (l *Log) State(prefix string) (map[string][]byte, error) { return nil, ErrUnavailable }

// Calls calls fn for each call that f selects, oldest first.
func (l *Log) Calls(ctx context.Context, f record.Filter, fn func(record.Call) error) error {
	return ErrUnavailable
}

// Sessions calls fn for each session with a record in [from, to), by first record. Zero times do not restrict.
func (l *Log) Sessions(ctx context.Context, from, to time.Time, fn func(record.Session) error) error {
	return ErrUnavailable
}

// Records calls fn for each record, with bodies, of the one call whose id has the prefix, in order. A record of no call is found by its own id.
func (l *Log) Records(ctx context.Context, prefix string, fn func(record.Record, map[string][]byte) error) error {
	return ErrUnavailable
}

// Scan calls fn for each record in r, in order.
func (l *Log) Scan(ctx context.Context, r Range, fn func(*record.Record, BodiesFunc) error) error {
	return ErrUnavailable
}

// Tail returns the newest n records, oldest first.
func (l *Log) Tail(ctx context.Context, n int) ([]record.Record, error) { return nil, ErrUnavailable }

// Verify checks the whole log. The error says that it could not be checked, the Verification what was found.
func (l *Log) Verify(ctx context.Context, anchors ...Anchor) (record.Verification, error) {
	return record.Verification{}, ErrUnavailable
}

// Size returns the sequence number of the last record.
func (l *Log) Size() uint64 { return 0 }

// Root returns the root hash of the live segment, base64.
func (l *Log) Root() string { return "" }

// VerifierKey returns the genesis key, a note verifier key.
func (l *Log) VerifierKey() string { return "" }

// FirstRun says whether Open created the log.
func (l *Log) FirstRun() bool { return false }

// Report returns what Open found.
func (l *Log) Report() Report { return Report{} }

// Dir returns the directory of the segments.
func (l *Log) Dir() string { return "" }

// Err returns nil while the log takes records, else why it does not.
func (l *Log) Err() error { return nil }

// Failed delivers one error when the log cannot recover within this process (a commit hangs for good): exit and start again.
func (l *Log) Failed() <-chan error { return nil }

// Close takes no more entries, commits those that wait and closes the files. It is idempotent.
func (l *Log) Close(ctx context.Context) error { return nil }

// Reader reads the log from its files, without changing them.
type Reader struct{}

// OpenReader opens the log in dir for reading. ErrLocked: a daemon holds the live segment.
func OpenReader(dir string, o ReaderOptions) (*Reader, error) { return nil, ErrNotFound }

// Calls is Log.Calls.
func (r *Reader) Calls(ctx context.Context, f record.Filter, fn func(record.Call) error) error {
	return ErrUnavailable
}

// Sessions is Log.Sessions.
func (r *Reader) Sessions(ctx context.Context, from, to time.Time, fn func(record.Session) error) error {
	return ErrUnavailable
}

// Records is Log.Records.
func (r *Reader) Records(ctx context.Context, prefix string, fn func(record.Record, map[string][]byte) error) error {
	return ErrUnavailable
}

// Scan is Log.Scan.
func (r *Reader) Scan(ctx context.Context, rg Range, fn func(*record.Record, BodiesFunc) error) error {
	return ErrUnavailable
}

// Verify is Log.Verify.
func (r *Reader) Verify(ctx context.Context, anchors ...Anchor) (record.Verification, error) {
	return record.Verification{}, ErrUnavailable
}

// Close closes the reader.
func (r *Reader) Close() error { return nil }
