// SPDX-License-Identifier: Apache-2.0

package sys

import "syscall"

// wakePipe returns both ends of a pipe that never blocks its writer; neither end is a standard descriptor.
func wakePipe() (r, w int, err error) {
	var p [2]int
	if err := syscall.Pipe(p[:]); err != nil {
		return -1, -1, err
	}
	for _, fd := range p {
		syscall.CloseOnExec(fd)
		if e := syscall.SetNonblock(fd, true); e != nil {
			err = e
		}
		if fd <= 2 {
			err = syscall.EBADF
		}
	}
	if err != nil {
		syscall.Close(p[0])
		syscall.Close(p[1])
		return -1, -1, err
	}
	return p[0], p[1], nil
}
