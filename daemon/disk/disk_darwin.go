// SPDX-License-Identifier: Apache-2.0

package disk

import "golang.org/x/sys/unix"

// Of asks the file system that path is on. It waits as long as that takes to answer.
func Of(path string) (Usage, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return Usage{}, err
	}
	of := uint64(st.Bsize)
	return Usage{Free: size(st.Bavail, of), Total: size(st.Blocks, of), Name: unix.ByteSliceToString(st.Fstypename[:])}, nil
}
