package watch

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/report"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// View is the traffic of the network namespace now. The JSON names are promises, like the names
// in the report. Durations in JSON are milliseconds.
type View struct {
	Schema   int       `json:"schema"`
	Time     time.Time `json:"time"`
	Observer *string   `json:"observer"`          // "none": nothing can be observed; null: nothing listens
	Trouble  string    `json:"trouble,omitempty"` // why Observer is not the best observer
	Ports    []uint16  `json:"ports"`             // that listen
	Open     int       `json:"open"`
	InFlight int       `json:"in_flight"`
	New      int       `json:"new"`              // connections since the last view
	Accepted int       `json:"accepted"`         // connections since the first view
	LastNew  *int64    `json:"last_new_ago_ms"`  // null: none since the first view
	LastByte *int64    `json:"last_byte_ago_ms"` // on a connection that the views have shown; null: none
	Settled  bool      `json:"settled"`
	Quiet    bool      `json:"quiet"`
	Drained  bool      `json:"drained"`
	Cut      *int      `json:"cut"`     // requests and streams, by the server's end so far; null: not ended, or not known
	Refused  *int      `json:"refused"` // connections since the server's end; null as Cut
	Queued   bool      `json:"-"`       // only connections that wait to be accepted keep the server busy
}

// JSON returns the view as one line of JSON.
func (v View) JSON() string { return report.Encode(v) }

// view returns next as a View, and records the values to which the next view refers. Requests
// that traffic has given up are in flight for a hold, which counts the silence of a request
// from its own start.
func (w *watch) view(now time.Time, next *sample) View {
	ports := next.cost.Listening
	var observer *string
	if next.observer != "" {
		observer = &next.observer
	}
	givenUp := 0
	if now.Before(w.givesUp) {
		givenUp = next.LeftOut.GivenUp
	}
	v := View{
		Schema:   report.Schema,
		Time:     now,
		Observer: observer,
		Trouble:  next.trouble,
		Ports:    append([]uint16{}, ports[:min(len(ports), maxShown)]...), // never null
		Open:     next.Open,
		InFlight: next.InFlight + givenUp,
		New:      next.Accepted - w.viewed,
		Accepted: next.Accepted,
		LastNew:  w.ago(now, next.LastNew),
		LastByte: w.ago(now, next.LastByte),
		Settled:  next.Settled,
		Quiet:    next.Quiet && givenUp == 0,
		Drained:  next.Drained,
		Queued:   next.Cause.Kind == traffic.AcceptQueue,
	}
	if c := &w.cost; len(c.Ends) > 0 {
		if c.Source == "" {
			requests, streams := c.Cut()
			v.Cut = new(requests + streams)
		}
		if c.Uncounted == nil {
			v.Refused = &next.cost.Refused
		}
	}
	w.viewed = next.Accepted
	return v
}

// ago returns the milliseconds from at to now, nil if at is not after the start.
func (w *watch) ago(now, at time.Time) *int64 {
	if !at.After(w.start) {
		return nil
	}
	return new(now.Sub(at).Milliseconds())
}

// maxShown is how many ports a view lists. A view then fits into a pipe at once: POLLOUT
// promises room for a page at most.
const maxShown = 20
