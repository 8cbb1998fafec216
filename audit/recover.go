// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/audit/segment"
)

const (
	firstBackoff = 20 * time.Millisecond
	lastBackoff  = 2 * time.Second
	// maxListed bounds the ids that a daemon.commit-unknown record lists.
	maxListed = 64
)

// errHangs says that something of the operating system does not come back.
var errHangs = errors.New("audit log hangs, the process must be restarted")

// recover brings the log back after a commit whose outcome is unknown: it reopens the file, looks which of the group are
// there, writes down what it found, and only then takes requests again. Until that works it refuses every request. It
// returns when the log works again, when it is closed, or, after a delivery to Failed, when it is closed.
func (l *Log) recover(cause error, group []*request, c *commit, running <-chan *commit) {
	if c == nil {
		if c = l.outwait(running); c == nil {
			l.giveUp(fmt.Errorf("%w: %v", errHangs, cause))
			return
		}
	}
	items, damaged := c.items, errors.Is(c.err, segment.ErrDamaged)
	for pause := firstBackoff; ; pause = min(2*pause, lastBackoff) {
		again, err := l.retry(cause, group, items, damaged)
		if err == nil {
			l.setErr(nil)
			return
		}
		if errors.Is(err, errHangs) {
			l.giveUp(err)
			return
		}
		damaged = again
		l.setErr(fmt.Errorf("%w: %v", ErrUnavailable, err))
		if l.refuseFor(pause) {
			return
		}
	}
}

// outwait waits for a slow commit to end, refusing requests meanwhile. nil: it does not end, or the log is closed.
func (l *Log) outwait(running <-chan *commit) *commit {
	patience := time.NewTimer(hangFactor * l.o.CommitTimeout)
	defer patience.Stop()
	for {
		select {
		case c := <-running:
			if c.err == nil {
				c.err = errSlow
			}
			return c
		case r := <-l.queue:
			refuse([]*request{r}, l.Err())
		case <-patience.C:
			return nil
		}
	}
}

// retry is one attempt at recovery. damaged says that the live segment made the last attempt panic: it is set aside, and its
// handle, which may hold locks for ever, is left to itself.
func (l *Log) retry(cause error, group []*request, items []segment.Item, damaged bool) (again bool, err error) {
	l.mu.Lock()
	old := l.live
	l.live = nil
	memory, must := l.state, l.seq
	l.mu.Unlock()
	if old != nil && damaged {
		if old.Here() {
			if _, err := l.setAside(old.Name()); err != nil {
				l.restore(old)
				return true, err
			}
		}
		go func() { _ = old.Close() }() // may wait for ever on a lock that a panic left behind
	} else if old != nil {
		if err := l.within(old.Close); errors.Is(err, errHangs) {
			return false, err
		}
	}
	if err := l.resume(must, memory); err != nil {
		return false, err
	}
	r, err := l.inquest(cause, group, items)
	if err != nil {
		return errors.Is(err, segment.ErrDamaged), err
	}
	own, err := ownItems([]*record.Record{r}, l.seq+1, l.o.Now().UTC().Round(0))
	if err != nil {
		return false, err
	}
	running := make(chan *commit, 1)
	go func() {
		_, err := l.append(own, nil)
		running <- &commit{err: err}
	}()
	c, err := l.await(running)
	if c == nil {
		if c = l.outwait(running); c == nil {
			return false, errHangs
		}
		err = c.err
	}
	return errors.Is(err, segment.ErrDamaged), err
}

// restore puts back a live segment that could not be set aside, for the next attempt.
func (l *Log) restore(s *segment.Segment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.live = s
}

// inquest says which records of a group are in the live segment.
func (l *Log) inquest(cause error, group []*request, items []segment.Item) (*record.Record, error) {
	var there, lacking []string
	for i, r := range group {
		written, err := l.holds(items, i)
		if err != nil {
			return nil, err
		}
		if written {
			there = append(there, r.rec.ID)
		} else {
			lacking = append(lacking, r.rec.ID)
		}
	}
	d := map[string]string{
		"cause":   cause.Error(),
		"records": strconv.Itoa(len(group)),
		"found":   strconv.Itoa(len(there)),
	}
	if len(there) > 0 {
		// They are on record, and nevertheless their callers were told no.
		d["found_ids"] = strings.Join(there[:min(len(there), maxListed)], " ")
		d["found_first"] = strconv.FormatUint(items[0].Seq, 10)
	}
	if len(lacking) > 0 {
		d["missing_ids"] = strings.Join(lacking[:min(len(lacking), maxListed)], " ")
	}
	return &record.Record{Kind: record.CommitUnknown, Detail: d}, nil
}

// holds says whether the live segment holds item i; there are no items if the commit never got that far.
func (l *Log) holds(items []segment.Item, i int) (bool, error) {
	if i >= len(items) {
		return false, nil
	}
	rows, err := l.live.Page(items[i].Seq)
	if err != nil || len(rows) == 0 {
		return false, err
	}
	return rows[0].Seq == items[i].Seq && bytes.Equal(rows[0].Leaf, items[i].Leaf), nil
}

// refuseFor refuses requests for a while. It returns true when the log is being closed.
func (l *Log) refuseFor(pause time.Duration) (closing bool) {
	t := time.NewTimer(pause)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			return false
		case r := <-l.queue:
			refuse([]*request{r}, l.Err())
		case <-l.stop:
			return true
		}
	}
}

// giveUp refuses requests until the log is closed.
func (l *Log) giveUp(err error) {
	l.setErr(fmt.Errorf("%w: %v", ErrUnavailable, err))
	l.hung = true
	l.failed <- err
	for {
		select {
		case r := <-l.queue:
			refuse([]*request{r}, l.Err())
		case <-l.stop:
			return
		}
	}
}

// within runs fn, which may hang, and waits for it as long as for a commit.
func (l *Log) within(fn func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- fn() }()
	patience := time.NewTimer(l.o.CommitTimeout)
	defer patience.Stop()
	select {
	case err := <-ended:
		return err
	case <-patience.C:
		return errHangs
	}
}
