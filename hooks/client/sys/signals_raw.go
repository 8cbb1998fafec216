// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package sys

import (
	"syscall"
	"unsafe"
)

// wakeFD is where onSignal writes. A signal handler is given nothing but its number, so this has to be a variable; it is set
// once, before the handler exists.
//
//lint:ignore U1000 the assembly reads it
var wakeFD int32

// handlerPC and restorerPC return the addresses of the two assembly routines. restorerPC is 0 where the kernel brings its own.
func handlerPC() uintptr
func restorerPC() uintptr

// sigaction is the kernel's struct sigaction, the same on these machines.
type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

// CatchSignals makes SIGTERM, SIGINT, SIGHUP and SIGQUIT readable: each makes the returned descriptor ready instead of ending
// the process. A signal that was ignored at start stays ignored. To be called once.
//
// The handler is four instructions that write a byte into a pipe. Package os/signal does the same with two threads and 0.2 ms,
// which is more than all the rest of the hook costs over an empty Go program.
func CatchSignals() (int, error) {
	r, w, err := wakePipe()
	if err != nil {
		return -1, err
	}
	wakeFD = int32(w)
	const onStack, hasRestorer, sigIgn = 0x08000000, 0x04000000, 1
	act := sigaction{handler: handlerPC(), flags: onStack, restorer: restorerPC(), mask: ^uint64(0)}
	if act.restorer != 0 {
		act.flags |= hasRestorer
	}
	for _, sig := range [...]syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
		var old sigaction
		if e := rtSigaction(sig, nil, &old); e != 0 {
			return -1, e
		}
		if old.handler == sigIgn {
			continue
		}
		if e := rtSigaction(sig, &act, nil); e != 0 {
			return -1, e
		}
	}
	return r, nil
}

func rtSigaction(sig syscall.Signal, act, old *sigaction) syscall.Errno {
	_, _, e := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(act)),
		uintptr(unsafe.Pointer(old)), unsafe.Sizeof(act.mask), 0, 0)
	return e
}
