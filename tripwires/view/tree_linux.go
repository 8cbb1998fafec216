// SPDX-License-Identifier: Apache-2.0

package view

import (
	"strings"

	"golang.org/x/sys/unix"
)

// searchOnly opens a directory that may be passed through but not listed.
const searchOnly = unix.O_PATH

// pseudo reports whether a resolved path is in one of the trees whose files are not files.
func pseudo(path string) bool {
	for _, top := range []string{"/proc", "/sys", "/dev"} {
		if path == top || strings.HasPrefix(path, top+"/") {
			return true
		}
	}
	return false
}

// refusePseudo catches the same trees mounted elsewhere, where a regular file may block, have side effects, or be endless.
func refusePseudo(fd int) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return mapError(err)
	}
	switch uint32(st.Type) {
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC,
		unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.PSTOREFS_MAGIC, unix.BPF_FS_MAGIC, unix.SELINUX_MAGIC:
		return ErrNotRegular
	}
	return nil
}
