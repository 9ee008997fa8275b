package stop

import (
	"fmt"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// Verb is what sort of action it is.
type Verb int

// The verbs.
const (
	Pass       Verb = iota // send Signal, which arrived, to the command
	Send                   // send Signal, a step of the sequence, to the command
	Announce               // report that the sequence has begun
	Overtime               // report what stands one second before the grace period ends
	Conclude               // report how the sequence ended
	NoteUnheld             // a stop signal was passed on at once, since no hold was asked for
	NoteEarly              // Signal came before the command was started, which it now never is
	NoteNoHold             // the command ended after Signal, which starts no hold
	Exit                   // leave: with 128+Signal, or else with Code
)

// Action is something to be done; doing it is the loop's business.
type Action struct {
	Verb   Verb
	Signal sig.Signal
	Code   int
}

// String is the action as scripts write it: "send USR1", "exit 143".
func (a Action) String() string {
	verb := [...]string{"pass", "send", "announce", "overtime", "conclude", "note unheld", "note early", "note no hold after", "exit"}[a.Verb]
	switch a.Verb {
	case Pass, Send, NoteNoHold:
		return verb + " " + a.Signal.String()
	case Exit:
		return fmt.Sprintf("%s %d", verb, a.Status())
	}
	return verb
}

// Status is the exit status of an Exit: 128+n for signal n, else the code.
func (a Action) Status() int {
	if a.Signal != 0 {
		return 128 + int(a.Signal)
	}
	return a.Code
}
