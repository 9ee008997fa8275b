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

	NeedsTimeWait bool // the next sample needs the sockets in TIME_WAIT

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

// updatePorts finds the ports that have ended, and those that listen again. It counts the connections that the
// server has not closed, and in the result those that it closes, too, unless no sample has shown them before.
func (t *Tracker) updatePorts() {
	r := &t.result
	r.Listening, r.Ends, r.Open = nil, nil, 0
	for number, p := range t.ports {
		p.open = 0
		switch p.listened {
		case 0:
		case t.sample.Now:
			r.Listening = append(r.Listening, number)
			if p.end != nil {
				r.Returned = append(r.Returned, p.end)
				p.end = nil
			}
		default:
			p.end = &End{Port: number, At: t.sample.ReadAt, since: max(p.closedAt, p.listened)}
			if p.closedAt >= p.listened {
				p.end.At = t.sample.Time(p.closedAt)
			}
			p.listened = 0
		}
		if p.end != nil {
			r.Ends = append(r.Ends, p.end)
		}
	}
	slices.Sort(r.Listening)
	slices.SortFunc(r.Ends, func(a, b *End) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Port, b.Port)) })
	t.elsewhere.end = nil
	if len(r.Ends) > 0 {
		t.elsewhere.end = &End{since: r.Ends[0].since}
	}
	for _, c := range t.sample.Conns {
		if c.Fate != ledger.Shown {
			continue
		}
		p := t.port(c.Local.Port())
		if c.IsOpen() {
			p.open++
		}
		if c.Accepted && p.end != nil {
			r.Open++
		}
	}
}

// countCut counts the connections that an end has closed. Streams died with their server if no connection
// of the port is left, and half of those that closed last were not complete; else they ended by themselves.
// What the kernel has kept of one that was counted ends in TIME_WAIT, or with a reset, which refused nobody.
// Nobody waited on one of which the kernel has kept nothing, since the client had closed it first.
func (t *Tracker) countCut() {
	died := map[*port]int{} // streams that have closed lately and were not complete, less those that were
	for _, c := range t.closed {
		died[c.port] += c.doubt
	}
	for key, c := range t.closed {
		p, age := c.port, t.sample.Now-c.at
		isOfEnd := p.end != nil && c.at >= p.end.since-justBefore
		switch {
		case c.count != nil && (c.shown || t.sample.Incomplete):
			c.shown = false
			continue
		case c.count != nil && c.finAcked:
			*c.count--
		case c.count != nil:
			t.expected++
		case isOfEnd && (c.doubt == 0 || p.open == 0 && died[p] >= 0):
			c.doubt, c.count = 0, &p.end.Cut
			if c.streamed {
				c.count = &p.end.Streams
			}
			*c.count++
			continue
		case isOfEnd && age <= justBefore, !isOfEnd && age <= LateEvent+justBefore:
			continue
		}
		delete(t.closed, key)
	}
}

// countRefused counts the resets that no connection explains that was open. The clients of a server can have
// been refused on each connection that was open, and on as many new ones eight times a second as came in the
// busiest sample, which is twice as often as there are samples, and a few.
func (t *Tracker) countRefused() {
	r := &t.result
	since := max(t.sample.At.Sub(r.Ends[0].At), 0) // the port may have closed since the sample began
	n := max(int(t.sample.Resets)-t.expected, 0) - r.Refused - r.OfProbes
	switch {
	case t.sample.Uncounted != nil:
		r.Uncounted = t.sample.Uncounted
		return
	case n == 1 && t.isProbe():
		r.OfProbes++
		return
	}
	r.Refused += n
	most := r.Before.Open + (8*t.busiest+10)*(1+int(since/time.Second))
	r.AtMost = r.AtMost || t.stray > 0 || r.Refused > most
	if n > 0 {
		r.LastRefused = r.Ends[0].At.Add(since)
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
