// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

var errStat = errors.New("unexpected form of /proc/PID/stat")

// Lookup reads /proc.
func Lookup(pid int32) (Process, error) {
	if pid <= 0 {
		return Process{}, unix.ESRCH
	}
	dir := "/proc/" + strconv.Itoa(int(pid))
	f, err := os.Open(dir + "/stat")
	if err != nil {
		return Process{}, err
	}
	defer f.Close()
	var buf [512]byte
	n, err := f.Read(buf[:])
	if err != nil {
		return Process{}, err
	}
	// The program's name stands in parentheses and may hold anything; the fields are counted from the last one.
	i := bytes.LastIndexByte(buf[:n], ')')
	fields := bytes.Fields(buf[i+1 : n])
	if i < 0 || len(fields) < 20 {
		return Process{}, errStat
	}
	ppid, err := strconv.ParseInt(string(fields[1]), 10, 32)
	if err != nil {
		return Process{}, errStat
	}
	start, err := strconv.ParseUint(string(fields[19]), 10, 64)
	if err != nil {
		return Process{}, errStat
	}
	ended := fields[0][0] == 'Z' || fields[0][0] == 'X'
	exe, err := os.Readlink(dir + "/exe")
	if err != nil {
		exe = "" // another user's process, or a kernel thread
	}
	return Process{PID: pid, PPID: int32(ppid), Exe: strings.TrimSuffix(exe, " (deleted)"), Start: start, Ended: ended}, nil
}

// missing reports whether an error of Lookup says that there is no such process.
func missing(err error) bool { return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) }

// Began is when the process started, give or take what the clock was set by since. Zero if that is unknown.
func (p Process) Began() time.Time {
	up := SinceBoot()
	if p.Start == 0 || up == 0 {
		return time.Time{}
	}
	const tick = 10 * time.Millisecond // USER_HZ is 100 wherever Linux runs
	return time.Now().Add(time.Duration(p.Start)*tick - up)
}

// Watch pins one process so that its end can be told apart from another process with its number.
type Watch struct{ fd int }

// NewWatch pins pid. It fails if the process is not there or the kernel cannot pin processes.
func NewWatch(pid int32) (*Watch, error) {
	if pid <= 0 {
		return nil, unix.ESRCH
	}
	fd, err := unix.PidfdOpen(int(pid), 0)
	if err != nil {
		return nil, err
	}
	return &Watch{fd: fd}, nil
}

// Gone reports whether the process ended.
func (w *Watch) Gone() bool {
	fds := []unix.PollFd{{Fd: int32(w.fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n == 1 && fds[0].Revents != 0
}

// Close releases the pin.
func (w *Watch) Close() error { return unix.Close(w.fd) }

// SinceBoot returns the time since boot, sleep included.
func SinceBoot() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// BootID names this boot of the machine; "" if the system does not tell.
func BootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// Harden keeps other processes of this user out of this one's memory, where signing keys are, and keeps that memory out
// of core files.
func Harden() error {
	return errors.Join(
		unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}),
		unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0),
	)
}
