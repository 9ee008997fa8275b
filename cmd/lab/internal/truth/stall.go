package truth

import (
	"sync"
	"time"
)

// stalls are how late the timers of a trial fired: the machine stood still.
type stalls struct {
	precise bool
	mu      sync.Mutex
	late    []lateness
}

type lateness struct {
	at time.Time
	by time.Duration
}

// Of a precise trial, the moments around the signal matter alone.
const (
	stallPeriod        = 100 * ms
	preciseStallPeriod = 2 * ms

	beforeSignal = 1200 * ms
	afterSignal  = 50 * ms
)

// watch goes on to the end of the program.
func (w *stalls) watch() {
	period := stallPeriod
	if w.precise {
		period = preciseStallPeriod
	}
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
func (w *stalls) longest(signal time.Time) (longest time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.late {
		around := l.at.After(signal.Add(-beforeSignal)) && l.at.Add(-l.by).Before(signal.Add(afterSignal))
		if around || !w.precise {
			longest = max(longest, l.by)
		}
	}
	return longest
}
