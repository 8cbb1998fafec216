// SPDX-License-Identifier: Apache-2.0

// Package audittest gives tests a log that is verified when the test ends.
package audittest

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
)

// Patience bounds everything that a test waits for.
const Patience = 30 * time.Second

// Options returns options for a log in a temporary directory of t: state/log and state/keys.
func Options(t testing.TB) audit.Options {
	t.Helper()
	dir := t.TempDir()
	return audit.Options{Dir: filepath.Join(dir, "state", "log"), KeyDir: filepath.Join(dir, "state", "keys")}
}

// NewLog opens a log, in a temporary directory unless o names one. When the test ends, the log is closed and must verify.
func NewLog(t testing.TB, o audit.Options) *audit.Log {
	t.Helper()
	if o.Dir == "" {
		place := Options(t)
		o.Dir, o.KeyDir = place.Dir, place.KeyDir
	}
	l := Open(t, o)
	t.Cleanup(func() {
		Close(t, l)
		CheckOK(t, o)
	})
	return l
}

// Open opens a log or fails the test. The caller closes it.
func Open(t testing.TB, o audit.Options) *audit.Log {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	l, err := audit.Open(ctx, o)
	if err != nil {
		t.Fatalf("open log: %v", err)
	}
	return l
}

// Close closes a log or fails the test. Closing twice is harmless.
func Close(t testing.TB, l *audit.Log) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if err := l.Close(ctx); err != nil {
		t.Errorf("close log: %v", err)
	}
}

// Verify verifies the files of a closed log with the key in its KeyDir.
func Verify(t testing.TB, o audit.Options, anchors ...audit.Anchor) record.Verification {
	t.Helper()
	r, err := audit.OpenReader(o.Dir, audit.ReaderOptions{KeyDir: o.KeyDir})
	if err != nil {
		t.Fatalf("open reader: %v", err)
	}
	v, err := r.Verify(context.Background(), anchors...)
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Errorf("close reader: %v", err)
	}
	return v
}

// CheckOK fails the test unless the files of a closed log verify.
func CheckOK(t testing.TB, o audit.Options, anchors ...audit.Anchor) record.Verification {
	t.Helper()
	v := Verify(t, o, anchors...)
	if v.Outcome != "OK" {
		t.Errorf("verify: %s at %d: %s", v.Outcome, v.FirstBad, v.Detail)
	}
	return v
}

// Append appends e or fails the test.
func Append(t testing.TB, l *audit.Log, e *audit.Entry) audit.Receipt {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	r, err := l.Append(ctx, e)
	if err != nil {
		t.Fatalf("append: %v", err)
	}
	return r
}
