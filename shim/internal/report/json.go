package report

import (
	"encoding/json"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/quote"
)

// Schema is the version of the JSON output. The version changes when a name changes its
// meaning or disappears, not when a name is added.
const Schema = 1

// Fields are names, each with its value, of an object in JSON. Durations are milliseconds, and so are
// moments, counted from the beginning of the stop. Unknown values are null.
type Fields []any

// MarshalJSON implements json.Marshaler, with the names in their order.
func (f Fields) MarshalJSON() ([]byte, error) {
	text := []byte("{")
	for i, one := range f {
		part, _ := json.Marshal(one) // cannot fail for the types of this module
		text = append(append(text, part...), ":,"[i%2])
	}
	text[len(text)-1] = '}'
	return text, nil
}

// Known returns a value, or nil, which is null in JSON, for one that is not known.
func Known(isKnown bool, value any) any {
	if !isKnown {
		return nil
	}
	return value
}

// OrNull returns a value, or nil for the zero value.
func OrNull[T comparable](value T) any {
	var zero T
	return Known(value != zero, value)
}

// Figures returns the report of a stop for JSON.
func (s *Stop) Figures() Fields {
	o := &s.InHold
	sees := o.sees()
	closes, notifies := sees && s.Letgo.CloseIdle, sees && len(s.Letgo.Goaway) > 0
	hasExited, signal := !s.ExitedAt.IsZero(), s.Exit.Signal
	sent := []Fields{}
	for _, one := range s.Sent {
		sent = append(sent, Fields{"signal", one.Signal.String(), "at_ms", s.ms(one.At)})
	}
	words, cause := s.prolonged()
	waited, atWork := s.workers()
	return Fields{
		"trigger", s.trigger(), // a signal, or "hold"
		"held_ms", s.held().Milliseconds(),
		"ended", OrNull(string(s.Ended)),
		"floor_ms", s.Stop.Gate.Floor.Milliseconds(),
		"ceiling_ms", s.Stop.Gate.MaxHold().Milliseconds(),
		"accepted", Known(sees, o.Accepted),
		"last_new_ms", Known(sees && s.after(o.LastNew) > 0, s.ms(o.LastNew)),
		"last_byte_ms", Known((sees || o.Observer == Datagrams) && s.after(o.LastByte) > 0, s.ms(o.LastByte)),
		"open", Known(sees, o.Open),
		"in_flight", Known(sees, s.inFlight()),
		"streams", Known(sees, o.Streams), // at the end of the hold, as all before
		"left_out", Known(sees, o.LeftOut),
		"closed_idle", Known(closes, o.Asked.Closed), // kept connections
		"goaway", Known(notifies, o.Asked.Notified), // connections on which GOAWAY was sent
		"goaway_ports", Known(notifies, append([]uint16{}, o.Asked.GoawayPorts...)),
		"came_back", Known(closes || notifies, o.Asked.CameBack), // connections since, from the peers of these
		"new_ports", Known(sees, append([]uint16{}, o.LatePorts[:min(len(o.LatePorts), maxListed)]...)),
		"sent", sent,
		"lull", Known(s.Lull.Sought, s.Lull.Found), // the first signal was sent without a request in flight
		"exit_code", Known(hasExited && signal == 0, s.Exit.Code),
		"exit_signal", Known(hasExited && signal != 0, signal.String()),
		"waited_for", s.inFigures(waited), // processes that the command left behind, at work
		"left", s.inFigures(atWork), // those that had not ended
		"grace_used_ms", s.ms(s.Now),
		"grace_assumed", s.AssumedFrom != "",
		"observer", OrNull(o.Observer),
		"scope", Known(sees, OrNull(o.ScopeName)),
		"prolonged_by", OrNull(words),
		"prolonged_by_peer", OrNull(cause.Peer),
		"suggestion", OrNull(s.suggestion()),
	}
}

// inFigures returns workers for JSON, the first maxListed.
func (s *Stop) inFigures(list []Worker) []Fields {
	figures := []Fields{}
	for _, w := range list[:min(len(list), maxListed)] {
		figures = append(figures, Fields{
			"program", w.Program, "pid", w.PID, "ended_ms", Known(!w.EndedAt.IsZero(), s.ms(w.EndedAt)),
		})
	}
	return figures
}

// ms returns the milliseconds from the trigger to at.
func (s *Stop) ms(at time.Time) int64 { return s.after(at).Milliseconds() }

// Line returns a message as one line of JSON of fewer than limit bytes: the lines of a report
// with semicolons. A message that is too long is cut. Figures is nil for lines that are no report.
func Line(now time.Time, level, message string, figures Fields, limit int) string {
	message = quote.Line(message) // as in text: some users print the message alone
	for {
		line := Encode(append(Fields{"schema", Schema, "time", now, "level", level, "message", message}, figures...))
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
