// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// identify returns a process's name and owner. The daemon keeps its memory from others of its user, so that /proc/PID/exe
// cannot be read; its name can.
func identify(pid int) (name string, uid int, err error) {
	dir := fmt.Sprintf("/proc/%d", pid)
	b, err := os.ReadFile(dir + "/comm")
	if err != nil {
		return "", 0, err
	}
	// the directory belongs to root when the memory is protected; its status tells the owner
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return "", 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "Uid:"); ok {
			if _, err := fmt.Sscan(rest, &uid); err != nil {
				return "", 0, err
			}
			return strings.TrimSuffix(string(b), "\n"), uid, nil
		}
	}
	return "", 0, syscall.ESRCH
}
