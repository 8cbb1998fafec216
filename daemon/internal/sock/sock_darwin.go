// SPDX-License-Identifier: Apache-2.0

package sock

import (
	"context"
	"net"
	"sync"

	"golang.org/x/sys/unix"
)

// maxPath is the size of sun_path less its terminator.
const maxPath = 103

// umaskMu serialises binds, since the umask belongs to the whole process.
var umaskMu sync.Mutex

func bind(ctx context.Context, path string) (net.Listener, error) {
	umaskMu.Lock()
	defer umaskMu.Unlock()
	old := unix.Umask(0o177)
	defer unix.Umask(old)
	return (&net.ListenConfig{}).Listen(ctx, "unix", path)
}

// peerOf asks the kernel who called connect.
func peerOf(fd int) (Peer, error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return Peer{}, err
	}
	p := Peer{UID: cred.Uid, pidfd: -1}
	if cred.Ngroups > 0 {
		p.GID = cred.Groups[0]
	}
	if pid, err := unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID); err == nil {
		p.PID = int32(pid)
	}
	return p, nil
}

func gone(int) bool { return false }

func closeFD(int) {}

// listens cannot be told here: the system has no such question. A socket that does not listen fails at its first accept.
func listens(int) bool { return true }
