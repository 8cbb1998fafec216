// SPDX-License-Identifier: Apache-2.0

package sock

import (
	"context"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxPath is the size of sun_path less its terminator.
const maxPath = 107

// bind sets the socket's own mode before bind(2): Linux creates the name with that mode less the umask. So there is no
// moment with a wider mode, and no need to touch the umask, which belongs to the whole process.
func bind(ctx context.Context, path string) (net.Listener, error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		if e := c.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), 0o600) }); e != nil {
			return e
		}
		return err
	}}
	return lc.Listen(ctx, "unix", path)
}

// peerOf asks the kernel who called connect.
func peerOf(fd int) (Peer, error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return Peer{}, err
	}
	p := Peer{UID: cred.Uid, GID: cred.Gid, PID: cred.Pid, pidfd: -1}
	// Since 6.5; it pins the process, so that what /proc says about its number is about this process.
	if pidfd, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PEERPIDFD); err == nil {
		p.pidfd = pidfd
	}
	return p, nil
}

// gone reports whether the pinned process ended.
func gone(pidfd int) bool {
	fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n == 1 && fds[0].Revents != 0
}

func closeFD(fd int) { unix.Close(fd) }

// listens reports whether listen was called on a socket.
func listens(fd int) bool {
	n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	return err == nil && n != 0
}
