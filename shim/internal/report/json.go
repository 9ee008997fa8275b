package report

import (
	"encoding/json"
	"net/netip"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/quote"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// Schema is the version of the JSON output. The version changes when a name changes its
// meaning or disappears, not when a name is added.
const Schema = 1

// head is what all lines in JSON begin with.
type head struct {
	Schema  int       `json:"schema"`
	Time    time.Time `json:"time"`
	Level   string    `json:"level"`
	Message string    `json:"message"`
}

// entry is one line in JSON.
type entry struct {
	head
	*Figures
}

// Figures are the report of a stop in JSON. Durations are milliseconds, and so are
// moments, counted from the trigger. Unknown values are null.
type Figures struct {
	Trigger    string           `json:"trigger"` // a signal, or "hold"
	HeldMS     int64            `json:"held_ms"`
	Ended      *string          `json:"ended"`
	FloorMS    int64            `json:"floor_ms"`
	CeilingMS  int64            `json:"ceiling_ms"`
	Accepted   *int             `json:"accepted"`
	LastNewMS  *int64           `json:"last_new_ms"`
	LastByteMS *int64           `json:"last_byte_ms"`
	Open       *int             `json:"open"`
	InFlight   *int             `json:"in_flight"`
	Streams    *int             `json:"streams"` // cut by the signal, unless the server has ended them
	LeftOut    *traffic.LeftOut `json:"left_out"`
	ClosedIdle *int             `json:"closed_idle"`  // kept connections
	Goaway     *int             `json:"goaway"`       // connections on which GOAWAY was sent
	GoawayTo   []uint16         `json:"goaway_ports"` // whose clients are sent GOAWAY
	CameBack   *int             `json:"came_back"`    // connections since, from the peers of these
	NewPorts   []uint16         `json:"new_ports"`
	Sent       []sentInFigures  `json:"sent"`
	Lull       *bool            `json:"lull"` // the first signal was sent without a request in flight
	ExitCode   *int             `json:"exit_code"`
	ExitSignal *string          `json:"exit_signal"`
	WaitedFor  []worker         `json:"waited_for"` // processes that the command left behind, at work
	Left       []worker         `json:"left"`       // those that had not ended

	GraceUsedMS     int64       `json:"grace_used_ms"`
	GraceAssumed    bool        `json:"grace_assumed"`
	Observer        *string     `json:"observer"`
	Scope           *string     `json:"scope"`
	ProlongedBy     *string     `json:"prolonged_by"`
	ProlongedByPeer *netip.Addr `json:"prolonged_by_peer"`
	Suggestion      *string     `json:"suggestion"`
}

type sentInFigures struct {
	Signal string `json:"signal"`
	AtMS   int64  `json:"at_ms"`
}

// worker is a Worker in JSON.
type worker struct {
	Program string `json:"program"`
	PID     int    `json:"pid"`
	EndedMS *int64 `json:"ended_ms"`
}

// inFigures returns workers for JSON, the first maxListed.
func (s *Stop) inFigures(list []Worker) []worker {
	figures := []worker{}
	for _, w := range list[:min(len(list), maxListed)] {
		figures = append(figures, worker{w.Program, w.PID, NullIfZero(max(s.ms(w.EndedAt), 0))})
	}
	return figures
}

// Figures returns the report for JSON.
func (s *Stop) Figures() *Figures {
	o := &s.InHold
	words, cause := s.prolonged()
	waited, _ := s.waited()
	f := &Figures{
		WaitedFor: s.inFigures(waited), Left: s.inFigures(s.atWork()),
		Trigger: s.trigger(), HeldMS: s.ms(s.endedAt()), Ended: NullIfZero(string(s.Ended)),
		FloorMS: s.Gate.Floor.Milliseconds(), CeilingMS: s.Gate.MaxHold().Milliseconds(), Sent: []sentInFigures{},
		GraceUsedMS: s.ms(s.Now), GraceAssumed: s.GraceAssumed, Observer: NullIfZero(o.Observer),
		ProlongedBy: NullIfZero(words), ProlongedByPeer: NullIfZero(cause.Peer), Suggestion: NullIfZero(s.suggestion()),
	}
	for _, sent := range s.Sent {
		f.Sent = append(f.Sent, sentInFigures{sent.Signal.String(), s.ms(sent.At)})
	}
	if s.Lull.Sought {
		f.Lull = &s.Lull.Found
	}
	switch {
	case s.ExitedAt.IsZero():
	case s.Exit.Signal != 0:
		f.ExitSignal = new(s.Exit.Signal.String())
	default:
		f.ExitCode = &s.Exit.Code
	}
	if !o.sees() {
		return f
	}
	f.Scope = NullIfZero(o.ScopeName)
	f.NewPorts = append([]uint16{}, o.LatePorts[:min(len(o.LatePorts), maxListed)]...)
	f.Accepted, f.Open, f.InFlight = &o.Accepted, &o.Open, new(s.inFlight())
	f.LastNewMS = NullIfZero(max(s.ms(o.LastNew), 0))
	f.LastByteMS = NullIfZero(max(s.ms(o.LastByte), 0))
	f.Streams, f.LeftOut = &o.Streams, &o.LeftOut
	if s.TrafficConfig.CloseIdle {
		f.ClosedIdle, f.CameBack = &o.Asked.Closed, &o.Asked.CameBack
	}
	if len(s.TrafficConfig.Goaway) > 0 {
		f.Goaway, f.GoawayTo, f.CameBack = &o.Asked.Notified, append([]uint16{}, o.Asked.GoawayPorts...), &o.Asked.CameBack
	}
	return f
}

// ms returns the milliseconds from the trigger to at.
func (s *Stop) ms(at time.Time) int64 { return s.after(at).Milliseconds() }

// NullIfZero returns a pointer to value, or nil, which is null in JSON, for the zero value.
func NullIfZero[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

// Line returns a message as one line of JSON of fewer than limit bytes: the lines of a report
// with semicolons. A message that is too long is cut. Figures is nil for lines that are no report.
func Line(now time.Time, level, message string, figures *Figures, limit int) string {
	message = quote.Line(message) // as in text: some users print the message alone
	for {
		line := Encode(entry{head{Schema, now, level, message}, figures})
		if len(line) < limit || message == "" {
			return line
		}
		message = quote.Cut(message, len(message)/2)
	}
}

// Encode returns a value as one printable line of JSON.
func Encode(value any) string {
	text, _ := json.Marshal(value) // cannot fail for the types of this module
	return quote.JSON(text)
}
