// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// Of asks the file system that path is on. It waits as long as that takes to answer.
func Of(path string) (Usage, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return Usage{}, err
	}
	of := uint64(max(0, st.Frsize))
	if of == 0 {
		of = uint64(max(0, st.Bsize))
	}
	return Usage{Free: size(st.Bavail, of), Total: size(st.Blocks, of), Name: name(uint32(st.Type))}, nil
}

// name is the kind that a magic number stands for. The three ext file systems share one.
func name(magic uint32) string {
	switch magic {
	case unix.EXT4_SUPER_MAGIC:
		return "ext4"
	case unix.XFS_SUPER_MAGIC:
		return "xfs"
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs"
	case unix.F2FS_SUPER_MAGIC:
		return "f2fs"
	case unix.TMPFS_MAGIC:
		return "tmpfs"
	case unix.RAMFS_MAGIC:
		return "ramfs"
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlay"
	case unix.ECRYPTFS_SUPER_MAGIC:
		return "ecryptfs"
	case unix.NFS_SUPER_MAGIC:
		return "nfs"
	case unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC:
		return "smb"
	case unix.CEPH_SUPER_MAGIC:
		return "ceph"
	case unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC:
		return "afs"
	case unix.CODA_SUPER_MAGIC:
		return "coda"
	case unix.V9FS_MAGIC:
		return "9p"
	case unix.FUSE_SUPER_MAGIC:
		return "fuse"
	case unix.MSDOS_SUPER_MAGIC:
		return "vfat"
	case unix.EXFAT_SUPER_MAGIC:
		return "exfat"
	case unix.REISERFS_SUPER_MAGIC:
		return "reiserfs"
	case unix.SQUASHFS_MAGIC:
		return "squashfs"
	case 0x2fc12fc1:
		return "zfs"
	case 0xca451a4e:
		return "bcachefs"
	case 0x3153464a:
		return "jfs"
	case 0x6e667364:
		return "nfsd"
	case 0x7366746e, 0x5346544e:
		return "ntfs"
	}
	return "0x" + strconv.FormatUint(uint64(magic), 16)
}
