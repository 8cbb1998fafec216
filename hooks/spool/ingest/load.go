// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/tripline-sh/tripline/hooks/spool"
	"github.com/tripline-sh/tripline/hooks/wire"
)

// Entry is one spooled event.
type Entry struct {
	Name    string // its file: identifies it when a crash makes it come twice
	Meta    spool.Meta
	Header  wire.Header
	Payload []byte // cut if Meta says so
}

// foreign is why a thing is no entry; putAside makes the error of it that callers see.
type foreign string

func (f foreign) Error() string { return string(f) }

// Load reads the entry called name. An error that wraps ErrForeign means that it was no entry and was put aside, to be reported and
// not tried again; fs.ErrNotExist that it is gone; any other error that it may be tried again later.
func (s *Spool) Load(name string) (*Entry, error) {
	size, tmp, ok := spool.ParseName(name)
	if !ok || tmp {
		return nil, fmt.Errorf("load %q: %w", name, ErrForeign)
	}
	b, err := s.read(name, size)
	if why, ok := errors.AsType[foreign](err); ok {
		return nil, s.putAside(name, string(why))
	}
	if err != nil {
		return nil, err
	}
	e, err := decode(b)
	if err != nil {
		return nil, s.putAside(name, err.Error())
	}
	e.Name = name
	return e, nil
}

// decode takes the content of an entry's file apart. The payload is a part of b.
func decode(b []byte) (*Entry, error) {
	m, err := spool.ParsePreamble(b)
	if err != nil {
		return nil, err
	}
	r := bytes.NewReader(b[spool.PreambleLen:])
	h, err := wire.ReadHeader(r)
	if err != nil {
		return nil, err
	}
	cut := m.Flags&spool.FlagCut != 0
	if h.Flags != 0 || int(h.PayloadLen) != r.Len() || h.PayloadLen > spool.MaxPayload ||
		uint64(h.PayloadLen) > m.Read || cut != (uint64(h.PayloadLen) < m.Read) {
		return nil, wire.ErrFrame
	}
	return &Entry{Meta: m, Header: *h, Payload: b[len(b)-r.Len():]}, nil
}

// read returns the bytes of an entry whose name promises size of them.
func (s *Spool) read(name string, size int64) ([]byte, error) {
	f, err := s.open(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if fi.Size() != size {
		return nil, foreign("its size is not the one in its name")
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(f, b); err != nil {
		return nil, foreign("it shrank while it was read")
	}
	return b, nil
}

// open opens a regular file of this user's own in the spool. Anything else is a foreign error; opening it neither waits nor has
// an effect.
func (s *Spool) open(name string, flag int) (*os.File, error) {
	// Opening a device can do things, so it is looked at first; the file is then checked again, for what may have been swapped.
	fi, err := os.Lstat(s.path(name))
	if err != nil {
		return nil, err
	}
	if !s.own(fi) {
		return nil, foreign("not a regular file of this user alone")
	}
	f, err := os.OpenFile(s.path(name), flag|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENXIO) || errors.Is(err, fs.ErrPermission) {
		return nil, foreign("it cannot be opened")
	}
	if err != nil {
		return nil, err
	}
	if fi, err = f.Stat(); err != nil || !s.own(fi) {
		f.Close()
		return nil, foreign("not a regular file of this user alone")
	}
	return f, nil
}

// own reports whether fi is a regular file of this user with one name. A second name would let someone put another file of the user
// in here, a secret say, and have it recorded.
func (s *Spool) own(fi fs.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && fi.Mode().IsRegular() && int(st.Uid) == s.uid && st.Nlink == 1
}

// putAside moves a foreign thing into bad, and returns the error that reports it. If bad is full, or cannot be used, the thing is
// deleted, so that it is not met again; a directory then stays where it is.
func (s *Spool) putAside(name, why string) error {
	err := fmt.Errorf("%q: %w: %s", name, ErrForeign, why)
	bad := s.path(badName)
	if e := os.Mkdir(bad, 0o700); e != nil && !errors.Is(e, fs.ErrExist) {
		return errors.Join(err, e)
	}
	if s.room(bad) {
		e := os.Rename(s.path(name), bad+"/"+name)
		if e == nil || errors.Is(e, fs.ErrNotExist) {
			return err
		}
	}
	if e := os.Remove(s.path(name)); e != nil && !errors.Is(e, fs.ErrNotExist) {
		return errors.Join(err, e)
	}
	return err
}

// room reports whether bad is a directory, not a link to one, and holds less than its bound.
func (s *Spool) room(bad string) bool {
	fi, err := os.Lstat(bad)
	if err != nil || !fi.IsDir() {
		return false
	}
	d, err := os.Open(bad)
	if err != nil {
		return false
	}
	defer d.Close()
	names, err := d.Readdirnames(maxBad)
	return len(names) < maxBad && (err == nil || err == io.EOF)
}
