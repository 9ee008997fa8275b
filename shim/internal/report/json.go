package report

import (
	"encoding/json"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/quote"
)

// Schema is the version of the JSON output. The version changes when a name changes its
// meaning or disappears, not when a name is added.
const Schema = 1

// entry is one line in JSON.
type entry struct {
	Schema  int       `json:"schema"`
	Time    time.Time `json:"time"`
	Level   string    `json:"level"`
	Message string    `json:"message"`
	*Figures
}

// Figures are the report of a stop in JSON. Durations are milliseconds, and so are
// moments, counted from the trigger. Unknown values are null.
type Figures struct {
	holdFigures
	trafficFigures
	endFigures
	sourceFigures
}

type holdFigures struct {
	Trigger   string  `json:"trigger"` // a signal, or "hold"
	HeldMS    int64   `json:"held_ms"`
	Ended     *string `json:"ended"`
	FloorMS   int64   `json:"floor_ms"`
	CeilingMS int64   `json:"ceiling_ms"`
}

type trafficFigures struct {
	Accepted   *int   `json:"accepted"`
	LastNewMS  *int64 `json:"last_new_ms"`
	LastByteMS *int64 `json:"last_byte_ms"`
	Open       *int   `json:"open"`
	InFlight   *int   `json:"in_flight"`

	LeftOut  *leftOutFigures `json:"left_out"`
	NewPorts *[]uint16       `json:"new_ports"`
}

// leftOutFigures are the numbers of what did not count as traffic.
type leftOutFigures struct {
	NoBytes  int `json:"no_bytes"`  // new connections without a byte
	Probes   int `json:"probes"`    // requests of health probes
	HalfOpen int `json:"half_open"` // half-open connections, at most at a time
	Gone     int `json:"gone"`      // open connections whose peer no longer answers
	OneWay   int `json:"one_way"`   // open connections on which only the peer sends
	GivenUp  int `json:"given_up"`  // requests silent for too long
	Unclear  int `json:"unclear"`   // silent connections that may have a request, or be idle
}

type endFigures struct {
	Sent         []sentSignal `json:"sent"`
	Lull         *bool        `json:"lull"` // the first signal was sent without a request in flight
	ExitCode     *int         `json:"exit_code"`
	ExitSignal   *string      `json:"exit_signal"`
	GraceUsedMS  int64        `json:"grace_used_ms"`
	GraceAssumed bool         `json:"grace_assumed"`
}

type sourceFigures struct {
	Observer    *string  `json:"observer"`
	Scope       *string  `json:"scope"`
	ProlongedBy *string  `json:"prolonged_by"`
	Peer        *string  `json:"prolonged_by_peer"`
	Suggestion  *string  `json:"suggestion"`
	Details     []string `json:"details"` // in words, with or without room in the message
}

type sentSignal struct {
	Signal string `json:"signal"`
	AtMS   int64  `json:"at_ms"`
}

// Figures returns the report for JSON.
func (s *Stop) Figures() *Figures {
	gate := &s.StopConfig.Gate
	f := &Figures{
		holdFigures: holdFigures{
			Trigger: s.trigger(), HeldMS: s.after(s.end()).Milliseconds(), Ended: NullIfEmpty(string(s.Ended)),
			FloorMS: gate.Floor.Milliseconds(), CeilingMS: gate.MaxHold().Milliseconds(),
		},
		endFigures:    endFigures{Sent: []sentSignal{}, Lull: s.lullFound(), GraceUsedMS: s.after(s.Now).Milliseconds(), GraceAssumed: s.GraceAssumed},
		sourceFigures: s.sourceFigures(),
	}
	for _, sent := range s.Sent {
		f.Sent = append(f.Sent, sentSignal{sent.Signal.String(), s.after(sent.At).Milliseconds()})
	}
	switch {
	case s.ExitedAt.IsZero():
	case s.Exit.Signal != 0:
		f.ExitSignal = NullIfEmpty(s.Exit.Signal.String())
	default:
		f.ExitCode = &s.Exit.Code
	}
	if s.InHold.sees() {
		f.trafficFigures = s.trafficFigures()
	}
	return f
}

// sourceFigures returns how the samples were taken, and what follows from the samples.
func (s *Stop) sourceFigures() sourceFigures {
	cause := s.prolonged()
	f := sourceFigures{
		Observer: NullIfEmpty(s.InHold.Observer), ProlongedBy: NullIfEmpty(cause.by + cause.hint), Details: words(s.details()),
	}
	suggestion := s.suggestion()
	f.Suggestion = NullIfEmpty(suggestion.text + suggestion.more)
	if s.InHold.sees() {
		f.Scope = NullIfEmpty(s.InHold.ScopeName)
	}
	if cause.peer.IsValid() {
		f.Peer = NullIfEmpty(cause.peer.String())
	}
	return f
}

// trafficFigures returns what the samples in the hold showed.
func (s *Stop) trafficFigures() trafficFigures {
	t := &s.InHold.Traffic
	inFlight, givenUp := s.inFlight()
	_, probes := s.probesCounted()
	ports := append([]uint16{}, s.InHold.LatePorts[:min(len(s.InHold.LatePorts), maxListed)]...)
	return trafficFigures{
		Accepted: &t.Accepted, Open: &t.Open, InFlight: &inFlight,
		LastNewMS: s.moment(s.lastNew()), LastByteMS: s.moment(t.LastByte),
		LeftOut: &leftOutFigures{
			NoBytes: s.bare(), Probes: probes, HalfOpen: t.LeftOut.HalfOpen, Gone: t.LeftOut.Gone,
			OneWay: t.LeftOut.OneWay, GivenUp: givenUp, Unclear: t.LeftOut.Undetermined,
		},
		NewPorts: &ports,
	}
}

// moment returns the milliseconds from the trigger to at, nil if at is not later.
func (s *Stop) moment(at time.Time) *int64 {
	if !at.After(s.TriggeredAt) {
		return nil
	}
	ms := s.after(at).Milliseconds()
	return &ms
}

// NullIfEmpty returns a pointer to text, or nil, which is null in JSON, for "".
func NullIfEmpty(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// Line returns a message as one line of JSON of fewer than limit bytes. A message that is
// too long is cut. Figures is nil for lines that are no report.
func Line(now time.Time, level, message string, figures *Figures, limit int) string {
	message = quote.Line(message) // as in text: some users print the message alone
	for {
		line := Encode(entry{Schema, now, level, message, figures})
		if len(line) < limit || message == "" {
			return line
		}
		message = quote.Cut(message, len(message)/2)
	}
}

// Encode returns a value as one printable line of JSON.
func Encode(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return quote.Word(err.Error()) // cannot happen for the types of this module
	}
	return quote.JSON(text)
}
