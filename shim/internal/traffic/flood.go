package traffic

import "time"

// To hear of so many connections a second costs more than it tells: there is
// activity, and that is granted.
const tooMany = 20_000

// tolerance is how long it must last, and respite how long nobody listens then.
const (
	tolerance = 250 * time.Millisecond
	respite   = time.Second
)

// Flood says when not to listen to what is told of connections that end. The zero
// value listens.
type Flood struct {
	since time.Time // when the count began
	heard int
	left  time.Time // since when nobody listens; zero: somebody does
}

// Heard is told how many ended since it was last told, and reports whether they
// are too many: nobody should listen until Over.
func (f *Flood) Heard(now time.Time, ended int) (tooMuch bool) {
	f.heard += ended
	span := now.Sub(f.since)
	if float64(f.heard) > tooMany*max(span, tolerance).Seconds() {
		*f = Flood{left: now}
		return true
	}
	if span >= tolerance {
		f.since, f.heard = now, 0
	}
	return false
}

// Lasts reports whether nobody should listen.
func (f *Flood) Lasts() bool { return !f.left.IsZero() }

// Over reports whether to listen anew. From now on it does not last.
func (f *Flood) Over(now time.Time) bool {
	if !f.Lasts() || now.Sub(f.left) < respite {
		return false
	}
	*f = Flood{since: now}
	return true
}
