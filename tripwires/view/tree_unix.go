// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package view

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// osTree is the machine's file system.
type osTree struct{}

func (osTree) root() (handle, error) { return openDir(unix.AT_FDCWD, "/") }

func (osTree) dir(parent handle, name string) (handle, error) { return openDir(int(parent), name) }

func openDir(at int, name string) (handle, error) {
	for {
		fd, err := unix.Openat(at, name, searchOnly|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if !errors.Is(err, unix.EINTR) {
			return handle(fd), mapError(err)
		}
	}
}

func (osTree) close(h handle) { _ = unix.Close(int(h)) } // opened for search or reading only: nothing can be lost

func (osTree) stat(parent handle, name string) (Info, error) {
	return statAt(int(parent), name, unix.AT_SYMLINK_NOFOLLOW)
}

func (osTree) statBelow(h handle, name string) (Info, error) { return statAt(int(h), name, 0) }

func statAt(at int, name string, flags int) (Info, error) {
	var st unix.Stat_t
	for {
		err := unix.Fstatat(at, name, &st, flags)
		if !errors.Is(err, unix.EINTR) {
			return infoOf(&st), mapError(err)
		}
	}
}

func (osTree) link(parent handle, name string) (string, error) {
	buf := make([]byte, 4097)
	for {
		n, err := unix.Readlinkat(int(parent), name, buf)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return "", mapError(err)
		case n == len(buf):
			return "", ErrLoop
		}
		return string(buf[:n]), nil
	}
}

func (osTree) read(parent handle, name string, max int64) ([]byte, Info, error) {
	fd, err := openRead(int(parent), name, 0)
	if err != nil {
		return nil, Info{}, err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close() //nolint:errcheck // read only: closing loses nothing
	if err := refusePseudo(fd); err != nil {
		return nil, Info{}, err
	}
	// It may have been replaced since the walk saw a regular file, so ask what was really opened.
	info, err := statFD(fd)
	switch {
	case err != nil:
		return nil, Info{}, err
	case !info.Mode.IsRegular():
		return nil, info, ErrNotRegular
	case info.Size > max:
		return nil, info, ErrTooLarge
	}
	data := make([]byte, 0, info.Size+1)
	for int64(len(data)) <= max {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, info, mapError(err)
		}
	}
	if int64(len(data)) > max {
		return nil, info, ErrTooLarge // it grew while it was read
	}
	return data, info, nil
}

func (osTree) list(h handle, max int) ([]string, error) {
	fd, err := openRead(int(h), ".", unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), ".")
	defer f.Close() //nolint:errcheck // read only: closing loses nothing
	if max <= 0 {
		return nil, nil
	}
	names, err := f.Readdirnames(max)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, mapError(err)
	}
	return names, nil
}

// openRead opens without following, waiting, or becoming a terminal's owner.
func openRead(at int, name string, flags int) (int, error) {
	flags |= unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NOCTTY
	for {
		fd, err := unix.Openat(at, name, flags, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, mapError(err)
		}
	}
}

func statFD(fd int) (Info, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return Info{}, mapError(err)
	}
	return infoOf(&st), nil
}

// mapError turns an error of the kernel into one of this package's; the rest is passed on without the path.
func mapError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ENAMETOOLONG):
		return fs.ErrNotExist
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return ErrDenied
	case errors.Is(err, unix.ELOOP):
		return ErrBusy // with O_NOFOLLOW: it became a link since it was looked at
	case errors.Is(err, unix.EAGAIN):
		return ErrBusy // a lease on the file
	case errors.Is(err, unix.ENXIO):
		return ErrNotRegular
	}
	var no unix.Errno
	if errors.As(err, &no) {
		return fmt.Errorf("could not be read: %w", no)
	}
	return errors.New("could not be read")
}

func infoOf(st *unix.Stat_t) Info {
	return Info{
		Mode:    fileMode(uint32(st.Mode)),
		Size:    st.Size,
		Dev:     uint64(st.Dev), //nolint:unconvert // signed and narrower on some systems
		Ino:     st.Ino,
		MTimeNS: st.Mtim.Nano(),
		CTimeNS: st.Ctim.Nano(),
		UID:     st.Uid,
		GID:     st.Gid,
		RawMode: uint32(st.Mode), //nolint:unconvert // narrower on some systems
		Nlink:   uint64(st.Nlink),
	}
}

func fileMode(raw uint32) fs.FileMode {
	m := fs.FileMode(raw & 0o777)
	switch raw & unix.S_IFMT {
	case unix.S_IFDIR:
		m |= fs.ModeDir
	case unix.S_IFLNK:
		m |= fs.ModeSymlink
	case unix.S_IFIFO:
		m |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		m |= fs.ModeSocket
	case unix.S_IFCHR:
		m |= fs.ModeDevice | fs.ModeCharDevice
	case unix.S_IFBLK:
		m |= fs.ModeDevice
	case unix.S_IFREG:
	default:
		m |= fs.ModeIrregular
	}
	if raw&unix.S_ISUID != 0 {
		m |= fs.ModeSetuid
	}
	if raw&unix.S_ISGID != 0 {
		m |= fs.ModeSetgid
	}
	if raw&unix.S_ISVTX != 0 {
		m |= fs.ModeSticky
	}
	return m
}
