#include "textflag.h"

// entry: see entry_amd64.s.
TEXT ·entry(SB), NOSPLIT|NOFRAME, $0
	// rt_sigprocmask(SIG_BLOCK, NULL, &entryBlocked, 8)
	MOVD $135, R8
	MOVD $0, R0
	MOVD $0, R1
	MOVD $·entryBlocked(SB), R2
	MOVD $8, R3
	SVC
	MOVD $1, R19
next:
	// rt_sigaction(R19, NULL, &entryAction, 8)
	MOVD $134, R8
	MOVD R19, R0
	MOVD $0, R1
	MOVD $·entryAction(SB), R2
	MOVD $8, R3
	SVC
	MOVD ·entryAction(SB), R4
	CMP  $1, R4 // SIG_IGN
	BNE  skip
	SUB  $1, R19, R5
	MOVD $1, R6
	LSL  R5, R6, R6
	MOVD ·entryIgnored(SB), R7
	ORR  R6, R7, R7
	MOVD R7, ·entryIgnored(SB)
skip:
	ADD  $1, R19, R19
	CMP  $65, R19
	BNE  next
	MOVD $1, R6
	MOVB R6, ·entrySeen(SB)
	JMP  _rt0_arm64_linux(SB)
