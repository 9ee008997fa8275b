package stop

import "github.com/lameduck-init/lameduck/shim/internal/sig"

// State is the position in the stop sequence.
type State int

// The states, in the order of the sequence.
const (
	Starting  State = iota // the command has not been started
	Running                // the command runs, and no stop signal has arrived
	Holding                // a stop signal has arrived, and the command still serves
	Stopping               // the hold has ended, and the schedule runs
	Lingering              // the command has exited, and its descendants have time to end
	Gone                   // the sequence is over, or the command was never started
)

// String returns the state's name in lower case.
func (s State) String() string {
	return [...]string{"starting", "running", "holding", "stopping", "lingering", "gone"}[s]
}

// Kind is the kind of an Event.
type Kind int

// The kinds of events.
const (
	Tick             Kind = iota // the time passed; see Machine.Deadline
	CommandStarted               // the command runs
	SignalArrived                // Signal arrived at lameduck
	CommandStopped               // Signal stopped the command (SIGSTOP, Ctrl-Z)
	CommandContinued             // SIGCONT continued the command
	CommandExited                // the command ended: by Signal, or without a Signal with exit code Code
	OrphanReaped                 // some other process was reaped
	NoChildren                   // wait4(2) has said ECHILD
	Sampled                      // the sockets were sampled: see Traffic and Waiting
	PreStop                      // lameduck hold begins to hold, beside a command of PID 1
	OnStopEnded                  // the --on-stop command ended, or could not be started
)

// Event is an observation of the loop.
type Event struct {
	Kind    Kind
	Signal  sig.Signal
	Code    int
	Traffic TrafficState
	Requests
	Waiting bool // with Sampled: a --wait-gone path still exists
}
