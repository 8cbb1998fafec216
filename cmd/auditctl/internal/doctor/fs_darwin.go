// SPDX-License-Identifier: Apache-2.0

package doctor

import "golang.org/x/sys/unix"

// fileSystem returns the kind of file system that path is on, and its bytes: those that this user may still fill, and all.
func fileSystem(path string) (kind string, free, total int64) {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) != nil {
		return "", 0, 0
	}
	return unix.ByteSliceToString(st.Fstypename[:]), clampBytes(st.Bavail, int64(st.Bsize)), clampBytes(st.Blocks, int64(st.Bsize))
}
