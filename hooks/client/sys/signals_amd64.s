// SPDX-License-Identifier: Apache-2.0

//go:build linux

#include "textflag.h"

DATA wakeByte<>+0(SB)/1, $1
GLOBL wakeByte<>(SB), RODATA, $1

// onSignal runs on the signal stack of whatever thread the kernel chose: it may touch no Go state but wakeFD. The registers
// come back with the signal frame.
TEXT onSignal<>(SB), NOSPLIT|NOFRAME, $0
	MOVL ·wakeFD(SB), DI
	LEAQ wakeByte<>(SB), SI
	MOVL $1, DX
	MOVL $1, AX // write
	SYSCALL
	RET

// onNothing is a handler that does nothing.
TEXT onNothing<>(SB), NOSPLIT|NOFRAME, $0
	RET

// restore is where a handler returns to.
TEXT restore<>(SB), NOSPLIT|NOFRAME, $0
	MOVL $15, AX // rt_sigreturn
	SYSCALL
	INT  $3

// func handlerPC() uintptr
TEXT ·handlerPC(SB), NOSPLIT, $0-8
	LEAQ onSignal<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET

// func nothingPC() uintptr
TEXT ·nothingPC(SB), NOSPLIT, $0-8
	LEAQ onNothing<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET

// func restorerPC() uintptr
TEXT ·restorerPC(SB), NOSPLIT, $0-8
	LEAQ restore<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET
