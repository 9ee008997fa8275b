package sig

import (
	"os"
	"os/signal"
	"syscall"
)

// caught takes what arrives. The runtime merges what is pending of one kind
// and drops what finds the channel full, so the channel is larger than any
// burst that fits between two turns of the loop. Unused, it costs address
// space only.
var caught = make(chan os.Signal, 8192)

// first is caught before the command starts: what ends programs or wakes us.
// Each costs some 40 µs, since the runtime hands it to a thread of its own; so
// the others wait until the command runs.
var first = SetOf(HUP, INT, QUIT, USR1, USR2, PIPE, Signal(syscall.SIGALRM), TERM, CHLD, CONT, WINCH, Signal(syscall.SIGTSTP))

// init is the only one of the program: until Notify is called a TERM makes a
// Go program exit with 2, so nothing may come before it.
func init() { Catch(first) }

// Catch starts to catch the signals of set too. Never signal.Ignore: an
// ignored signal would stay ignored in the command.
func Catch(set Set) {
	list := make([]os.Signal, 0, Max)
	for s := range set.All {
		list = append(list, syscall.Signal(s))
	}
	if len(list) > 0 { // Notify takes an empty list for "all", SIGURG included
		signal.Notify(caught, list...)
	}
}

// Caught is where the caught signals come from, each a syscall.Signal.
func Caught() <-chan os.Signal { return caught }
