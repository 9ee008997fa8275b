package stop

import (
	"fmt"
	"strings"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// State is the position in the stop sequence.
type State int

// The states, in the order of the sequence.
const (
	Running   State = iota // the command runs, and no stop signal has arrived
	Holding                // a stop signal has arrived, and the command still serves
	Stopping               // the hold has ended, and the schedule runs
	Lingering              // the command has exited, and what it has left behind has time to end
	Gone                   // the sequence is over
)

// String returns the state's name in lower case.
func (s State) String() string {
	return [...]string{"running", "holding", "stopping", "lingering", "gone"}[s]
}

// Kind is the kind of an Event.
type Kind int

// The kinds of events.
const (
	Tick             Kind = iota // the time passed; see Machine.Deadline
	SignalArrived                // Signal arrived at lameduck
	CommandStopped               // Signal stopped the command (SIGSTOP, Ctrl-Z)
	CommandContinued             // SIGCONT continued the command
	CommandExited                // the command ended: by Signal, or without a Signal with exit code Code
	OrphanReaped                 // some other process was reaped
	NoChildren                   // wait4(2) has said ECHILD
	Sampled                      // the sockets were sampled: see Traffic and Waiting
	PreStop                      // lameduck hold begins to hold, beside a command that Signal will stop
	OnStopEnded                  // the --on-stop command ended, or could not be started
	Refused                      // the kernel refused to send Signal, of the schedule
	SentBelow                    // a signal of the schedule went to processes below the command
	NoneAtWork                   // those have ended; or nothing that the command has left behind is at work
)

// eventWords are the kinds in golden scripts; "*" stands for Signal.
var eventWords = [...]string{
	"tick", "*", "stopped *", "continued", "exit", "orphan", "childless", "sample", "hold", "on-stop",
	"refused *", "sent-below", "none-at-work",
}

// Event is an observation of the loop.
type Event struct {
	Kind    Kind
	Signal  sig.Signal
	Code    int
	Traffic TrafficState
	Requests
	// With Sampled: WaitGone of the gate goes on. With NoneAtWork, when the command has ended: what is left may still
	// read.
	Waiting bool
	Outside bool // with SignalArrived: a process outside of the PID namespace sent Signal
}

// String returns the event as golden scripts spell it: "TERM", "exit 0", "killed KILL".
func (e Event) String() string {
	switch {
	case e.Kind == Sampled:
		return fmt.Sprintf("sample %v, %d at risk", e.Traffic, e.AtRisk)
	case e.Kind == CommandExited && e.Signal != 0:
		return "killed " + e.Signal.String()
	case e.Kind == CommandExited:
		return fmt.Sprintf("exit %d", e.Code)
	}
	return strings.Replace(eventWords[e.Kind], "*", e.Signal.String(), 1)
}
