// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// Lookup asks the kernel's process table; only the program's short name is told there.
func Lookup(pid int32) (Process, error) {
	if pid <= 0 {
		return Process{}, unix.ESRCH
	}
	k, err := unix.SysctlKinfoProc("kern.proc.pid", int(pid))
	if err != nil {
		return Process{}, err
	}
	const zombie = 5 // SZOMB
	return Process{PID: pid, PPID: k.Eproc.Ppid, Exe: unix.ByteSliceToString(k.Proc.P_comm[:]),
		Start: uint64(time.Unix(k.Proc.P_starttime.Unix()).UnixMicro()), Ended: k.Proc.P_stat == zombie}, nil
}

// missing reports whether an error of Lookup says that there is no such process.
func missing(err error) bool { return errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EIO) }

// Began is when the process started. Zero if that is unknown.
func (p Process) Began() time.Time {
	if p.Start == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(p.Start))
}

// Watch watches one process by its number and start time.
type Watch struct {
	pid   int32
	start unix.Timeval
}

// NewWatch remembers pid. It fails if the process is not there.
func NewWatch(pid int32) (*Watch, error) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", int(pid))
	if err != nil {
		return nil, err
	}
	return &Watch{pid: pid, start: k.Proc.P_starttime}, nil
}

// Gone reports whether the process ended.
func (w *Watch) Gone() bool {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", int(w.pid))
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EIO) {
		return true
	}
	return err == nil && k.Proc.P_starttime != w.start
}

// Close releases nothing.
func (*Watch) Close() error { return nil }

// SinceBoot returns the time since boot, sleep included.
func SinceBoot() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// BootID names this boot of the machine; "" if the system does not tell.
func BootID() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}

// Harden keeps this process's memory out of core files.
func Harden() error {
	return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
}
