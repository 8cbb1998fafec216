// SPDX-License-Identifier: Apache-2.0

// Package proc tells what the kernel says about other processes: their parent, their program, whether they still live.
// Everything here is bounded and best effort; a process may end, or change its program, at any moment.
package proc

import (
	"path/filepath"
	"slices"
)

// maxAncestors bounds the walk up the process tree.
const maxAncestors = 16

// Process is one process as it was seen. Exe is "" if the system does not tell.
type Process struct {
	PID   int32
	PPID  int32
	Exe   string
	Start uint64 // when it started, in a measure of the system; tells two processes with the same number apart. 0 = unknown
	Ended bool   // it ended, and its parent has not noticed yet
}

// Alive reports whether the process lives, as far as can be told: another process with its number is not it.
func (p Process) Alive() bool {
	now, err := Lookup(p.PID)
	if err != nil {
		return !missing(err)
	}
	return !now.Ended && now.Start == p.Start
}

// Agent returns the first ancestor of pid that is not a shell or a wrapper that hook commands are started through. It is
// a claim that goes into the record and is watched for liveness, never a proof. ok is false if there is none.
func Agent(pid int32) (p Process, ok bool) {
	self, err := Lookup(pid)
	if err != nil {
		return Process{}, false
	}
	for range maxAncestors {
		if self.PPID <= 1 {
			return Process{}, false
		}
		parent, err := Lookup(self.PPID)
		if err != nil {
			return Process{}, false
		}
		if !isWrapper(parent.Exe) {
			return parent, true
		}
		self = parent
	}
	return Process{}, false
}

// isWrapper reports whether a program only starts others on a hook's behalf.
func isWrapper(exe string) bool {
	wrappers := []string{
		"sh", "bash", "dash", "zsh", "fish", "ksh", "ksh93", "mksh", "ash", "busybox", "tcsh", "csh", "yash", "pwsh",
		"env", "timeout", "nice", "setsid", "nohup",
	}
	return slices.Contains(wrappers, filepath.Base(exe))
}
