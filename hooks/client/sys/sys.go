// SPDX-License-Identifier: Apache-2.0

// Package sys is the few system calls of tripline-hook, the same on every system that it builds for. Package os would do, but
// its file type brings a poller and goroutines; the hook is one thread that waits in one place.
package sys

import (
	"syscall"
	"time"
)

// What a PollFD waits for. The system may set other bits in Revents too; a reader or writer then meets the error itself.
const (
	PollIn  = 0x1
	PollOut = 0x4
)

// PollFD is one descriptor to wait for.
type PollFD struct {
	FD      int32
	Events  int16
	Revents int16 // set by Poll; not 0 means that a read or write will not block
}

// Write is write(2) that is tried again when a signal cuts it short. It may write less than b.
func Write(fd int, b []byte) (int, error) {
	for {
		n, err := syscall.Write(fd, b)
		if err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}

// Read is read(2) that is tried again when a signal cuts it short. 0 and no error means end of file.
func Read(fd int, b []byte) (int, error) {
	for {
		n, err := syscall.Read(fd, b)
		if err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}

// IsNull reports whether fd leads nowhere: it is closed, or it is the null device. A Go program cannot tell the two apart,
// since the runtime opens the null device in place of a closed standard descriptor before main; what counts is that no one
// will read what is written there.
func IsNull(fd int) bool {
	var st, null syscall.Stat_t
	if syscall.Fstat(fd, &st) != nil {
		return true
	}
	return st.Mode&syscall.S_IFMT == syscall.S_IFCHR && syscall.Stat("/dev/null", &null) == nil && st.Rdev == null.Rdev
}

// Socket returns a new Unix stream socket, non-blocking and closed on exec. A descriptor that would be taken for stdin,
// stdout or stderr is refused.
func Socket() (int, error) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return -1, err
	}
	syscall.CloseOnExec(fd)
	if err = syscall.SetNonblock(fd, true); err == nil && fd <= 2 {
		err = syscall.EBADF
	}
	if err != nil {
		syscall.Close(fd)
		return -1, err
	}
	return fd, nil
}

// Connect starts to connect fd to the socket at path. EAGAIN means that its queue is full: try again later.
func Connect(fd int, path string) error {
	for {
		err := syscall.Connect(fd, &syscall.SockaddrUnix{Name: path})
		if err != syscall.EINTR {
			return err
		}
	}
}

// Reserve returns size bytes of zeroed memory outside the garbage-collected heap. Memory is used page by page as it is touched,
// so a large reservation for a small input costs one system call.
func Reserve(size int) ([]byte, error) {
	b, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE)
	if err == nil && size > hugeFrom {
		adviseHuge(b[hugeFrom:])
	}
	return b, err
}

// hugeFrom is where a reservation may begin to use huge pages: what fits below is quicker without.
const hugeFrom = 1 << 20

// left turns a duration into one that a system call takes: not negative, at most an hour.
func left(d time.Duration) time.Duration { return min(max(d, 0), time.Hour) }
