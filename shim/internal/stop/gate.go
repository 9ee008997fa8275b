package stop

import (
	"fmt"
	"strings"
	"time"
)

// TrafficState is what a look at the traffic says, in the words of an adaptive hold.
type TrafficState int

// What a look may say.
const (
	Busy         TrafficState = iota // there is traffic
	ConditionMet                     // what the hold waits for, Until, is so
	NoListeners                      // the container has no listener, and waits for nothing
	Hung                             // connections wait to be accepted, and nothing moves
	UDPOnly                          // it listens for UDP alone, of which nothing can be said
	Unobservable                     // nothing could be seen
	ServerGone                       // the listeners that there were are closed, and nothing is open
)

// String is the look in one word.
func (l TrafficState) String() string {
	return [...]string{"busy", "calm", "nobody", "hung", "datagrams", "blind", "deserted"}[l]
}

// Gate is what ends a hold by itself.
type Gate struct {
	Floor   time.Duration // keep serving at least this long
	Ceiling time.Duration // and no longer than this, where Until says to wait
	Until   Reason        // Settled, Quiet or Drained; empty: the floor is all

	FloorGiven, CeilingGiven bool // they are the user's, and no default

	WaitGone bool // wait for something to go, too
	OnStop   bool // and for what is run when the stop begins
}

// Holds reports whether there is a hold at all.
func (g *Gate) Holds() bool { return g.Floor > 0 || g.conditional() }

// conditional reports whether something else than the floor may end the hold.
func (g *Gate) conditional() bool { return g.adaptive() || g.WaitGone || g.OnStop }

func (g *Gate) adaptive() bool { return g.Until != "" }

// String is the hold in words: "2 s", "5 s to 19 s until quiet".
func (g *Gate) String() string {
	if !g.conditional() {
		return FormatDuration(g.Floor)
	}
	var until []string
	if g.adaptive() {
		until = append(until, string(g.Until))
	}
	if g.WaitGone {
		until = append(until, "others are gone")
	}
	if g.OnStop {
		until = append(until, "--on-stop has ended")
	}
	return fmt.Sprintf("%s to %s until %s", FormatDuration(g.Floor), FormatDuration(g.Ceiling), strings.Join(until, " and "))
}

// FormatDuration is a time that was given, or follows from one, for people: "2 s", "2.83 s",
// "0.125 s".
func FormatDuration(d time.Duration) string {
	if d > time.Second {
		d = d.Round(10 * time.Millisecond)
	}
	return fmt.Sprintf("%v s", d.Round(time.Millisecond).Seconds())
}

// MaxHold is when the hold ends whatever happens, counted from its beginning.
func (g *Gate) MaxHold() time.Duration {
	if g.conditional() {
		return g.Ceiling
	}
	return g.Floor
}

// endReason is why a hold ends when a look has said l this long after its beginning,
// or empty where it goes on; waits says that there is something else to wait for.
func (g *Gate) endReason(l TrafficState, held time.Duration, waits bool) Reason {
	passed := held >= g.Floor && !waits
	switch {
	case !g.adaptive() && passed:
		return Elapsed
	case !g.adaptive():
		return ""
	case l == ConditionMet && passed:
		return g.Until
	case l == NoListeners && (passed || !waits && !g.FloorGiven), l == ServerGone:
		return NoListener
	case l == Hung:
		return NoProgress
	case l == UDPOnly && passed && !g.CeilingGiven:
		return UDP
	}
	return ""
}

// endReasonAtMax is why a hold ends that lasts as long as it may, where the last look
// has said l.
func (g *Gate) endReasonAtMax(l TrafficState) Reason {
	switch {
	case !g.conditional():
		return Elapsed
	case g.adaptive() && l == Unobservable:
		return Unobserved
	case g.adaptive() && l == UDPOnly:
		return UDP
	}
	return Ceiling
}
