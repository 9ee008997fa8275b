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
	Trigger    string          `json:"trigger"` // a signal, or "hold"
	HeldMS     int64           `json:"held_ms"`
	Ended      *string         `json:"ended"`
	FloorMS    int64           `json:"floor_ms"`
	CeilingMS  int64           `json:"ceiling_ms"`
	Accepted   *int            `json:"accepted"`
	LastNewMS  *int64          `json:"last_new_ms"`
	LastByteMS *int64          `json:"last_byte_ms"`
	Open       *int            `json:"open"`
	InFlight   *int            `json:"in_flight"`
	LeftOut    *leftOut        `json:"left_out"`
	NewPorts   *[]uint16       `json:"new_ports"`
	Sent       []sentInFigures `json:"sent"`
	Lull       *bool           `json:"lull"` // the first signal was sent without a request in flight
	ExitCode   *int            `json:"exit_code"`
	ExitSignal *string         `json:"exit_signal"`

	GraceUsedMS     int64   `json:"grace_used_ms"`
	GraceAssumed    bool    `json:"grace_assumed"`
	Observer        *string `json:"observer"`
	Scope           *string `json:"scope"`
	ProlongedBy     *string `json:"prolonged_by"`
	ProlongedByPeer *string `json:"prolonged_by_peer"`
	Suggestion      *string `json:"suggestion"`
}

// leftOut are the numbers of what did not count as traffic.
type leftOut struct {
	NoBytes  int `json:"no_bytes"`  // new connections without a byte
	Probes   int `json:"probes"`    // requests of health probes
	HalfOpen int `json:"half_open"` // half-open connections, at most at a time
	Gone     int `json:"gone"`      // open connections whose peer no longer answers
	GivenUp  int `json:"given_up"`  // requests silent for too long
}

type sentInFigures struct {
	Signal string `json:"signal"`
	AtMS   int64  `json:"at_ms"`
}

// Figures returns the report for JSON.
func (s *Stop) Figures() *Figures {
	gate := &s.StopConfig.Gate
	words, cause := s.prolonged()
	f := &Figures{
		Trigger: s.trigger(), HeldMS: s.after(s.endedAt()).Milliseconds(), Ended: NullIfEmpty(string(s.Ended)),
		FloorMS: gate.Floor.Milliseconds(), CeilingMS: gate.MaxHold().Milliseconds(),
		Sent: []sentInFigures{}, Lull: s.lull(), GraceUsedMS: s.after(s.Now).Milliseconds(), GraceAssumed: s.GraceAssumed,
		Observer: NullIfEmpty(s.InHold.Observer), ProlongedBy: NullIfEmpty(words), Suggestion: NullIfEmpty(s.suggestion()),
	}
	if cause.Peer.IsValid() {
		f.ProlongedByPeer = NullIfEmpty(cause.Peer.String())
	}
	for _, sent := range s.Sent {
		f.Sent = append(f.Sent, sentInFigures{sent.Signal.String(), s.after(sent.At).Milliseconds()})
	}
	if !s.ExitedAt.IsZero() && s.Exit.Signal != 0 {
		f.ExitSignal = NullIfEmpty(s.Exit.Signal.String())
	} else if !s.ExitedAt.IsZero() {
		f.ExitCode = &s.Exit.Code
	}
	if !s.InHold.sees() {
		return f
	}
	t := &s.InHold.Traffic
	inFlight, silent := s.inFlight()
	ports := append([]uint16{}, s.InHold.LatePorts[:min(len(s.InHold.LatePorts), maxListed)]...)
	f.Scope = NullIfEmpty(s.InHold.ScopeName)
	f.Accepted, f.Open, f.InFlight, f.NewPorts = &t.Accepted, &t.Open, &inFlight, &ports
	f.LastNewMS, f.LastByteMS = s.moment(t.LastNew), s.moment(t.LastByte)
	f.LeftOut = &leftOut{
		NoBytes: t.LeftOut.Bare, Probes: s.probesLeftOut(), HalfOpen: t.LeftOut.HalfOpen, Gone: t.LeftOut.Gone, GivenUp: silent,
	}
	return f
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

// Line returns a message as one line of JSON of fewer than limit bytes: the lines of a report
// with semicolons. A message that is too long is cut. Figures is nil for lines that are no report.
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
