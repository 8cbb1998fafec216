// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/tripline-sh/tripline/audit/internal/checkpoint"
	"github.com/tripline-sh/tripline/audit/internal/durable"
	"github.com/tripline-sh/tripline/audit/segment"
)

// Log is the log of one process. It is safe for concurrent use.
type Log struct {
	o    Options // with defaults filled in; never changes
	key  *checkpoint.Key
	lock *os.File // of Dir; held for life

	queue  chan *request
	stop   chan struct{} // closed by Close
	done   chan struct{} // closed by the writer when everything is closed
	failed chan error    // one error at most
	dirty  chan struct{} // tells the anchor keeper that the checkpoint moved
	halt   sync.Once     // for stop

	// Owned by the writer goroutine, and lent to the one commit that it has under way.
	attempted uint64    // highest sequence number that was ever tried
	trimmed   int64     // bytes in use when memory was last given back
	rollAfter time.Time // no new segment is tried before
	hung      bool      // something holds the live segment for ever
	closeErr  error     // what Close returns; readable after done

	mu     sync.RWMutex // guards the rest; never held during a write
	live   *segment.Segment
	seq    uint64
	tip    segment.Head
	state  map[string][]byte
	err    error // why nothing is taken at the moment
	report Report
}

// seam lets tests make commits fail.
type seam struct {
	before func() error // before a group is written; an error stands for one of the commit with nothing written
	after  func() error // after it; an error stands for one of the commit with everything written
	noSync bool         // shows that the crash test can fail
}

const (
	defaultMaxSegment    = 256 << 20
	defaultCommitTimeout = 5 * time.Second
	defaultMaxGroup      = 256
	lockPatience         = 2 * time.Second // for the lock of the directory, unless the context ends before
	fileLockPatience     = 5 * time.Second // for a segment that a reader has open at the moment
)

// Open opens the log, creating directories (0700), key (0600) and first segment when there are none. It waits a moment for
// another process to let go of the log, then fails with ErrLocked.
func Open(ctx context.Context, o Options) (*Log, error) {
	if o.Dir == "" || o.KeyDir == "" {
		return nil, errors.New("audit: Dir and KeyDir are required")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.MaxSegment <= 0 {
		o.MaxSegment = defaultMaxSegment
	}
	if o.CommitTimeout <= 0 {
		o.CommitTimeout = defaultCommitTimeout
	}
	if o.MaxGroup <= 0 {
		o.MaxGroup = defaultMaxGroup
	}
	for _, dir := range []string{o.Dir, o.KeyDir} {
		if err := durable.MkdirAll(dir); err != nil {
			return nil, fmt.Errorf("audit: %w", err)
		}
	}
	l := &Log{
		o:      o,
		queue:  make(chan *request, 2*o.MaxGroup),
		stop:   make(chan struct{}),
		done:   make(chan struct{}),
		failed: make(chan error, 1),
		dirty:  make(chan struct{}, 1),
	}
	var err error
	if l.lock, err = lockDir(ctx, o.Dir); err != nil {
		return nil, err
	}
	if err := l.begin(); err != nil {
		return nil, errors.Join(fmt.Errorf("audit: %w", err), l.lock.Close())
	}
	go l.run()
	return l, nil
}

// begin loads the key and finds or makes the live segment.
func (l *Log) begin() (err error) {
	if err := durable.RemoveTemps(l.o.Dir); err != nil {
		return err
	}
	if l.key, err = loadKey(l.o.KeyDir, l.o.Dir); err != nil {
		return err
	}
	anchored, err := readAnchor(l.o.KeyDir, l.key)
	if err != nil {
		return err
	}
	return l.resume(anchored.seq(), nil)
}

// Size returns the sequence number of the last record.
func (l *Log) Size() uint64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.seq
}

// Root returns the root hash of the live segment, base64.
func (l *Log) Root() string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.tip.Root.String()
}

// VerifierKey returns the genesis key, a note verifier key: what a person keeps in order to verify the log later.
func (l *Log) VerifierKey() string { return l.key.Verifier() }

// FirstRun says whether Open created the log.
func (l *Log) FirstRun() bool { return l.Report().FirstRun }

// Report returns what Open found, and what recoveries since then did.
func (l *Log) Report() Report {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.report
}

// Dir returns the directory of the segments.
func (l *Log) Dir() string { return l.o.Dir }

// Err returns nil while the log takes records, else why it does not.
func (l *Log) Err() error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.err
}

// Failed delivers one error when the log cannot recover within this process, because a commit or a file hangs: exit and
// start again. Until then the log refuses everything.
func (l *Log) Failed() <-chan error { return l.failed }

// State returns a copy of all state entries whose key has the prefix.
func (l *Log) State(prefix string) (map[string][]byte, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	out := make(map[string][]byte)
	for k, v := range l.state {
		if strings.HasPrefix(k, prefix) {
			out[k] = append([]byte{}, v...)
		}
	}
	return out, nil
}

// Close takes no more entries, commits those that wait and closes the files. It is idempotent. If ctx ends first, Close
// returns its error and the work goes on behind it.
func (l *Log) Close(ctx context.Context) error {
	l.halt.Do(func() { close(l.stop) })
	select {
	case <-l.done:
		return l.closeErr
	case <-ctx.Done():
		return fmt.Errorf("audit: closing: %w", ctx.Err())
	}
}

// setErr changes whether the log takes records.
func (l *Log) setErr(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

// path returns the path of a segment.
func (l *Log) path(n segment.Name) string { return filepath.Join(l.o.Dir, n.File()) }

// segmentOptions returns how the log opens segments.
func (l *Log) segmentOptions(write bool) segment.Options {
	o := segment.Options{LogID: l.key.LogID(), Timeout: fileLockPatience, Write: write, NoSync: l.o.seam.noSync}
	if write {
		o.MapSize = int(min(2*l.o.MaxSegment, 1<<36))
	}
	return o
}

// sign is the Signer of the log's segments.
func (l *Log) sign(n segment.Name, size uint64, root tlog.Hash) ([]byte, error) {
	return l.key.Sign(checkpoint.Checkpoint{Segment: n.Origin(), Size: size, Root: root})
}

// shortRoot is the form of a root that fits into a sentence.
func shortRoot(h tlog.Hash) string { return hex.EncodeToString(h[:8]) }
