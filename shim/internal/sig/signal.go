// Package sig describes Linux signals: names, numbers, sets, rewrites and traces. The package is
// pure: no init, no system call, no dependency on the operating system it is built for.
// Package sigcatch catches signals.
//
// See signal(7) and, for the real-time range, nptl(7).
package sig

import (
	"fmt"
	"strconv"
	"strings"
)

// Signal is a Linux signal number, 1 to Max. In a rewrite, 0 stands for "drop".
type Signal int

// The real-time range as kill(1) and the C library count: 32 and 33 belong to the
// threads of the C library.
const (
	RTMin Signal = 34
	RTMax Signal = 64
	Max          = RTMax
)

// The standard signals, with the numbers of every processor that lameduck is built for;
// alpha, mips, parisc and sparc count otherwise.
const (
	HUP Signal = 1 + iota
	INT
	QUIT
	ILL
	TRAP
	ABRT
	BUS
	FPE
	KILL
	USR1
	SEGV
	USR2
	PIPE
	ALRM
	TERM
	STKFLT
	CHLD
	CONT
	STOP
	TSTP
	TTIN
	TTOU
	URG
	XCPU
	XFSZ
	VTALRM
	PROF
	WINCH
	IO
	PWR
	SYS
)

// names are the names of the standard signals, in the order of their numbers from 1.
var names = [...]string{
	"HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE",
	"KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM", "STKFLT",
	"CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU",
	"XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
}

// String returns the signal's name without SIG ("TERM", "RTMIN+3"), or the number of a
// signal without a name.
func (s Signal) String() string {
	switch {
	case s >= 1 && int(s) <= len(names):
		return names[s-1]
	case s == RTMin:
		return "RTMIN"
	case s > RTMin && s <= RTMax:
		return "RTMIN+" + strconv.Itoa(int(s-RTMin))
	}
	return strconv.Itoa(int(s))
}

// Parse reads a signal: a name with or without SIG in any case, a number from
// 1 to 64, RTMIN+n or RTMAX-n.
func Parse(text string) (Signal, error) {
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= int(Max) {
		return Signal(n), nil
	}
	name := strings.TrimPrefix(strings.ToUpper(text), "SIG")
	others := map[string]Signal{"IOT": ABRT, "CLD": CHLD, "POLL": IO, "UNUSED": SYS, "RTMIN+0": RTMin, "RTMAX": RTMax}
	if s, found := others[name]; found {
		return s, nil
	}
	for s := Signal(1); s <= Max; s++ {
		if name == s.String() || s >= RTMin && name == "RTMAX-"+strconv.Itoa(int(RTMax-s)) {
			return s, nil
		}
	}
	return 0, fmt.Errorf("invalid signal %q: give a name (TERM, SIGUSR1), a number from 1 to %d, RTMIN+n or RTMAX-n",
		text, Max)
}

// Uncatchable returns the reason why no lameduck ever catches s, or "" if one can.
func Uncatchable(s Signal) string {
	switch s {
	case KILL, STOP:
		return "the kernel lets no program catch it"
	case CHLD:
		return "lameduck itself needs it to reap"
	}
	return ""
}
