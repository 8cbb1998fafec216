// SPDX-License-Identifier: Apache-2.0

package client

import (
	"time"

	"github.com/tripline-sh/tripline/hooks/client/sys"
	"github.com/tripline-sh/tripline/hooks/spool"
)

// wait blocks until one of fds is ready and returns them with what they are ready for. It is where the hook spends its time, and the
// only place where it notices that it was asked to end (Interrupted) or that until has come (Timeout), even if something is ready.
func (h *hook) wait(until time.Time, fds ...sys.PollFD) (ready []sys.PollFD, fault spool.Fault) {
	all := fds
	if h.p.Signals >= 0 {
		all = append(fds, sys.PollFD{FD: int32(h.p.Signals), Events: sys.PollIn})
	}
	for {
		left := time.Until(until)
		if left <= 0 {
			return nil, spool.Timeout
		}
		n, err := sys.Poll(all, left)
		switch {
		case err != nil:
			return nil, spool.Internal
		case len(all) > len(fds) && all[len(fds)].Revents != 0:
			return nil, spool.Interrupted
		case n > 0:
			return all[:len(fds)], 0
		}
	}
}

// soon is when the daemon must have done something next.
func (h *hook) soon() time.Time {
	t := time.Now().Add(firstAnswer)
	if t.After(h.deadline) {
		return h.deadline
	}
	return t
}
