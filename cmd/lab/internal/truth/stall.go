package truth

import "time"

// stalls are how late the timers of a trial fired: the machine stood still.
type stalls struct {
	precise     bool
	done, ended chan struct{}
	late        []lateness
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

func watchStalls(precise bool) *stalls {
	w := &stalls{precise: precise, done: make(chan struct{}), ended: make(chan struct{})}
	go w.watch()
	return w
}

func (w *stalls) period() time.Duration {
	if w.precise {
		return preciseStallPeriod
	}
	return stallPeriod
}

func (w *stalls) watch() {
	defer close(w.ended)
	tick := time.NewTimer(w.period())
	for last := time.Now(); ; {
		select {
		case <-w.done:
			return
		case <-tick.C:
		}
		now := time.Now()
		if by := now.Sub(last) - w.period(); by > ms {
			w.late = append(w.late, lateness{now, by})
		}
		last = now
		tick.Reset(w.period())
	}
}

// longest ends the watch and returns the longest stall: of the trial, or of a precise
// trial around the signal.
func (w *stalls) longest(signal time.Time) time.Duration {
	close(w.done)
	<-w.ended
	longest := time.Duration(0)
	for _, l := range w.late {
		around := l.at.After(signal.Add(-beforeSignal)) && l.at.Add(-l.by).Before(signal.Add(afterSignal))
		if around || !w.precise {
			longest = max(longest, l.by)
		}
	}
	return longest
}
