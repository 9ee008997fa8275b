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
	now   time.Time // of this look
	look  tally     // what it has found so far
	conns map[uint64]conn
	beats map[shape]*beat

	judged    bool      // there was a whole look, and none was lost since
	last      tally     // what that one found
	activity  activity  // of what is closed, but for what may be a probe
	stuck     time.Time // since when nobody is served though somebody waits
	answered  bool      // something was answered since the last look, and is gone
	accepted  int
	perSecond []int
}

// activity is when a connection last came, and when a byte last moved.
type activity struct{ opened, moved time.Time }

func (a *activity) add(b activity) {
	a.opened, a.moved = later(a.opened, b.opened), later(a.moved, b.moved)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// tally is what one look finds.
type tally struct {
	activity         // of what is open
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
	return &Judge{cfg: cfg, start: start, conns: map[uint64]conn{}, beats: map[shape]*beat{}}
}

// Look begins a look.
func (j *Judge) Look(now time.Time) {
	j.now, j.look = now, tally{}
	j.looks++
}

// See is told of a socket that counts, which the caller may use again.
func (j *Judge) See(s *tcp.Socket) {
	switch {
	case j.ignored(s):
	case s.State == tcp.Listen:
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
	id := identity(s)
	c, known := j.conns[id]
	if !known && j.looks > 1 {
		c.opened = j.now
		j.count(j.now)
	}
	wasAccepted := c.accepted
	c.update(s, j.now, known)
	c.look, c.missed = j.looks, time.Time{}
	j.conns[id] = c

	t := &j.look
	t.add(c.activity)
	t.unsent = t.unsent || s.Unsent > 0
	t.progress = t.progress || c.accepted && !wasAccepted && j.looks > 1
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
// it does not, a queue that has changed has moved just now.
func (c *conn) update(s *tcp.Socket, now time.Time, known bool) {
	queues := [2]uint32{s.Unread, s.Unsent}
	switch {
	case s.Timed:
		c.moved = later(c.moved, moved(s, now))
	case !known || queues != c.queues:
		c.moved = now
	}
	c.port, c.peer, c.received, c.queues = s.Local.Port(), s.Remote.Addr(), s.Info.Received, queues
	c.accepted = c.accepted || s.Inode != 0
}

// count notes a connection that came after the trigger.
func (j *Judge) count(at time.Time) {
	j.accepted++
	second := int(at.Sub(j.start) / time.Second)
	for second >= len(j.perSecond) {
		j.perSecond = append(j.perSecond, 0)
	}
	j.perSecond[max(second, 0)]++
}

// Done ends a look. One that could not see all ends nothing.
func (j *Judge) Done(whole bool) {
	if !whole {
		j.judged = false
		return
	}
	t := &j.look
	for id, c := range j.conns {
		switch c.look {
		case j.looks:
		case j.looks - 1: // its end may be told of yet; meanwhile it counts
			t.add(activity{c.opened, j.now})
			c.missed = j.now
			j.conns[id] = c
		default: // gone unseen: a byte may have moved until it was missed
			if c.moved = c.missed; c.missed.IsZero() {
				c.moved = j.now
			}
			j.closed(id, c, j.now)
			j.answered = true // perhaps
		}
	}
	if t.queued > 0 || t.handshaking {
		j.Lost(j.now)
	}
	if t.progress || t.untold || j.answered || t.queued == 0 || !j.judged {
		j.stuck = j.now
	}
	j.last, j.judged, j.answered = *t, true, false
}

// Gone is told of a connection that was closed, as the kernel last knew it. Many
// are so short that no look sees them.
func (j *Judge) Gone(now time.Time, s *tcp.Socket) {
	if j.ignored(s) || s.Remote.Port() == 0 { // a listener, or never connected
		return
	}
	id := identity(s)
	c, known := j.conns[id]
	if !known {
		c.opened = now
		j.count(now)
	}
	c.update(s, now, known)
	j.answered = j.answered || s.Info.Sent > 0
	j.closed(id, c, now)
}

// Lost is told that something is, or may have gone, on unseen: that is activity.
func (j *Judge) Lost(now time.Time) { j.activity.add(activity{now, now}) }

// closed forgets a connection, but not when it was active.
func (j *Judge) closed(id uint64, c conn, now time.Time) {
	delete(j.conns, id)
	if c.opened.IsZero() || now.Sub(c.opened) > brief || c.received > few || !j.beat(c) {
		j.activity.add(c.activity)
	}
}

// Verdict is what holds at the last look. Each condition implies those before it.
type Verdict struct {
	Settled, Quiet, Drained bool
	Stuck                   bool // connections wait to be accepted, and nothing moves
}

// Verdict is the judgement at the last look. Where the observer is lost, nothing
// holds.
func (j *Judge) Verdict() (v Verdict) {
	if !j.judged {
		return v
	}
	a, t := j.total(), &j.last
	v.Settled = j.silentSince(a.opened)
	v.Quiet = v.Settled && j.silentSince(a.moved) && t.inFlight == 0
	v.Drained = v.Quiet && t.open == 0 && !t.unsent
	v.Stuck = t.queued > 0 && t.inFlight == 0 && j.now.Sub(later(j.stuck, t.moved)) >= max(hung, j.cfg.QuietFor)
	return v
}

// total is the latest activity of all that counts.
func (j *Judge) total() activity {
	a := j.activity
	a.add(j.last.activity)
	for _, b := range j.beats {
		if !j.cfg.IgnoreProbes || b.period == 0 {
			a.add(b.activity)
		}
	}
	return a
}

func (j *Judge) silentSince(at time.Time) bool {
	return j.now.Sub(later(at, j.start)) >= j.cfg.QuietFor
}

// Report is what there is to tell of a hold.
type Report struct {
	Accepted          int       // connections since the start
	LastNew, LastByte time.Time // zero: none, as far as it counts
	Open, InFlight    int       // at the last look
	GivenUp           int       // of those that seemed in flight
	PerSecond         []int     // new connections in each second from the start
	Patterns          []Pattern // what may be probes, ignored or not
}

// Report is what was found until the last look.
func (j *Judge) Report() Report {
	a := j.total()
	return Report{
		Accepted: j.accepted, LastNew: a.opened, LastByte: a.moved,
		Open: j.last.open, InFlight: j.last.inFlight, GivenUp: j.last.givenUp,
		PerSecond: j.perSecond, Patterns: j.patterns(),
	}
}
