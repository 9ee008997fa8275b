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

// end returns the end of a port, of port 0 the first of any, and nil if there is none.
func (r *Result) end(port uint16) *End {
	i := slices.IndexFunc(r.Ends, func(e End) bool { return e.Port == port || port == 0 })
	if i < 0 {
		return nil
	}
	return &r.Ends[i]
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

// countOpen counts the connections that the server has not closed, and in the result those that it closes, too.
func (t *Tracker) countOpen() {
	t.result.Open = 0
	for _, p := range t.ports {
		p.open = 0
	}
	for _, c := range t.sample.Conns {
		n, isOpen := 1, ledger.IsOpen(&c.Socket)
		if c.Fate == ledger.Closed && c.Seen == t.sample.Now { // was counted
			n, isOpen = -1, c.Before.Open
		} else if c.Fate != ledger.Shown {
			continue
		}
		if isOpen {
			t.port(c.Local.Port()).open += n
		}
		if (isOpen || c.Was != nil) && t.result.end(c.Local.Port()) != nil {
			t.result.Open += n
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

// countCut counts the connections that an end has closed. Streams died with their server if no connection
// of the port is left, and half of those that closed last were not complete; else they ended by themselves.
func (t *Tracker) countCut() {
	r := &t.result
	r.CutAtLeast = r.CutAtLeast || !t.sample.MissedAt.IsZero() && len(r.Ends) > 0
	for _, p := range t.ports {
		p.died = 0
	}
	for _, c := range t.closed {
		switch p := t.port(c.port); {
		case c.counted || !c.doubtful:
		case c.complete:
			p.died--
		default:
			p.died++
		}
	}
	for key, c := range t.closed {
		age := t.sample.At.Sub(c.at)
		p, e := t.port(c.port), r.end(c.port)
		switch {
		case c.counted:
		case e == nil || c.at.Before(e.since.Add(-justBefore)):
			if age > LateEvent+justBefore {
				delete(t.closed, key)
			}
		case !c.doubtful || p.open == 0 && p.died >= 0:
			e.add(c, 1)
			c.counted = true
		case age > justBefore:
			delete(t.closed, key)
		}
	}
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
		if e := t.result.end(c.port); c.finAcked && e != nil {
			e.add(c, -1)
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
		r.LastRefused = later(t.sample.At, r.Ends[0].At) // the port may have closed since the sample began
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
