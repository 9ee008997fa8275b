// Package traffic judges, from what the kernel tells of connections, whether
// traffic has stopped. It is pure: it has no clock and knows no system. Who looks
// tells it what there is, one socket at a time, and asks for the verdict.
package traffic

import (
	"net/netip"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// Config is how to judge.
type Config struct {
	QuietFor     time.Duration // how long silence must last
	MaxSilence   time.Duration // without a byte for this long, nothing is in flight
	Poll         time.Duration // how far apart looks are
	IgnorePorts  []uint16      // local ones
	IgnorePeers  []netip.Prefix
	IgnoreProbes bool // leave out what looks like health probes
}

// hung is how long nothing may move while connections wait to be accepted.
const hung = 10 * time.Second

// Judge is told of connections, and says whether there is traffic. In one look,
// See is called for each socket between Look and Done. For a connection that was
// there at the last look nothing is allocated.
type Judge struct {
	cfg   Config
	start time.Time // silence counts from here
	looks uint32
	first uint32    // the look that finds what was there before
	now   time.Time // of this look
	look  tally     // what it has found so far
	conns table
	beats map[shape]*beat

	judged    bool      // there was a whole look, and none was lost since
	last      tally     // what that one found
	activity  activity  // of what is closed, but for what may be a probe
	stuck     time.Time // since when nobody is served though somebody waits
	answered  bool      // something was answered since the last look, and is gone
	accepted  int
	lost      bool // there may have been more
	perSecond []int
	latest    conn // the last to be active, of those that are no probes
}

// activity is when a connection last came, and when a byte last moved.
type activity struct{ opened, moved time.Time }

func (a *activity) add(b activity) {
	a.opened, a.moved = later(a.opened, b.opened), later(a.moved, b.moved)
}

func (a *activity) last() time.Time { return later(a.opened, a.moved) }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// tally is what one look finds.
type tally struct {
	activity    // of what is open
	listeners   int
	queued      int  // not yet accepted by the program
	open        int  // established, or about to be
	inFlight    int  // requests that hold
	givenUp     int  // and those that have been silent for too long
	unsent      bool // there are bytes that a peer has not acknowledged
	progress    bool // the program has accepted something
	untold      bool // it may be talking to somebody: bytes are not told of
	handshaking bool
}

// conn is an open connection, as the last look saw it.
type conn struct {
	activity // opened is zero where it was there before the first look
	look     uint32
	port     uint16
	peer     netip.Addr
	received uint64
	queues   [2]uint32
	accepted bool
	missed   time.Time // by the first look that did not see it any more
}

// New is the judge of a hold that begins at start.
func New(cfg Config, start time.Time) *Judge {
	return &Judge{cfg: cfg, start: start, first: 1, conns: newTable(), beats: map[shape]*beat{}}
}

// Look begins a look.
func (j *Judge) Look(now time.Time) {
	if now.Sub(j.now) > hung/2 { // whoever looks was stopped itself
		j.stuck = now
	}
	j.now, j.look = now, tally{}
	j.looks++
	j.conns.rewind()
}

// Anew is told that somebody else looks from now on, who may know connections by
// other names: what the next look finds was there before.
func (j *Judge) Anew() { j.first = j.looks + 1 }

// See is told of a socket that counts, which the caller may use again.
func (j *Judge) See(s *tcp.Socket) {
	switch {
	case j.ignored(s):
	case s.State == tcp.Listen:
		j.look.listeners++
		j.look.queued += int(s.Unread)
	case s.State == tcp.SynRecv, s.State == tcp.NewSynRecv:
		j.look.handshaking = true
	case s.State == tcp.TimeWait, s.State == tcp.Close, s.State == tcp.SynSent:
	default:
		j.see(s)
	}
}

func (j *Judge) ignored(s *tcp.Socket) bool {
	return slices.Contains(j.cfg.IgnorePorts, s.Local.Port()) ||
		s.State != tcp.Listen && slices.ContainsFunc(j.cfg.IgnorePeers, func(p netip.Prefix) bool { return p.Contains(s.Remote.Addr()) })
}

func (j *Judge) see(s *tcp.Socket) {
	c, known := j.conns.see(identity(s))
	if !known && j.looks > j.first {
		c.opened = j.now
		j.count(j.now)
	}
	wasAccepted := c.accepted
	c.update(s, j.now, known)
	c.look, c.missed = j.looks, time.Time{}

	t := &j.look
	t.add(c.activity)
	j.note(c)
	t.unsent = t.unsent || s.Unsent > 0
	t.progress = t.progress || c.accepted && !wasAccepted && j.looks > j.first
	t.untold = t.untold || c.accepted && !s.Timed
	if s.State == tcp.Established {
		t.open++
	}
	switch {
	case !InFlight(s):
	case j.now.Sub(c.moved) >= j.cfg.MaxSilence:
		t.givenUp++
	default:
		t.inFlight++
	}
}

// update is what is new of a connection. The kernel tells when bytes moved; where
// it does not, a queue that has changed has moved just now. So may a connection have
// that the program has reset: the kernel forgets all but the peer's address.
func (c *conn) update(s *tcp.Socket, now time.Time, known bool) {
	queues := [2]uint32{s.Unread, s.Unsent}
	switch {
	case s.Remote.Port() == 0: // reset
		c.moved = now
	case s.Timed:
		c.moved = later(c.moved, moved(s, now))
	case !known || queues != c.queues:
		c.moved = now
	}
	c.port, c.peer, c.received, c.queues = s.Local.Port(), s.Remote.Addr(), max(c.received, s.Info.Received), queues
	c.accepted = c.accepted || s.Inode != 0
}

// count notes a connection that came after the trigger.
func (j *Judge) count(at time.Time) {
	j.accepted++
	second := max(int(at.Sub(j.start)/time.Second), 0)
	j.lengthen(second)
	if second < len(j.perSecond) {
		j.perSecond[second]++
	}
}

// history is how many seconds connections are counted for, each by itself.
const history = 3600

// lengthen has a place in perSecond for every second until this one.
func (j *Judge) lengthen(second int) {
	for second >= len(j.perSecond) && len(j.perSecond) < history {
		j.perSecond = append(j.perSecond, 0)
	}
}

// Done ends a look. One that could not see all ends nothing.
func (j *Judge) Done(whole bool) {
	if !whole {
		j.judged = false
		return
	}
	t := &j.look
	for s := range j.conns.unseen(j.looks) {
		if s.look == j.looks-1 { // its end may be told of yet; meanwhile it counts
			t.add(activity{s.opened, j.now})
			s.missed = j.now
			continue
		}
		c, _ := j.conns.take(s.id)
		if c.moved = c.missed; c.missed.IsZero() { // a byte may have moved until it was missed
			c.moved = j.now
		}
		j.closed(c, j.now, j.cfg.Poll)
		j.answered = true // perhaps
	}
	if t.queued > 0 || t.handshaking {
		j.Moved(j.now)
	}
	if t.progress || t.untold || j.answered || t.queued == 0 || j.last.queued == 0 || !j.judged {
		j.stuck = j.now
	}
	j.last, j.judged, j.answered = *t, true, false
}

// prompt is how late the kernel tells of an end, and we hear of it.
const prompt = 50 * time.Millisecond

// Gone is told of a connection that was closed, as the kernel last knew it. Many
// are so short that no look sees them.
func (j *Judge) Gone(now time.Time, s *tcp.Socket) {
	if j.ignored(s) || s.Remote.Addr().IsUnspecified() { // a listener, or never connected
		return
	}
	c, known := j.conns.take(identity(s))
	if !known {
		c.opened = now
		j.count(now)
	}
	c.update(s, now, known)
	j.answered = j.answered || s.Info.Sent > 0
	j.closed(c, now, prompt)
}

// Moved is told of activity that will be told of yet.
func (j *Judge) Moved(now time.Time) { j.activity.add(activity{now, now}) }

// Lost is told that something is, or may have gone, on unseen: that is activity.
func (j *Judge) Lost(now time.Time) {
	j.lost = true
	j.Moved(now)
}

// closed remembers when a connection was active that is no more; late is how long
// ago it may have ended.
func (j *Judge) closed(c conn, now time.Time, late time.Duration) {
	if c.opened.IsZero() || now.Sub(c.opened) > brief || c.received > few || !j.beat(c, now, late) {
		j.activity.add(c.activity)
		j.note(&c)
	}
}

// note remembers who was active last.
func (j *Judge) note(c *conn) {
	if at := c.last(); at.After(j.start) && at.After(j.latest.last()) {
		j.latest = *c
	}
}

// Verdict is what holds at the last look. Each condition implies those before it.
type Verdict struct {
	Settled, Quiet, Drained bool
	Stuck                   bool // connections wait to be accepted, and nothing moves
	Deserted                bool // there is neither a listener nor a connection
}

// Verdict is the judgement at the last look. Where the observer is lost, nothing
// holds.
func (j *Judge) Verdict() (v Verdict) {
	if !j.judged {
		return v
	}
	a, t := j.total(j.cfg.IgnoreProbes), &j.last
	v.Settled = j.silentSince(a.opened)
	v.Quiet = v.Settled && j.silentSince(a.moved) && t.inFlight == 0
	v.Drained = v.Quiet && t.open == 0 && !t.unsent
	v.Deserted = t.listeners == 0 && t.open == 0 && t.inFlight == 0
	v.Stuck = t.queued > 0 && t.inFlight == 0 && j.now.Sub(later(j.stuck, t.moved)) >= max(hung, j.cfg.QuietFor)
	return v
}

// total is the latest activity of all there is, or of all apart from patterns.
func (j *Judge) total(apart bool) activity {
	a := j.activity
	a.add(j.last.activity)
	for _, b := range j.beats {
		if b.period == 0 || !apart {
			a.add(b.activity)
		}
	}
	return a
}

func (j *Judge) silentSince(at time.Time) bool {
	return j.now.Sub(later(at, j.start)) >= j.cfg.QuietFor
}

// Accepted is how many connections have come since the start.
func (j *Judge) Accepted() int { return j.accepted }

// Report is what there is to tell of a hold.
type Report struct {
	Accepted          int        // connections since the start
	More              bool       // and others that nobody has seen, perhaps
	LastNew, LastByte time.Time  // zero: none, as far as it counts
	LastOther         time.Time  // the last new connection that is no part of a pattern
	LastPeer          netip.Addr // who was active last, and is no part of one; invalid: nobody
	Listeners         int        // at the last look, as what follows
	Open, InFlight    int
	GivenUp           int       // of those that seemed in flight
	PerSecond         []int     // new connections in each second from the start, for an hour
	Patterns          []Pattern // what may be probes, ignored or not; the most frequent first
}

// Report is what was found until the last look.
func (j *Judge) Report() Report {
	j.lengthen(int(j.now.Sub(j.start) / time.Second))
	a, others := j.total(j.cfg.IgnoreProbes), j.total(true)
	return Report{
		Accepted: j.accepted, More: j.lost, LastNew: a.opened, LastByte: a.moved,
		LastOther: others.opened, LastPeer: j.latest.peer,
		Listeners: j.last.listeners, Open: j.last.open, InFlight: j.last.inFlight, GivenUp: j.last.givenUp,
		PerSecond: slices.Clone(j.perSecond), Patterns: j.patterns(),
	}
}
