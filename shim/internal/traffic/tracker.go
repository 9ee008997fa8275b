package traffic

import (
	"net/netip"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// Config is how to judge traffic.
type Config struct {
	QuietFor    time.Duration // how long silence must last
	MaxSilence  time.Duration // a request without a byte for this long does not hold
	Poll        time.Duration // the interval of samples
	IgnorePorts []uint16      // local ports
	IgnorePeers []netip.Prefix
	Probes      ProbeRule
}

// ProbeRule says when traffic that looks like a health probe is left out.
type ProbeRule uint8

// The rules.
const (
	IgnoreProbesPatiently ProbeRule = iota // when all other traffic has been silent for QuietFor
	IgnoreProbes                           // at once: two equal gaps are enough
	CountProbes                            // never
)

// ignores reports whether a socket does not count. A listener has no peer.
func (c *Config) ignores(s *tcp.Socket) bool {
	if slices.Contains(c.IgnorePorts, s.Local.Port()) {
		return true
	}
	from := func(p netip.Prefix) bool { return p.Contains(s.Remote.Addr()) }
	return s.State != tcp.Listen && slices.ContainsFunc(c.IgnorePeers, from)
}

// stuckAfter is how long connections may wait to be accepted without any progress.
const stuckAfter = 10 * time.Second

// Tracker follows connections from sample to sample. A sample is a call of Begin, a call
// of Observe for each socket, and a call of End; Verdict and Summary then describe the
// latest sample. A sample allocates no memory for connections already known.
type Tracker struct {
	cfg Config
	clock
	complete    bool     // the latest sample was complete
	sample      tally    // of the current sample so far
	lastSample  tally    // of the latest complete sample
	conns       table    // the open connections
	closed      activity // of closed connections, and of connections never shown
	probes      probes   // closed connections that may be health probes, left out of closed
	arrivals    arrivals
	progress    progress
	lastActive  conn   // the most recently active connection, probes aside
	minPureACKs uint32 // see leastPureACKs
}

// clock is the time and the number of the current sample.
type clock struct {
	start       time.Time // the trigger: silence counts from here
	now         time.Time // of the current sample
	sampleNo    uint32
	firstSample uint32 // the sample whose connections are older than the trigger
}

// progress is when the program last made progress, or had no need to.
type progress struct {
	at        time.Time
	responded bool // a connection with a response has closed since the latest sample
}

// tally is what a sample found.
type tally struct {
	activity     // of open connections
	listeners    int
	queued       int  // connections not yet accepted by the program
	open         int  // connections established
	inFlight     int  // requests that hold
	givenUp      int  // requests silent for MaxSilence
	unsent       bool // a peer has not acknowledged all bytes
	accepted     bool // the program has accepted a connection since the previous sample
	bytesUnknown bool // a response may have been sent: the source shows no bytes
	handshaking  bool // a connection is half open
	withoutInfo  bool // a connection is open whose bytes the source does not show
}

// New returns the tracker of a hold that begins at start.
func New(cfg Config, start time.Time) *Tracker {
	return &Tracker{cfg: cfg, clock: clock{start: start, firstSample: 1}, conns: newTable(), probes: probes{}, minPureACKs: 1}
}

// Begin begins a sample.
func (t *Tracker) Begin(now time.Time) {
	if now.Sub(t.now) > stuckAfter/2 { // lameduck itself was stopped, and perhaps the program too
		t.progress.at = now
	}
	t.now = now
	t.sample = tally{}
	t.sampleNo++
	t.conns.rewind()
}

// Observe adds a socket to the sample. The caller may reuse s afterwards.
func (t *Tracker) Observe(s *tcp.Socket) {
	switch {
	case t.cfg.ignores(s):
	case s.State == tcp.Listen:
		t.sample.listeners++
		t.sample.queued += int(s.Unread)
	case s.State == tcp.SynRecv, s.State == tcp.NewSynRecv:
		t.sample.handshaking = true
	case s.State == tcp.TimeWait, s.State == tcp.Close, s.State == tcp.SynSent:
	default:
		t.observe(s)
	}
}

// observe adds a connection to the sample.
func (t *Tracker) observe(s *tcp.Socket) {
	c, known := t.conns.visit(identity(s))
	afterTrigger := t.sampleNo > t.firstSample
	if !known && afterTrigger {
		c.opened = t.now
		t.arrivals.add(t.now.Sub(t.start))
	}
	wasAccepted := c.accepted
	c.update(s, t.now, known)
	c.sample = t.sampleNo
	c.missedAt = time.Time{}

	t.sample.activity.add(c.activity)
	t.noteActive(c)
	t.sample.addSocket(s, c.accepted)
	t.sample.accepted = t.sample.accepted || c.accepted && !wasAccepted && afterTrigger
	t.minPureACKs = leastPureACKs(t.minPureACKs, s)
	switch {
	case !InFlight(s, t.minPureACKs):
	case t.now.Sub(c.moved) >= t.cfg.MaxSilence:
		t.sample.givenUp++
	default:
		t.sample.inFlight++
	}
}

// addSocket adds what the socket of a connection shows without the past.
func (y *tally) addSocket(s *tcp.Socket, accepted bool) {
	y.unsent = y.unsent || s.Unsent > 0
	y.bytesUnknown = y.bytesUnknown || accepted && !s.HasInfo
	if s.State == tcp.Established {
		y.open++
	}
	mayReceive := s.State == tcp.Established || s.State == tcp.CloseWait
	y.withoutInfo = y.withoutInfo || !s.HasInfo && mayReceive
}

// noteActive remembers the most recently active connection.
func (t *Tracker) noteActive(c *conn) {
	at := c.last()
	if at.After(t.start) && at.After(t.lastActive.last()) {
		t.lastActive = *c
	}
}
