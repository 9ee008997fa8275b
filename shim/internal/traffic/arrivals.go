package traffic

import "time"

// arrivals counts the connections that came after the trigger.
type arrivals struct {
	accepted  int
	atSample  int   // accepted at the end of the previous sample
	awaited   int   // of accepted, counted by the kernel alone so far: a sample may show the connection later
	perSecond []int // connections in each second from the trigger
	missed    bool  // more connections may have come

	latest  moment // the latest that counts, health probes aside
	crowded moment // the latest that came less than QuietFor after another, or was missed
}

// maxSeconds limits perSecond: connections that come later are only in accepted.
const maxSeconds = 3600

// add counts a connection that came so long after the trigger, unless the kernel's count
// has included that connection before.
func (a *arrivals) add(after time.Duration) {
	if a.awaited > 0 {
		a.awaited--
		return
	}
	a.addMany(after, 1)
}

// addCounted makes up for the connections that only the kernel has counted: total is the
// kernel's count since the trigger.
func (a *arrivals) addCounted(after time.Duration, total int) {
	n := total - a.accepted
	if n > 0 {
		a.addMany(after, n)
		a.awaited += n
	}
}

func (a *arrivals) addMany(after time.Duration, n int) {
	a.accepted += n
	second := max(int(after/time.Second), 0)
	a.lengthen(second)
	if second < len(a.perSecond) {
		a.perSecond[second] += n
	}
}

// lengthen makes room in perSecond for each second up to the given second.
func (a *arrivals) lengthen(second int) {
	for second >= len(a.perSecond) && len(a.perSecond) < maxSeconds {
		a.perSecond = append(a.perSecond, 0)
	}
}

// last returns how many connections came in the last seconds of a length of time.
func (a *arrivals) last(span time.Duration) (n int) {
	seconds := min(int((span+time.Second-1)/time.Second), len(a.perSecond))
	for _, count := range a.perSecond[len(a.perSecond)-seconds:] {
		n += count
	}
	return n
}

// note notes the first bytes of a new connection that is no health probe.
func (a *arrivals) note(opened moment, quietFor time.Duration) {
	if a.latest != 0 && time.Duration(opened-a.latest) < quietFor {
		a.crowded = max(a.crowded, opened)
	}
	a.latest = max(a.latest, opened)
}
