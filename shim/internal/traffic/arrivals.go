package traffic

import "time"

// arrivals counts the connections that came after the trigger.
type arrivals struct {
	shown     int   // by samples and events
	accepted  int   // shown, or counted by the kernel
	perSecond []int // connections in each second from the trigger

	latest  moment // the latest that counts, health probes aside
	crowded moment // the latest that came less than QuietFor after another, or was missed
}

// maxSeconds limits perSecond: connections that come later are only in accepted.
const maxSeconds = 3600

// count makes total the number of connections, as counted so long after the trigger. A
// connection that the kernel has counted may be shown later.
func (a *arrivals) count(after time.Duration, total int) {
	second := max(int(after/time.Second), 0)
	a.lengthen(second)
	if n := total - a.accepted; n > 0 {
		a.accepted = total
		if second < len(a.perSecond) {
			a.perSecond[second] += n
		}
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
