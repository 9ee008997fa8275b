package truth

import (
	"bytes"
	"encoding/json"
	"os"
	"sync"
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

// readReport returns the last report in a termination log that has a signal, or nil.
func readReport(path string) *report {
	text, _ := os.ReadFile(path)
	return lastReport(text)
}

func lastReport(text []byte) *report {
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

// lines collects what lameduck and the server write. A process may write at any time.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
