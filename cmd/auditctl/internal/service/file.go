// SPDX-License-Identifier: Apache-2.0

package service

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"
)

// header begins every file that we leave with a service manager. A file without it is somebody else's. It stands in a comment
// of XML, too, where two dashes would end it.
const header = "Written by Tripline (auditctl start), which writes it anew when it differs: put changes into a drop-in."

// maxUnit bounds a file that is compared.
const maxUnit = 64 << 10

// file is one that a manager reads.
type file struct {
	path string
	text []byte
}

// write brings a file up to date; changed is false if it was. What is not ours is never written over.
func (f *file) write() (changed bool, err error) {
	old, err := ours(f.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if err == nil && bytes.Equal(old, f.text) {
		return false, nil
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
		return false, err
	}
	return true, renameio.WriteFile(f.path, f.text, 0o644, renameio.IgnoreUmask())
}

// remove takes a file out if it is ours; gone is false if there was none.
func (f *file) remove() (gone bool, err error) {
	if _, err := ours(f.path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return false, err
	}
	return true, os.Remove(f.path)
}

// ours reads a file that we wrote. An error that wraps ErrForeign says that it is another's.
func ours(path string) ([]byte, error) {
	fd, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("%w: %s is a link", ErrForeign, path)
	}
	if err != nil {
		return nil, err
	}
	defer fd.Close()
	if fi, err := fd.Stat(); err != nil || !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is no regular file", ErrForeign, path)
	}
	b, err := io.ReadAll(io.LimitReader(fd, maxUnit))
	if err != nil {
		return nil, err
	}
	if !bytes.Contains(b[:min(len(b), 512)], []byte(header)) {
		return nil, fmt.Errorf("%w: %s was not written by Tripline; move it away or take its name", ErrForeign, path)
	}
	return b, nil
}
