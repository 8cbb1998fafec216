// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

DATA nothing<>+0(SB)/1, $0
GLOBL nothing<>(SB), RODATA|NOPTR, $1

// tripline_entry is where the kernel starts the program if it was linked with -E tripline_entry. The stack holds argc, argv, a null,
// envp, a null, and the auxiliary vector, which the runtime finds by walking over envp. So envp keeps its length, and every pointer
// of it becomes one to an empty string. The strings themselves stay, for whoever reads /proc/PID/environ.
TEXT tripline_entry(SB), NOSPLIT|NOFRAME, $0
	MOVD 0(RSP), R0   // argc
	ADD  $16, RSP, R1
	ADD  R0<<3, R1    // envp
	MOVD $nothing<>(SB), R2

next:
	MOVD   (R1), R3
	CBZ    R3, done
	MOVD.P R2, 8(R1)
	B      next

done:
	JMP _rt0_arm64_linux(SB)
