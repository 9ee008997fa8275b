package main

import "time"

// hook is a container's preStop hook.
type hook struct {
	line  int
	words []word // the command
	sleep time.Duration
	busy  bool // the hook takes an unknown time
	call  *call
	hold  *lameduck // the lameduck hold of call
}

// hookOf reads a container's preStop hook.
func hookOf(n node) (h hook) {
	stop := n.get("lifecycle", "preStop")
	h.line = stop.line(0)
	for _, w := range stop.get("exec", "command").list() {
		h.words = append(h.words, word{w.text(), w.at().line(h.line)})
	}
	if seconds := stop.get("sleep", "seconds"); seconds.exists() {
		length, _ := seconds.number()
		h.sleep, h.line = time.Duration(length)*time.Second, seconds.Line
		return h
	}
	h.sleep = sleeps(h.words)
	if h.sleep > 0 {
		h.line = h.words[len(h.words)-1].line
	}
	h.call = callIn(h.words)
	h.busy = stop.exists() && (h.sleep == 0 || len(h.words) > 2)
	return h
}

// readHook reads the hook's call of lameduck as lameduck hold.
func (p *pod) readHook(c *container, h *hook) {
	c.reportOneWord(h.words, hookFails)
	if h.call == nil || h.call.subcommand != "" && h.call.subcommand != "hold" {
		return
	}
	if h.call.subcommand == "" {
		c.report(h.call.program.line, sayHold, "a preStop hook without the word hold: say lameduck hold")
	}
	h.hold = c.read(true, h.call.program.line, h.call.args, h.call.unclear)
	if c.entry.holds() {
		c.report(h.hold.line, holdTwice,
			"the entrypoint is a lameduck that holds by itself: lameduck hold returns at once, or the holds add up "+
				"where the entrypoint is not PID 1; leave one of them out")
	}
}

// reportSleep reports a preStop hook that sleeps too long, or besides a hold.
func (p *pod) reportSleep(c *container, h *hook) {
	switch {
	case h.sleep == 0:
	case h.sleep >= p.seconds() && !p.patch:
		place, _ := p.place(0)
		c.report(h.line, graceTooShort,
			"preStop sleeps %s, and %s: KILL comes 2 s after the stop signal; sleep less, or give more",
			short(h.sleep), place)
	case h.hold.holds():
		c.report(h.line, preStopAddsUp,
			"the hook sleeps %s beside lameduck hold, which knows when traffic has stopped: they add up; leave the "+
				"sleep out, or give --delay=%v instead", short(h.sleep), h.sleep.Seconds())
	case c.entry.holds() && c.entry.outline != nil:
		c.report(h.line, preStopAddsUp,
			"preStop sleeps %s, and then lameduck holds, up to %s: they add up; leave the preStop out",
			short(h.sleep), short(c.entry.outline.MaxHold))
	}
}
