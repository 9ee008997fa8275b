package traffic

import "time"

// To hear of so many connections a second costs more than it tells: there is
// activity, and that is granted.
const maxEventRate = 20_000

// minFloodTime is how long it must last, and floodPause how long nobody listens then.
const (
	minFloodTime = 250 * time.Millisecond
	floodPause   = time.Second
)

// Flood says when not to listen to what is told of connections that end. The zero
// value listens.
type Flood struct {
	since time.Time // when the count began
	heard int
	left  time.Time // since when nobody listens; zero: somebody does
}

// Add is told how many ended since it was last told, and reports whether they
// are too many: nobody should listen until Over.
func (f *Flood) Add(now time.Time, ended int) (tooMuch bool) {
	f.heard += ended
	span := now.Sub(f.since)
	if float64(f.heard) > maxEventRate*max(span, minFloodTime).Seconds() {
		*f = Flood{left: now}
		return true
	}
	if span >= minFloodTime {
		f.since, f.heard = now, 0
	}
	return false
}

// Ongoing reports whether nobody should listen.
func (f *Flood) Ongoing() bool { return !f.left.IsZero() }

// TryResume reports whether to listen anew. From now on it does not last.
func (f *Flood) TryResume(now time.Time) bool {
	if !f.Ongoing() || now.Sub(f.left) < floodPause {
		return false
	}
	*f = Flood{since: now}
	return true
}
