// SPDX-License-Identifier: Apache-2.0

package client

import (
	"syscall"

	"github.com/tripline-sh/tripline/hooks/client/sys"
	"github.com/tripline-sh/tripline/hooks/spool"
	"github.com/tripline-sh/tripline/hooks/wire"
)

// payload is the room for the event: one byte more than a payload may have, so that a longer one shows.
func (h *hook) payload() []byte { return h.buf[wire.HeaderMax:] }

// tooLong reports whether the event has to be streamed.
func (h *hook) tooLong() bool { return h.n > wire.MaxPayload }

// readInput reads the event until its end, or until it is too long for a payload. No end in time is an input that cannot be read.
func (h *hook) readInput() spool.Fault {
	h.flags |= spool.FlagOpen
	for h.n < len(h.payload()) {
		n, fault := h.readSome(h.payload()[h.n:])
		if fault != 0 {
			return fault
		}
		if n == 0 {
			break
		}
		h.n += n
	}
	return 0
}

// readSome reads the next bytes of the event into b; 0 is its end.
func (h *hook) readSome(b []byte) (int, spool.Fault) {
	for {
		_, fault := h.wait(h.deadline, sys.PollFD{FD: int32(h.p.In), Events: sys.PollIn})
		if fault == spool.Timeout {
			fault = spool.Input
		}
		if fault != 0 {
			return 0, fault
		}
		n, err := sys.Read(h.p.In, b)
		if err == syscall.EAGAIN {
			continue
		}
		if err != nil {
			return 0, spool.Input
		}
		if n == 0 {
			h.flags &^= spool.FlagOpen
		}
		h.read += uint64(n)
		return n, 0
	}
}
