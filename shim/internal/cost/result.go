package cost

import (
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/ledger"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// Result is what the ends of ports have cost up to the latest sample.
type Result struct {
	Listening []uint16 // ports, in ascending order
	Ends      []End    // of ports that have listened and do not now, the earliest first
	Open      int      // connections of these ports
	Returned  []End    // of ports that have ended and listen again since this sample

	Uncounted   error // why refused connections could not be counted
	CutAtLeast  bool  // requests may be missing from End.Cut
	AtMost      bool  // Refused may include resets that answered no client of these ports
	Refused     int   // connections, without those of known health probes
	OfProbes    int   // refused connections of health probes
	LastRefused time.Time
	PerSecond   traffic.Seconds // refused connections in each second from the first end
}

// End is the end of a port.
type End struct {
	Port uint16
	At   time.Time
	Cut  int // requests in flight

	Streams int // responses that went on and on, and ended with the server

	since time.Time // the earliest time at which the port may have ended
}

// Cut returns the number of requests, and of streams, that were cut.
func (r *Result) Cut() (requests, streams int) {
	for _, e := range r.Ends {
		requests += e.Cut
		streams += e.Streams
	}
	return requests, streams
}

// hasEnded reports whether a port has ended.
func (r *Result) hasEnded(port uint16) bool {
	return slices.ContainsFunc(r.Ends, func(e End) bool { return e.Port == port })
}

// updatePorts finds the ports that have ended, and those that listen again.
func (t *Tracker) updatePorts() {
	r := &t.result
	r.Listening = nil
	for number, p := range t.ports {
		switch {
		case p.listened.Equal(t.sample.At):
			r.Listening = append(r.Listening, number)
		case !p.listened.IsZero():
			end := End{Port: number, At: t.sample.ReadAt, since: p.listened}
			if !p.closedAt.Before(p.listened) {
				end.At, end.since = p.closedAt, p.closedAt
			}
			r.addEnd(end)
			p.listened = time.Time{}
		}
	}
	slices.Sort(r.Listening)
	r.Ends = slices.DeleteFunc(r.Ends, func(e End) bool {
		returned := slices.Contains(r.Listening, e.Port)
		if returned {
			r.Returned = append(r.Returned, e)
		}
		return returned
	})
}

// countOpen counts the connections that the server has not closed, or closes.
func (t *Tracker) countOpen() {
	for _, p := range t.ports {
		p.open = 0
	}
	t.result.Open = 0
	count := func(c *ledger.Conn, wasOpen, isOpen bool, n int) {
		if isOpen {
			t.port(c.Local.Port()).open += n
		}
		if wasOpen && t.result.hasEnded(c.Local.Port()) {
			t.result.Open += n
		}
	}
	for _, c := range t.sample.Conns {
		switch isOpen := ledger.IsOpen(&c.Socket); {
		case c.Fate == ledger.Shown:
			count(c, c.Was != nil || isOpen, isOpen, 1)
		case c.Fate == ledger.Closed && c.Seen == t.sample.Now: // was counted
			count(c, c.Was != nil, c.Before.Open, -1)
		}
	}
}

// addEnd adds an end behind those that were no later.
func (r *Result) addEnd(e End) {
	r.Ends = append(r.Ends, e)
	for i := len(r.Ends) - 1; i > 0 && e.At.Before(r.Ends[i-1].At); i-- {
		r.Ends[i], r.Ends[i-1] = r.Ends[i-1], e
	}
}

// countCut counts the connections that an end has closed.
func (t *Tracker) countCut() {
	r := &t.result
	r.CutAtLeast = r.CutAtLeast || !t.sample.MissedAt.IsZero() && len(r.Ends) > 0
	died := t.died()
	for key, c := range t.closed {
		if c.counted {
			continue
		}
		isLate := t.sample.At.Sub(c.at) > LateEvent+justBefore
		for i := range r.Ends {
			e := &r.Ends[i]
			switch {
			case c.port != 0 && c.port != e.Port || c.at.Before(e.since.Add(-justBefore)):
				continue
			case c.streamed && died[c.port] < 0: // others of the port live on, or this one has ended by itself
				isLate = t.sample.At.Sub(c.at) > oneDeath
				continue
			}
			e.add(c, 1)
			c.counted = true
			break
		}
		if !c.counted && isLate {
			delete(t.closed, key)
		}
	}
}

// oneDeath is how long it takes at most to close all connections of a process that dies.
const oneDeath = 50 * time.Millisecond

// died tells the streams that died with their server from those that have ended by themselves, by port: at
// least 0, if no connection of the port is left, and half of those that closed last were not complete.
func (t *Tracker) died() map[uint16]int {
	died := map[uint16]int{}
	for _, c := range t.closed {
		switch {
		case !c.streamed || c.counted:
		case t.port(c.port).open > 0:
			died[c.port] = -1 << 30
		case c.complete:
			died[c.port]--
		default:
			died[c.port]++
		}
	}
	return died
}

// add adds a connection to the end that has closed it.
func (e *End) add(c *closed, n int) {
	switch {
	case c.port == 0:
	case c.streamed:
		e.Streams += n
	default:
		e.Cut += n
	}
}

// countLeftovers counts the connections that ended with a reset, which refused nobody:
// neither a list of sockets shows them, nor has the client closed its end. Nobody waited on one whose
// client had closed it first.
func (t *Tracker) countLeftovers() {
	for key, c := range t.closed {
		switch {
		case !c.counted:
			continue
		case c.shown:
			c.shown = false
			continue
		case !c.finAcked:
			t.expected++
		}
		delete(t.closed, key)
		for i := range t.result.Ends {
			if e := &t.result.Ends[i]; c.finAcked && e.Port == c.port {
				e.add(c, -1)
			}
		}
	}
}

// countRefused counts the resets that no connection explains that was open.
func (t *Tracker) countRefused() {
	r := &t.result
	if len(r.Ends) == 0 {
		return
	}
	if t.sample.Uncounted != nil {
		r.Uncounted = t.sample.Uncounted
		return
	}
	n := max(int(t.sample.Resets)-t.expected, 0) - r.Refused - r.OfProbes
	if n == 1 && t.isProbe() {
		r.OfProbes++
		return
	}
	r.Refused += n
	r.AtMost = r.AtMost || t.serving.stray > 0 || r.Refused > t.serving.mostRefused(t.sample.At.Sub(r.Ends[0].At))
	if n > 0 {
		r.LastRefused = t.sample.At
	}
	if n != 0 {
		r.PerSecond.Add(t.sample.At.Sub(r.Ends[0].At), n)
	}
}

// probeTolerance is how unpunctual a probe may be, the time between two samples included.
const probeTolerance = 150 * time.Millisecond

// isProbe reports whether a known health probe is due now.
func (t *Tracker) isProbe() bool {
	return slices.ContainsFunc(t.probes, func(p traffic.Pattern) bool {
		since := t.sample.At.Sub(p.Last)
		return (since - since.Round(p.Period)).Abs() <= max(p.Period/20, probeTolerance)
	})
}
