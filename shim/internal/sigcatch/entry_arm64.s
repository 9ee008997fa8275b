#include "textflag.h"

DATA every<>+0(SB)/8, $-1
GLOBL every<>(SB), RODATA, $8

#define UNBLOCKED 0x40803804e
#define FAULTS 0x800009b0

// entry: see entry_amd64.s.
TEXT ·entry(SB), NOSPLIT|NOFRAME, $0
	// rt_sigprocmask(SIG_SETMASK, &every, &entryBlocked, 8)
	MOVD $135, R8
	MOVD $2, R0
	MOVD $every<>(SB), R1
	MOVD $·entryBlocked(SB), R2
	MOVD $8, R3
	SVC
	MOVD $1, R19
	MOVD $1, R6
signal:
	// rt_sigaction(R19, NULL, &entryAction, 8)
	MOVD $134, R8
	MOVD R19, R0
	MOVD $0, R1
	MOVD $·entryAction(SB), R2
	MOVD $8, R3
	SVC
	MOVD ·entryAction(SB), R4
	CMP  $1, R4 // SIG_IGN
	BNE  install
	SUB  $1, R19, R5
	LSL  R5, R6, R5
	MOVD ·entryIgnored(SB), R7
	ORR  R5, R7, R7
	MOVD R7, ·entryIgnored(SB)
install:
	LSL  R19, R6, R4
	MOVD $·noting(SB), R1
	MOVD $UNBLOCKED, R5
	TST  R5, R4
	BNE  catch
	MOVD $·faulting(SB), R1
	MOVD $FAULTS, R5
	TST  R5, R4
	BEQ  nextSignal
catch:
	// rt_sigaction(R19, R1, NULL, 8)
	MOVD R19, R0
	MOVD $0, R2
	SVC
nextSignal:
	ADD  $1, R19, R19
	CMP  $65, R19
	BNE  signal

	MOVD RSP, R19
	MOVD (R19), R0         // argc
	ADD  $16, R19, R19
	ADD  R0<<3, R19, R19   // envp
	MOVD R19, ·entryEnviron(SB)
	MOVD $0x3d47554245444f47, R8  // "GODEBUG="
	MOVD $0x4245434152544f47, R9  // "GOTRACEB"ACK
	MOVD $0x4f525058414d4f47, R10 // "GOMAXPRO"CS
	MOVD $0x4d494c4d454d4f47, R11 // "GOMEMLIM"IT
	MOVD $0x3d43474f47, R12       // "GOGC="
	MOVD $0xffffffffff, R13       // five bytes
variable:
	MOVD (R19), R0
	CBZ  R0, done
	MOVD (R0), R1 // the stack goes on for more than eight bytes
	CMP  R8, R1
	BEQ  hide
	CMP  R9, R1
	BEQ  hide
	CMP  R10, R1
	BEQ  hide
	CMP  R11, R1
	BEQ  hide
	AND  R13, R1, R1
	CMP  R12, R1
	BNE  nextVariable
hide:
	ADD  R6, R0, R0
	MOVD R0, (R19)
nextVariable:
	ADD  $8, R19, R19
	B    variable
done:
	// Add two variables; R19 is where the NULL of envp is.
	SUB  $16, RSP
	MOVD RSP, R0
move:
	MOVD 16(R0), R1
	MOVD R1, (R0)
	ADD  $8, R0, R0
	ADD  $16, R0, R1
	CMP  R19, R1
	BNE  move
	MOVD $·gomaxprocs(SB), R1
	MOVD R1, -16(R19)
	MOVD $·godebug(SB), R1
	MOVD R1, -8(R19)
	MOVD ·entryEnviron(SB), R1
	SUB  $16, R1, R1
	MOVD R1, ·entryEnviron(SB)
	MOVB R6, ·entrySeen(SB)
	MOVD $keep<>(SB), R1
	MOVD R1, _cgo_sigaction(SB)
	JMP  _rt0_arm64_linux(SB)

// keep: see entry_amd64.s.
TEXT keep<>(SB), NOSPLIT|NOFRAME, $0
	MOVD $1, R3
	LSL  R0, R3, R3
	MOVD $(UNBLOCKED|FAULTS), R4
	MOVD $22, R0 // EINVAL
	TST  R4, R3
	BEQ  done
	MOVD $0, R0
	CBZ  R1, done
	MOVD (R1), R3
	MOVD R3, ·goHandler(SB)
done:
	RET
