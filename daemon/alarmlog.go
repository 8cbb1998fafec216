// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/exporters/prom"
)

// alarmLog is the audit log as the rest of the daemon writes to it: the one place where records that need a person are
// counted and told in the daemon's own log, whoever writes them and whichever way their event came.
type alarmLog struct {
	auditLog
	m      *prom.Metrics
	logger zerolog.Logger
	agents func(string) bool // names that may be logged; any other is the caller's own text

	broken atomic.Bool   // a commit failed: the log may have written records of its own since
	moved  atomic.Bool   // the files grew since they were last measured
	looked atomic.Uint64 // sequence number up to which its own records are counted
	bytes  atomic.Int64  // of its files, as they were last measured
}

// Append implements auditLog.
func (l *alarmLog) Append(ctx context.Context, e *audit.Entry) (audit.Receipt, error) {
	receipt, err := l.auditLog.Append(ctx, e)
	if err == nil {
		l.tell(&e.Record)
	}
	return receipt, err
}

// committed is told about each commit. It does not block.
func (l *alarmLog) committed(c audit.CommitInfo) {
	l.m.Commit(c.Records, c.Duration, c.Err)
	if c.Err != nil {
		if !l.broken.Swap(true) {
			l.looked.Store(c.Size)
		}
		return
	}
	l.moved.Store(true)
	l.m.LogRecords(c.Size)
}

// tell counts a record that needs a person and writes its kind into the daemon's own log.
func (l *alarmLog) tell(r *record.Record) {
	switch r.Kind {
	case record.Gap, record.DaemonAlarm, record.CommitUnknown:
	default:
		if !strings.HasPrefix(string(r.Kind), "tamper.") {
			return
		}
	}
	l.m.Alarm(string(r.Kind))
	ev := l.logger.Warn().Str("kind", string(r.Kind))
	if l.agents(r.Agent) {
		ev = ev.Str("agent", r.Agent)
	}
	ev.Msg("alarm")
}

// opened counts what the log wrote by itself when it was opened, at time or later.
func (l *alarmLog) opened(ctx context.Context, from time.Time) error {
	return l.Scan(ctx, audit.Range{From: from}, func(r *record.Record, _ audit.BodiesFunc) error {
		if own(r) {
			l.tell(r)
		}
		return nil
	})
}

// recovered counts what the log wrote by itself after a failed commit, once it works again.
func (l *alarmLog) recovered(ctx context.Context) {
	if l.Err() != nil || !l.broken.Swap(false) {
		return
	}
	size := l.Size()
	err := l.Scan(ctx, audit.Range{FromSeq: l.looked.Load() + 1}, func(r *record.Record, _ audit.BodiesFunc) error {
		if r.Seq > size {
			return errLooked
		}
		if own(r) {
			l.tell(r)
		}
		l.looked.Store(r.Seq)
		return nil
	})
	if err != nil && !errors.Is(err, errLooked) && !errors.Is(err, audit.ErrDamaged) {
		l.broken.Store(true) // again in a second
	}
}

// errLooked ends a scan.
var errLooked = errors.New("looked far enough")

// own reports whether the log wrote a record by itself.
func own(r *record.Record) bool {
	return r.Kind == record.CommitUnknown || r.Kind == record.Gap && r.Detail["what"] == "records"
}

// measure sets the size of the log's files if it may have changed. Files that vanish meanwhile count for nothing.
func (l *alarmLog) measure() {
	if !l.moved.Swap(false) {
		return
	}
	files, err := os.ReadDir(l.Dir())
	if err != nil {
		return
	}
	var sum int64
	for _, f := range files {
		if fi, err := f.Info(); err == nil && fi.Mode().IsRegular() {
			sum += fi.Size()
		}
	}
	l.bytes.Store(sum)
	l.m.LogBytes(sum)
}
