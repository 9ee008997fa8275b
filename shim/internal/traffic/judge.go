package traffic

import (
	"cmp"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/ledger"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// Judge judges a sample. On connections that were shut no byte must have moved for shutSilence. An
// incomplete sample meets no condition. The sample is read until the next call.
func (t *Tracker) Judge(sample *ledger.Sample, shutSilence time.Duration) Sample {
	t.sockets, t.now = sample, sample.Now
	if t.now-sample.Previous > stuckAfter/2 { // the first, or lameduck was stopped, and perhaps the program too
		t.progressAt = t.now
	}
	f := fold{Tracker: t, lasting: Cause{Kind: OpenConnections, At: sample.At}}
	f.ListenedAt, f.ServedAt = t.latest.ListenedAt, t.latest.ServedAt
	for i := range sample.Others {
		f.addOther(&sample.Others[i])
	}
	for _, c := range sample.Conns {
		if c.Side == ledger.Clients {
			f.addConn(c)
		}
	}
	f.addUnseen()
	if sample.Incomplete {
		t.latest.Verdict = Verdict{Incomplete: true}
	} else {
		f.finish(shutSilence)
	}
	next := &t.latest
	next.Accepted = t.accepted
	next.More = t.missed
	t.perSecond.Add(t.now-trigger, 0)
	next.PerSecond = slices.Clone(t.perSecond)
	next.Patterns, next.LeftOut.Probes = t.patterns()
	return *next
}

// addOther adds a socket that is no connection.
func (f *fold) addOther(s *ledger.Other) {
	switch {
	case s.Side != ledger.Clients:
	case s.State == tcp.Listen:
		f.listeners = append(f.listeners, s)
		f.ListenedAt = f.sockets.At
		f.wanted += int(s.Unread)
	case s.State == tcp.SynRecv, s.State == tcp.NewSynRecv:
		f.LeftOut.HalfOpen++
		if s.Retries == 0 {
			f.AtRisk++
		}
	}
}

// addConn adds a connection. The program has made progress if it has read or sent a byte.
func (f *fold) addConn(c *ledger.Conn) {
	if c.Served {
		f.progressAt = f.now
	}
	f.noteNew(c)
	switch c.Fate {
	case ledger.Shown:
		f.count(c)
		f.countRequest(c)
		f.noteActivity(c)
	case ledger.Closed:
		if c.Info.Sent > 0 {
			f.acceptedOn[c.Local.Port()] = true
		}
		if c.New && c.Opened == 0 {
			f.bare++
		}
		came := c.Ended
		if !c.Unseen {
			came -= c.Info.LastReceived
		}
		f.forget(c, came)
	case ledger.Missing: // that may be activity
		f.counted.add(activityOf(c, f.now))
	case ledger.Lost:
		f.forget(c, c.Opened)
		f.progressAt = f.now // perhaps
	}
}

// noteNew counts a connection that has come, and notes its first bytes.
func (t *Tracker) noteNew(c *ledger.Conn) {
	if c.New && c.Before.Seen == 0 {
		t.shown++
		t.countNew(cmp.Or(c.Ended, t.now), t.shown)
	}
	if c.Opened == 0 || c.Before.Opened != 0 {
		return
	}
	if found := t.seriesOf(c); found != nil && found.steady && t.cfg.Probes != CountProbes {
		return
	}
	if c.Opened-t.newest < t.cfg.QuietFor {
		t.crowded = max(t.crowded, c.Opened)
	}
	t.newest = max(t.newest, c.Opened)
}

// forget keeps only the activity of a closed connection. One that may be a health probe joins
// the series of its key; came is when the last byte was received.
func (t *Tracker) forget(c *ledger.Conn, came moment) {
	switch {
	case c.Shut || c.Notified:
		t.closed.add(activity{opened: c.Opened, shut: c.Moved})
	case c.Opened == 0 || t.now-c.Opened > maxProbeAge || c.Received > maxProbeBytes:
		t.closed.add(activityOf(c, c.Moved))
	default:
		t.addToSeries(c, came)
	}
	t.noteActivity(c)
}

// finish makes the verdict that of the latest complete sample. After an incomplete sample the
// program may have made progress. What clients do is no progress.
func (f *fold) finish(shutSilence time.Duration) {
	waiting := f.noteQueue()
	if waiting.Connections == 0 && !f.unread || f.bytesUnknown || f.latest.Incomplete {
		f.progressAt = f.now
	}
	if f.sockets.TurnedAway && f.recent(f.queuedAt) { // else by the queue of another program
		if f.now >= f.comeBackUntil {
			f.turnedAwayFrom = f.now
		}
		f.comeBackUntil = f.now + (f.now - f.turnedAwayFrom) + secondTry
	}
	if waiting.Connections == 0 && f.now < f.comeBackUntil {
		waiting = f.waiting(0, 1)
	}
	others := f.addSeries()
	f.conclude(others.opened, shutSilence)
	f.counted.moved = max(f.counted.moved, f.counted.shut)
	f.LastNew = f.sockets.Time(f.counted.opened)
	f.LastByte = f.sockets.Time(f.counted.moved)
	f.LastOther = f.sockets.Time(others.opened)
	f.LastUse = f.sockets.Time(others.moved)
	f.Cause = f.cause(waiting)
	f.LeftOut.HalfOpen = max(f.LeftOut.HalfOpen, f.latest.LeftOut.HalfOpen)
	f.LeftOut.Bare += f.bare
	if !f.NoSockets {
		f.ServedAt = f.sockets.At
	}
	f.latest = f.Sample
}

// waiting returns as a cause that clients wait for the program.
func (f *fold) waiting(port uint16, n int) Cause {
	return Cause{Kind: AcceptQueue, Peer: f.queued, Port: port, At: f.sockets.At, Connections: n}
}

// noteQueue notes, and returns, the longest accept queue in which connections wait for the program, without
// any if no connection waits. A connection to a port that the program never accepts from does not
// wait, unless the connection has sent something or is not shown.
func (f *fold) noteQueue() (longest Cause) {
	for _, s := range f.listeners {
		n := int(s.Unread)
		port := s.Local.Port()
		if n > longest.Connections && (f.acceptedOn[port] || f.wanted > 0) {
			longest = f.waiting(port, n)
			f.queuedAt = f.now
		}
	}
	return longest
}

// addUnseen adds connections and bytes that the kernel has counted and no sample shows.
func (f *fold) addUnseen() {
	if f.sockets.Baseline && f.sockets.Previous != 0 {
		f.queuedAt = f.now // connections may have come between the samples of two sources
	}
	if !f.sockets.MissedAt.IsZero() {
		f.markActive(f.sockets.Moment(f.sockets.MissedAt))
		f.missed = true
	}
	if f.sockets.Opened > f.accepted-f.latest.Accepted { // until the event tells more
		f.counted.add(both(f.now))
	}
	if f.sockets.Accepted > 0 {
		f.markActive(f.now)
		f.countNew(f.now, f.sockets.Accepted)
	}
	if f.sockets.Segments && f.bytesUnknown { // any segment may have carried bytes of an open connection
		f.closed.add(activity{moved: f.now})
	}
}

// markActive notes activity whose connection is not known yet.
func (t *Tracker) markActive(at moment) {
	t.closed.add(both(at))
	t.crowded = max(t.crowded, at)
}

// addSeries adds the closed connections to the sample, but for what is left out, and returns the
// activity without possible health probes.
func (f *fold) addSeries() (others activity) {
	n := 0
	for _, found := range f.probes {
		if f.leavesOut(found) {
			n++
		}
	}
	if n > maxProbes && f.cfg.Probes == IgnoreProbesPatiently {
		f.cfg.Probes = CountProbes
	}
	f.counted.add(f.closed)
	others = f.counted
	for _, found := range f.probes {
		latest, _ := found.counted(f.cfg.Probes, f.cfg.QuietFor)
		other, _ := found.counted(IgnoreProbes, f.cfg.QuietFor)
		f.counted.add(latest)
		others.add(other)
	}
	return others
}
