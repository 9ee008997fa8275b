#include "textflag.h"

// every is the signal mask until our init.
DATA every<>+0(SB)/8, $-1
GLOBL every<>(SB), RODATA, $8

// Go's runtime unblocks these signals before our init: HUP, INT, QUIT, ABRT, TERM,
// STKFLT, CHLD, PROF and 34, and those of faults.
#define UNBLOCKED 0x40803804e
#define FAULTS 0x800009b0

// entry is the ELF entry point if the linker is given -E. entry notes the signal
// mask and the ignored signals before Go's runtime changes them; blocks all signals,
// and installs our handlers for those that Go's runtime unblocks; and hides the
// variables that configure the Go runtime of the command, not ours: their pointers
// skip the first byte.
// entry then adds variables that configure our own runtime, and jumps to the entry
// point of Go programs. The stack holds argc, argv, NULL, envp, NULL and the
// auxiliary vector.
TEXT ·entry(SB), NOSPLIT|NOFRAME, $0
	// rt_sigprocmask(SIG_SETMASK, &every, &entryBlocked, 8)
	MOVQ $14, AX
	MOVQ $2, DI
	LEAQ every<>(SB), SI
	LEAQ ·entryBlocked(SB), DX
	MOVQ $8, R10
	SYSCALL
	MOVQ $1, BX
signal:
	// rt_sigaction(BX, NULL, &entryAction, 8)
	MOVQ $13, AX
	MOVQ BX, DI
	MOVQ $0, SI
	LEAQ ·entryAction(SB), DX
	MOVQ $8, R10
	SYSCALL
	CMPQ ·entryAction(SB), $1 // SIG_IGN
	JNE  install
	LEAQ -1(BX), CX
	BTSQ CX, ·entryIgnored(SB)
install:
	LEAQ ·noting(SB), SI
	MOVQ $UNBLOCKED, CX
	BTQ  BX, CX
	JCS  catch
	LEAQ ·faulting(SB), SI
	MOVQ $FAULTS, CX
	BTQ  BX, CX
	JCC  nextSignal
catch:
	// rt_sigaction(BX, SI, NULL, 8)
	MOVQ $13, AX
	MOVQ $0, DX
	SYSCALL
nextSignal:
	INCQ BX
	CMPQ BX, $65
	JNE  signal

	MOVQ (SP), AX       // argc
	LEAQ 16(SP)(AX*8), BX // envp
	MOVQ BX, ·entryEnviron(SB)
	MOVQ $0x3d47554245444f47, R8  // "GODEBUG="
	MOVQ $0x4245434152544f47, R9  // "GOTRACEB"ACK
	MOVQ $0x4f525058414d4f47, R10 // "GOMAXPRO"CS
	MOVQ $0x4d494c4d454d4f47, R11 // "GOMEMLIM"IT
	MOVQ $0x3d43474f47, R12        // "GOGC="
	MOVQ $0xffffffffff, R13        // five bytes
variable:
	MOVQ (BX), DI
	TESTQ DI, DI
	JZ   done
	MOVQ (DI), SI // the stack goes on for more than eight bytes
	CMPQ SI, R8
	JEQ  hide
	CMPQ SI, R9
	JEQ  hide
	CMPQ SI, R10
	JEQ  hide
	CMPQ SI, R11
	JEQ  hide
	ANDQ R13, SI
	CMPQ SI, R12
	JNE  nextVariable
hide:
	INCQ (BX)
nextVariable:
	ADDQ $8, BX
	JMP  variable
done:
	// Add two variables (settings.s) at the end of envp, whose NULL is at BX: move
	// argc, argv and envp down by two words.
	SUBQ $16, SP
	MOVQ SP, SI
move:
	MOVQ 16(SI), AX
	MOVQ AX, (SI)
	ADDQ $8, SI
	LEAQ 16(SI), AX
	CMPQ AX, BX
	JNE  move
	LEAQ ·gomaxprocs(SB), AX
	MOVQ AX, -16(BX)
	LEAQ ·godebug(SB), AX
	MOVQ AX, -8(BX)
	SUBQ $16, ·entryEnviron(SB)
	MOVB $1, ·entrySeen(SB)
	LEAQ keep<>(SB), AX
	MOVQ AX, _cgo_sigaction(SB)
	JMP  _rt0_amd64_linux(SB)

// keep is called by Go's runtime in place of rt_sigaction(2), as the C library's
// sigaction of a program with C would be. The signals that entry catches have the
// default action, as far as Go's runtime knows, and keep our handler when the runtime
// installs its own, which goes to goHandler. EINVAL makes it call rt_sigaction(2).
TEXT keep<>(SB), NOSPLIT|NOFRAME, $0
	MOVL $22, AX // EINVAL
	MOVQ $(UNBLOCKED|FAULTS), CX
	BTQ  DI, CX
	JCC  done
	MOVL $0, AX
	TESTQ SI, SI // the new action; NULL asks for the old one, zero so far
	JZ   done
	MOVQ (SI), CX
	MOVQ CX, ·goHandler(SB)
done:
	RET
