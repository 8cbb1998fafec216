// SPDX-License-Identifier: Apache-2.0

// Package disk tells how full a file system is and what kind it is.
package disk

// Usage is the state of a file system. The zero value means that it could not be told.
type Usage struct {
	Free  int64 // bytes, for this user
	Total int64 // bytes
	// Name is the kind of file system: ext4, xfs, nfs ...; a number in hexadecimal if it has no name that we know.
	Name string
}

// size is blocks of a size in bytes; what does not fit is as much as fits.
func size(blocks, of uint64) int64 {
	const most = 1<<63 - 1
	if of != 0 && blocks > most/of {
		return most
	}
	return int64(blocks * of)
}
