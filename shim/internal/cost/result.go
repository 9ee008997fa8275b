package cost

import (
	"cmp"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/ledger"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// Result is what the ends of ports have cost up to the latest sample.
type Result struct {
	Before traffic.Sample // the latest before the first end

	Listening []uint16 // ports, in ascending order
	Ends      []*End   // of ports that have listened and do not now, the earliest first
	Returned  []*End   // of ports that have ended and listen again since this sample
	Open      int      // connections of these ports
	Streams   int      // responses that go on and on now

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

	since ledger.Moment // the earliest at which the port may have ended
}

// Cut returns the number of requests, and of streams, that were cut.
func (r *Result) Cut() (requests, streams int) {
	for _, e := range r.Ends {
		requests += e.Cut
		streams += e.Streams
	}
	return requests, streams
}

// updatePorts finds the ports that have ended, and those that listen again.
func (t *Tracker) updatePorts() {
	r := &t.result
	r.Listening, r.Ends = nil, nil
	for number, p := range t.ports {
		switch p.listened {
		case 0:
		case t.sample.Now:
			r.Listening = append(r.Listening, number)
			if p.end != nil {
				r.Returned = append(r.Returned, p.end)
				p.end = nil
			}
		default:
			p.end = &End{Port: number, At: t.sample.ReadAt, since: p.listened}
			if p.closedAt >= p.listened {
				p.end.At, p.end.since = t.sample.Time(p.closedAt), p.closedAt
			}
			p.listened = 0
		}
		if p.end != nil {
			at, _ := slices.BinarySearchFunc(r.Ends, p.end, func(a, b *End) int {
				return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Port, b.Port))
			})
			r.Ends = slices.Insert(r.Ends, at, p.end)
		}
	}
	slices.Sort(r.Listening)
	t.elsewhere.end = nil
	if len(r.Ends) > 0 {
		t.elsewhere.end = &End{since: r.Ends[0].since}
	}
}

// countOpen counts the connections that the server has not closed, and in the result those that it closes, too.
func (t *Tracker) countOpen() {
	t.result.Open = 0
	for _, p := range t.ports {
		p.open = 0
	}
	for _, c := range t.sample.Conns {
		n, isOpen := 1, c.IsOpen()
		if c.Fate == ledger.Closed && c.Seen == t.sample.Now { // was counted
			n, isOpen = -1, c.Before.Open
		} else if c.Fate != ledger.Shown {
			continue
		}
		p := t.port(c.Local.Port())
		if isOpen {
			p.open += n
		}
		if (isOpen || c.Was != nil) && p.end != nil {
			t.result.Open += n
		}
	}
}

// countCut counts the connections that an end has closed. Streams died with their server if no connection
// of the port is left, and half of those that closed last were not complete; else they ended by themselves.
func (t *Tracker) countCut() {
	r := &t.result
	r.CutAtLeast = r.CutAtLeast || !t.sample.MissedAt.IsZero() && len(r.Ends) > 0
	died := map[*port]int{} // streams that have closed lately and were not complete, less those that were
	for _, c := range t.closed {
		switch {
		case c.count != nil || !c.doubtful:
		case c.complete:
			died[c.port]--
		default:
			died[c.port]++
		}
	}
	for key, c := range t.closed {
		age := t.sample.Now - c.at
		p := c.port
		switch {
		case c.count != nil:
		case p.end == nil || c.at < p.end.since-justBefore:
			if age > LateEvent+justBefore {
				delete(t.closed, key)
			}
		case !c.doubtful || p.open == 0 && died[p] >= 0:
			c.count = &p.end.Cut
			if c.streamed {
				c.count = &p.end.Streams
			}
			*c.count++
		case age > justBefore:
			delete(t.closed, key)
		}
	}
}

// countLeftovers counts the connections that ended with a reset, which refused nobody:
// neither a list of sockets shows them, nor has the client closed its end. Nobody waited on one whose
// client had closed it first.
func (t *Tracker) countLeftovers() {
	for key, c := range t.closed {
		switch {
		case c.count == nil:
			continue
		case c.shown:
			c.shown = false
			continue
		case c.finAcked:
			*c.count--
		default:
			t.expected++
		}
		delete(t.closed, key)
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
	since := t.sample.At.Sub(r.Ends[0].At)
	n := max(int(t.sample.Resets)-t.expected, 0) - r.Refused - r.OfProbes
	if n == 1 && t.isProbe() {
		r.OfProbes++
		return
	}
	r.Refused += n
	r.AtMost = r.AtMost || t.stray > 0 || r.Refused > t.mostRefused(since)
	if n > 0 {
		r.LastRefused = later(t.sample.At, r.Ends[0].At) // the port may have closed since the sample began
	}
	if n != 0 {
		r.PerSecond.Add(since, n)
	}
}

// probeTolerance is how unpunctual a probe may be, the time between two samples included.
const probeTolerance = 150 * time.Millisecond

// isProbe reports whether a known health probe is due now.
func (t *Tracker) isProbe() bool {
	return slices.ContainsFunc(t.result.Before.Patterns, func(p traffic.Pattern) bool {
		since := t.sample.At.Sub(p.Last)
		return (since - since.Round(p.Period)).Abs() <= max(p.Period/20, probeTolerance)
	})
}
