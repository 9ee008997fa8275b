// Package sig has the words for signals: names, numbers, sets and rewrites.
// It also catches signals, from its own init, so that what arrives while the
// program is still starting is kept and not lost; see catch.go.
//
// See signal(7) and, for the real-time range, nptl(7).
package sig

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
)

// Signal is a Linux signal number, 1 to Max. In a rewrite, 0 stands for "drop".
type Signal int

// The real-time range as kill(1) and the C library count it: 32 and 33 belong
// to the C library's threads.
const (
	RTMin Signal = 34
	RTMax Signal = 64
	Max          = RTMax
)

// The signals that the rest of the program calls by name.
const (
	HUP   = Signal(syscall.SIGHUP)
	INT   = Signal(syscall.SIGINT)
	QUIT  = Signal(syscall.SIGQUIT)
	KILL  = Signal(syscall.SIGKILL)
	USR1  = Signal(syscall.SIGUSR1)
	USR2  = Signal(syscall.SIGUSR2)
	PIPE  = Signal(syscall.SIGPIPE)
	TERM  = Signal(syscall.SIGTERM)
	CHLD  = Signal(syscall.SIGCHLD)
	CONT  = Signal(syscall.SIGCONT)
	STOP  = Signal(syscall.SIGSTOP)
	TSTP  = Signal(syscall.SIGTSTP)
	TTIN  = Signal(syscall.SIGTTIN)
	TTOU  = Signal(syscall.SIGTTOU)
	URG   = Signal(syscall.SIGURG)
	WINCH = Signal(syscall.SIGWINCH)
	PWR   = Signal(syscall.SIGPWR)
)

// names lists the standard signals; several names for one number are allowed,
// and the first is the one that is printed.
var names = []struct {
	name string
	num  syscall.Signal
}{
	{"HUP", syscall.SIGHUP}, {"INT", syscall.SIGINT}, {"QUIT", syscall.SIGQUIT}, {"ILL", syscall.SIGILL},
	{"TRAP", syscall.SIGTRAP}, {"ABRT", syscall.SIGABRT}, {"IOT", syscall.SIGIOT}, {"BUS", syscall.SIGBUS},
	{"FPE", syscall.SIGFPE}, {"KILL", syscall.SIGKILL}, {"USR1", syscall.SIGUSR1}, {"SEGV", syscall.SIGSEGV},
	{"USR2", syscall.SIGUSR2}, {"PIPE", syscall.SIGPIPE}, {"ALRM", syscall.SIGALRM}, {"TERM", syscall.SIGTERM},
	{"STKFLT", syscall.SIGSTKFLT}, {"CHLD", syscall.SIGCHLD}, {"CLD", syscall.SIGCLD}, {"CONT", syscall.SIGCONT},
	{"STOP", syscall.SIGSTOP}, {"TSTP", syscall.SIGTSTP}, {"TTIN", syscall.SIGTTIN}, {"TTOU", syscall.SIGTTOU},
	{"URG", syscall.SIGURG}, {"XCPU", syscall.SIGXCPU}, {"XFSZ", syscall.SIGXFSZ}, {"VTALRM", syscall.SIGVTALRM},
	{"PROF", syscall.SIGPROF}, {"WINCH", syscall.SIGWINCH}, {"IO", syscall.SIGIO}, {"POLL", syscall.SIGPOLL},
	{"PWR", syscall.SIGPWR}, {"SYS", syscall.SIGSYS}, {"UNUSED", syscall.SIGSYS},
}

// String is the signal's name without SIG ("TERM", "RTMIN+3"), or its number
// where it has none.
func (s Signal) String() string {
	for _, n := range names {
		if Signal(n.num) == s {
			return n.name
		}
	}
	switch {
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
	if n, err := strconv.Atoi(text); err == nil {
		if n < 1 || n > int(Max) {
			return 0, fmt.Errorf("%q is no signal: numbers go from 1 to %d", text, Max)
		}
		return Signal(n), nil
	}
	name := strings.TrimPrefix(strings.ToUpper(text), "SIG")
	for _, n := range names {
		if n.name == name {
			return Signal(n.num), nil
		}
	}
	if s, ok := parseRealTime(name); ok {
		return s, nil
	}
	return 0, fmt.Errorf("%q is no signal: give a name (TERM, SIGUSR1), a number from 1 to %d, RTMIN+n or RTMAX-n", text, Max)
}

// parseRealTime reads RTMIN, RTMIN+n, RTMAX and RTMAX-n, within the range.
func parseRealTime(name string) (Signal, bool) {
	base, sign := RTMin, '+'
	rest, ok := strings.CutPrefix(name, "RTMIN")
	if !ok {
		base, sign = RTMax, '-'
		if rest, ok = strings.CutPrefix(name, "RTMAX"); !ok {
			return 0, false
		}
	}
	if rest == "" {
		return base, true
	}
	n, err := strconv.ParseUint(rest[1:], 10, 8)
	if err != nil || rune(rest[0]) != sign || Signal(n) > RTMax-RTMin {
		return 0, false
	}
	if sign == '-' {
		return base - Signal(n), true
	}
	return base + Signal(n), true
}

// preemption is "off" where the linker has turned Go's asynchronous preemption
// off (see the Makefile). Where it is on, the runtime sends itself thousands of
// URG a second, and one that somebody else sent cannot be told from those.
var preemption = "on"

// withoutEntry begins what holds only where our entry point did not come first.
const withoutEntry = "this binary was built without -E for the linker, or for another machine than amd64 and arm64, so "

// Uncatchable says why lameduck can never see s arrive, or "" when it can.
func Uncatchable(s Signal) string {
	switch s {
	case KILL, STOP:
		return "the kernel lets no program catch it"
	case CHLD:
		return "lameduck itself needs it to reap"
	case URG:
		if preemption != "off" {
			return "this binary was built without -X runtime.godebugDefault=asyncpreemptoff=1, so Go's runtime uses it"
		}
	}
	if !entrySeen {
		switch s {
		case Signal(syscall.SIGPROF):
			return withoutEntry + "Go's runtime keeps it for profiling"
		case 32, 33, RTMin:
			return withoutEntry + "Go's runtime leaves it to the C library's threads"
		}
	}
	return ""
}
