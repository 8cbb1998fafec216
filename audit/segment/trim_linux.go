// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"os"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// Trim gives back the memory that reading the file's map has made resident; the pages stay in the page cache and come back
// when they are read. Only what MapSize reserved is trimmed.
//
// The range must lie within the map, whatever somebody did to the file's size: giving back anything else would empty memory
// of this program. The map is never smaller than MapSize, and cannot move during a transaction.
func (s *Segment) Trim() {
	// It is a hint: if it fails, nothing but a number is different.
	_ = s.view(func(tx *bolt.Tx) error {
		page := int64(os.Getpagesize())
		n := min(tx.Size(), int64(s.mapSize)) / page * page
		if n > 0 {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, s.db.Info().Data, uintptr(n), unix.MADV_DONTNEED)
		}
		return nil
	})
}
