package stop

import "time"

// TrafficState is the verdict of one sample of the sockets about an adaptive hold.
type TrafficState int

// The verdicts.
const (
	Busy         TrafficState = iota // the condition is not met
	ConditionMet                     // the condition, Gate.Until, is met
	NoListeners                      // the container has no listening socket
	Hung                             // connections wait to be accepted, and the command makes no progress
	UDPOnly                          // all listening sockets are UDP
	Unobservable                     // no source of samples works
	ServerGone                       // the listeners were closed, and no connection is open
	Unseen                           // the container may be serving, but on no socket of a kind that samples show
	OnlyKept                         // clients that never let go are all that remains
)

// String returns the verdict in one word, as golden scripts spell it.
func (t TrafficState) String() string {
	return [...]string{"busy", "met", "no_listener", "no_progress", "udp", "blind", "server_gone", "unseen", "kept"}[t]
}

// Gate says when a hold ends without a further signal.
type Gate struct {
	Floor       time.Duration // the shortest hold
	UnseenFloor time.Duration // the same for the states UDPOnly and Unseen; at least Floor
	Ceiling     time.Duration // the longest hold, if the hold has a condition
	Until       Reason        // the condition: Settled, Quiet or Drained; empty: the hold is not adaptive

	WaitGone bool // hold while a --wait-gone path exists, or --wait-url answers otherwise than with 200
	OnStop   bool // hold while the --on-stop command runs
}

// Holds reports whether there is a hold at all.
func (g Gate) Holds() bool { return g.Floor > 0 || g.Conditional() }

// Conditional reports whether the end of the hold depends on more than the floor.
func (g Gate) Conditional() bool { return g.Adaptive() || g.WaitGone || g.OnStop }

// Adaptive reports whether the traffic ends the hold.
func (g Gate) Adaptive() bool { return g.Until != "" }

// MaxHold returns the length of the longest hold.
func (g Gate) MaxHold() time.Duration {
	if g.Conditional() {
		return g.Ceiling
	}
	return g.Floor
}

// endReason returns why a hold ends after the time held with traffic t, or "" for a
// hold that goes on. waiting reports whether a path or the --on-stop command still
// keeps the hold. t is Busy if the hold is not adaptive.
//
// A hung command ends a hold until Settled or Quiet, after the floor. A hold until
// Drained waits for connections to close, which needs no progress of the command.
func (g Gate) endReason(t TrafficState, held time.Duration, waiting bool) Reason {
	floor := g.Floor
	if t == UDPOnly || t == Unseen {
		floor = g.UnseenFloor
	}
	switch passed := held >= floor; {
	case t == ServerGone:
		return NoListener
	case t == Hung && g.Until != Drained && passed:
		return NoProgress
	case waiting || !passed:
	case !g.Adaptive(), t == Unseen:
		return Elapsed
	case t == ConditionMet:
		return g.Until
	case t == OnlyKept && g.Until == Quiet:
		return Kept
	case t == NoListeners:
		return NoListener
	case t == UDPOnly:
		return UDP
	}
	return ""
}

// endReasonAtMax returns why a hold ends after MaxHold, with traffic t in the last
// sample.
func (g Gate) endReasonAtMax(t TrafficState) Reason {
	switch {
	case !g.Conditional(), t == Unseen:
		return Elapsed
	case t == Unobservable:
		return Unobserved
	case t == UDPOnly:
		return UDP
	}
	return Ceiling
}
