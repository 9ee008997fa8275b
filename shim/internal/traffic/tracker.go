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
	Until       Condition // for Summary.Cause
}

// Condition is the condition of a hold, a field of [Verdict].
type Condition uint8

// The conditions.
const (
	UntilQuiet Condition = iota
	UntilSettled
	UntilDrained
)

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

// Tracker follows connections from sample to sample. A sample is a call of Begin, a call
// of Observe for each socket, and a call of End; Verdict and Summary then describe the
// latest sample. A sample allocates no memory for connections already known.
type Tracker struct {
	cfg         Config
	start       time.Time     // the trigger: silence counts from here
	now         moment        // of the current sample
	interval    time.Duration // since the previous sample
	sampleNo    uint32
	firstSample uint32 // the sample whose connections are older than the trigger

	current     tally  // of the current sample so far
	latest      tally  // of the latest complete sample
	complete    bool   // the latest sample was complete
	sourceEnded moment // the former source: connections that came shortly before are not known to be new

	conns    map[uint64]*conn // the open connections, by identity
	closed   activity         // of closed connections, and of connections never shown
	probes   probes           // closed connections that may be health probes, left out of closed
	arrivals arrivals
	queues   queues
	cause    cause
	usual    Usual

	halfOpen int // see LeftOut
	bare     int // closed connections on which no byte was received
}

// moment returns a time as a moment.
func (t *Tracker) moment(at time.Time) moment { return trigger + moment(at.Sub(t.start)) }

// time returns a moment as a time, zero for never.
func (t *Tracker) time(m moment) time.Time {
	if m == 0 {
		return time.Time{}
	}
	return t.start.Add(m.sinceTrigger())
}

// silence returns the time since m, or since the trigger if that is later.
func (t *Tracker) silence(m moment) time.Duration { return time.Duration(t.now - max(m, trigger)) }

func (t *Tracker) silentSince(at moment) bool { return t.silence(at) >= t.cfg.QuietFor }

// recent reports whether something since the trigger happened less than QuietFor ago.
func (t *Tracker) recent(at moment) bool { return at > trigger && !t.silentSince(at) }

// tally is what a sample found.
type tally struct {
	activity           // of open connections
	counted   activity // the same, without the bytes of probes that are left out
	listeners int

	open         int        // established
	lasting      int        // of open, with a peer that answers: Drained waits
	lastingPeer  netip.Addr // of any of lasting
	halfOpen     int        // in SYN_RECV
	bare         int        // new, and nothing received
	gone         int        // the peer no longer answers
	inUse        int        // a byte moved less than QuietFor ago
	unsent       bool       // a peer has not acknowledged all bytes
	bytesUnknown bool       // a response may have been sent: the source shows no bytes
	withoutInfo  bool       // a connection is open whose bytes the source does not show

	inFlight int   // requests that hold
	slow     int   // of inFlight, certainly not answered, and silent for slowAfter
	served   int   // of inFlight, of which the program may have read a part
	atRisk   int   // requests that a signal might cut
	givenUp  int   // requests silent for MaxSilence
	unread   bool  // bytes wait to be read by the program
	oldest   *conn // of inFlight, the one silent longest
}

// New returns the tracker of a hold that begins at start.
func New(cfg Config, start time.Time) *Tracker {
	return &Tracker{cfg: cfg, start: start, firstSample: 1, conns: map[uint64]*conn{}, probes: probes{},
		queues: queues{accepted: map[uint16]bool{}}, usual: Usual{PureACKs: 1}}
}

// Begin begins a sample.
func (t *Tracker) Begin(now time.Time) {
	previous := t.now
	t.now = t.moment(now)
	t.interval = time.Duration(t.now - previous)
	if t.interval > stuckAfter/2 { // lameduck itself was stopped, and perhaps the program too
		t.queues.progressAt = t.now
	}
	t.current = tally{}
	t.sampleNo++
	t.queues.begin()
}

// Observe adds a socket to the sample. The caller may reuse s afterwards.
func (t *Tracker) Observe(s *tcp.Socket) {
	switch {
	case t.cfg.ignores(s):
	case s.State == tcp.Listen:
		t.current.listeners++
		t.queues.add(s)
	case s.State == tcp.SynRecv, s.State == tcp.NewSynRecv:
		t.current.halfOpen++
		if s.Retries == 0 {
			t.current.atRisk++
		}
	case s.State == tcp.TimeWait, s.State == tcp.Close, s.State == tcp.SynSent, isRemnant(s):
	default:
		t.observe(s)
	}
}

// isRemnant reports whether a socket is what the kernel keeps of a closed connection until
// the peer closes too. sock_diag(7) shows no tcp_info of such sockets.
func isRemnant(s *tcp.Socket) bool {
	return s.State == tcp.FinWait2 && s.Cookie != 0 && !s.HasInfo
}

// observe adds a connection to the sample.
func (t *Tracker) observe(s *tcp.Socket) {
	id := identity(s)
	c, known := t.conns[id]
	afterTrigger := t.sampleNo > t.firstSample
	if !known {
		c = &conn{isNew: afterTrigger}
		t.conns[id] = c
		if afterTrigger {
			t.arrivals.add(t.now.sinceTrigger())
		}
		if !receivedNothing(s) {
			c.rhythm.last.at = t.now - moment(s.Info.LastReceived)
		}
	}
	before := c.activity
	wasAccepted := c.accepted
	if c.inFlight && c.request == InFlight {
		c.rhythm.waits += t.interval
	}
	m := c.update(s, t.now, known)
	t.noteOpened(c, t.now, !receivedNothing(s))
	if known {
		c.rhythm.add(s, &m, t.now, before, c.inFlight)
		c.waited = c.waited && m.received == 0 // else the next request has come
	}
	c.sample = t.sampleNo
	c.missedAt = 0
	t.queues.note(s, c.accepted)
	t.usual.learn(s)
	if c.accepted && !wasAccepted && afterTrigger || known && m.served() {
		t.queues.madeProgress = true
	}
	t.count(c, s)
	t.countRequest(c, s)
	t.noteActivity(c)
}

// noteOpened notes the first bytes of a new connection.
func (t *Tracker) noteOpened(c *conn, at moment, received bool) {
	if !c.isNew || c.opened != 0 || !received {
		return
	}
	c.opened = at
	if found := t.probes.of(c); found == nil || !found.steady || t.cfg.Probes == CountProbes {
		t.arrivals.note(at, t.cfg.QuietFor)
	}
}

// count adds an open connection to the tally.
func (t *Tracker) count(c *conn, s *tcp.Socket) {
	y := &t.current
	y.activity.add(c.activity)
	counted := c.activity
	if t.leavesOut(c) {
		counted = c.rhythm.first.before
	}
	y.counted.add(counted)
	if t.recent(counted.moved) {
		y.inUse++
	}
	gone := peerGone(s)
	if s.State == tcp.Established {
		y.open++
		if !gone {
			y.lasting++
			y.lastingPeer = c.peer
		}
	}
	if gone {
		y.gone++
	}
	if c.isNew && receivedNothing(s) {
		y.bare++
	}
	y.unsent = y.unsent || s.Unsent > 0 && !gone
	y.bytesUnknown = y.bytesUnknown || c.accepted && !s.HasInfo
	y.withoutInfo = y.withoutInfo || !s.HasInfo && mayReceive(s)
}

// maxTie is how long a tie in ping-pong mode holds after the last byte, or for three times
// QuietFor. Such a request has probably been answered. After 2 s slow requests were cut.
const maxTie = 12 * time.Second

// isOver reports whether a tie whose last byte moved at since no longer holds.
func (t *Tracker) isOver(since moment) bool {
	return time.Duration(t.now-since) >= min(max(maxTie, 3*t.cfg.QuietFor), t.cfg.MaxSilence)
}

// slowAfter is the silence of a request that outlasts a search for a lull.
const slowAfter = time.Second

// countRequest adds the request on a connection to the tally. Silence counts from the
// trigger, lest a slow request be cut for what it did before. A tie is given no such time.
func (t *Tracker) countRequest(c *conn, s *tcp.Socket) {
	y := &t.current
	state := c.judge(s, t.usual)
	if state == Tie && (t.leavesOut(c) || s.Info.PingPong && t.isOver(c.since)) {
		state = Idle
		c.request = Idle
	}
	c.inFlight = state != Idle
	c.waited = c.waited || state == InFlight && t.silentSince(c.moved)
	y.unread = y.unread || s.Unread > 0
	givenUp := t.silence(c.moved) >= t.cfg.MaxSilence
	switch {
	case state == Idle:
	case givenUp:
		y.givenUp++
	default:
		if y.oldest == nil || c.moved < y.oldest.moved {
			y.oldest = c
		}
		y.inFlight++
		if s.Unread == 0 || c.partlyRead(s) {
			y.served++
		}
		since := c.moved
		if c.request == InFlight && s.Unread == 0 && s.Unsent == 0 {
			since = c.since
		}
		if state == InFlight && t.silence(since) >= slowAfter {
			y.slow++
		}
	}
	if !givenUp && t.atRisk(s, state) {
		y.atRisk++
	}
}

// requestDelay is how long after its handshake a client may take to send a request.
const requestDelay = 100 * time.Millisecond

// atRisk reports whether a signal now would cut a request on a connection, by the state of the
// last request. In contrast to a request in flight, a response that was sent and not
// acknowledged is not at risk, since the kernel delivers the response after the program's
// end. A client that has just connected is about to send a request.
func (t *Tracker) atRisk(s *tcp.Socket, state RequestState) bool {
	switch {
	case !s.HasInfo || peerGone(s):
		return false
	case s.Unread > 0 || s.Info.NotSent > 0 && mayReceive(s):
		return true
	case receivedNothing(s):
		return mayReceive(s) && s.Info.LastReceived < requestDelay
	case s.Unsent > 0:
		delivered := *s
		delivered.Unsent = 0
		state = Classify(&delivered, t.usual)
	}
	return state == InFlight
}
