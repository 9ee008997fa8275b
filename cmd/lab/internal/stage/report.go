package stage

import (
	"encoding/json"
	"strings"
	"time"
)

// Report has figures of a line of lameduck's in JSON; see docs/production.md.
type Report struct {
	Message  string `json:"message"`
	Ended    any    `json:"ended,omitempty"` // why the hold ended, or of lameduck watch each server's end
	Closed   int    `json:"closed_idle,omitempty"`
	Goaway   int    `json:"goaway,omitempty"`
	CameBack int    `json:"came_back,omitempty"`
	Sent     []struct {
		Signal string `json:"signal"`
		AtMS   int64  `json:"at_ms"`
	} `json:"sent,omitempty"`

	// Of lameduck watch, up to now; nil is not known, or not ended.
	Time    time.Time `json:"time,omitzero"`
	Cut     *int      `json:"cut,omitempty"`
	Refused *int      `json:"refused,omitempty"`
}

// Reports returns lameduck's lines in the output of a program.
func Reports(said string) (all []Report) {
	for line := range strings.Lines(said) {
		var r Report
		if json.Unmarshal([]byte(line), &r) == nil {
			all = append(all, r)
		}
	}
	return all
}
