package traffic

import "time"

// maxEventRate is how many connections a second may end before events are left unread:
// reading more would cost more than the events are worth. Activity is then certain.
const maxEventRate = 20_000

const (
	minFloodTime = 250 * time.Millisecond // how long a flood lasts before events are left unread
	floodPause   = time.Second            // how long events are left unread
)

// Flood says when events of closed connections are too many to read. The zero value has
// no flood.
type Flood struct {
	since    time.Time // start of the count
	count    int
	pausedAt time.Time // zero: no flood
}

// Add counts the events read since the last call, and reports whether events are too
// many: the caller stops reading until TryResume.
func (f *Flood) Add(now time.Time, events int) (tooMany bool) {
	f.count += events
	span := now.Sub(f.since)
	if float64(f.count) > maxEventRate*max(span, minFloodTime).Seconds() {
		*f = Flood{pausedAt: now}
		return true
	}
	if span >= minFloodTime {
		f.since = now
		f.count = 0
	}
	return false
}

// Ongoing reports whether events are left unread.
func (f *Flood) Ongoing() bool { return !f.pausedAt.IsZero() }

// TryResume reports whether to read events again, and ends the flood in that case.
func (f *Flood) TryResume(now time.Time) bool {
	if !f.Ongoing() || now.Sub(f.pausedAt) < floodPause {
		return false
	}
	*f = Flood{since: now}
	return true
}
