package plays

import "time"

// Verdict says how a trial's hold ended.
type Verdict string

const (
	Right Verdict = "right"
	Early Verdict = "early" // a request was cut or lost, or would have been
	Late  Verdict = "late"
)

// Moments are what a trial has seen, relative to TERM.
type Moments struct {
	Signal time.Duration // when lameduck passed on the first signal
	E      time.Duration // the last moment that matters
	L      time.Duration // when the signal should have been sent at the latest
	Lost   int           // requests
}

// Judge returns the Verdict. Where the server is graceful, a signal before E is right as
// long as no request is lost.
func (c *Row) Judge(m Moments) Verdict {
	switch {
	case m.Lost > c.MayCut:
		return Early
	case m.Signal < m.E && !c.Graceful:
		return Early
	case m.Signal > m.L:
		return Late
	}
	return Right
}

// Window returns E and L of a case in which the last request that counts was answered at
// last.
func (c *Row) Window(last time.Duration) (e, l time.Duration) {
	e = max(last, c.NotBefore, 0)
	switch {
	case c.By != 0:
		return e, c.By
	case c.Slack != 0:
		return e, e + c.Slack
	}
	return e, e + c.QuietFor + time.Second
}

// Wrong reports that a Verdict is neither right nor the deviation of a documented limit.
func (c *Row) Wrong(v Verdict) bool { return v != Right && v != c.Deviates }
