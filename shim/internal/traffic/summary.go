package traffic

import (
	"net/netip"
	"slices"
	"time"
)

// Summary has the figures of a hold for the report. Times are zero without such an event.
type Summary struct {
	Accepted  int       // connections since the trigger
	More      bool      // connections may be missing from Accepted
	LastNew   time.Time // the last new connection that counts
	LastByte  time.Time // the last byte on a connection that counts
	LastOther time.Time // the last new connection outside of patterns
	Open      int       // in the latest complete sample, like InFlight and GivenUp
	InFlight  int       // requests that hold
	GivenUp   int       // requests silent for MaxSilence
	PerSecond []int     // new connections in each second from the trigger, for an hour at most
	Patterns  []Pattern // possible health probes, left out or not, the most frequent first

	Cause   Cause   // what the condition waited for last
	LeftOut LeftOut // what did not count
}

// LeftOut counts what does not count as traffic.
type LeftOut struct {
	HalfOpen     int // connections in SYN_RECV, in the sample with the most
	Bare         int // new connections on which no byte was received, probes aside
	Gone         int // open connections whose peer no longer answers, in the latest sample
	OneWay       int // open connections on which the server never sends, in the latest sample
	Undetermined int // of GivenUp, requests that may have been answered
}

// CauseKind is the kind of a Cause.
type CauseKind uint8

// The kinds. The fields of Cause that each kind sets are in parentheses.
const (
	NoCause         CauseKind = iota
	NewConnections            // new connections (Peer, Port, At; Connections)
	Bytes                     // bytes on open connections (Peer, Port, At)
	Requests                  // requests in flight (Peer, Port and At of the one that is silent longest; Connections, Peers)
	Probe                     // a possible health probe (Peer, Port, At, Period, Received)
	AcceptQueue               // connections that the program has not accepted (Port, Connections)
	OpenConnections           // connections that are open and idle (Peer, Port; Connections, Peers)
)

// Cause is what kept a condition from being met longest, for the report.
type Cause struct {
	Kind        CauseKind
	Peer        netip.Addr
	Port        uint16        // the local port
	At          time.Time     // the last activity
	Connections int           // how many; of NewConnections, how many in the last QuietFor
	Peers       int           // how many different peers; 0: not counted
	Period      time.Duration // of a Probe
	Received    uint64        // of a Probe, bytes each time
}

// Summary returns the figures up to the latest sample.
func (t *Tracker) Summary() Summary {
	t.arrivals.lengthen(int(t.now.Sub(t.start) / time.Second))
	counted, others := t.activity(t.cfg.Probes == IgnoreProbes), t.activity(true)
	y := &t.lastSample
	return Summary{
		Accepted: t.arrivals.accepted, More: t.arrivals.missed, LastNew: counted.opened, LastByte: counted.moved,
		LastOther: others.opened, Cause: Cause{Peer: t.lastActive.peer},
		Open: y.open, InFlight: y.inFlight, GivenUp: y.givenUp,
		PerSecond: slices.Clone(t.arrivals.perSecond), Patterns: t.probes.patterns(),
	}
}
