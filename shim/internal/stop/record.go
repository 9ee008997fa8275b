package stop

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// Reason is why a hold ended, as the report spells it.
type Reason string

// The reasons. Settled, Quiet and Drained are conditions of --until too, each
// stricter than the one before.
const (
	Elapsed      Reason = "elapsed"       // the floor passed, and the hold has no condition
	Settled      Reason = "settled"       // no new connections
	Quiet        Reason = "quiet"         // settled, no bytes, and no request in flight
	Drained      Reason = "drained"       // quiet, and no open connections
	Kept         Reason = "kept"          // requests come only from clients that keep their connections
	Ceiling      Reason = "ceiling"       // the ceiling came before the condition was met
	NoListener   Reason = "no_listener"   // the container has no listening socket
	NoProgress   Reason = "no_progress"   // the command is hung
	UDP          Reason = "udp"           // all listening sockets are UDP, whose traffic cannot be observed
	Unobserved   Reason = "blind"         // the ceiling came, and the traffic could not be observed
	SecondSignal Reason = "second_signal" // a further stop signal arrived
	Interrupt    Reason = "interrupt"     // INT arrived
	ChildExit    Reason = "child_exit"    // the command exited by itself
)

// maxSent limits Record.Sent, which a schedule with forever would fill.
const maxSent = 50

// Sent is a signal of the schedule, with the time of sending.
type Sent struct {
	Signal sig.Signal
	At     time.Time
}

// Lull is the search for a moment without a request in flight, at the end of a hold that
// ends although requests still come. The first signal is sent at that moment.
type Lull struct {
	Sought   bool // there was a search
	Found    bool // the signal was sent at a moment without a request in flight
	InFlight int  // requests at risk in the sample that ended the search
}

// Record is the history of the sequence, for the report.
type Record struct {
	Trigger     sig.Signal // the first stop signal; 0: none, or PreStop
	Steps       Schedule   // the schedule after the hold; empty with PreStop
	TriggeredAt time.Time  // of Trigger or PreStop; zero: not yet
	PassedAt    time.Time  // when the last stop signal was passed on at once; zero: none was
	Ended       Reason     // why the hold ended; empty: still holding, or no hold
	EndedAt     time.Time
	Lull        Lull
	Sent        []Sent // the first maxSent-1 signals and the last
	Refused     int    // signals that the kernel refused to send
	Exit        Event  // the end of the command
	ExitedAt    time.Time
}

// ExitStatus returns the exit status that tells the end of the command: 128+n for signal n, else its code.
func (r *Record) ExitStatus() int {
	if s := r.Exit.Signal; s != 0 {
		return 128 + int(s)
	}
	return r.Exit.Code
}

// SignaledAt returns when a stop signal arrived, zero if none did.
func (r *Record) SignaledAt() time.Time {
	if r.TriggeredAt.IsZero() {
		return r.PassedAt
	}
	return r.TriggeredAt
}
