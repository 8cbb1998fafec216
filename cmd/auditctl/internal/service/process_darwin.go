// SPDX-License-Identifier: Apache-2.0

package service

import "golang.org/x/sys/unix"

// identify returns a process's name and owner.
func identify(pid int) (name string, uid int, err error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return "", 0, err
	}
	return unix.ByteSliceToString(info.Proc.P_comm[:]), int(info.Eproc.Ucred.Uid), nil
}
