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
	unseen    int    // of those, counted by the kernel alone so far
	lost      bool   // there may have been more
	alone     uint32 // see acksAlone
	perSecond []int
	latest    conn // the last to be active, of those that are no probes
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
	untimed     bool // a connection is open whose bytes the observer cannot count
}

// New is the judge of a hold that begins at start.
func New(cfg Config, start time.Time) *Judge {
	return &Judge{cfg: cfg, start: start, first: 1, alone: 1, conns: newTable(), beats: map[shape]*beat{}}
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
	t.untimed = t.untimed || !s.Timed && (s.State == tcp.Established || s.State == tcp.CloseWait)
	j.alone = acksAlone(j.alone, s)
	switch {
	case !InFlight(s, j.alone):
	case j.now.Sub(c.moved) >= j.cfg.MaxSilence:
		t.givenUp++
	default:
		t.inFlight++
	}
}

// count notes a connection that came after the trigger, unless Counted did so.
func (j *Judge) count(at time.Time) {
	if j.unseen > 0 {
		j.unseen--
		return
	}
	j.countAs(at, 1)
}

func (j *Judge) countAs(at time.Time, n int) {
	j.accepted += n
	second := max(int(at.Sub(j.start)/time.Second), 0)
	j.lengthen(second)
	if second < len(j.perSecond) {
		j.perSecond[second] += n
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

// Counted is told how many connections the kernel has accepted since the start, which is
// more than before: that is activity. Most may have been too short for a sample.
func (j *Judge) Counted(now time.Time, total int) {
	j.Moved(now)
	if n := total - j.accepted; n > 0 {
		j.countAs(now, n)
		j.unseen += n
	}
}

// Segments is told that TCP segments have arrived in the network namespace since the last
// sample. Any of them may have carried bytes of an open connection whose bytes the
// observer cannot count. Segments is called before Done.
func (j *Judge) Segments(now time.Time) {
	if j.look.untimed {
		j.activity.add(activity{moved: now})
	}
}

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
