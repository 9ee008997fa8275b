package traffic

import (
	"net/netip"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/stop"
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
	Until       stop.Reason // the condition of the hold, for Sample.Cause; "": as stop.Quiet
	CloseIdle   bool        // kept connections are closed while they are idle: see Tracker.Conns
}

// ProbeRule says when traffic that looks like a health probe is left out.
type ProbeRule uint8

// The rules.
const (
	IgnoreProbesPatiently ProbeRule = iota // when all other traffic has been silent for QuietFor
	IgnoreProbes                           // at once: two equal gaps are enough
	CountProbes                            // never
)

// Ignores reports whether a socket does not count. A listener has no peer.
func (c *Config) Ignores(s *tcp.Socket) bool {
	if slices.Contains(c.IgnorePorts, s.Local.Port()) {
		return true
	}
	from := func(p netip.Prefix) bool { return p.Contains(s.Remote.Addr()) }
	return s.State != tcp.Listen && slices.ContainsFunc(c.IgnorePeers, from)
}

// Tracker follows connections from sample to sample. A sample is a call of Begin, a call
// of Observe for each socket, and a call of End; then Tracker.Sample returns the sample. A
// sample allocates no memory for connections already known.
type Tracker struct {
	// ShutSilence is how long no byte must have moved on connections of NoteShut.
	ShutSilence time.Duration

	cfg      Config
	start    time.Time // the trigger: silence counts from here
	now      moment    // of the current sample
	baseline bool      // the connections of the current sample are older than the trigger, or not known to be new

	current draft
	latest  Sample // without what Tracker.Sample adds

	conns    map[uint64]*conn    // the open connections, by identity
	shown    []Conn              // in the current sample
	closed   activity            // of closed connections, and of connections never shown
	shut     moment              // when a byte moved last on closed connections that were shut
	probes   map[Pattern]*series // closed connections that may be health probes, left out of closed, by [conn.key]
	rule     ProbeRule           // Config.Probes, until too many probes come
	arrivals arrivals
	accepted map[uint16]bool // the ports of which the program has accepted a connection
	usual    Usual
	active   Cause // the latest activity that counts, possible health probes aside
	newest   *conn // of active, if that is NewConnections
	probing  Cause // the latest of a possible health probe
	bare     int   // closed connections on which no byte was received

	queued     netip.Addr // the peer of a connection that waited to be accepted
	queuedAt   moment     // when connections last waited to be accepted, or may have
	progressAt moment     // when the program last made progress, or had no need to
}

// moment returns a time as a moment.
func (t *Tracker) moment(at time.Time) moment { return trigger + at.Sub(t.start) }

// time returns a moment as a time, zero for never.
func (t *Tracker) time(m moment) time.Time {
	if m == 0 {
		return time.Time{}
	}
	return t.start.Add(m - trigger)
}

// silence returns the time since m, or since the trigger if that is later.
func (t *Tracker) silence(m moment) time.Duration { return t.now - max(m, trigger) }

func (t *Tracker) silentSince(at moment) bool { return t.silence(at) >= t.cfg.QuietFor }

// recent reports whether something since the trigger happened less than QuietFor ago.
func (t *Tracker) recent(at moment) bool { return at > trigger && !t.silentSince(at) }

// New returns the tracker of a hold that begins at start.
func New(cfg Config, start time.Time) *Tracker {
	return &Tracker{
		ShutSilence: cfg.QuietFor, cfg: cfg, rule: cfg.Probes, start: start, baseline: true,
		conns: map[uint64]*conn{}, probes: map[Pattern]*series{},
		accepted: map[uint16]bool{}, usual: Usual{PureACKs: 1}, latest: Sample{Verdict: Verdict{Incomplete: true}},
	}
}

// Begin begins a sample.
func (t *Tracker) Begin(now time.Time) {
	previous := t.now
	t.now = t.moment(now)
	if t.now-previous > stuckAfter/2 { // lameduck itself was stopped, and perhaps the program too
		t.progressAt = t.now
	}
	t.shown = t.shown[:0]
	t.current = draft{Sample: Sample{Verdict: Verdict{NoSockets: true}}, lasting: Cause{Kind: OpenConnections}}
}

// Observe adds a socket to the sample. The caller may reuse s afterwards.
func (t *Tracker) Observe(s *tcp.Socket) {
	switch {
	case t.cfg.Ignores(s):
	case s.State == tcp.Listen:
		t.current.NoSockets = false
		t.addQueue(s)
	case s.State == tcp.SynRecv, s.State == tcp.NewSynRecv:
		t.current.LeftOut.HalfOpen++
		if s.Retries == 0 {
			t.current.AtRisk++
		}
	case s.State == tcp.Close, s.State == tcp.SynSent:
	case s.State == tcp.TimeWait, s.State == tcp.FinWait2 && s.Cookie != 0 && !s.HasInfo:
		// What the kernel keeps of a closed connection until the peer closes too, see sock_diag(7).
		t.show(s, &conn{}, false, Idle)
	default:
		t.observe(s)
	}
}

// Rest is the part of a sample that the list of sockets does not show.
type Rest struct {
	Incomplete bool // the list of sockets could not be read to its end: no condition holds
	NewSource  bool // the next sample comes from another source, which may identify connections differently

	Closed   []Closed  // connections closed since the previous sample; End only reads the slice
	MissedAt time.Time // the latest time at which connections may have been missed: activity; zero: never
	Opened   int       // connections accepted since the previous sample, events of which will come; 0: unknown
	Accepted int       // connections the kernel accepted since the start, if new; 0: unknown, or as before
	Segments bool      // TCP segments have arrived in the network namespace since the previous sample
}

// Closed is a closed connection as the kernel last knew the socket. Many connections are
// so short that no sample shows them.
type Closed struct {
	Socket tcp.Socket
	At     time.Time // when the event was read
}

// End ends a sample.
func (t *Tracker) End(rest Rest) {
	for i := range rest.Closed {
		t.addClosed(&rest.Closed[i])
	}
	t.addUnseen(&rest)
	t.baseline = rest.NewSource || t.baseline && rest.Incomplete
	if rest.Incomplete {
		t.latest.Verdict = Verdict{Incomplete: true}
	} else {
		t.finish()
	}
	t.latest.Accepted = t.arrivals.accepted
	t.latest.More = t.latest.More || !rest.MissedAt.IsZero()
}

// finish makes the current sample the latest complete one. After an incomplete sample the
// program may have made progress. What clients do is no progress.
func (t *Tracker) finish() {
	y := &t.current
	t.dropMissing()
	waiting := t.longestQueue()
	if waiting.Connections == 0 && !y.unread || y.bytesUnknown || t.latest.Incomplete {
		t.progressAt = t.now
	}
	t.addSeries()
	t.conclude(y)
	y.LastNew = t.time(y.opened)
	y.LastByte = t.time(y.moved)
	y.Cause = t.cause(waiting)
	t.recognize(&y.Cause)
	y.More = t.latest.More
	y.LeftOut.HalfOpen = max(y.LeftOut.HalfOpen, t.latest.LeftOut.HalfOpen)
	y.LeftOut.Bare += t.bare
	t.latest = y.Sample
}

// addUnseen adds connections and bytes that the kernel has counted and no sample shows.
func (t *Tracker) addUnseen(rest *Rest) {
	a := &t.arrivals
	if rest.NewSource { // connections may have come between the last sample of the former source and now
		t.queuedAt = t.now
	}
	if !rest.MissedAt.IsZero() {
		t.markActive(t.moment(rest.MissedAt))
	}
	if rest.Opened > a.accepted-t.latest.Accepted { // until the event tells more
		t.current.add(activity{t.now, t.now})
	}
	if rest.Accepted > 0 {
		t.markActive(t.now)
		a.count(t.now-trigger, rest.Accepted)
	}
	if rest.Segments && t.current.bytesUnknown { // any segment may have carried bytes of an open connection
		t.closed.add(activity{moved: t.now})
	}
}

// markActive notes activity whose connection is not known yet.
func (t *Tracker) markActive(at moment) {
	t.closed.add(activity{at, at})
	t.arrivals.crowded = max(t.arrivals.crowded, at)
}
