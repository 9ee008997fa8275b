#include "textflag.h"

TEXT ·nothing(SB), NOSPLIT|NOFRAME, $0
	// exit(0)
	MOVQ $60, AX
	MOVQ $0, DI
	SYSCALL

TEXT ·answer(SB), NOSPLIT|NOFRAME, $0
	// rt_sigprocmask(SIG_BLOCK, SP, NULL, 8)
	PUSHQ $0x200 // USR1
	MOVQ $14, AX
	MOVQ $0, DI
	MOVQ SP, SI
	MOVQ $0, DX
	MOVQ $8, R10
	SYSCALL
say:
	// write(1, SP, 1)
	MOVQ $1, AX
	MOVQ $1, DI
	MOVQ SP, SI
	MOVQ $1, DX
	SYSCALL
wait:
	// rt_sigtimedwait(SP, NULL, NULL, 8)
	MOVQ $128, AX
	MOVQ SP, DI
	MOVQ $0, SI
	MOVQ $0, DX
	MOVQ $8, R10
	SYSCALL
	TESTQ AX, AX
	JS   wait
	JMP  say
