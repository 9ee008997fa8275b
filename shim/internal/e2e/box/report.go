package box

import (
	"encoding/json"
	"strings"
)

// Report is a line of lameduck's with --log-format=json; docs/production.md has the names. A
// number that is null or missing is -1.
type Report struct {
	Level, Message  string
	Schema          int
	Trigger, Ended  string
	HeldMS          int `json:"held_ms"`
	FloorMS         int `json:"floor_ms"`
	CeilingMS       int `json:"ceiling_ms"`
	Accepted, Open  int
	LastNewMS       int   `json:"last_new_ms"`
	LastByteMS      int   `json:"last_byte_ms"`
	InFlight        int   `json:"in_flight"`
	ClosedIdle      int   `json:"closed_idle"`
	Goaway          int   `json:"goaway"`
	GoawayPorts     []int `json:"goaway_ports"`
	CameBack        int   `json:"came_back"`
	Observer, Scope string
	ExitCode        int  `json:"exit_code"`
	GraceUsedMS     int  `json:"grace_used_ms"`
	GraceAssumed    bool `json:"grace_assumed"`
	Sent            []struct {
		Signal string
		AtMS   int `json:"at_ms"`
	}
}

// ParseReport parses a line with --log-format=json. A line in text is a message.
func ParseReport(line string) Report {
	r := Report{Accepted: -1, Open: -1, LastNewMS: -1, LastByteMS: -1, InFlight: -1, ExitCode: -1}
	if json.Unmarshal([]byte(line), &r) != nil {
		r.Message = strings.TrimPrefix(line, "lameduck: ")
	}
	return r
}

// Reports returns lameduck's lines so far.
func (b *Box) Reports() (list []Report) {
	for _, line := range b.Err.All() {
		list = append(list, ParseReport(line.Text))
	}
	return list
}

// Report returns the last line about a stop.
func (b *Box) Report() (last Report) {
	b.T.Helper()
	for _, r := range b.Reports() {
		if r.Trigger != "" {
			last = r
		}
	}
	if last.Trigger == "" {
		b.T.Errorf("no report: %v", b.Err.All())
	}
	return last
}

// Signals returns the signals that the report has as sent.
func (r Report) Signals() string {
	var names []string
	for _, s := range r.Sent {
		names = append(names, s.Signal)
	}
	return strings.Join(names, " ")
}

// Messages returns the text of lameduck's lines so far.
func (b *Box) Messages() (list []string) {
	for _, r := range b.Reports() {
		list = append(list, r.Message)
	}
	return list
}

// WantWarning wants exactly one warning, with text in it; with an empty text, none.
func (b *Box) WantWarning(text string) {
	b.T.Helper()
	var warnings []string
	for _, r := range b.Reports() {
		if r.Level == "warn" {
			warnings = append(warnings, r.Message)
		}
	}
	if text == "" && len(warnings) > 0 || text != "" && (len(warnings) != 1 || !strings.Contains(warnings[0], text)) {
		b.T.Errorf("warnings: %q, want %q", warnings, text)
	}
}
