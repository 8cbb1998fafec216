// SPDX-License-Identifier: Apache-2.0

package spool

import (
	"errors"
	"syscall"
	"time"

	"github.com/tripline-sh/tripline/hooks/wire"
)

// Errors of Write.
var (
	ErrFull = errors.New("the spool is full") // the event was counted as dropped
	ErrDir  = errors.New("the spool is not a directory of this user's own")
)

// Write stores one event durably in the spool at dir, which is made if only its last component is missing. h is the event's
// request header; its flags and payload length are set to what is stored. payload is what was read of the event; what exceeds
// MaxPayload is cut. An event that cannot be stored, for want of room or for an error, is counted as dropped where that is
// possible; Write then returns ErrFull or the error.
//
// It never follows a link in dir or below, and does not wait for anything but the disk.
func Write(dir string, m Meta, h wire.Header, payload []byte) error {
	d, err := openDir(dir)
	if err != nil {
		return err
	}
	defer syscall.Close(d)

	if len(payload) > MaxPayload {
		payload = payload[:MaxPayload]
		m.Flags |= FlagCut
	}
	h.Flags, h.PayloadLen = 0, uint32(len(payload))
	head, err := wire.AppendHeader(AppendPreamble(nil, m), &h)
	if err != nil {
		return err
	}
	size := len(head) + len(payload)

	entries, bytes, err := usage(d)
	if err == nil && (entries >= MaxEntries || bytes+int64(size) > MaxBytes) {
		err = ErrFull
	}
	if err == nil {
		err = store(d, dir+"/"+entryName(time.Now().UnixNano(), syscall.Getpid(), random(), size), head, payload)
	}
	if err != nil {
		drop(dir)
	}
	return err
}

// store writes one entry and makes it and its name durable.
func store(d int, path string, parts ...[]byte) error {
	tmp := path + ".tmp"
	fd, err := open(tmp, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL)
	if err != nil {
		return err
	}
	// The agent's umask could leave a file that the daemon cannot open.
	err = syscall.Fchmod(fd, 0o600)
	for _, b := range parts {
		for err == nil && len(b) > 0 {
			var n int
			n, err = syscall.Write(fd, b)
			if err == syscall.EINTR {
				n, err = 0, nil
			}
			b = b[max(n, 0):]
		}
	}
	if err == nil {
		err = syscall.Fsync(fd)
	}
	if e := syscall.Close(fd); err == nil {
		err = e
	}
	if err == nil {
		err = syscall.Rename(tmp, path+".evt")
	}
	if err != nil {
		syscall.Unlink(tmp)
		return err
	}
	return syscall.Fsync(d)
}

// drop adds one to the count of dropped events. Its lock is what lets the daemon take a part of the count away without losing
// what is added at that moment.
func drop(dir string) {
	fd, err := open(dir+"/"+DroppedName, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_APPEND)
	if err != nil {
		return
	}
	defer syscall.Close(fd)
	var st syscall.Stat_t
	if syscall.Fstat(fd, &st) != nil || st.Mode&syscall.S_IFMT != syscall.S_IFREG || syscall.Flock(fd, syscall.LOCK_EX) != nil {
		return
	}
	if syscall.Fstat(fd, &st) == nil && st.Size < MaxDropped {
		syscall.Write(fd, []byte{'.'})
		syscall.Fsync(fd)
	}
}

// usage adds up the directory open as d by its names alone. It stops counting where the spool is full, so that a directory of
// millions costs no more than a full one.
func usage(d int) (entries int, bytes int64, err error) {
	buf := make([]byte, 32<<10)
	for entries < MaxEntries {
		n, err := syscall.ReadDirent(d, buf)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return entries, bytes, err
		}
		_, _, names := syscall.ParseDirent(buf[:n], -1, nil)
		for _, name := range names {
			size, _, _ := ParseName(name)
			bytes += size
		}
		entries += len(names)
	}
	return entries, bytes, nil
}

// openDir opens the spool for reading its names, if it is a real directory that no other user can write to.
func openDir(dir string) (int, error) {
	const flags = syscall.O_RDONLY | syscall.O_DIRECTORY
	d, err := open(dir, flags)
	if err == syscall.ENOENT {
		switch err = syscall.Mkdir(dir, 0o700); err {
		case nil:
			err = syscall.Chmod(dir, 0o700) // whatever the umask left
		case syscall.EEXIST:
			err = nil // another hook was faster
		}
		if err == nil {
			d, err = open(dir, flags)
		}
	}
	if err != nil {
		return -1, err
	}
	var st syscall.Stat_t
	if err := syscall.Fstat(d, &st); err != nil || int(st.Uid) != syscall.Geteuid() || st.Mode&0o022 != 0 {
		syscall.Close(d)
		return -1, ErrDir
	}
	return d, nil
}

// open is open(2) that follows no link, blocks on nothing and leaks into no child.
func open(path string, flags int) (int, error) {
	for {
		fd, err := syscall.Open(path, flags|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0o600)
		if err != syscall.EINTR {
			return fd, err
		}
	}
}

// random returns bits that make a name unlike the names of other processes of the same number and instant. O_EXCL has the last
// word, so that an unreadable source does no harm.
func random() (v uint64) {
	fd, err := open("/dev/urandom", syscall.O_RDONLY)
	if err != nil {
		return 0
	}
	defer syscall.Close(fd)
	var b [8]byte
	syscall.Read(fd, b[:])
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v
}
