#include "textflag.h"

// handler: see handler_amd64.s. The signal is in R0, the siginfo at R1, the ucontext
// at R2.
TEXT ·handler(SB), NOSPLIT|NOFRAME, $0
	MOVD $·unmaskedBudget(SB), R3
budget:
	LDAXR (R3), R4
	SUB   $1, R4, R4
	STLXR R4, (R3), R5
	CBNZW R5, budget
	TBZ   $63, R4, note
	SUB   $1, R0, R3
	MOVD  $1, R4
	LSL   R3, R4, R4
	MOVD  40(R2), R5 // uc_sigmask
	ORR   R4, R5, R5
	MOVD  R5, 40(R2)
note:
	JMP   note<>(SB)

TEXT note<>(SB), NOSPLIT|NOFRAME, $0
	SUB  $1, R0, R3
	MOVD $1, R6
	LSL  R3, R6, R6
	MOVD $·sent(SB), R8
	MOVD $·outside(SB), R7
	MOVW 8(R1), R3
	CMPW $0, R3
	BGT  unsent
sent:
	LDAXR (R8), R3
	ORR   R6, R3, R3
	STLXR R3, (R8), R4
	CBNZW R4, sent
	MOVW 16(R1), R3
	CBNZW R3, inside
outside:
	LDAXR (R7), R3
	ORR   R6, R3, R3
	STLXR R3, (R7), R4
	CBNZW R4, outside
	B     tally
unsent:
	LDAXR (R8), R3
	BIC   R6, R3, R3
	STLXR R3, (R8), R4
	CBNZW R4, unsent
inside:
	LDAXR (R7), R3
	BIC   R6, R3, R3
	STLXR R3, (R7), R4
	CBNZW R4, inside
tally:
	MOVD $·counts(SB), R1
	ADD  R0<<2, R1, R1
count:
	LDAXRW (R1), R3
	ADDW   $1, R3
	STLXRW R3, (R1), R4
	CBNZW  R4, count
	SUB  $1, R0, R0
	MOVD $1, R3
	LSL  R0, R3, R3
	MOVD $·arrived(SB), R1
again:
	LDAXR (R1), R4
	ORR   R3, R4, R4
	STLXR R4, (R1), R5
	CBNZW R5, again
	MOVD  $·asleep(SB), R0
wake:
	LDAXRW (R0), R3
	STLXRW ZR, (R0), R4
	CBNZW  R4, wake
	CBZW   R3, awake
	// futex(&asleep, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1)
	MOVD $98, R8
	MOVD $129, R1
	MOVD $1, R2
	SVC
awake:
	RET

// func rearm(): LDAXR acquires what the handler's STLXR released.
TEXT ·rearm(SB), NOSPLIT, $0-0
	MOVD $·asleep(SB), R0
	MOVD $1, R1
again:
	LDAXRW (R0), R2
	STLXRW R1, (R0), R3
	CBNZW  R3, again
	RET

TEXT ·faultHandler(SB), NOSPLIT|NOFRAME, $0
	MOVW 8(R1), R3
	CMPW $0, R3
	BLE  sent
	MOVD ·goHandler(SB), R3
	JMP  (R3)
sent:
	JMP  note<>(SB)

TEXT ·urgHandler(SB), NOSPLIT|NOFRAME, $0
	MOVW 8(R1), R3
	CMPW $-6, R3
	BNE  other
	MOVW 16(R1), R3
	MOVW ·ownPID(SB), R4
	CMPW R4, R3
	BNE  other
	MOVD ·goHandler(SB), R3
	JMP  (R3)
other:
	JMP  ·handler(SB)

// struct sigaction: the handler, the flags (SA_SIGINFO, SA_ONSTACK, SA_RESTART),
// no restorer, the mask.
DATA ·noting+0(SB)/8, $·handler(SB)
DATA ·noting+8(SB)/8, $0x18000004
DATA ·noting+16(SB)/8, $0
DATA ·noting+24(SB)/8, $-1
GLOBL ·noting(SB), RODATA, $32

DATA ·faulting+0(SB)/8, $·faultHandler(SB)
DATA ·faulting+8(SB)/8, $0x18000004
DATA ·faulting+16(SB)/8, $0
DATA ·faulting+24(SB)/8, $-1
GLOBL ·faulting(SB), RODATA, $32

DATA ·urging+0(SB)/8, $·urgHandler(SB)
DATA ·urging+8(SB)/8, $0x18000004
DATA ·urging+16(SB)/8, $0
DATA ·urging+24(SB)/8, $-1
GLOBL ·urging(SB), RODATA, $32

// func handlers() (noting, faulting, urging uintptr)
TEXT ·handlers(SB), NOSPLIT, $0-24
	MOVD $·noting(SB), R0
	MOVD R0, noting+0(FP)
	MOVD $·faulting(SB), R0
	MOVD R0, faulting+8(FP)
	MOVD $·urging(SB), R0
	MOVD R0, urging+16(FP)
	RET
