//go:build amd64 || arm64

#include "textflag.h"

// The variables that the entry point adds to the environment of Go's runtime. The
// command does not inherit them.

// One processor is all that lameduck uses. With more, the runtime starts a thread
// and fills a memory cache for each.
DATA ·gomaxprocs+0(SB)/8, $"GOMAXPRO"
DATA ·gomaxprocs+8(SB)/5, $"CS=1\x00"
GLOBL ·gomaxprocs(SB), RODATA, $13

// asyncpreemptoff: the runtime does not interrupt our threads with URG.
// profstackdepth: no buffers for profiles, two for every thread.
DATA ·godebug+0(SB)/8, $"GODEBUG="
DATA ·godebug+8(SB)/8, $"asyncpre"
DATA ·godebug+16(SB)/8, $"emptoff="
DATA ·godebug+24(SB)/8, $"1,profst"
DATA ·godebug+32(SB)/8, $"ackdepth"
DATA ·godebug+40(SB)/3, $"=0\x00"
GLOBL ·godebug(SB), RODATA, $43

// func growStack()
// The assembler adds the check of the stack's size at the top; the frame itself is
// never touched.
TEXT ·growStack(SB), 0, $20000-0
	RET
