package stop

import (
	"fmt"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// State is where the sequence is.
type State int

// The states, in the order in which they are passed through.
const (
	Starting  State = iota // the command has not been started
	Running                // it runs, and nobody has asked it to stop
	Holding                // it was asked to stop, and still serves
	Stopping               // the stop signal was sent
	Lingering              // it has exited, and others have not
	Gone                   // all is over, or was never started
)

// String is the state's name in lower case.
func (s State) String() string {
	return [...]string{"starting", "running", "holding", "stopping", "lingering", "gone"}[s]
}

// Kind is what sort of event it is.
type Kind int

// The kinds of events.
const (
	Tick             Kind = iota // time has passed
	CommandStarted               // the command runs
	SignalArrived                // Signal reached lameduck
	CommandStopped               // the command was stopped by Signal
	CommandContinued             // the command was continued
	CommandExited                // the command ended: by Signal, or else with Code
	OrphanReaped                 // some other process ended
	NoChildren                   // there is no process left to reap
	Sampled                      // a look at the traffic was taken, and said Look
	PreStop                      // a hook is to hold, beside a command that others stop
	OnStopEnded                  // what was to run when the stop begins did, or could not
)

// Event is something that happened.
type Event struct {
	Kind    Kind
	Signal  sig.Signal
	Code    int
	Traffic TrafficState
	Waiting bool // of Sampled: some of what the hold waits for is still there
}

// String is the event as scripts write it: "TERM", "exit 0", "killed KILL".
func (e Event) String() string {
	switch e.Kind {
	case SignalArrived:
		return e.Signal.String()
	case CommandStopped:
		return "stopped " + e.Signal.String()
	case CommandExited:
		if e.Signal != 0 {
			return "killed " + e.Signal.String()
		}
		return fmt.Sprintf("exit %d", e.Code)
	case Sampled:
		if e.Waiting {
			return "look " + e.Traffic.String() + ", waiting"
		}
		return "look " + e.Traffic.String()
	}
	return map[Kind]string{Tick: "tick", CommandStarted: "started", CommandContinued: "continued", OrphanReaped: "orphan", NoChildren: "childless", PreStop: "asked", OnStopEnded: "hook ended"}[e.Kind]
}

// Reason is why a hold ended. Its text is part of the report's vocabulary.
type Reason string

// The reasons.
const (
	Elapsed      Reason = "elapsed"       // the floor has passed, and is all
	Settled      Reason = "settled"       // no new connection came
	Quiet        Reason = "quiet"         // nor did a byte, and no request is in flight
	Drained      Reason = "drained"       // nor is a connection open
	Ceiling      Reason = "ceiling"       // it could last no longer
	NoListener   Reason = "no_listener"   // the container serves nobody
	NoProgress   Reason = "no_progress"   // the command is hung
	UDP          Reason = "udp"           // of which nothing can be said
	Unobserved   Reason = "blind"         // the ceiling, with nothing seen
	SecondSignal Reason = "second_signal" // a further stop signal came
	Interrupt    Reason = "interrupt"     // INT came
	ChildExit    Reason = "child_exit"    // the command exited by itself
)

// maxSent is how many are remembered.
const maxSent = 50

// Sent is a signal of the sequence, and when it was sent.
type Sent struct {
	Signal sig.Signal
	At     time.Time
}

// LastForwarded is the last signal passed on that could end a command.
type LastForwarded struct {
	Forwarded   sig.Signal // as the signal arrived; 0: none
	ForwardedAs sig.Signal // as the signal was sent, rewritten
	ForwardedAt time.Time
}

// Record is what has happened so far; the report is written from it.
type Record struct {
	Trigger     sig.Signal // the signal that started the sequence; 0: none, or a hook was asked
	Steps       Schedule   // what is done when the hold ends; none: a hook's ends all
	TriggeredAt time.Time  // zero: not yet
	Ended       Reason     // why the hold ended; empty: it has not
	EndedAt     time.Time
	Sent        []Sent // if there is no end, the first of them and the last
	LastForwarded
	Exit     Event // how the command ended
	ExitedAt time.Time
}
