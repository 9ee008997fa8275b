package traffic

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/ledger"
)

// moment is a time since long before the trigger.
type moment = ledger.Moment

const trigger = ledger.Trigger

// activity is when the latest connection came, and when the latest byte moved; 0: never.
type activity struct {
	opened, moved moment
	shut          moment // when the latest byte moved on those that lameduck has closed for reading
}

func (a *activity) add(b activity) {
	a.opened = max(a.opened, b.opened)
	a.moved = max(a.moved, b.moved)
	a.shut = max(a.shut, b.shut)
}

// activityOf returns the activity on a connection, on which a byte has moved last at a time.
func activityOf(c *ledger.Conn, moved moment) activity {
	if c.Shut {
		return activity{opened: c.Opened, shut: moved}
	}
	return activity{opened: c.Opened, moved: moved}
}

// both returns the activity of a connection that is not known: it came, or a byte moved on it.
func both(at moment) activity { return activity{opened: at, moved: at} }

// countNew makes total the number of connections, as counted at a moment. A connection that the
// kernel has counted may be shown later.
func (t *Tracker) countNew(at moment, total int) {
	t.perSecond.Add(at-trigger, max(total-t.accepted, 0))
	t.accepted = max(t.accepted, total)
}

// newWithin returns how many connections came in the last seconds of a length of time.
func (t *Tracker) newWithin(span time.Duration) (n int) {
	seconds := int((span + time.Second - 1) / time.Second)
	for _, count := range t.perSecond[max(len(t.perSecond)-seconds, 0):] {
		n += count
	}
	return n
}

// Seconds are counts, in each second from a first one.
type Seconds []int

// maxSeconds limits Seconds. What comes later counts in the last.
const maxSeconds = 3600

// Add adds n to the count of a second, and makes room for each second up to it. What has come
// before the first second counts in the first.
func (s *Seconds) Add(after time.Duration, n int) {
	second := min(max(int(after/time.Second), 0), maxSeconds-1)
	for second >= len(*s) {
		*s = append(*s, 0)
	}
	(*s)[second] = max((*s)[second]+n, 0)
}
