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
	cfg Config
	clock
	samples
	conns    table    // the open connections
	closed   activity // of closed connections, and of connections never shown
	probes   probes   // closed connections that may be health probes, left out of closed
	arrivals arrivals
	queues   queues
	progress progress
	causes   causes

	usual         Usual
	tooManyProbes bool // see countProbes
}

// samples are the current and the previous sample.
type samples struct {
	sample      tally  // of the current sample so far
	lastSample  tally  // of the latest complete sample
	complete    bool   // the latest sample was complete
	sourceEnded moment // the former source: connections that came shortly before are not known to be new
}

// clock is the time and the number of the current sample.
type clock struct {
	start       time.Time     // the trigger: silence counts from here
	now         moment        // of the current sample
	interval    time.Duration // since the previous sample
	sampleNo    uint32
	firstSample uint32 // the sample whose connections are older than the trigger
}

// moment returns a time as a moment.
func (c *clock) moment(at time.Time) moment { return trigger + moment(at.Sub(c.start)) }

// time returns a moment as a time, zero for never.
func (c *clock) time(m moment) time.Time {
	if m == 0 {
		return time.Time{}
	}
	return c.start.Add(m.sinceTrigger())
}

// silence returns the time since m, or since the trigger if that is later.
func (c *clock) silence(m moment) time.Duration { return time.Duration(c.now - max(m, trigger)) }

// tally is what a sample found.
type tally struct {
	activity           // of open connections
	counted   activity // the same, without the beats of probes that are left out
	listeners int
	connTally
	requestTally
}

// connTally counts connections.
type connTally struct {
	open         int        // established
	lasting      int        // of open, with a peer that answers: Drained waits
	lastingPeer  netip.Addr // of any of lasting
	halfOpen     int        // in SYN_RECV
	bare         int        // new, and nothing received
	gone         int        // the peer no longer answers
	unsent       bool       // a peer has not acknowledged all bytes
	bytesUnknown bool       // a response may have been sent: the source shows no bytes
	withoutInfo  bool       // a connection is open whose bytes the source does not show
}

// requestTally counts requests.
type requestTally struct {
	inFlight    int    // that hold
	slow        int    // requests certainly not answered, and silent for slowAfter
	atRisk      int    // that a signal might cut
	unclear     int    // requests of atRisk that have probably been answered
	served      int    // of inFlight, of which the program may have read a part
	givenUp     int    // silent for MaxSilence
	certain     bool   // one of inFlight has certainly not been answered
	unread      bool   // bytes wait to be read by the program
	oldest      holder // of inFlight, the one silent longest
	oldestGiven holder // of givenUp, likewise
}

// holder is a connection that holds.
type holder struct {
	peer       netip.Addr
	port       uint16
	moved      moment
	unanswered bool
}

// compare makes c the holder if c has been silent for longer, or there are no others.
func (h *holder) compare(c *conn, others int) {
	if others == 0 || c.moved < h.moved {
		*h = holder{c.socket.peer, c.socket.port, c.moved, c.unanswered()}
	}
}

// New returns the tracker of a hold that begins at start.
func New(cfg Config, start time.Time) *Tracker {
	return &Tracker{cfg: cfg, clock: clock{start: start, firstSample: 1}, conns: newTable(), probes: probes{},
		queues: queues{accepted: map[uint16]bool{}}, usual: Usual{PureACKs: 1}}
}

// Begin begins a sample.
func (t *Tracker) Begin(now time.Time) {
	previous := t.now
	t.now = t.moment(now)
	t.interval = time.Duration(t.now - previous)
	if t.interval > stuckAfter/2 { // lameduck itself was stopped, and perhaps the program too
		t.progress.at = t.now
	}
	t.sample = tally{}
	t.sampleNo++
	t.conns.rewind()
	t.queues.rewind()
}

// Observe adds a socket to the sample. The caller may reuse s afterwards.
func (t *Tracker) Observe(s *tcp.Socket) {
	switch {
	case t.cfg.ignores(s):
	case s.State == tcp.Listen:
		t.sample.listeners++
		t.queues.add(s)
	case s.State == tcp.SynRecv, s.State == tcp.NewSynRecv:
		t.sample.halfOpen++
		if s.Retries == 0 {
			t.sample.atRisk++
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
	c, known := t.conns.visit(identity(s))
	afterTrigger := t.sampleNo > t.firstSample
	if !known {
		c.course.begin(s, t.now)
		if afterTrigger {
			c.isNew = true
			t.arrivals.add(t.now.sinceTrigger())
		}
	}
	if c.inFlight {
		c.course.waits += t.interval
	}
	before := c.activity
	wasAccepted := c.accepted
	m := c.update(s, t.now, known)
	c.turn.add(&m, s, t.usual, t.interval, time.Duration(c.moved-before.moved), time.Duration(t.now-c.moved))
	if known {
		c.course.add(s, &m, t.now, before, c.inFlight)
		c.waited = c.waited && m.received == 0 // else the next request has come
	}
	c.sample = t.sampleNo
	c.missedAt = 0
	t.queues.note(s, c.accepted)
	t.usual.learn(s)
	if c.accepted && !wasAccepted && afterTrigger || known && m.served() {
		t.progress.made = true
	}
	t.count(c, s)
	t.countRequest(c, s)
	t.noteActivity(c)
}

// count adds an open connection to the tally.
func (t *Tracker) count(c *conn, s *tcp.Socket) {
	y := &t.sample
	counted := c.activity
	if t.leavesOut(c) {
		counted = c.course.beat.first.before
	}
	y.activity.add(c.activity)
	y.counted.add(counted)
	gone := peerGone(s)
	if s.State == tcp.Established {
		y.open++
		if !gone {
			y.lasting++
			y.lastingPeer = c.socket.peer
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

// maxTie is how long a request holds that may have been answered: the kernel's counters do
// not tell. In the laboratory nothing is lost after so long, and slow requests are cut after
// 2 s.
const maxTie = 12 * time.Second

// maxTie returns for how long a request holds, after the last byte, that may have been
// answered.
func (t *Tracker) maxTie() time.Duration {
	return min(max(maxTie, 3*t.cfg.QuietFor), t.cfg.MaxSilence)
}

// countRequest adds the request on a connection to the tally. Silence counts from the
// trigger, lest a slow request be cut for what it did before. A request that may have been
// answered is given no such time.
func (t *Tracker) countRequest(c *conn, s *tcp.Socket) {
	y := &t.sample
	state := c.course.judge(s, &c.socket, c.moved, t.usual)
	if state == Undetermined && time.Duration(t.now-c.course.since) >= t.maxTie() {
		state = Idle
	}
	c.inFlight = state != Idle
	c.waited = c.waited || state == InFlight && t.silentSince(c.moved)
	y.unread = y.unread || s.Unread > 0
	switch {
	case state == Idle:
	case t.silence(c.moved) >= t.cfg.MaxSilence:
		y.oldestGiven.compare(c, y.givenUp)
		y.givenUp++
	default:
		y.oldest.compare(c, y.inFlight)
		y.inFlight++
		y.certain = y.certain || state == InFlight
		if s.Unread == 0 || c.course.partlyRead(s) {
			y.served++
		}
		if state == InFlight && t.silence(c.requestMoved(s)) >= slowAfter {
			y.slow++
		}
	}
	switch t.risk(c, s, state) {
	case InFlight:
		y.atRisk++
	case Undetermined:
		y.atRisk++
		y.unclear++
	}
}
