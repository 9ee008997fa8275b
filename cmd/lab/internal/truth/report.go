package truth

import (
	"encoding/json"
	"strings"
	"time"
)

// report has what a trial needs of lameduck's report.
type report struct {
	Message string `json:"message"`
	Ended   string `json:"ended"`
	Sent    []struct {
		AtMS int64 `json:"at_ms"`
	} `json:"sent"`
}

// readReport returns the last report in lameduck's lines that has a signal, or nil.
func readReport(text string) *report {
	var last *report
	for line := range strings.Lines(text) {
		r := &report{}
		if json.Unmarshal([]byte(line), r) == nil && len(r.Sent) > 0 {
			last = r
		}
	}
	return last
}

// signal returns when the first signal was sent, counted from the trigger.
func (r *report) signal() time.Duration { return time.Duration(r.Sent[0].AtMS) * ms }
