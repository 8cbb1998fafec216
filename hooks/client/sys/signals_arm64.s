// SPDX-License-Identifier: Apache-2.0

//go:build linux

#include "textflag.h"

DATA wakeByte<>+0(SB)/1, $1
GLOBL wakeByte<>(SB), RODATA, $1

// onSignal runs on the signal stack of whatever thread the kernel chose: it may touch no Go state but wakeFD. The registers
// come back with the signal frame; the link register leads into the kernel's own return routine.
TEXT onSignal<>(SB), NOSPLIT|NOFRAME, $0
	MOVW ·wakeFD(SB), R0
	MOVD $wakeByte<>(SB), R1
	MOVD $1, R2
	MOVD $64, R8 // write
	SVC
	RET

// onNothing is a handler that does nothing.
TEXT onNothing<>(SB), NOSPLIT|NOFRAME, $0
	RET

// func handlerPC() uintptr
TEXT ·handlerPC(SB), NOSPLIT, $0-8
	MOVD $onSignal<>(SB), R0
	MOVD R0, ret+0(FP)
	RET

// func nothingPC() uintptr
TEXT ·nothingPC(SB), NOSPLIT, $0-8
	MOVD $onNothing<>(SB), R0
	MOVD R0, ret+0(FP)
	RET

// func restorerPC() uintptr
TEXT ·restorerPC(SB), NOSPLIT, $0-8
	MOVD ZR, ret+0(FP)
	RET
