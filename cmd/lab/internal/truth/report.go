package truth

import (
	"bytes"
	"encoding/json"
	"os"
	"time"
)

// report has what a trial needs of lameduck's report.
type report struct {
	Message string `json:"message"`
	Ended   string `json:"ended"`
	Closed  int    `json:"closed_idle"`
	Sent    []struct {
		AtMS int64 `json:"at_ms"`
	} `json:"sent"`
}

// readReport returns the last report in a termination log that has a signal, or nil.
func readReport(path string) *report {
	text, _ := os.ReadFile(path)
	var last *report
	for line := range bytes.Lines(text) {
		r := &report{}
		if json.Unmarshal(line, r) == nil && len(r.Sent) > 0 {
			last = r
		}
	}
	return last
}

// signal returns when the first signal was sent, counted from the trigger.
func (r *report) signal() time.Duration { return time.Duration(r.Sent[0].AtMS) * ms }
