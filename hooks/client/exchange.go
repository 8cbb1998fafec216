// SPDX-License-Identifier: Apache-2.0

package client

import (
	"io"
	"syscall"
	"time"

	"github.com/tripline-sh/tripline/hooks/client/sys"
	"github.com/tripline-sh/tripline/hooks/spool"
	"github.com/tripline-sh/tripline/hooks/wire"
)

// connect returns a connection to the daemon, once it is certain whose daemon it is.
func (h *hook) connect() (int, spool.Fault) {
	fd, err := sys.Socket()
	if err != nil {
		return -1, spool.Internal
	}
	until := h.soon()
	var s starting
	for {
		switch err := sys.Connect(fd, h.a.socket); err {
		case nil:
			uid, err := sys.PeerUID(fd)
			if err != nil {
				return -1, spool.Unreachable
			}
			if uid != h.a.uid {
				return -1, spool.Impostor
			}
			return fd, 0
		case syscall.EAGAIN:
			// The queue of connections is full. No poll tells when that changes.
			pause := time.Now().Add(retryConnect)
			if pause.After(until) {
				return -1, spool.Timeout
			}
			if _, fault := h.wait(pause); fault != spool.Timeout {
				return -1, fault
			}
		case syscall.ENOENT, syscall.ECONNREFUSED:
			if fault := h.start(&s); fault != 0 {
				return -1, fault
			}
		default:
			return -1, spool.Unreachable
		}
	}
}

// send gives the daemon the whole event. It is no fault if the daemon hangs up or answers before the end, since its answer is still to
// be read; FlagSent tells whether it got everything.
func (h *hook) send(fd int) spool.Fault {
	header := h.header()
	if h.tooLong() {
		header.Flags = wire.FlagStream
	} else {
		header.PayloadLen = uint32(h.n)
	}
	enc, err := wire.AppendHeader(nil, &header)
	if err != nil {
		return spool.Internal
	}
	// The header goes right before the payload, so that an ordinary event is one write.
	frame := h.buf[wire.HeaderMax-len(enc) : wire.HeaderMax+h.n]
	copy(frame, enc)
	taken, fault := h.push(fd, frame)
	if taken && h.tooLong() {
		taken, fault = h.stream(fd)
	}
	if taken {
		h.flags |= spool.FlagSent
	}
	return fault
}

// stream sends what follows of an event that is too long for a payload, and closes our side to mark its end.
func (h *hook) stream(fd int) (taken bool, fault spool.Fault) {
	// What has been sent may be overwritten, except for the part that a spool would keep.
	scratch := h.payload()[spool.MaxPayload:][:1<<20]
	for {
		n, fault := h.readSome(scratch)
		if fault != 0 {
			return false, fault
		}
		if n == 0 {
			return syscall.Shutdown(fd, syscall.SHUT_WR) == nil, 0
		}
		if taken, fault := h.push(fd, scratch[:n]); !taken {
			return false, fault
		}
	}
}

// push writes b to the daemon. taken is false if the daemon hung up or began to answer before it took everything.
func (h *hook) push(fd int, b []byte) (taken bool, fault spool.Fault) {
	until := h.soon()
	for len(b) > 0 {
		n, err := sys.Write(fd, b)
		if n > 0 {
			b, until = b[n:], h.soon()
			continue
		}
		if err != syscall.EAGAIN {
			return false, 0
		}
		ready, fault := h.wait(until, sys.PollFD{FD: int32(fd), Events: sys.PollIn | sys.PollOut})
		if fault != 0 {
			return false, fault
		}
		if ready[0].Revents&sys.PollIn != 0 {
			return false, 0
		}
	}
	return true, 0
}

// receive reads frames until the final one.
func (h *hook) receive(fd int) (*wire.Reply, spool.Fault) {
	sent := h.flags&spool.FlagSent != 0
	r := &replies{h: h, fd: fd, until: h.soon()}
	for {
		reply, err := wire.ReadReply(r)
		switch {
		case r.fault != 0:
			return nil, r.fault
		case err != nil:
			return nil, spool.Garbled
		case reply.Kind == wire.KindHold && sent:
			r.until = h.deadline
		case reply.Kind != wire.KindFinal || reply.Exit != exitOK && reply.Exit != exitDeny:
			return nil, spool.Garbled
		case !sent && reply.Exit == exitOK && h.class.gates():
			// A verdict on a call that was not read to its end can only be a refusal.
			return nil, spool.Garbled
		default:
			return reply, 0
		}
	}
}

// replies is the daemon's side of the connection as an io.Reader that keeps to a deadline.
type replies struct {
	h     *hook
	fd    int
	until time.Time
	fault spool.Fault // why Read failed, if it was not the daemon's fault
	buf   [4096]byte
	rest  []byte
}

func (r *replies) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if _, r.fault = r.h.wait(r.until, sys.PollFD{FD: int32(r.fd), Events: sys.PollIn}); r.fault != 0 {
			return 0, syscall.ETIMEDOUT
		}
		n, err := sys.Read(r.fd, r.buf[:])
		if err == syscall.EAGAIN {
			continue
		}
		if err != nil {
			return 0, err
		}
		if n == 0 {
			return 0, io.EOF
		}
		r.rest = r.buf[:n]
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
