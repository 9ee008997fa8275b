package report

import (
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/cost"
)

// Cost is what a stop has cost, as lameduck watch reports it.
type Cost struct {
	cost.Stop
	Now          time.Time
	Grace        time.Duration
	GraceAssumed bool
	Source       string // the source if it does not show requests in flight; ""
}

// Lines returns the verdict: what was lost, what would have been enough, and, of several ports,
// the end of each.
func (c *Cost) Lines() []string {
	lines := phrases{c.course() + ": " + strings.Join(c.losses(), ", and ")}
	hold, delay := c.Needed()
	switch {
	case !c.showsNeed():
	case c.KeepsOn():
		lines.add(true, "clients that keep their connections used %s to the end: "+
			"no delay is enough for them; see --close-idle", counted(c.InUse, "connection"))
	case !c.fromTERM():
		lines.add(true, "a hold until quiet would have ended %s later; a fixed delay needs %s%s more than it waits now",
			seconds(hold), c.bound(), delay)
	default:
		enough := ofGrace(seconds(hold), c.Grace, c.GraceAssumed)
		if hold == c.Ceiling {
			enough = InWords("to its ceiling, %s", enough)
		}
		enough = InWords("a hold until quiet would have lasted %s", enough)
		if delay > 0 {
			enough = InWords("%s; a fixed delay needs %s%s", enough, c.bound(), delay)
		}
		lines = append(lines, enough)
	}
	if len(c.Ends) > 1 || len(c.Listening) > 0 {
		for _, e := range c.Ends {
			lines.add(true, "port %d ended at +%s: %s", e.Port, c.when(e.At), c.cut(e.Cut))
		}
	}
	lines.add(len(c.Ends) > 0 && len(c.Listening) > 0, "still listening: %s", PortList(c.Listening))
	return lines
}

// fromTERM reports whether times count from TERM, and else from the server's end, before which the
// stop began unseen.
func (c *Cost) fromTERM() bool { return c.Began().Equal(c.TERM) }

// showsNeed reports whether the stop shows what would have been enough: not before the server's
// end, nor of a stop that began unseen and after which nobody came.
func (c *Cost) showsNeed() bool {
	return len(c.Ends) > 0 && (c.fromTERM() || c.Refused > 0)
}

// course returns how the stop went, up to the server's end.
func (c *Cost) course() string {
	what := "the server's end"
	if len(c.Ends) > 1 {
		what = InWords("the end of %d ports", len(c.Ends))
	}
	switch {
	case len(c.Ends) > 0 && c.fromTERM():
		return InWords("TERM, then after %s %s", c.when(c.Ended()), what)
	case len(c.Ends) > 0:
		return what
	case len(c.Listening) > 0:
		serves := InWords("TERM, and the server still serves after %s", c.when(c.Now))
		if c.Now.Sub(c.TERM) >= c.Limit {
			serves = InWords("%s, until KILL at %s", serves, c.Grace)
		}
		return serves
	}
	return "TERM, and nothing listens"
}

// losses returns what was lost.
func (c *Cost) losses() (p phrases) {
	onlyStreams := c.Streams > 0 && c.Source == "" && c.Cut() == 0 && !c.CutAtLeast
	p.put(!onlyStreams, c.cut(c.Cut()))
	p.addStreams(c.Streams, true)
	switch {
	case c.Uncounted != nil:
		p.add(true, "refused connections cannot be counted: %v", c.Uncounted)
	case c.Refused == 0:
		p.add(true, "no connection refused")
	default:
		refused, until := counted(c.Refused, "connection"), c.when(c.LastRefused)
		if c.AtMost {
			refused = InWords("at most %s", refused)
		}
		if c.refusedToTheEnd() {
			until = InWords("%s or later", until)
		}
		p.add(true, "%s refused until +%s %s", refused, until, Sparkline(c.PerSecond))
	}
	p.add(c.OfProbes > 0, "%s refused", counted(c.OfProbes, "health probe"))
	return p
}

// refusedToTheEnd reports whether somebody was refused so lately that others will probably follow.
func (c *Cost) refusedToTheEnd() bool {
	return c.Refused > 0 && c.Now.Sub(c.LastRefused) < c.QuietFor/2
}

// bound says of what a delay is a bound, if the last reset may not be the last, or no client's.
func (c *Cost) bound() string {
	switch {
	case c.refusedToTheEnd():
		return "at least "
	case c.AtMost:
		return "at most "
	}
	return ""
}

// cut returns a number of cut requests in words.
func (c *Cost) cut(n int) string {
	text := "no request was cut"
	switch {
	case c.Source != "":
		return InWords("requests in flight are not known (source: %s)", c.Source)
	case n == 1:
		text = "1 request in flight was cut"
	case n > 1:
		text = InWords("%d requests in flight were cut", n)
	}
	if c.CutAtLeast {
		return InWords("%s, perhaps more", text)
	}
	return text
}

// when returns the time since the stop began in words.
func (c *Cost) when(at time.Time) string { return seconds(at.Sub(c.Began())) }

// costEntry is the verdict as one line in JSON. Durations are milliseconds, and so are moments,
// counted from when the stop began. Unknown values are null.
type costEntry struct {
	head
	Trigger        *string   `json:"trigger"` // "TERM"; null: the server's end came first
	Accepted       *int      `json:"accepted"`
	Cut            *int      `json:"cut"`
	Streams        *int      `json:"streams"`
	Refused        *int      `json:"refused"`
	RefusedAtMost  bool      `json:"refused_at_most"`
	RefusedProbes  int       `json:"refused_probes"`
	LastRefusedMS  *int64    `json:"last_refused_ms"`
	ServerEndedMS  *int64    `json:"server_ended_ms"`
	HeldWouldMS    *int64    `json:"held_would_ms"`
	NeededDelayMS  *int64    `json:"needed_delay_ms"`
	FurtherDelayMS *int64    `json:"further_delay_ms"`
	GraceMS        int64     `json:"grace_ms"`
	GraceAssumed   bool      `json:"grace_assumed"`
	Ended          []endedIn `json:"ended"`
	Listening      []uint16  `json:"listening"`
}

type endedIn struct {
	Port uint16 `json:"port"`
	AtMS int64  `json:"at_ms"`
	Cut  *int   `json:"cut"`
}

// JSON returns the verdict as one line of JSON.
func (c *Cost) JSON() string {
	began := c.Began()
	ms := func(at time.Time) *int64 { return new(at.Sub(began).Milliseconds()) }
	e := costEntry{
		head:          head{Schema, c.Now, "info", strings.Join(c.Lines(), "; ")},
		RefusedAtMost: c.AtMost, RefusedProbes: c.OfProbes, GraceMS: c.Grace.Milliseconds(), GraceAssumed: c.GraceAssumed,
		Ended: []endedIn{}, Listening: append([]uint16{}, c.Listening...),
	}
	if c.fromTERM() {
		e.Trigger = new("TERM")
	}
	known := func(n int) *int {
		if c.Source != "" {
			return nil
		}
		return &n
	}
	e.Accepted, e.Cut, e.Streams = known(c.Accepted), known(c.Cut()), known(c.Streams)
	if c.Uncounted == nil {
		e.Refused = &c.Refused
	}
	for _, end := range c.Ends {
		e.Ended = append(e.Ended, endedIn{end.Port, *ms(end.At), known(end.Cut)})
	}
	if !c.LastRefused.IsZero() {
		e.LastRefusedMS = ms(c.LastRefused)
	}
	if len(c.Ends) > 0 {
		e.ServerEndedMS = ms(c.Ended())
	}
	if c.showsNeed() && !c.KeepsOn() {
		hold, delay := c.Needed()
		if c.fromTERM() {
			e.HeldWouldMS, e.NeededDelayMS = new(hold.Milliseconds()), new(delay.Milliseconds())
		} else {
			e.FurtherDelayMS = new(delay.Milliseconds())
		}
	}
	return Encode(e)
}
