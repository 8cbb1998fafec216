// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tripline-sh/tripline/daemon/internal/sock"
	"github.com/tripline-sh/tripline/hooks/wire"
)

// hookServer accepts hooks. A connection that finds every slot taken waits unread; beyond the waiting ones nothing is
// accepted and the kernel's backlog holds the rest.
type hookServer struct {
	d       *Daemon
	ln      *net.UnixListener
	named   bool          // the socket's name is ours to remove: a service manager's stays, and its queue is the next daemon's
	slots   chan struct{} // connections being served
	waiting chan struct{} // accepted ones that wait for a slot
	budget  *budget
	wg      sync.WaitGroup // every connection's goroutine; close waits for it
	over    chan struct{}  // closed when serve has returned: no further connection comes

	open  atomic.Int64 // connections, for the gauge
	mu    sync.Mutex
	conns map[*net.UnixConn]struct{} // open ones that have not sent a whole frame yet
	last  time.Time                  // when the stopping daemon gives those up; zero before
}

// drainTime is how long a stopping daemon takes what has been sent to it. A hook that got through to the socket has its event out
// within microseconds; one that is hung up on can only refuse its call.
const drainTime = 100 * time.Millisecond

func newHookServer(d *Daemon, ln *net.UnixListener) *hookServer {
	return &hookServer{
		d:       d,
		ln:      ln,
		named:   !d.manager.lends(hookSocketName),
		slots:   make(chan struct{}, d.limits.conns),
		waiting: make(chan struct{}, d.limits.waiting),
		budget:  newBudget(d.limits.budget),
		over:    make(chan struct{}),
		conns:   make(map[*net.UnixConn]struct{}),
	}
}

// serve accepts until the listener is closed or its deadline has passed. ctx ends the waits of connections.
func (s *hookServer) serve(ctx context.Context) {
	defer close(s.over)
	for {
		if !put(ctx, s.waiting) {
			return
		}
		c, err := s.ln.AcceptUnix()
		if err != nil {
			<-s.waiting
			if errors.Is(err, net.ErrClosed) || ctx.Err() != nil {
				return
			}
			// Out of descriptors or the like: the callers wait in the backlog and fail closed by themselves.
			s.d.m.FailClosed(connProtocol)
			s.d.logger.Warn().Err(err).Msg("cannot accept a hook")
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
				return
			}
			continue
		}
		s.track(c, true)
		s.wg.Go(func() { s.connection(ctx, c) })
	}
}

// connection waits for a slot and serves c in it.
func (s *hookServer) connection(ctx context.Context, c *net.UnixConn) {
	defer c.Close()
	defer s.track(c, false)
	s.opened(1)
	defer s.opened(-1)
	wait, cancel := context.WithTimeout(ctx, s.d.limits.patience)
	defer cancel()
	switch {
	case put(wait, s.slots):
		<-s.waiting
		defer func() { <-s.slots }()
		s.handle(ctx, c)
	default:
		<-s.waiting
		s.refuse(c)
	}
}

// put takes a place if one is free, and else waits for one until ctx ends.
func put(ctx context.Context, places chan<- struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
	}
	select {
	case places <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// largeFrame is the size from which a frame leaves enough garbage to be given back to the system.
const largeFrame = 1 << 20

// handle serves one connection: one frame in, one reply out. Everything that goes wrong before the header is read just
// closes the connection, since nothing is known of the caller; its hook then fails closed by itself.
func (s *hookServer) handle(ctx context.Context, c *net.UnixConn) {
	d := s.d
	defer func() {
		if v := recover(); v != nil {
			d.m.FailClosed(failPanic.metric)
			d.logger.Error().Str("stage", "connection").Msg("panic")
		}
	}()
	received := d.now()
	peer, err := sock.PeerOf(c)
	if err != nil {
		d.m.FailClosed(connProtocol)
		return
	}
	defer peer.Close()
	if !d.trustedUID(peer.UID) {
		d.m.FailClosed(connProtocol)
		d.logger.Warn().Uint32("uid", peer.UID).Msg("a process of another user was refused")
		return
	}
	_ = c.SetReadDeadline(s.readBy(received.Add(d.limits.header)))
	h, err := wire.ReadHeader(c)
	if err != nil {
		s.frameFailed(err)
		return
	}
	req := newRequest(h, c, &peer, received, d.limits)
	req.readBy = s.readBy(req.readBy)
	fctx, cancel := context.WithDeadline(ctx, req.readBy)
	defer cancel()
	switch {
	case h.Stream():
		err = req.readStream(d.limits.progress)
	default:
		n := int64(h.PayloadLen)
		if err = s.budget.take(fctx, n); err != nil {
			f := failBusy
			if d.stopping() {
				f = failStopping
			}
			s.fail(req, f)
			return
		}
		defer s.budget.give(n)
		if n >= largeFrame {
			defer d.large.Store(true)
		}
		err = req.readPayload(d.limits.progress)
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		s.fail(req, failSlow)
		return
	case err != nil: // the caller is gone, or breaks the protocol
		s.frameFailed(err)
		return
	}
	s.track(c, false) // a whole frame was read: it will be answered
	_ = c.SetReadDeadline(time.Time{})
	reply, x := d.process(d.workCtx, req)
	s.reply(c, reply)
	d.fanOut(x)
}

// fail records and answers a frame whose payload never came to be read.
func (s *hookServer) fail(req *request, f failure) {
	x := s.d.begin(req)
	s.reply(req.conn, s.d.refuse(s.d.workCtx, x, f))
	s.d.fanOut(x)
}

// refuse answers a connection that found no slot within its patience. Its header is usually there by now, and tells which
// canned reply its agent understands.
func (s *hookServer) refuse(c *net.UnixConn) {
	peer, err := sock.PeerOf(c)
	if err != nil || !s.d.trustedUID(peer.UID) {
		return
	}
	defer peer.Close()
	_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	h, err := wire.ReadHeader(c)
	if err != nil {
		return
	}
	// Nothing of it is on record, nor is there room to wait for that: it is declared instead.
	s.d.gaps.add("busy", 1)
	s.d.m.Dropped("busy", 1)
	s.reply(c, s.d.canned(h.Agent, h.Event, failBusy))
}

// reply sends the final frame. A caller that does not take it loses it, and fails closed.
func (s *hookServer) reply(c *net.UnixConn, r wire.Reply) {
	b, err := wire.AppendReply(nil, &r)
	if err != nil { // an adapter's reply beyond the protocol's limit: nothing may pass
		s.d.m.FailClosed(failPanic.metric)
		return
	}
	_ = c.SetWriteDeadline(time.Now().Add(s.d.limits.write))
	_, _ = c.Write(b) // a hook that is gone fails closed by itself
}

// track remembers connections without a whole frame, so that stopping does not wait for them.
func (s *hookServer) track(c *net.UnixConn, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if on {
		s.conns[c] = struct{}{}
	} else {
		delete(s.conns, c)
	}
}

// opened keeps the gauge of open connections.
func (s *hookServer) opened(n int64) { s.d.m.Connections(int(s.open.Add(n))) }

// readBy is t, or earlier if the daemon stops.
func (s *hookServer) readBy(t time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last.IsZero() {
		return t
	}
	return earliest(t, s.last)
}

// close takes what the socket's queue holds, accepts no more, drops connections that do not come up with a whole frame now, and waits
// for the others' replies, or for ctx. The context of serve must have ended.
func (s *hookServer) close(ctx context.Context) error {
	s.mu.Lock()
	s.last = time.Now().Add(drainTime)
	s.mu.Unlock()
	if s.named {
		// Nobody joins the queue any more: a hook finds no socket, and starts a daemon. Then what is in it is taken.
		_ = os.Remove(s.ln.Addr().String())
		s.ln.SetUnlinkOnClose(false)
		_ = s.ln.SetDeadline(time.Now().Add(drainTime / 4))
		<-s.over
	}
	err := s.ln.Close()
	<-s.over
	s.mu.Lock()
	for c := range s.conns {
		_ = c.SetReadDeadline(s.last)
	}
	s.mu.Unlock()
	if wait(ctx, &s.wg) != nil {
		err = errors.Join(err, errors.New("hooks were still being answered"))
	}
	return err
}

// connProtocol is the reason under which connections count that did not deliver a frame.
const connProtocol = "protocol"

// frameFailed counts a frame that could not be read. A connection that was closed without a byte is nobody's failure.
func (s *hookServer) frameFailed(err error) {
	switch {
	case errors.Is(err, io.EOF):
	case errors.Is(err, os.ErrDeadlineExceeded):
		s.d.m.FailClosed(failSlow.metric)
	default:
		s.d.m.FailClosed(connProtocol)
	}
}
