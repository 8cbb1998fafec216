// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/hooks/spool/ingest"
)

const (
	// spoolPrefix is where the names of ingested entries stand in the log's state until their files are gone.
	spoolPrefix = "spool/"
	spoolBatch  = 1024
)

// spoolReader takes events from the spool into the log. Everything in there is unauthenticated and late.
type spoolReader struct {
	d *Daemon

	mu   sync.Mutex      // one ingestion at a time
	seen map[string]bool // ingested names that the log's state still holds
	gone []string        // those of them whose files are gone for good
}

func newSpoolReader(d *Daemon, state map[string][]byte) *spoolReader {
	s := &spoolReader{d: d, seen: make(map[string]bool)}
	for k := range state {
		s.seen[k[len(spoolPrefix):]] = true
	}
	return s
}

// run ingests now and every minute.
func (s *spoolReader) run(ctx context.Context) {
	minute := time.NewTicker(time.Minute)
	defer minute.Stop()
	for {
		s.ingest(ctx)
		select {
		case <-ctx.Done():
			return
		case <-minute.C:
		}
	}
}

// ingest records what is in the spool now. It stops at the first record that cannot be written; the rest waits.
func (s *spoolReader) ingest(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sp, err := ingest.Open(s.d.places.SpoolDir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			s.d.logger.Warn().Err(err).Msg("the spool cannot be used")
		}
		return
	}
	res, err := sp.Scan(spoolBatch)
	if err != nil {
		s.d.logger.Warn().Err(err).Msg("the spool cannot be read")
		return
	}
	s.look(res)
	s.d.m.Spool(len(res.Names))
	s.d.gaps.add("spool_bad", len(res.Bad))
	s.d.m.Dropped("spool-bad", len(res.Bad))
	for i, name := range res.Names {
		if ctx.Err() != nil || !s.one(ctx, sp, name) {
			return
		}
		s.d.m.Spool(len(res.Names) - i - 1)
	}
	s.declare(ctx, sp, res.Dropped)
}

// look finds the ingested names that need not be remembered any more. A removal counts once it is durable: a file that
// came back after a loss of power would be taken for a new one.
func (s *spoolReader) look(res *ingest.Result) {
	s.gone = nil
	if res.More {
		return
	}
	for name := range s.seen {
		if _, there := slices.BinarySearch(res.Names, name); !there {
			s.gone = append(s.gone, name)
		}
	}
	if len(s.gone) == 0 {
		return
	}
	dir, err := os.Open(s.d.places.SpoolDir)
	if err == nil {
		err = errors.Join(dir.Sync(), dir.Close())
	}
	if err != nil {
		s.gone = nil
	}
}

// one ingests one entry; false means that the log takes none at the moment.
func (s *spoolReader) one(ctx context.Context, sp *ingest.Spool, name string) bool {
	if !s.seen[name] {
		e, err := sp.Load(name)
		switch {
		case errors.Is(err, ingest.ErrForeign):
			s.d.gaps.add("spool_bad", 1)
			s.d.m.Dropped("spool-bad", 1)
			return true
		case err != nil:
			return true // gone, or tried again in a minute
		}
		if !s.record(ctx, e) {
			return false
		}
		s.seen[name] = true
		s.d.m.Ingested(1)
	}
	if err := sp.Remove(name); err != nil {
		s.d.logger.Warn().Err(err).Msg("a spooled event cannot be removed")
	}
	return true
}

// record appends the records of one entry, and takes names off the state whose files are gone.
func (s *spoolReader) record(ctx context.Context, e *ingest.Entry) bool {
	x, entries := s.safeEntries(ctx, e)
	first := entries[0]
	first.State = append(first.State, audit.StateOp{Key: spoolPrefix + e.Name, Value: []byte{1}})
	gone := s.gone[:min(len(s.gone), 256)]
	for _, name := range gone {
		first.State = append(first.State, audit.StateOp{Key: spoolPrefix + name})
	}
	if _, err := s.d.log.Append(ctx, first); err != nil {
		return false
	}
	for _, name := range gone {
		delete(s.seen, name)
	}
	s.gone = s.gone[len(gone):]
	s.count(x, e)
	for _, m := range entries[1:] {
		s.d.appendLater(ctx, m)
	}
	return true
}

// declare records what hooks could not even spool.
func (s *spoolReader) declare(ctx context.Context, sp *ingest.Spool, n int64) {
	if n <= 0 {
		return
	}
	e := &audit.Entry{Record: record.Record{Kind: record.Gap, Source: "spool", Detail: map[string]string{
		"count": strconv.FormatInt(n, 10), "lost_spool_full": strconv.FormatInt(n, 10),
	}}}
	if _, err := s.d.log.Append(ctx, e); err != nil {
		return
	}
	s.d.m.Dropped("spool-full", int(n))
	if err := sp.Declared(n); err != nil {
		s.d.logger.Warn().Err(err).Msg("the count of dropped events cannot be reset")
	}
}
