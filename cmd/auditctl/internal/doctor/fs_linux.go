// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// fileSystem returns the kind of file system that path is on, and its bytes: those that this user may still fill, and all.
func fileSystem(path string) (kind string, free, total int64) {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) != nil {
		return "", 0, 0
	}
	return kindOf(uint32(st.Type)), clampBytes(st.Bavail, st.Bsize), clampBytes(st.Blocks, st.Bsize)
}

// kindOf names the magic numbers that matter here and the usual ones.
func kindOf(magic uint32) string {
	switch magic {
	case unix.EXT4_SUPER_MAGIC:
		return "ext4"
	case unix.XFS_SUPER_MAGIC:
		return "xfs"
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs"
	case 0x2fc12fc1:
		return "zfs"
	case unix.F2FS_SUPER_MAGIC:
		return "f2fs"
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlay"
	case unix.TMPFS_MAGIC:
		return "tmpfs"
	case unix.RAMFS_MAGIC:
		return "ramfs"
	case unix.NFS_SUPER_MAGIC:
		return "nfs"
	case unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC:
		return "smb"
	case unix.V9FS_MAGIC:
		return "9p"
	case unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC:
		return "afs"
	case unix.CEPH_SUPER_MAGIC:
		return "ceph"
	case unix.FUSE_SUPER_MAGIC:
		return "fuse"
	}
	return "0x" + strconv.FormatUint(uint64(magic), 16)
}
