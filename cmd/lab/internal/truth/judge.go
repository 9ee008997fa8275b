package truth

import "time"

// verdict says how a trial's hold ended.
type verdict string

const (
	right verdict = "right"
	early verdict = "early" // a request was cut or lost, or would have been
	late  verdict = "late"
)

// moments are what a trial has seen, relative to TERM.
type moments struct {
	Signal time.Duration // when lameduck passed on the first signal
	E      time.Duration // the last moment that matters
	L      time.Duration // when the signal should have been sent at the latest
	Lost   int           // requests
}

// judge returns the verdict. Where the server is graceful, a signal before E is right as
// long as no request is lost.
func (c *truthCase) judge(m moments) verdict {
	switch {
	case m.Lost > c.mayCut:
		return early
	case m.Signal < m.E && !c.graceful:
		return early
	case m.Signal > m.L:
		return late
	}
	return right
}

// window returns E and L of a case in which the last request that counts was answered at
// last.
func (c *truthCase) window(last time.Duration) (e, l time.Duration) {
	e = max(last, c.notBefore, 0)
	switch {
	case c.by != 0:
		return e, c.by
	case c.slack != 0:
		return e, e + c.slack
	}
	return e, e + c.quietFor + time.Second
}

// wrong reports that a verdict is neither right nor the deviation of a documented limit.
func (c *truthCase) wrong(v verdict) bool { return v != right && v != c.deviates }
