// SPDX-License-Identifier: Apache-2.0

package sys

import (
	"syscall"
	"time"
	"unsafe"
)

// PipeBuf is how much a pipe that is ready for writing takes without blocking.
const PipeBuf = 512

// Poll waits until one of fds is ready or d is over. It returns how many are ready: 0 when the time is over or a signal came,
// so callers look at their clock and call again. It is made of select(2), which package syscall offers on this system.
func Poll(fds []PollFD, d time.Duration) (int, error) {
	var r, w syscall.FdSet
	top := int32(-1)
	for i := range fds {
		f := &fds[i]
		f.Revents = 0
		if f.FD < 0 || int(f.FD) >= syscall.FD_SETSIZE {
			return 0, syscall.EBADF
		}
		top = max(top, f.FD)
		if f.Events&PollIn != 0 {
			r.Bits[f.FD/32] |= 1 << (uint(f.FD) % 32)
		}
		if f.Events&PollOut != 0 {
			w.Bits[f.FD/32] |= 1 << (uint(f.FD) % 32)
		}
	}
	tv := syscall.NsecToTimeval(int64(left(d)))
	if err := syscall.Select(int(top)+1, &r, &w, nil, &tv); err == syscall.EINTR {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	n := 0
	for i := range fds {
		f := &fds[i]
		if r.Bits[f.FD/32]&(1<<(uint(f.FD)%32)) != 0 && f.Events&PollIn != 0 {
			f.Revents |= PollIn
		}
		if w.Bits[f.FD/32]&(1<<(uint(f.FD)%32)) != 0 && f.Events&PollOut != 0 {
			f.Revents |= PollOut
		}
		if f.Revents != 0 {
			n++
		}
	}
	return n, nil
}

// xucred is struct xucred of <sys/ucred.h>.
type xucred struct {
	version uint32
	uid     uint32
	ngroups int16
	_       int16
	groups  [16]uint32
}

// PeerUID returns the uid of the process that called listen on the other end of fd, as the kernel noted it then.
func PeerUID(fd int) (uint32, error) {
	const solLocal, localPeercred = 0, 1
	var c xucred
	size := uint32(unsafe.Sizeof(c))
	_, _, e := syscall.Syscall6(syscall.SYS_GETSOCKOPT, uintptr(fd), solLocal, localPeercred,
		uintptr(unsafe.Pointer(&c)), uintptr(unsafe.Pointer(&size)), 0)
	if e != 0 {
		return 0, e
	}
	if c.version != 0 || uintptr(size) < unsafe.Offsetof(c.ngroups) {
		return 0, syscall.EINVAL
	}
	return c.uid, nil
}

// adviseHuge does nothing: this system has no such advice.
func adviseHuge([]byte) {}

// closeOnExec marks every descriptor but the standard ones.
func closeOnExec() { closeEach() }
