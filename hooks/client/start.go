// SPDX-License-Identifier: Apache-2.0

package client

import (
	"time"

	"github.com/tripline-sh/tripline/hooks/client/sys"
	"github.com/tripline-sh/tripline/hooks/spool"
)

// starting is a start of the daemon that is under way.
type starting struct {
	pid   int // 0 = not tried
	until time.Time
}

// start is called while nobody listens. It starts the daemon if the command line says how, once, and waits a moment; 0 means that
// it is time to connect again. Many hooks may do this at once: the daemons settle it among themselves which one stays, so one that
// ended says nothing, unless it says with exit code 0 that a person wants none.
func (h *hook) start(s *starting) spool.Fault {
	if h.a.daemon == nil {
		return spool.Absent
	}
	if s.pid == 0 {
		pid, err := sys.Start(h.a.daemon)
		if err != nil {
			return spool.Absent
		}
		s.pid, s.until = pid, time.Now().Add(startTime)
		if s.until.After(h.deadline) {
			s.until = h.deadline
		}
	}
	if ended, clean := sys.Ended(s.pid); ended && clean {
		return spool.Absent
	}
	pause := time.Now().Add(startPause)
	if pause.After(s.until) {
		return spool.Absent
	}
	if _, fault := h.wait(pause); fault != spool.Timeout {
		return fault
	}
	return 0
}
