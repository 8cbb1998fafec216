// SPDX-License-Identifier: Apache-2.0

package sock

import "net"

// Peer is who called connect, as the kernel tells. Only UID is proof of anything; the process may hand its socket on.
type Peer struct {
	UID, GID uint32
	PID      int32
	pidfd    int // -1 where the kernel cannot pin the process
}

// PeerOf returns the credentials of the other side of c. Close the Peer when the connection is done with.
func PeerOf(c *net.UnixConn) (Peer, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return Peer{}, err
	}
	var p Peer
	var perr error
	if err := raw.Control(func(fd uintptr) { p, perr = peerOf(int(fd)) }); err != nil {
		return Peer{}, err
	}
	return p, perr
}

// Gone reports whether the process is known to have ended, so that its number may name another one by now.
func (p *Peer) Gone() bool { return p.pidfd >= 0 && gone(p.pidfd) }

// Close releases the pin on the process.
func (p *Peer) Close() {
	if p.pidfd >= 0 {
		closeFD(p.pidfd)
		p.pidfd = -1
	}
}
