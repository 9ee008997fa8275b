package report

import (
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/cost"
	"github.com/lameduck-init/lameduck/shim/internal/plan"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// Cost is what a stop has cost that others carry out, as far as it has come: the report of lameduck watch.
type Cost struct {
	*plan.Plan // of a hold until quiet
	cost.Result
	Now  time.Time // up to when the stop is followed
	TERM time.Time // when TERM said that it has begun; zero: not at all, or not yet

	Accepted int    // connections in the minute before the stop began
	Source   string // the source if it does not show requests in flight; ""
	Deaf     bool   // the server is PID 1, and the kernel keeps TERM from it for lack of a handler
}

// Limit returns how long a stop is followed.
func (c *Cost) Limit() time.Duration { return c.Stop.Grace - stop.ReportMargin }

// Deaf is what Cost.Deaf means.
const Deaf = "the server is PID 1 and has no handler for TERM: KILL ends its stops"

// Began returns when the stop began: at TERM, or at the first end of a port if that came first.
// The zero time means that it has not begun.
func (c *Cost) Began() time.Time {
	began := c.TERM
	for _, e := range c.Ends {
		if began.IsZero() || e.At.Before(began) {
			began = e.At
		}
	}
	return began
}

// FromTERM reports whether times count from TERM, and else from the server's end, before which the
// stop began unseen.
func (c *Cost) FromTERM() bool { return c.Began().Equal(c.TERM) }

// Ended returns when the last port that has ended did, zero if none has.
func (c *Cost) Ended() (at time.Time) {
	for _, e := range c.Ends {
		at = e.At
	}
	return at
}

// KeepsOn reports whether clients that keep their connections used them to the end, and nobody
// else came: they go on in any hold. A balancer that lets go late sends new connections afterwards.
// A stop that began unseen has to have cost something.
func (c *Cost) KeepsOn() bool {
	requests, _ := c.Cut()
	end, quiet := c.Ended(), c.Traffic.QuietFor
	alone := end.Sub(c.Before.LastOther)
	switch {
	case c.FromTERM():
		alone = min(alone, end.Sub(c.TERM))
	case requests+c.Refused == 0:
		return false
	}
	toTheEnd := c.Before.InUse > 0 && end.Sub(c.Before.LastUse) < quiet/2 && c.LastRefused.Sub(end) < quiet/2
	return toTheEnd && alone >= quiet
}

// Needed returns what would have been enough: how long a hold until quiet would have lasted, and the shortest
// fixed delay in whole seconds, with a second to spare. The delay is 0 if nothing came after the stop began.
// Nothing is enough if a client KeepsOn, and it is not known before the server's end, nor of a stop that began
// unseen, and after which nobody came.
func (c *Cost) Needed() (hold, delay time.Duration, isKnown bool) {
	began := c.Began()
	lastUse := max(c.Before.LastOther.Sub(began), c.Before.LastUse.Sub(began), c.LastRefused.Sub(began))
	if lastUse >= 0 { // a client may be refused as the server ends
		delay = lastUse.Truncate(time.Second) + 2*time.Second
	}
	last := max(c.Before.LastByte.Sub(began), lastUse, 0)
	isKnown = len(c.Ends) > 0 && !c.KeepsOn() && (c.FromTERM() || c.Refused > 0)
	return min(last+c.Traffic.QuietFor, c.Stop.Gate.Ceiling), delay, isKnown
}

// Lines returns the verdict: what was lost, what would have been enough, and, of several ports,
// the end of each.
func (c *Cost) Lines() []string {
	lines := phrases{c.course() + ": " + c.losses()}
	switch hold, delay, isKnown := c.Needed(); {
	case c.KeepsOn():
		lines.say("clients that keep their connections used %s to the end: "+
			"no delay is enough for them; see --close-idle", counted(c.Before.InUse, "connection"))
	case !isKnown:
	case !c.FromTERM():
		lines.say("a hold until quiet would have ended %s later; %s more than it waits now",
			seconds(hold), c.needs(delay))
	default:
		enough := "a hold until quiet would have lasted "
		if hold == c.Stop.Gate.Ceiling {
			enough += "to its ceiling, "
		}
		enough += ofGrace(seconds(hold), c.Plan)
		if delay > 0 {
			enough += "; " + c.needs(delay)
		}
		lines = append(lines, enough)
	}
	lines.add(c.Deaf, Deaf)
	if len(c.Ends)+len(c.Listening) > 1 {
		for _, e := range c.Ends {
			lines.say("port %d ended at +%s: %s", e.Port, c.when(e.At), c.cut(e.Cut, e.Streams))
		}
	}
	if len(c.Ends) > 0 {
		lines.about(PortList(c.Listening), "still listening: %s")
	}
	return lines
}

// course returns how the stop went, up to the server's end.
func (c *Cost) course() string {
	what := "the server's end"
	serves := "TERM, and the server still serves after " + c.when(c.Now)
	switch n := len(c.Ends); {
	case n+len(c.Listening) == 0:
		return "TERM, and nothing listens"
	case n == 0 && c.Now.Sub(c.TERM) >= c.Limit():
		return serves + InWords(", until KILL at %s", c.Stop.Grace)
	case n == 0:
		return serves
	case n > 1:
		what = InWords("the end of %d ports", n)
	}
	if c.FromTERM() {
		what = "TERM, then after " + c.when(c.Ended()) + " " + what
	}
	return what
}

// losses returns what was lost.
func (c *Cost) losses() string {
	p := phrases{c.cut(c.Cut())}
	p.count(min(c.Streams, c.Open), "stream", "%s still open")
	switch {
	case c.Uncounted != nil:
		p.say("refused connections cannot be counted: %v", c.Uncounted)
	case c.Refused == 0:
		p.say("no connection refused")
	default:
		refused, until := counted(c.Refused, "connection"), c.when(c.LastRefused)
		if c.AtMost {
			refused = "at most " + refused
		}
		if c.refusedToTheEnd() {
			until += " or later"
		}
		p.say("%s refused until +%s %s", refused, until, Sparkline(c.PerSecond))
	}
	p.count(c.OfProbes, "health probe", "%s refused")
	return strings.Join(p, ", and ")
}

// refusedToTheEnd reports whether somebody was refused so lately that others will probably follow.
func (c *Cost) refusedToTheEnd() bool {
	return c.Now.Sub(c.LastRefused) < c.Traffic.QuietFor/2
}

// needs says how long a fixed delay has to be: a bound if the last reset may not be the last, or no client's.
func (c *Cost) needs(delay time.Duration) string {
	sentence := "a fixed delay needs %s"
	switch {
	case c.refusedToTheEnd():
		sentence = "a fixed delay needs at least %s"
	case c.AtMost:
		sentence = "a fixed delay needs at most %s"
	}
	return InWords(sentence, delay)
}

// cut returns numbers of requests and streams that were cut.
func (c *Cost) cut(requests, streams int) string {
	if c.Source != "" {
		return InWords("requests in flight are not known (source: %s)", c.Source)
	}
	p := phrases{}
	p.add(requests == 0 && (streams == 0 || c.CutAtLeast), "no request was cut")
	p.countCut(requests, "request in flight", "requests in flight")
	if c.CutAtLeast {
		p[0] += ", perhaps more"
	}
	p.countCut(streams, "stream", "streams")
	return strings.Join(p, ", and ")
}

// when returns the time since the stop began in words.
func (c *Cost) when(at time.Time) string { return seconds(at.Sub(c.Began())) }

// JSON returns the verdict as one line of JSON.
func (c *Cost) JSON() string {
	return Line(c.Now, "info", strings.Join(c.Lines(), "; "), c.figures(), 1<<30)
}

func (c *Cost) figures() Fields {
	fromTERM, isShown := c.FromTERM(), c.Source == ""
	ms := func(at time.Time) int64 { return at.Sub(c.Began()).Milliseconds() }
	ended := []Fields{}
	for _, e := range c.Ends {
		ended = append(ended, Fields{
			"port", e.Port, "at_ms", ms(e.At), "cut", Known(isShown, e.Cut), "streams", Known(isShown, e.Streams),
		})
	}
	requests, streams := c.Cut()
	hold, delay, isKnown := c.Needed()
	return Fields{
		"trigger", Known(fromTERM, "TERM"), // null: the server's end came first
		"accepted", Known(isShown, c.Accepted),
		"cut", Known(isShown, requests),
		"streams", Known(isShown, streams),
		"refused", Known(c.Uncounted == nil, c.Refused),
		"refused_at_most", c.AtMost,
		"refused_probes", c.OfProbes,
		"last_refused_ms", Known(!c.LastRefused.IsZero(), ms(c.LastRefused)),
		"server_ended_ms", Known(len(c.Ends) > 0, ms(c.Ended())),
		"held_would_ms", Known(isKnown && fromTERM, hold.Milliseconds()),
		"needed_delay_ms", Known(isKnown && fromTERM, delay.Milliseconds()),
		"further_delay_ms", Known(isKnown && !fromTERM, delay.Milliseconds()),
		"grace_ms", c.Stop.Grace.Milliseconds(),
		"grace_assumed", c.AssumedFrom != "",
		"ended", ended,
		"listening", append([]uint16{}, c.Listening...),
	}
}
