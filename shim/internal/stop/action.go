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
	Forward             Verb = iota // send Signal, which arrived, to the command
	Send                            // send Signal, a step of the sequence, to the command
	Continue                        // continue the command, which is stopped
	GiveTerminal                    // give the command the terminal, if it is ours to give
	StopSelf                        // stop lameduck itself by Signal
	GiveTerminalOrStop              // give the command the terminal and continue it; if it is not ours to give, stop lameduck
	TermGroup                       // send Signal to the command's group, now that the command is gone
	TermDescendants                 // send TERM to every process that is left and has not had it
	KillDescendants                 // send KILL to every process that is left
	StartSampling                   // begin to look at the traffic
	StopHealth                      // tell those who ask for our health that we are about to go
	RunOnStop                       // run what is to run when the stop begins
	KillOnStop                      // end it
	ReportStart                     // report that the sequence has begun
	ReportLate                      // report what stands one second before the grace period ends
	ReportEnd                       // report how the sequence ended
	NoteForwardedAtOnce             // Signal, a stop signal, was passed on at once: no hold was asked for
	NoteBeforeStart                 // Signal came before the command was started, which it now never is
	NoteHoldMissed                  // the command ended after Signal, which starts no hold
	Exit                            // leave: with 128+Signal, or else with Code
)

// scriptWords are the verbs as scripts write them; "*" stands for Signal.
var scriptWords = [...]string{"pass *", "send *", "wake", "hand over", "stop self *", "lend or stop", "farewell *", "term rest", "kill rest",
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
	return strings.Replace(scriptWords[a.Verb], "*", a.Signal.String(), 1)
}

// Status is the exit status of an Exit: 128+n for signal n, else the code.
func (a Action) Status() int {
	if a.Signal != 0 {
		return 128 + int(a.Signal)
	}
	return a.Code
}
