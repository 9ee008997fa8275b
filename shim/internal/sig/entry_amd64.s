#include "textflag.h"

// entry is the ELF entry point where the linker is told so (-E): it notes the
// signal mask and what is ignored, before Go's runtime changes them, and goes
// on to where Go programs begin. The stack holds argc, argv and so on, and must
// stay as it is.
TEXT ·entry(SB), NOSPLIT|NOFRAME, $0
	// rt_sigprocmask(SIG_BLOCK, NULL, &entryBlocked, 8)
	MOVQ $14, AX
	MOVQ $0, DI
	MOVQ $0, SI
	LEAQ ·entryBlocked(SB), DX
	MOVQ $8, R10
	SYSCALL
	MOVQ $1, BX
next:
	// rt_sigaction(BX, NULL, &entryAction, 8)
	MOVQ $13, AX
	MOVQ BX, DI
	MOVQ $0, SI
	LEAQ ·entryAction(SB), DX
	MOVQ $8, R10
	SYSCALL
	CMPQ ·entryAction(SB), $1 // SIG_IGN
	JNE  skip
	LEAQ -1(BX), CX
	MOVQ $1, DX
	SHLQ CX, DX
	ORQ  DX, ·entryIgnored(SB)
skip:
	INCQ BX
	CMPQ BX, $65
	JNE  next
	MOVB $1, ·entrySeen(SB)
	JMP  _rt0_amd64_linux(SB)
