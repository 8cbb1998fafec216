// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// hungUp reports whether the other end of a socket has closed it.
func hungUp(raw syscall.RawConn) (gone bool) {
	err := raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd)}}
		_, err := unix.Poll(fds, 0)
		gone = err == nil && fds[0].Revents&unix.POLLHUP != 0
	})
	return gone || err != nil
}
