#include "textflag.h"

// handler notes the signal in DI, and masks its kind in this thread if
// unmaskedBudget is used up. The kernel calls handler on the thread's signal
// stack, with all signals blocked; DX points to the ucontext, whose mask is
// restored on return.
TEXT ·handler(SB), NOSPLIT|NOFRAME, $0
	LOCK
	DECQ ·unmaskedBudget(SB)
	JPL  note
	LEAQ -1(DI), AX
	BTSQ AX, 296(DX) // uc_sigmask
note:
	JMP  note<>(SB)

// note counts the signal in DI, adds the signal to arrived, and wakes the loop
// if asleep is set. SI points to the siginfo: a signal that was sent (si_code is
// not positive) is in sent too, and if process 0 sent it (si_pid), in outside.
TEXT note<>(SB), NOSPLIT|NOFRAME, $0
	LEAQ ·counts(SB), AX
	LOCK
	INCL (AX)(DI*4)
	DECQ DI
	CMPL 8(SI), $0
	JGT  unsent
	LOCK
	BTSQ DI, ·sent(SB)
	CMPL 16(SI), $0
	JNE  inside
	LOCK
	BTSQ DI, ·outside(SB)
	JMP  arrive
unsent:
	LOCK
	BTRQ DI, ·sent(SB)
inside:
	LOCK
	BTRQ DI, ·outside(SB)
arrive:
	LOCK
	BTSQ DI, ·arrived(SB)
	MOVL $0, AX
	XCHGL AX, ·asleep(SB)
	TESTL AX, AX
	JZ   awake
	// futex(&asleep, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1)
	MOVQ $202, AX
	LEAQ ·asleep(SB), DI
	MOVQ $129, SI
	MOVQ $1, DX
	SYSCALL
awake:
	RET

// func rearm(): XCHG is an atomic instruction, and a barrier.
TEXT ·rearm(SB), NOSPLIT, $0-0
	MOVL $1, AX
	XCHGL AX, ·asleep(SB)
	RET

// faultHandler jumps to Go's handler if si_code is positive: the kernel sent the
// signal for a fault.
TEXT ·faultHandler(SB), NOSPLIT|NOFRAME, $0
	CMPL 8(SI), $0
	JLE  sent
	MOVQ ·goHandler(SB), AX
	JMP  AX
sent:
	JMP  note<>(SB)

// urgHandler jumps to Go's handler if the program sent the signal to one of its
// own threads, which Go's runtime does to preempt goroutines: si_code is SI_TKILL
// and si_pid our own.
TEXT ·urgHandler(SB), NOSPLIT|NOFRAME, $0
	CMPL 8(SI), $-6
	JNE  other
	MOVL 16(SI), AX
	CMPL AX, ·ownPID(SB)
	JNE  other
	MOVQ ·goHandler(SB), AX
	JMP  AX
other:
	JMP  ·handler(SB)

// restorer is the return address of the handlers: it calls rt_sigreturn(2).
TEXT restorer<>(SB), NOSPLIT|NOFRAME, $0
	MOVQ $15, AX
	SYSCALL
	INT  $3

// struct sigaction: the handler, the flags (SA_SIGINFO, SA_ONSTACK, SA_RESTART,
// SA_RESTORER), the restorer, the mask.
DATA ·noting+0(SB)/8, $·handler(SB)
DATA ·noting+8(SB)/8, $0x1c000004
DATA ·noting+16(SB)/8, $restorer<>(SB)
DATA ·noting+24(SB)/8, $-1
GLOBL ·noting(SB), RODATA, $32

DATA ·faulting+0(SB)/8, $·faultHandler(SB)
DATA ·faulting+8(SB)/8, $0x1c000004
DATA ·faulting+16(SB)/8, $restorer<>(SB)
DATA ·faulting+24(SB)/8, $-1
GLOBL ·faulting(SB), RODATA, $32

DATA ·urging+0(SB)/8, $·urgHandler(SB)
DATA ·urging+8(SB)/8, $0x1c000004
DATA ·urging+16(SB)/8, $restorer<>(SB)
DATA ·urging+24(SB)/8, $-1
GLOBL ·urging(SB), RODATA, $32

// func handlers() (noting, faulting, urging uintptr)
TEXT ·handlers(SB), NOSPLIT, $0-24
	LEAQ ·noting(SB), AX
	MOVQ AX, noting+0(FP)
	LEAQ ·faulting(SB), AX
	MOVQ AX, faulting+8(FP)
	LEAQ ·urging(SB), AX
	MOVQ AX, urging+16(FP)
	RET
