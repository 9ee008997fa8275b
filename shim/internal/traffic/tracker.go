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

// stuckAfter is how long nothing may move while connections wait to be accepted.
const stuckAfter = 10 * time.Second

// Tracker is told of connections, and says whether there is traffic. In one look,
// See is called for each socket between Look and Done. For a connection that was
// there at the last look nothing is allocated.
type Tracker struct {
	cfg         Config
	start       time.Time // silence counts from here
	sampleNo    uint32
	firstSample uint32    // the look that finds what was there before
	now         time.Time // of this look
	sample      tally     // what it has found so far
	conns       table
	probes      map[probeKey]*probeSeries

	complete      bool      // there was a whole look, and none was lost since
	lastSample    tally     // what that one found
	activity      activity  // of what is closed, but for what may be a probe
	lastProgress  time.Time // since when nobody is served though somebody waits
	responded     bool      // something was answered since the last look, and is gone
	accepted      int
	countedUnseen int    // of those, counted by the kernel alone so far
	missed        bool   // there may have been more
	minPureACKs   uint32 // see acksAlone
	perSecond     []int
	lastActive    conn // the last to be active, of those that are no probes
}

// tally is what one look finds.
type tally struct {
	activity     // of what is open
	listeners    int
	queued       int  // not yet accepted by the program
	open         int  // established, or about to be
	inFlight     int  // requests that hold
	givenUp      int  // and those that have been silent for too long
	unsent       bool // there are bytes that a peer has not acknowledged
	progress     bool // the program has accepted something
	bytesUnknown bool // it may be talking to somebody: bytes are not told of
	handshaking  bool
	withoutInfo  bool // a connection is open whose bytes the observer cannot count
}

// New is the judge of a hold that begins at start.
func New(cfg Config, start time.Time) *Tracker {
	return &Tracker{cfg: cfg, start: start, firstSample: 1, minPureACKs: 1, conns: newTable(), probes: map[probeKey]*probeSeries{}}
}

// Begin begins a look.
func (j *Tracker) Begin(now time.Time) {
	if now.Sub(j.now) > stuckAfter/2 { // whoever looks was stopped itself
		j.lastProgress = now
	}
	j.now, j.sample = now, tally{}
	j.sampleNo++
	j.conns.rewind()
}

// Reset is told that somebody else looks from now on, who may know connections by
// other names: what the next look finds was there before.
func (j *Tracker) Reset() { j.firstSample = j.sampleNo + 1 }

// Observe is told of a socket that counts, which the caller may use again.
func (j *Tracker) Observe(s *tcp.Socket) {
	switch {
	case j.ignored(s):
	case s.State == tcp.Listen:
		j.sample.listeners++
		j.sample.queued += int(s.Unread)
	case s.State == tcp.SynRecv, s.State == tcp.NewSynRecv:
		j.sample.handshaking = true
	case s.State == tcp.TimeWait, s.State == tcp.Close, s.State == tcp.SynSent:
	default:
		j.observe(s)
	}
}

func (j *Tracker) ignored(s *tcp.Socket) bool {
	return slices.Contains(j.cfg.IgnorePorts, s.Local.Port()) ||
		s.State != tcp.Listen && slices.ContainsFunc(j.cfg.IgnorePeers, func(p netip.Prefix) bool { return p.Contains(s.Remote.Addr()) })
}

func (j *Tracker) observe(s *tcp.Socket) {
	c, known := j.conns.visit(identity(s))
	if !known && j.sampleNo > j.firstSample {
		c.opened = j.now
		j.count(j.now)
	}
	wasAccepted := c.accepted
	c.update(s, j.now, known)
	c.look, c.missed = j.sampleNo, time.Time{}

	t := &j.sample
	t.add(c.activity)
	j.note(c)
	t.unsent = t.unsent || s.Unsent > 0
	t.progress = t.progress || c.accepted && !wasAccepted && j.sampleNo > j.firstSample
	t.bytesUnknown = t.bytesUnknown || c.accepted && !s.HasInfo
	if s.State == tcp.Established {
		t.open++
	}
	t.withoutInfo = t.withoutInfo || !s.HasInfo && (s.State == tcp.Established || s.State == tcp.CloseWait)
	j.minPureACKs = leastPureACKs(j.minPureACKs, s)
	switch {
	case !InFlight(s, j.minPureACKs):
	case j.now.Sub(c.moved) >= j.cfg.MaxSilence:
		t.givenUp++
	default:
		t.inFlight++
	}
}

// count notes a connection that came after the trigger, unless Counted did so.
func (j *Tracker) count(at time.Time) {
	if j.countedUnseen > 0 {
		j.countedUnseen--
		return
	}
	j.countAs(at, 1)
}

func (j *Tracker) countAs(at time.Time, n int) {
	j.accepted += n
	second := max(int(at.Sub(j.start)/time.Second), 0)
	j.lengthen(second)
	if second < len(j.perSecond) {
		j.perSecond[second] += n
	}
}

// maxSeconds is how many seconds connections are counted for, each by itself.
const maxSeconds = 3600

// lengthen has a place in perSecond for every second until this one.
func (j *Tracker) lengthen(second int) {
	for second >= len(j.perSecond) && len(j.perSecond) < maxSeconds {
		j.perSecond = append(j.perSecond, 0)
	}
}

// End ends a look. One that could not see all ends nothing.
func (j *Tracker) End(whole bool) {
	if !whole {
		j.complete = false
		return
	}
	t := &j.sample
	for s := range j.conns.notSeenIn(j.sampleNo) {
		if s.look == j.sampleNo-1 { // its end may be told of yet; meanwhile it counts
			t.add(activity{s.opened, j.now})
			s.missed = j.now
			continue
		}
		c, _ := j.conns.take(s.id)
		if c.moved = c.missed; c.missed.IsZero() { // a byte may have moved until it was missed
			c.moved = j.now
		}
		j.ended(c, j.now, j.cfg.Poll)
		j.responded = true // perhaps
	}
	if t.queued > 0 || t.handshaking {
		j.MarkActive(j.now)
	}
	if t.progress || t.bytesUnknown || j.responded || t.queued == 0 || j.lastSample.queued == 0 || !j.complete {
		j.lastProgress = j.now
	}
	j.lastSample, j.complete, j.responded = *t, true, false
}

// maxEventDelay is how late the kernel tells of an end, and we hear of it.
const maxEventDelay = 50 * time.Millisecond

// Closed is told of a connection that was closed, as the kernel last knew it. Many
// are so short that no look sees them.
func (j *Tracker) Closed(now time.Time, s *tcp.Socket) {
	if j.ignored(s) || s.Remote.Addr().IsUnspecified() { // a listener, or never connected
		return
	}
	c, known := j.conns.take(identity(s))
	if !known {
		c.opened = now
		j.count(now)
	}
	c.update(s, now, known)
	j.responded = j.responded || s.Info.Sent > 0
	j.ended(c, now, maxEventDelay)
}

// MarkActive is told of activity that will be told of yet.
func (j *Tracker) MarkActive(now time.Time) { j.activity.add(activity{now, now}) }

// Counted is told how many connections the kernel has accepted since the start, which is
// more than before: that is activity. Most may have been too short for a sample.
func (j *Tracker) Counted(now time.Time, total int) {
	j.MarkActive(now)
	if n := total - j.accepted; n > 0 {
		j.countAs(now, n)
		j.countedUnseen += n
	}
}

// Segments is told that TCP segments have arrived in the network namespace since the last
// sample. Any of them may have carried bytes of an open connection whose bytes the
// observer cannot count. Segments is called before Done.
func (j *Tracker) Segments(now time.Time) {
	if j.sample.withoutInfo {
		j.activity.add(activity{moved: now})
	}
}

// MarkMissed is told that something is, or may have gone, on unseen: that is activity.
func (j *Tracker) MarkMissed(now time.Time) {
	j.missed = true
	j.MarkActive(now)
}

// ended remembers when a connection was active that is no more; late is how long
// ago it may have ended.
func (j *Tracker) ended(c conn, now time.Time, late time.Duration) {
	if c.opened.IsZero() || now.Sub(c.opened) > maxProbeAge || c.received > maxProbeBytes || !j.addProbe(c, now, late) {
		j.activity.add(c.activity)
		j.note(&c)
	}
}

// note remembers who was active last.
func (j *Tracker) note(c *conn) {
	if at := c.last(); at.After(j.start) && at.After(j.lastActive.last()) {
		j.lastActive = *c
	}
}
