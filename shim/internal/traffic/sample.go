package traffic

import (
	"net/netip"
	"time"
)

// Sample is what the latest sample has shown, and what was counted since the trigger. The
// figures are for the report, and those of open connections are of the latest complete sample.
// Times are zero without such an event.
type Sample struct {
	Verdict
	Cause Cause // what the condition waited for last

	Accepted  int       // connections since the trigger
	More      bool      // connections may be missing from Accepted
	LastNew   time.Time // the last new connection that counts
	LastByte  time.Time // the last byte on a connection that counts
	LastOther time.Time // the last new connection that is no possible health probe
	LastUse   time.Time // the last byte on a connection that is none
	Open      int
	InUse     int       // connections on which bytes moved less than QuietFor ago
	InFlight  int       // requests that hold
	Streams   int       // responses that go on and on, as of server-sent events
	PerSecond []int     // new connections in each second from the trigger, for an hour at most
	Patterns  []Pattern // possible health probes, left out or not, the most frequent first
	LeftOut   LeftOut   // what did not count

	Longest    time.Duration // since the last byte was received of one of these requests or streams
	ListenedAt time.Time     // the latest sample with a listener
	ServedAt   time.Time     // the latest sample with a listener or a connection
}

// Verdict is what a sample means for a hold. Drained implies Quiet, and Quiet implies Settled.
type Verdict struct {
	Settled   bool // no new connection for QuietFor
	Quiet     bool // Settled, no byte for QuietFor and no request in flight
	Drained   bool // Quiet, no open connection and no unsent byte
	Kept      bool // not Quiet, and clients that never let go are all that remains
	Stuck     bool // clients wait to be accepted or read, and the program makes no progress
	NoSockets bool // neither a listener nor a connection

	Incomplete bool // the sample shows nothing

	Active bool // not Quiet since the trigger, for traffic or requests: a signal might cut a request
	AtRisk int  // requests that a signal at the time of the sample might have cut

	NoneNewFor time.Duration // since the last new connection that is no possible health probe, or since one waited
}

// LeftOut counts what does not count as traffic. Its names in JSON are those of the report.
type LeftOut struct {
	Bare     int `json:"no_bytes"`  // new connections on which no byte was received
	Probes   int `json:"probes"`    // requests of possible health probes, in the latest sample
	HalfOpen int `json:"half_open"` // connections in SYN_RECV, in the sample with the most
	Gone     int `json:"gone"`      // open connections whose peer no longer answers, in the latest sample
	GivenUp  int `json:"given_up"`  // requests silent for MaxSilence, in the latest sample
}

// CauseKind is the kind of a Cause.
type CauseKind uint8

// The kinds. The fields of Cause that each kind sets are in parentheses.
const (
	NoCause         CauseKind = iota
	NewConnections            // new connections (Peer, Port, At; Connections)
	Bytes                     // bytes on an open connection (Peer, Port, At, Unanswered)
	Requests                  // requests in flight (Peer, Port of the one silent longest; At, Connections, Unanswered)
	Probe                     // a possible health probe (Peer, Port, At, Period, Received)
	AcceptQueue               // connections that the program has not accepted (Peer of any, Port, At, Connections)
	OpenConnections           // connections that are open and idle (Peer of any, At, Connections)
)

// Cause is what kept a condition from being met last, for the report.
type Cause struct {
	Kind        CauseKind
	Peer        netip.Addr
	Port        uint16        // the local port
	At          time.Time     // the last activity; of Requests and what is open or waits, the latest sample with any
	Connections int           // how many; of NewConnections, how many in the last QuietFor
	Period      time.Duration // of a Probe
	Received    uint64        // of a Probe, bytes each time
	Unanswered  bool          // of Bytes and Requests: a stream on which the program has never sent a byte
}
