package stop

import (
	"fmt"
	"strings"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// Verb is what sort of action it is.
type Verb int

// The verbs.
const (
	Pass       Verb = iota // send Signal, which arrived, to the command
	Send                   // send Signal, a step of the sequence, to the command
	Wake                   // continue the command, which is stopped
	HandOver               // give the command the terminal, if it is ours to give
	StopSelf               // stop lameduck itself by Signal
	LendOrStop             // give the command the terminal and continue it; if it is not ours to give, stop lameduck
	Farewell               // send Signal to the command's group, now that the command is gone
	TermRest               // send TERM to every process that is left and has not had it
	KillRest               // send KILL to every process that is left
	Watch                  // begin to look at the traffic
	Retire                 // tell those who ask for our health that we are about to go
	RunHook                // run what is to run when the stop begins
	KillHook               // end it
	Announce               // report that the sequence has begun
	Overtime               // report what stands one second before the grace period ends
	Conclude               // report how the sequence ended
	NoteUnheld             // Signal, a stop signal, was passed on at once: no hold was asked for
	NoteEarly              // Signal came before the command was started, which it now never is
	NoteNoHold             // the command ended after Signal, which starts no hold
	Exit                   // leave: with 128+Signal, or else with Code
)

// words are the verbs as scripts write them; "*" stands for Signal.
var words = [...]string{"pass *", "send *", "wake", "hand over", "stop self *", "lend or stop", "farewell *", "term rest", "kill rest",
	"watch", "retire", "run hook", "kill hook", "announce", "overtime", "conclude", "note unheld *", "note early *", "note no hold after *", "exit"}

// Action is something to be done; doing it is the loop's business.
type Action struct {
	Verb   Verb
	Signal sig.Signal
	Code   int
}

// String is the action as scripts write it: "send USR1", "exit 143".
func (a Action) String() string {
	if a.Verb == Exit {
		return fmt.Sprintf("exit %d", a.Status())
	}
	return strings.Replace(words[a.Verb], "*", a.Signal.String(), 1)
}

// Status is the exit status of an Exit: 128+n for signal n, else the code.
func (a Action) Status() int {
	if a.Signal != 0 {
		return 128 + int(a.Signal)
	}
	return a.Code
}
