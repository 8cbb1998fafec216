// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

DATA nothing<>+0(SB)/1, $0
GLOBL nothing<>(SB), RODATA|NOPTR, $1

// tripline_entry is where the kernel starts the program if it was linked with -E tripline_entry. The stack holds argc, argv, a null,
// envp, a null, and the auxiliary vector, which the runtime finds by walking over envp. So envp keeps its length, and every pointer
// of it becomes one to an empty string. The strings themselves stay, for whoever reads /proc/PID/environ.
TEXT tripline_entry(SB), NOSPLIT|NOFRAME, $0
	MOVQ 0(SP), CX        // argc
	LEAQ 16(SP)(CX*8), DI // envp
	LEAQ nothing<>(SB), AX

next:
	CMPQ 0(DI), $0
	JEQ  done
	MOVQ AX, 0(DI)
	ADDQ $8, DI
	JMP  next

done:
	JMP _rt0_amd64_linux(SB)
