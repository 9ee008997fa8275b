package watch

import (
	"cmp"
	"fmt"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/observe"
	"github.com/lameduck-init/lameduck/shim/internal/report"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// view returns the traffic of the network namespace now as one line, and records to what the next one
// refers. The JSON names are promises, like the names in the report. Requests that traffic has given
// up are in flight for a hold, which counts the silence of a request from its own start.
func (w *watch) view(next *observe.Snapshot) string {
	c := &w.cost
	if c.Now.Sub(w.start) < known+c.Traffic.MaxSilence {
		next.InFlight += next.LeftOut.GivenUp
		next.Quiet = next.Quiet && next.InFlight == 0
	}
	ports := c.Listening[:min(len(c.Listening), maxShown)]
	opened := next.Accepted - w.viewed
	w.viewed = next.Accepted
	if !c.Plan.JSON {
		return fmt.Sprintf("%s ports %s; %d open, %d in flight, %d new; last new connection %s, byte %s; %s",
			c.Now.Format("15:04:05"), cmp.Or(report.PortList(ports), "none"), next.Open, next.InFlight, opened,
			w.ago(next.LastNew), w.ago(next.LastByte), w.state(next))
	}
	requests, streams := c.Cut()
	since := func(at time.Time) any { return report.Known(at.After(w.start), c.Now.Sub(at).Milliseconds()) }
	// The observer "none": nothing can be observed; null: nothing listens.
	v := report.Fields{"schema", report.Schema, "time", c.Now, "observer", report.OrNull(next.Observer)}
	if next.Trouble != "" {
		v = append(v, "trouble", next.Trouble) // why that is not the best observer
	}
	return report.Encode(append(v,
		"ports", append([]uint16{}, ports...), // that listen; never null
		"open", next.Open,
		"in_flight", next.InFlight,
		"new", opened, // connections since the last view
		"accepted", next.Accepted, // connections since the first view
		"last_new_ago_ms", since(next.LastNew), // null: none since the first view
		"last_byte_ago_ms", since(next.LastByte), // on a connection that the views have shown; null: none
		"settled", next.Settled,
		"quiet", next.Quiet,
		"drained", next.Drained,
		"cut", report.Known(len(c.Ends) > 0 && c.Source == "", requests+streams), // by the server's end so far
		"refused", report.Known(len(c.Ends) > 0 && c.Uncounted == nil, c.Refused), // connections since then
	))
}

// ago returns how long ago something was in words.
func (w *watch) ago(at time.Time) string {
	if !at.After(w.start) {
		return "none yet"
	}
	return fmt.Sprintf("%.1f s ago", w.cost.Now.Sub(at).Seconds())
}

// state returns the losses so far, or the strictest condition that is met, and what keeps the server
// from quiet.
func (w *watch) state(next *observe.Snapshot) string {
	c := &w.cost
	requests, streams := c.Cut()
	switch ended := len(c.Ends) > 0 && c.Uncounted == nil; {
	case ended && c.Source == "":
		return fmt.Sprintf("%d cut, %d refused", requests+streams, c.Refused)
	case ended:
		return fmt.Sprintf("%d refused", c.Refused)
	case next.Drained:
		return "drained"
	case next.Quiet:
		return "quiet"
	case next.Settled && next.InFlight > 0:
		return "settled, but requests are in flight"
	case next.Settled:
		return "settled, but bytes come"
	case next.InFlight > 0:
		return "busy: requests are in flight"
	case next.Cause.Kind == traffic.AcceptQueue:
		return "busy: connections wait to be accepted"
	}
	return "busy: new connections"
}

// maxShown is how many ports a view lists. A view then fits into a pipe at once: POLLOUT
// promises room for a page at most.
const maxShown = 20
