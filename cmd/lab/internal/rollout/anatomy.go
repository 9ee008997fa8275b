package rollout

import (
	"fmt"
	"slices"
	"strings"
)

// The layout of the picture of a stop, in pixels.
const (
	plotTop    = 106
	plotBottom = 230
	plotLeft   = 44
	plotRight  = 842
	earliest   = -2000 // the first moment, in milliseconds from the stop
)

// anatomyPicture is a drawing of a stop along a time axis, from the moment before the stop to
// KILL.
type anatomyPicture struct {
	picture
	report
	grace int64 // in milliseconds
}

func drawAnatomy(t *trial) string {
	s := t.Stops[0]
	p := &anatomyPicture{report: s.report(), grace: t.server.grace.Milliseconds()}
	p.width, p.height = 860, 372
	p.title = "Anatomy of a stop: trigger, floor, last request, silence, signal, exit and KILL"
	p.text(0, 16, "h", "Anatomy of a stop")
	p.text(0, 34, "q", "$ lameduck %s -- server", strings.Join(t.contender.flags(1, t.server), " "))
	p.bars(s.Connections)
	p.events(s.Lag.Milliseconds())
	p.spans()
	return p.String()
}

// x returns the place of a moment, in milliseconds from the stop.
func (p *anatomyPicture) x(ms int64) float64 {
	return plotLeft + (plotRight-plotLeft)*float64(ms-earliest)/float64(p.grace-earliest)
}

// bars draws the new connections of each second, above the axis.
func (p *anatomyPicture) bars(connections []int64) {
	counts := make([]int, (p.grace-earliest)/1000)
	for _, ms := range connections {
		if ms >= earliest {
			counts[(ms-earliest)/1000]++
		}
	}
	unit := (plotBottom - plotTop) / float64(slices.Max(counts))
	for i, n := range counts {
		from := int64(earliest + i*1000)
		height := unit * float64(n)
		p.rect(p.x(from)+1, plotBottom-height, p.x(from+1000)-p.x(from)-2, height, "mute")
	}
	x := p.x(p.UsedMS) + 24
	p.rect(x, plotTop+29, 14, 10, "mute")
	p.text(x+22, plotTop+38, "q", "new connections each second: %d, the last at +%s", p.Accepted, seconds(p.LastNewMS))
	p.line("mark", plotLeft, plotBottom, plotRight, plotBottom)
	for ms := int64(0); ms <= p.grace; ms += 5000 {
		p.line("mark", p.x(ms), plotBottom, p.x(ms), plotBottom+5)
		p.text(p.x(ms), plotBottom+18, "q m", "%d s", ms/1000)
	}
}

// events draws the moments, as lines to the axis with text above, and the silence.
func (p *anatomyPicture) events(lag int64) {
	signal := p.Sent[0]
	const first, second, third = 58, 76, 94 // baselines of the text
	for _, e := range []struct {
		ms       int64
		baseline float64
		line     string
		class    string
		text     string
	}{
		{0, first, "mark", "h", "trigger: " + p.Trigger},
		{lag, third, "bound", "q e", "balancer lets go"},
		{p.LastByteMS, second, "mark", "e", "last request, +" + seconds(p.LastByteMS)},
		{signal.AtMS, first, "mark", "h", fmt.Sprintf("signal: %s, +%s", signal.Signal, seconds(signal.AtMS))},
		{p.UsedMS, second, "mark", "", fmt.Sprintf("exit: %d, +%s", *p.ExitCode, seconds(p.UsedMS))},
		{p.grace, first, "kill", "h bad e", "KILL, not needed"},
	} {
		p.line(e.line, p.x(e.ms), e.baseline+5, p.x(e.ms), plotBottom)
		aside := -4.0
		if strings.HasSuffix(e.class, "e") {
			aside = 4
		}
		p.text(p.x(e.ms)+aside, e.baseline, e.class, "%s", e.text)
	}
	from, to := p.x(p.LastByteMS), p.x(signal.AtMS)
	p.rect(from, plotTop, to-from, plotBottom-plotTop, "shade")
	p.text((from+to)/2, plotTop+58, "h m", "silence")
	p.text((from+to)/2, plotTop+74, "m", "%s", seconds(signal.AtMS-p.LastByteMS))
}

// spans draws the times below the axis, each with a text.
func (p *anatomyPicture) spans() {
	p.rect(p.x(0), 290, p.x(p.HeldMS)-p.x(0), 8, "time")
	for _, s := range []struct {
		ms   int64
		y    float64
		text string
	}{
		{p.FloorMS, 268, fmt.Sprintf("floor %s: --delay", seconds(p.FloorMS))},
		{p.HeldMS, 294, fmt.Sprintf("held %s, until %s", seconds(p.HeldMS), p.Ended)},
		{p.CeilingMS, 320, fmt.Sprintf("ceiling %s: no hold is longer", seconds(p.CeilingMS))},
		{p.grace, 346, ""},
	} {
		from, to := p.x(0), p.x(s.ms)
		p.line("span", from, s.y-6, from, s.y+6)
		p.line("span", to, s.y-6, to, s.y+6)
		p.line("span", from, s.y, to, s.y)
		p.text(to+10, s.y+4, "", "%s", s.text)
	}
	p.text(p.x(p.grace/2), 364, "m", "grace period %s: %s used", seconds(p.grace), seconds(p.UsedMS))
}
