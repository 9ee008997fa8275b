package truth

import (
	"sync"
	"time"

	"github.com/lameduck-init/lameduck/internal/plays"
)

// stalls are how late the timers of a trial fired: the machine stood still.
type stalls struct {
	mu   sync.Mutex
	late []lateness
}

type lateness struct {
	at time.Time
	by time.Duration
}

// maxStall returns how long the machine may stand still in a trial.
func maxStall(c *plays.Row) time.Duration {
	if c.Precise {
		return 5 * ms // time enough for a request between two samples
	}
	return 400 * ms // about half of what the windows allow
}

// watch goes on to the end of the program.
func (w *stalls) watch(c *plays.Row) {
	period := maxStall(c) / 2
	for {
		last := time.Now()
		time.Sleep(period)
		if by := time.Since(last) - period; by > ms {
			w.mu.Lock()
			w.late = append(w.late, lateness{time.Now(), by})
			w.mu.Unlock()
		}
	}
}

// longest returns the longest stall: of the trial, or of a precise trial around the signal.
func (w *stalls) longest(c *plays.Row, signal time.Time) (longest time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.late {
		around := l.at.After(signal.Add(-1200*ms)) && l.at.Add(-l.by).Before(signal.Add(50*ms))
		if around || !c.Precise {
			longest = max(longest, l.by)
		}
	}
	return longest
}
