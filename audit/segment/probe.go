// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

const (
	boltMagic   = 0xED0CDAED
	magicOffset = 16 // behind the page header
	probeLen    = 64 << 10
)

// probe says whether path may be handed to bbolt at all, which would wait for a FIFO, write a header into an empty file and
// follow a link.
func probe(path string) (Name, error) {
	file := filepath.Base(path)
	name, ok := ParseName(file)
	if !ok {
		return Name{}, fmt.Errorf("%q: %w", file, ErrForeign)
	}
	fi, err := os.Lstat(path)
	if err != nil {
		return Name{}, err
	}
	if !fi.Mode().IsRegular() {
		return Name{}, fmt.Errorf("%q: %w: it is no regular file", file, ErrForeign)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return Name{}, err
	}
	defer func() { _ = f.Close() }() // only read
	head := make([]byte, probeLen)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return Name{}, err
	}
	head = head[:n]
	switch {
	case hasMagic(head):
		return name, nil
	case len(bytes.Trim(head, "\x00")) == 0:
		return Name{}, fmt.Errorf("%q: %w: it is empty", file, ErrDamaged)
	}
	return Name{}, fmt.Errorf("%q: %w: it is no database", file, ErrForeign)
}

// hasMagic says whether one of the two meta pages is where it should be, whatever the page size.
func hasMagic(head []byte) bool {
	at := func(off int) bool {
		return len(head) >= off+4 && binary.NativeEndian.Uint32(head[off:]) == boltMagic
	}
	if at(magicOffset) {
		return true
	}
	for size := 1 << 10; size <= 32<<10; size <<= 1 {
		if at(size + magicOffset) {
			return true
		}
	}
	return false
}
