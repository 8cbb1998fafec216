// SPDX-License-Identifier: Apache-2.0

package client

import (
	"syscall"
	"time"

	"github.com/tripline-sh/tripline/hooks/client/sys"
)

// say gives the agent an answer: stdout once, then stderr, then the exit code that it returns. An agent reads half an answer, or none,
// as leave to go on, so heard tells whether stdout arrived whole.
func (h *hook) say(stdout, stderr []byte, exit int) (_ int, heard bool) {
	h.p.Signals = -1 // it is being answered
	heard = true
	if len(stdout) > 0 && !h.spoke {
		h.spoke = true
		heard = !sys.IsNull(h.p.Out) && h.write(h.p.Out, stdout)
	}
	h.write(h.p.Err, stderr)
	return exit, heard
}

// write writes b to a descriptor that may block, may be set not to block, and may have nobody at its other end. It gives up when
// nothing is taken for speakTime.
func (h *hook) write(fd int, b []byte) bool {
	until := time.Now().Add(speakTime)
	for len(b) > 0 {
		if _, fault := h.wait(until, sys.PollFD{FD: int32(fd), Events: sys.PollOut}); fault != 0 {
			return false
		}
		// A descriptor that is ready takes this much without blocking.
		n, err := sys.Write(fd, b[:min(len(b), sys.PipeBuf)])
		if err != nil && err != syscall.EAGAIN {
			return false
		}
		if n > 0 {
			b, until = b[n:], time.Now().Add(speakTime)
		}
	}
	return true
}
