package main

import (
	"strings"
	"time"
)

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
func hookOf(n node, env []variable) (h hook) {
	stop := n.get("lifecycle", "preStop")
	h.line = stop.line(0)
	for _, w := range stop.get("exec", "command").list() {
		h.words = append(h.words, word{expand(w.text(), env), w.at().line(h.line)})
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
	h.busy = stop.get("httpGet").exists() || len(h.words) > 0 && h.sleep == 0 || len(h.words) > 2
	return h
}

// mentions reports whether the hook has anything to do with lameduck.
func (h *hook) mentions() bool {
	for _, w := range h.words {
		if strings.Contains(w.text, "lameduck") {
			return true
		}
	}
	return false
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
	entry := c.entry
	switch {
	case !entry.holds():
	case p.shared || entry.init != "":
		c.report(h.hold.line, holdTwice, "lameduck hold comes on top of the hold of the entrypoint, which it does not find, since that is not PID 1 here: they add up; leave one of them out")
	default:
		c.report(h.hold.line, holdTwice, "lameduck hold returns at once, since the entrypoint is a lameduck that holds by itself; leave one of them out")
	}
}

// reportSleep reports a preStop hook that sleeps too long, or besides a hold.
func (p *pod) reportSleep(c *container, h *hook) {
	switch {
	case h.sleep == 0:
	case h.sleep >= p.seconds() && !p.patch:
		place, _ := p.place(0)
		c.report(h.line, graceTooShort, "preStop sleeps %s, and %s: KILL comes 2 s after the stop signal; sleep less, or give more", short(h.sleep), place)
	case h.hold.holds():
		c.report(h.line, preStopAddsUp, "the hook sleeps %s beside lameduck hold, which knows when traffic has stopped: they add up; leave the sleep out, or give --delay=%v instead", short(h.sleep), h.sleep.Seconds())
	case c.entry.holds() && c.entry.outline != nil:
		c.report(h.line, preStopAddsUp, "preStop sleeps %s, and then lameduck holds, up to %s: they add up; leave the preStop out", short(h.sleep), short(c.entry.outline.MaxHold))
	}
}
