// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/tripline-sh/tripline/audit/segment"
)

const (
	// maxGroupBytes bounds what one commit writes.
	maxGroupBytes = 16 << 20
	// rollRetry is the pause before a new segment is tried again whose name was taken.
	rollRetry = time.Minute
	// trimStep is by how much the live segment grows until its map is trimmed: without that a day's log would stay resident.
	trimStep = 4 << 20
	// hangFactor times CommitTimeout is how long a commit without an end is waited for before the log gives up.
	hangFactor = 4
)

// run is the writer: the only goroutine that changes the log, with the one commit it may have under way.
func (l *Log) run() {
	stopKeeper := make(chan struct{})
	keeper := make(chan error, 1)
	go func() { keeper <- l.keepAnchor(stopKeeper) }()
	l.serve()
	close(stopKeeper)
	err := <-keeper
	l.mu.Lock()
	live := l.live
	l.err = ErrClosed
	if !l.hung { // else a commit may still be using it
		l.live = nil
	}
	l.mu.Unlock()
	if live != nil {
		err = errors.Join(err, l.within(live.Close))
	}
	l.closeErr = errors.Join(err, l.lock.Close())
	close(l.done)
}

// serve takes requests until Close, and then those that wait.
func (l *Log) serve() {
	for {
		select {
		case r := <-l.queue:
			l.write(l.gather(r))
		case <-l.stop:
			for {
				select {
				case r := <-l.queue:
					l.write(l.gather(r))
				default:
					return
				}
			}
		}
	}
}

// gather adds to the first request what else waits, up to the bounds of a group. Requests that nobody waits for any more
// are dropped.
func (l *Log) gather(first *request) []*request {
	group := make([]*request, 0, min(l.o.MaxGroup, 1+len(l.queue)))
	size := 0
	for r := first; ; {
		if !r.gone.Load() {
			group = append(group, r)
			size += r.size
		}
		if len(group) >= l.o.MaxGroup || size >= maxGroupBytes {
			return group
		}
		select {
		case r = <-l.queue:
		default:
			return group
		}
	}
}

// commit is one write with everything that depends on its success.
type commit struct {
	items    []segment.Item
	receipts []Receipt
	rollErr  error
	err      error
}

// write makes a group durable and answers it. If that fails, it answers first and then brings the log back.
func (l *Log) write(group []*request) {
	if len(group) == 0 {
		return
	}
	if err := l.Err(); err != nil {
		refuse(group, err)
		return
	}
	start := time.Now()
	running := make(chan *commit, 1)
	go func() { running <- l.commit(group) }()
	c, err := l.await(running)
	info := CommitInfo{Records: len(group), Duration: time.Since(start), Err: err}
	if c != nil {
		info.RollErr = c.rollErr
	}
	if err == nil {
		for i, r := range group {
			r.answer <- response{receipt: c.receipts[i]}
		}
	} else {
		err = fmt.Errorf("%w: %v", ErrUnavailable, err)
		l.setErr(err)
		refuse(group, err)
	}
	l.mu.RLock()
	info.Size, info.Bytes = l.seq, l.tip.Used
	l.mu.RUnlock()
	if l.o.OnCommit != nil {
		l.o.OnCommit(info)
	}
	if err != nil {
		l.recover(err, group, c, running)
	}
}

// errSlow says that a commit did not end in time.
var errSlow = errors.New("commit takes too long")

// await waits for the commit under way as long as a commit may take. Without a commit the error is errSlow.
func (l *Log) await(running <-chan *commit) (*commit, error) {
	patience := time.NewTimer(l.o.CommitTimeout)
	defer patience.Stop()
	select {
	case c := <-running:
		return c, c.err
	case <-patience.C:
		return nil, errSlow
	}
}

// commit writes a group into the live segment, after beginning a new one if it is time.
func (l *Log) commit(group []*request) (c *commit) {
	c = new(commit)
	defer func() {
		if p := recover(); p != nil {
			c.err = fmt.Errorf("panic: %v", p)
		}
	}()
	if c.rollErr, c.err = l.roll(); c.err != nil {
		return c
	}
	var ops []segment.Op
	for i, r := range group {
		c.items = append(c.items, r.item(l.seq+1+uint64(i)))
		for _, op := range r.ops {
			ops = append(ops, segment.Op(op))
		}
	}
	roots, err := l.append(c.items, ops)
	if err != nil {
		c.err = err
		return c
	}
	for i, r := range group {
		c.receipts = append(c.receipts, Receipt{Seq: c.items[i].Seq, ID: r.rec.ID, Root: shortRoot(roots[i]), Time: r.rec.Time})
	}
	return c
}

// append writes items into the live segment and makes them visible.
func (l *Log) append(items []segment.Item, ops []segment.Op) ([]tlog.Hash, error) {
	if err := l.live.Intact(); err != nil {
		return nil, err
	}
	if f := l.o.seam.before; f != nil {
		if err := f(); err != nil {
			return nil, err
		}
	}
	l.attempted = items[len(items)-1].Seq
	roots, err := l.live.Append(items, ops, l.sign)
	if err != nil {
		return nil, err
	}
	if f := l.o.seam.after; f != nil {
		if err := f(); err != nil {
			return nil, err
		}
	}
	l.mu.Lock()
	l.tip, l.seq = l.live.Tip(), l.attempted
	for _, op := range ops {
		if op.Value == nil {
			delete(l.state, op.Key)
		} else {
			l.state[op.Key] = append([]byte{}, op.Value...)
		}
	}
	l.mu.Unlock()
	l.moved()
	if l.tip.Used-l.trimmed > trimStep || l.tip.Used < l.trimmed {
		l.trimmed = l.tip.Used
		l.live.Trim()
	}
	return roots, nil
}

// roll begins a new segment when the UTC day has changed or the live one is full. soft: the name is taken by something
// else, the old segment goes on.
func (l *Log) roll() (soft, hard error) {
	now := l.o.Now()
	name := l.live.Name()
	if segment.Day(now) <= name.Day && l.tip.Used < l.o.MaxSegment || now.Before(l.rollAfter) {
		return nil, nil
	}
	s, err := l.create(link(name, l.tip), nil, l.seq+1, l.state)
	if errors.Is(err, fs.ErrExist) {
		l.rollAfter = now.Add(rollRetry)
		return err, nil
	}
	if err != nil {
		return nil, err
	}
	old := l.live
	if err := l.adopt(s, l.state); err != nil {
		return nil, err
	}
	return nil, old.Close()
}

// refuse answers a whole group.
func refuse(group []*request, err error) {
	for _, r := range group {
		r.answer <- response{err: err}
	}
}
