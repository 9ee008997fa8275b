package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// anatomyLag is how late the balancer of the anatomy lets go.
const anatomyLag = 5 * time.Second

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
	*picture
	*stop
	report report
	grace  int64 // in milliseconds
}

func drawAnatomy(t *trial) string {
	s := t.Stops[0]
	p := &anatomyPicture{stop: s, report: s.last(), grace: t.server.grace.Milliseconds(),
		picture: newPicture(860, 372, "Anatomy of a stop: trigger, floor, last request, silence, signal, exit and KILL")}
	p.text(0, 16, "h", "Anatomy of a stop")
	flags := contenderOf(t.Contender).flags(1, t.server)
	p.text(0, 34, "q", "$ lameduck "+strings.Join(flags, " ")+" -- server")
	p.bars()
	p.events()
	p.spans()
	return p.String()
}

// last returns the report of the end of the hold.
func (s *stop) last() (found report) {
	for _, r := range s.Reports {
		if r.Ended != "" {
			found = r
		}
	}
	return found
}

// x returns the place of a moment, in milliseconds from the stop.
func (p *anatomyPicture) x(ms int64) float64 {
	return plotLeft + (plotRight-plotLeft)*float64(ms-earliest)/float64(p.grace-earliest)
}

// bars draws the new connections of each second, above the axis.
func (p *anatomyPicture) bars() {
	counts := make([]int, (p.grace-earliest)/1000)
	for _, c := range p.Connections {
		if c.FromMS >= earliest {
			counts[(c.FromMS-earliest)/1000]++
		}
	}
	unit := (plotBottom - plotTop) / float64(slices.Max(counts))
	for i, n := range counts {
		from := int64(earliest + i*1000)
		height := unit * float64(n)
		p.rect(p.x(from)+1, plotBottom-height, p.x(from+1000)-p.x(from)-2, height, "mute")
	}
	x := p.x(p.report.UsedMS) + 24
	p.rect(x, plotTop+29, 14, 10, "mute")
	p.text(x+22, plotTop+38, "q", fmt.Sprintf("new connections each second: %d, the last at +%s",
		p.report.Accepted, inSeconds(p.report.LastNewMS)))
	p.path("mark", plotLeft, plotBottom, plotRight, plotBottom)
	for s := int64(0); s*1000 <= p.grace; s += 5 {
		p.path("mark", p.x(s*1000), plotBottom, p.x(s*1000), plotBottom+5)
		p.textMiddle(p.x(s*1000), plotBottom+18, "q", fmt.Sprintf("%d s", s))
	}
}

// events draws the moments, as lines to the axis with text above, and the silence.
func (p *anatomyPicture) events() {
	r, signal := &p.report, p.report.Sent[0]
	const first, second, third = 58, 76, 94 // baselines of the text
	lag := p.Lag.Milliseconds()
	for _, e := range []struct {
		ms       int64
		baseline float64
		line     string
		before   bool // the text ends at the line
		class    string
		text     string
	}{
		{0, first, "mark", false, "h", "trigger: " + r.Trigger},
		{lag, third, "bound", true, "q", "balancer lets go"},
		{r.LastByteMS, second, "mark", true, "", "last request, +" + inSeconds(r.LastByteMS)},
		{signal.AtMS, first, "mark", false, "h", fmt.Sprintf("signal: %s, +%s", signal.Signal, inSeconds(signal.AtMS))},
		{r.UsedMS, second, "mark", false, "", fmt.Sprintf("exit: %d, +%s", *r.ExitCode, inSeconds(r.UsedMS))},
		{p.grace, first, "kill", true, "h bad", "KILL, not needed"},
	} {
		p.path(e.line, p.x(e.ms), e.baseline+5, p.x(e.ms), plotBottom)
		if e.before {
			p.textEnd(p.x(e.ms)+4, e.baseline, e.class, e.text)
		} else {
			p.text(p.x(e.ms)-4, e.baseline, e.class, e.text)
		}
	}
	from, to := p.x(r.LastByteMS), p.x(signal.AtMS)
	p.rect(from, plotTop, to-from, plotBottom-plotTop, "shade")
	p.textMiddle((from+to)/2, plotTop+58, "h", "silence")
	p.textMiddle((from+to)/2, plotTop+74, "", inSeconds(signal.AtMS-r.LastByteMS))
}

// spans draws the times below the axis, each with a text.
func (p *anatomyPicture) spans() {
	r := &p.report
	p.rect(p.x(0), 290, p.x(r.HeldMS)-p.x(0), 8, "time")
	for _, s := range []struct {
		to   int64
		y    float64
		text string
	}{
		{r.FloorMS, 268, fmt.Sprintf("floor %s: --delay", inSeconds(r.FloorMS))},
		{r.HeldMS, 294, fmt.Sprintf("held %s, until %s", inSeconds(r.HeldMS), r.Ended)},
		{r.CeilingMS, 320, fmt.Sprintf("ceiling %s: no hold is longer", inSeconds(r.CeilingMS))},
		{p.grace, 346, ""},
	} {
		for _, end := range []int64{0, s.to} {
			p.path("span", p.x(end), s.y-6, p.x(end), s.y+6)
		}
		p.path("span", p.x(0), s.y, p.x(s.to), s.y)
		p.text(p.x(s.to)+10, s.y+4, "", s.text)
	}
	p.textMiddle(p.x(p.grace/2), 364, "", fmt.Sprintf("grace period %s: %s used", inSeconds(p.grace), inSeconds(r.UsedMS)))
}

func inSeconds(ms int64) string { return seconds(float64(ms)) }
