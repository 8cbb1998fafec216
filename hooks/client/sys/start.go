// SPDX-License-Identifier: Apache-2.0

package sys

import (
	"runtime"
	"syscall"
)

// Start runs the program args[0] with args and does not wait for it: in a session of its own, which no signal to this process's
// group or terminal reaches, in the root directory, with an empty environment, with standard descriptors that lead nowhere and no
// others, with files for its user alone, and, on Linux, with every signal at its default. It returns once the program runs, or why
// it does not. This process keeps the file mode mask, and all its other descriptors marked close-on-exec.
func Start(args []string) (pid int, err error) {
	null, err := syscall.Open("/dev/null", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer syscall.Close(null)
	closeOnExec()
	syscall.Umask(0o077)
	runtime.LockOSThread() // the signal mask is this thread's, and the child has it from there
	defer runtime.UnlockOSThread()
	if err := defaultSignals(); err != nil {
		return 0, err
	}
	fd := uintptr(null)
	return syscall.ForkExec(args[0], args, &syscall.ProcAttr{
		Dir:   "/",
		Env:   []string{},
		Files: []uintptr{fd, fd, fd},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
}

// Ended reports, without waiting, whether a process that Start started has ended, and if so whether with exit code 0.
func Ended(pid int) (ended, ok bool) {
	var status syscall.WaitStatus
	got, err := syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
	if err != nil || got != pid {
		return false, false
	}
	return true, status.Exited() && status.ExitStatus() == 0
}

// closeEach marks the descriptors from 3 up close-on-exec, one by one as far as this process may have any. Such a limit can be
// huge where it is not meant: what is beyond maxDescriptor is left.
func closeEach() {
	const maxDescriptor = 1 << 16
	top := uint64(maxDescriptor)
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
		top = min(top, limit.Cur)
	}
	for fd := 3; uint64(fd) < top; fd++ {
		syscall.CloseOnExec(fd)
	}
}
