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

// handlerPC, nothingPC and restorerPC return the addresses of assembly routines. restorerPC is 0 where the kernel brings its own.
func handlerPC() uintptr
func nothingPC() uintptr
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
	act := call(handlerPC(), 0)
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

const (
	sigIgn     = 1 // a handler
	sigMax     = 64
	saOnStack  = 0x08000000
	saRestart  = 0x10000000
	saRestorer = 0x04000000
	setMask    = 2
)

// call is the action of calling a handler.
func call(pc uintptr, flags uint64) sigaction {
	act := sigaction{handler: pc, flags: flags | saOnStack, restorer: restorerPC(), mask: ^uint64(0)}
	if act.restorer != 0 {
		act.flags |= saRestorer
	}
	return act
}

// defaultSignals makes a program that this thread starts begin with no signal blocked and none ignored. Here, a signal that was
// ignored goes on to have no effect: exec turns a handler into the default, but leaves what is ignored.
func defaultSignals() error {
	act := call(nothingPC(), saRestart)
	for sig := syscall.Signal(1); sig <= sigMax; sig++ {
		var old sigaction
		if rtSigaction(sig, nil, &old) != 0 || old.handler != sigIgn {
			continue
		}
		if e := rtSigaction(sig, &act, nil); e != 0 {
			return e
		}
	}
	var none uint64
	if _, _, e := syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, setMask, uintptr(unsafe.Pointer(&none)), 0, unsafe.Sizeof(none), 0, 0); e != 0 {
		return e
	}
	return nil
}

func rtSigaction(sig syscall.Signal, act, old *sigaction) syscall.Errno {
	_, _, e := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(act)),
		uintptr(unsafe.Pointer(old)), unsafe.Sizeof(act.mask), 0, 0)
	return e
}
