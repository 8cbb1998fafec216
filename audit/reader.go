// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/tripline-sh/tripline/audit/internal/checkpoint"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/audit/segment"
)

// readerPatience is how long a Reader waits for a file that is held.
const readerPatience = 200 * time.Millisecond

// Reader reads the log from its files and changes nothing. It opens each file only while it reads it, so a daemon can start
// meanwhile; then its methods return ErrLocked. It is safe for concurrent use.
type Reader struct {
	dir  string
	vkey string // "" if unknown
	log  string // log id, "" if unknown
	last anchor
}

// OpenReader opens the log in dir for reading. ErrNotFound: there is no log. ErrLocked: a daemon holds the newest segment, ask
// it instead. A damaged or foreign newest segment is no error here.
func OpenReader(dir string, o ReaderOptions) (*Reader, error) {
	r := &Reader{dir: dir, vkey: strings.TrimSpace(o.VerifierKey)}
	if r.vkey == "" && o.KeyDir != "" {
		text, err := readSmall(filepath.Join(o.KeyDir, pubFile))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("audit: %w", err)
		}
		r.vkey = strings.TrimSpace(string(text))
	}
	if r.vkey != "" {
		v, id, err := checkpoint.ParseVerifier(r.vkey)
		if err != nil {
			return nil, fmt.Errorf("audit: %w", err)
		}
		r.log = id
		if o.KeyDir != "" {
			if r.last, err = readAnchor(o.KeyDir, verifier{v}); err != nil {
				return nil, fmt.Errorf("audit: %w", err)
			}
		}
	}
	names, err := segment.List(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(names) == 0 {
		return nil, fmt.Errorf("audit: no log in %q: %w", dir, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	_, so := r.place()
	s, err := segment.Open(filepath.Join(dir, names[len(names)-1].File()), so)
	switch {
	case err == nil:
		return r, s.Close()
	case errors.Is(err, segment.ErrDamaged), errors.Is(err, segment.ErrForeign):
		return r, nil // the queries tell
	}
	return nil, fmt.Errorf("audit: %w", translate(err))
}

// verifier makes a note.Verifier an opener.
type verifier struct{ v note.Verifier }

func (v verifier) Open(msg []byte) (checkpoint.Checkpoint, error) { return checkpoint.Open(msg, v.v) }

func (r *Reader) place() (string, segment.Options) {
	return r.dir, segment.Options{LogID: r.log, Timeout: readerPatience}
}

func (r *Reader) borrow(segment.Name) (*segment.Segment, func()) { return nil, nil }

// Calls is Log.Calls.
func (r *Reader) Calls(ctx context.Context, f record.Filter, fn func(record.Call) error) error {
	return calls(ctx, r, f, time.Now(), fn)
}

// Sessions is Log.Sessions.
func (r *Reader) Sessions(ctx context.Context, from, to time.Time, fn func(record.Session) error) error {
	return sessions(ctx, r, from, to, fn)
}

// Records is Log.Records.
func (r *Reader) Records(ctx context.Context, prefix string, fn func(record.Record, map[string][]byte) error) error {
	return records(ctx, r, prefix, fn)
}

// Scan is Log.Scan.
func (r *Reader) Scan(ctx context.Context, rg Range, fn func(*record.Record, BodiesFunc) error) error {
	return scan(ctx, r, rg, fn)
}

// Verify is Log.Verify. Without a key the outcome is KEY at best.
func (r *Reader) Verify(ctx context.Context, anchors ...Anchor) (record.Verification, error) {
	return check(ctx, r, r.vkey, r.last, anchors)
}

// Close closes the reader.
func (r *Reader) Close() error { return nil }
