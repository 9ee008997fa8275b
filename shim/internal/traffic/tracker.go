package traffic

import (
	"net/netip"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/ledger"
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
	CloseIdle   bool        // kept connections are closed while they are idle: see package letgo
	Goaway      []uint16    // the local ports on whose connections GOAWAY is sent
}

// ProbeRule says when traffic that looks like a health probe is left out.
type ProbeRule uint8

// The rules.
const (
	IgnoreProbesPatiently ProbeRule = iota // when all other traffic has been silent for QuietFor
	IgnoreProbes                           // at once: two equal gaps are enough
	CountProbes                            // never
)

// Ledger returns the configuration of the ledger whose samples are judged.
func (c *Config) Ledger(start time.Time) ledger.Config {
	return ledger.Config{
		Start: start, IgnorePorts: c.IgnorePorts, IgnorePeers: c.IgnorePeers,
		Late: c.Poll, MaxTie: min(max(maxTie, 2*c.QuietFor), c.MaxSilence),
	}
}

// maxTie is how long a tie in ping-pong mode holds after the last byte, or for twice QuietFor.
// Such a request has probably been answered. After 2 s slow requests were cut, and readiness
// probes that come through a proxy may make a new tie each 10 s.
const maxTie = 9 * time.Second

// Tracker judges samples, one after the other.
type Tracker struct {
	cfg    Config         // Probes is CountProbes once too many probes have come
	sample *ledger.Sample // the current
	draft  draft          // of the verdict on it
	latest Sample         // the verdict on the latest, without what Tracker.Sample adds

	// What was counted since the trigger, by addConn, and by addUnseen what no sample shows.
	arrivals arrivals
	bare     int    // closed connections on which no byte was received
	streamed moment // the latest sample with a response that streams

	// Connections that have closed, by forget, or were never shown, by addUnseen.
	closed activity            // without the next two
	shut   moment              // when a byte moved last on those that were shut
	probes map[Pattern]*series // those that may be health probes, by key

	// The cause, by noteActivity.
	active  Cause        // the latest activity that counts, possible health probes aside
	newest  *ledger.Conn // of active, if that is NewConnections
	probing Cause        // the latest of a possible health probe

	// The program, by addConn; its queues also by longestQueue and addUnseen, its progress by Judge and finish.
	accepted   map[uint16]bool // the ports of which it has accepted a connection
	queued     netip.Addr      // the peer of a connection that waited to be accepted
	queuedAt   moment          // when connections last waited to be accepted, or may have
	progressAt moment          // when it last made progress, or had no need to

	turnedAwayFrom moment // when clients first came to a full accept queue, of those who may come back
	turnedAwayAt   moment // when they last did
}

// moment is a time since long before the trigger.
type moment = ledger.Moment

const trigger = ledger.Trigger

type activity = ledger.Activity

// both returns the activity of a connection that is not known: it came, or a byte moved on it.
func both(at moment) activity { return activity{Opened: at, Moved: at} }

// silence returns the time since m, or since the trigger if that is later.
func (t *Tracker) silence(m moment) time.Duration { return t.sample.Now - max(m, trigger) }

func (t *Tracker) silentSince(at moment) bool { return t.silence(at) >= t.cfg.QuietFor }

// recent reports whether something since the trigger happened less than QuietFor ago.
func (t *Tracker) recent(at moment) bool { return at > trigger && !t.silentSince(at) }

// New returns a Tracker.
func New(cfg Config) *Tracker {
	return &Tracker{
		cfg: cfg, sample: &ledger.Sample{}, latest: Sample{Verdict: Verdict{Incomplete: true}},
		probes: map[Pattern]*series{}, accepted: map[uint16]bool{},
	}
}

// stuckAfter is how long connections may wait to be accepted, or requests to be read,
// without any progress of the program.
const stuckAfter = 10 * time.Second

// Judge judges a sample. On connections that were shut no byte must have moved for shutSilence.
// The sample is read until the next call.
func (t *Tracker) Judge(sample *ledger.Sample, shutSilence time.Duration) {
	if sample.Now-sample.Previous > stuckAfter/2 { // lameduck itself was stopped, and perhaps the program too
		t.progressAt = sample.Now
	}
	t.sample = sample
	t.draft = draft{Sample: Sample{Verdict: Verdict{NoSockets: true}}, lasting: Cause{Kind: OpenConnections}}
	for i := range sample.Others {
		t.addOther(&sample.Others[i])
	}
	for _, c := range sample.Conns {
		if c.Side == ledger.Clients {
			t.addConn(c)
		}
	}
	t.addUnseen()
	if sample.Incomplete {
		t.latest.Verdict = Verdict{Incomplete: true}
	} else {
		t.finish(shutSilence)
	}
	t.latest.Accepted = t.arrivals.accepted
	t.latest.More = t.latest.More || !sample.MissedAt.IsZero()
}

// addOther adds a socket that is no connection.
func (t *Tracker) addOther(s *ledger.Other) {
	y := &t.draft
	switch {
	case s.Side != ledger.Clients:
	case s.State == tcp.Listen:
		y.NoSockets = false
		y.wanted += int(s.Unread)
	case s.State == tcp.SynRecv, s.State == tcp.NewSynRecv:
		y.LeftOut.HalfOpen++
		if s.Retries == 0 {
			y.AtRisk++
		}
	}
}

// addConn adds a connection. The program has made progress if it has read or sent a byte.
func (t *Tracker) addConn(c *ledger.Conn) {
	now := t.sample.Now
	if c.Served {
		t.progressAt = now
	}
	switch c.Fate {
	case ledger.Shown:
		t.countNew(c, now)
		t.count(c)
		t.countRequest(c)
		t.noteActivity(c)
	case ledger.Closed:
		t.countNew(c, c.Ended)
		t.addClosed(c)
	case ledger.Missing: // that may be activity
		t.draft.addConn(c, activity{Opened: c.Opened, Moved: now})
	case ledger.Lost:
		t.countNew(c, now)
		t.forget(c, c.Opened)
		t.progressAt = now // perhaps
	}
}

// countNew counts a connection that has come, and notes its first bytes.
func (t *Tracker) countNew(c *ledger.Conn, at moment) {
	a := &t.arrivals
	if c.First && c.New {
		a.shown++
		a.count(at-trigger, a.shown)
	}
	if c.Opened == 0 || c.Before.Opened != 0 {
		return
	}
	if found := t.seriesOf(c); found != nil && found.steady && t.cfg.Probes != CountProbes {
		return
	}
	if c.Opened-a.latest < t.cfg.QuietFor {
		a.crowded = max(a.crowded, c.Opened)
	}
	a.latest = max(a.latest, c.Opened)
}

// addClosed adds a connection whose end an event has reported.
func (t *Tracker) addClosed(c *ledger.Conn) {
	if c.Info.Sent > 0 {
		t.accepted[c.Local.Port()] = true
	}
	if c.New && c.Opened == 0 {
		t.bare++
	}
	came := c.Ended
	if !c.Unseen {
		came -= c.Info.LastReceived
	}
	t.forget(c, came)
}

// forget keeps only the activity of a closed connection. One that may be a health probe joins
// the series of its key; came is when the last byte was received.
func (t *Tracker) forget(c *ledger.Conn, came moment) {
	t.noteActivity(c)
	switch {
	case c.Shut || c.Notified:
		t.closed.Add(activity{Opened: c.Opened})
		t.shut = max(t.shut, c.Moved)
	case c.Opened == 0 || t.sample.Now-c.Opened > maxProbeAge || c.Received > maxProbeBytes:
		t.closed.Add(c.Activity)
	default:
		t.addToSeries(c, came)
	}
}

// finish makes the verdict that of the latest complete sample. After an incomplete sample the
// program may have made progress. What clients do is no progress.
func (t *Tracker) finish(shutSilence time.Duration) {
	y := &t.draft
	waiting := t.longestQueue()
	if waiting.Connections == 0 && !y.unread || y.bytesUnknown || t.latest.Incomplete {
		t.progressAt = t.sample.Now
	}
	now := t.sample.Now
	if t.sample.TurnedAway && t.recent(t.queuedAt) { // else by the queue of another program
		if now >= t.comeBackUntil() {
			t.turnedAwayFrom = now
		}
		t.turnedAwayAt = now
	}
	if waiting.Connections == 0 && now < t.comeBackUntil() {
		waiting = Cause{Kind: AcceptQueue, Peer: t.queued, Connections: 1}
	}
	others := t.addSeries()
	t.conclude(y, others.Opened, shutSilence)
	y.LastNew = t.sample.Time(y.Opened)
	y.LastByte = t.sample.Time(y.Moved)
	y.LastOther = t.sample.Time(others.Opened)
	y.LastUse = t.sample.Time(others.Moved)
	y.Cause = t.cause(waiting)
	t.recognize(&y.Cause)
	y.More = t.latest.More
	y.LeftOut.HalfOpen = max(y.LeftOut.HalfOpen, t.latest.LeftOut.HalfOpen)
	y.LeftOut.Bare += t.bare
	t.latest = y.Sample
}

// longestQueue returns the longest accept queue in which connections wait for the program, without
// any if no connection waits. A connection to a port that the program never accepts from does not
// wait, unless the connection has sent something or is not shown.
func (t *Tracker) longestQueue() (longest Cause) {
	for i := range t.sample.Others {
		s := &t.sample.Others[i]
		n := int(s.Unread)
		isQueue := s.Side == ledger.Clients && s.State == tcp.Listen
		port := s.Local.Port()
		if isQueue && n > longest.Connections && (t.accepted[port] || t.draft.wanted > 0) {
			longest = Cause{Kind: AcceptQueue, Peer: t.queued, Port: port, Connections: n}
			t.queuedAt = t.sample.Now
		}
	}
	return longest
}

// secondTry is how long after its first try a client tries again at the latest: TCP_TIMEOUT_FALLBACK in
// include/net/tcp.h.
const secondTry = 3 * time.Second

// comeBackUntil returns until when the clients that were turned away try again: each doubles the time
// between two tries. Of most of them no socket is left.
func (t *Tracker) comeBackUntil() moment {
	return t.turnedAwayAt + (t.turnedAwayAt - t.turnedAwayFrom) + secondTry
}

// addUnseen adds connections and bytes that the kernel has counted and no sample shows.
func (t *Tracker) addUnseen() {
	a := &t.arrivals
	rest := &t.sample.Rest
	now := t.sample.Now
	if t.sample.NewSource { // connections may have come between the last sample of the former source and now
		t.queuedAt = now
	}
	if !rest.MissedAt.IsZero() {
		t.markActive(t.sample.Moment(rest.MissedAt))
	}
	if rest.Opened > a.accepted-t.latest.Accepted { // until the event tells more
		t.draft.Add(both(now))
	}
	if rest.Accepted > 0 {
		t.markActive(now)
		a.count(now-trigger, rest.Accepted)
	}
	if rest.Segments && t.draft.bytesUnknown { // any segment may have carried bytes of an open connection
		t.closed.Add(activity{Moved: now})
	}
}

// markActive notes activity whose connection is not known yet.
func (t *Tracker) markActive(at moment) {
	t.closed.Add(both(at))
	t.arrivals.crowded = max(t.arrivals.crowded, at)
}
