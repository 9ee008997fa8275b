package main

import (
	"fmt"
	"slices"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/picture"
)

// The layout of the picture of a stop, in pixels.
const (
	anatomyWidth  = 860
	anatomyHeight = 372
	plotTop       = 106
	plotBottom    = 230
	plotLeft      = 44
	plotRight     = 842
	earliest      = -2000 // the first moment, in milliseconds from the stop
)

// anatomyPicture is a drawing of a stop along a time axis.
type anatomyPicture struct {
	*picture.Picture
	*anatomy
	unit float64 // pixels for a connection
}

// drawAnatomy draws a stop from the moment before the stop to KILL.
func drawAnatomy(a *anatomy) string {
	p := &anatomyPicture{anatomy: a,
		Picture: picture.New(anatomyWidth, anatomyHeight, "Anatomy of a stop: trigger, floor, last request, silence, signal, exit and KILL")}
	perSecond, flight := a.perSecond(), a.inFlight()
	most := slices.Max(perSecond)
	for _, s := range flight {
		most = max(most, s.count)
	}
	p.unit = (plotBottom - plotTop) / float64(most+1)
	p.Text(0, 16, "h", "Anatomy of a stop")
	p.Text(0, 34, "q", "$ "+a.Command)
	p.silence()
	p.bars(perSecond)
	p.curve(flight)
	p.legend()
	p.axis(most)
	p.events()
	p.spans()
	return p.String()
}

// x returns the place of a moment, in milliseconds from the stop.
func (p *anatomyPicture) x(ms int64) float64 {
	share := float64(ms-earliest) / float64(p.GraceMS-earliest)
	return plotLeft + (plotRight-plotLeft)*share
}

// perSecond returns the new connections of each second from earliest on.
func (a *anatomy) perSecond() []int {
	counts := make([]int, (a.GraceMS-earliest)/1000)
	for _, c := range a.Connections {
		if c.FromMS >= earliest {
			counts[(c.FromMS-earliest)/1000]++
		}
	}
	return counts
}

// step is a number of requests in flight from a moment on.
type step struct {
	ms    int64
	count int
}

// inFlight returns the requests in flight from earliest on.
func (a *anatomy) inFlight() []step {
	var changes []step
	for _, c := range a.Connections {
		changes = append(changes, step{c.FromMS, 1}, step{c.ToMS, -1})
	}
	slices.SortStableFunc(changes, func(a, b step) int { return int(a.ms - b.ms) })
	steps := []step{{earliest, 0}}
	count := 0
	for _, c := range changes {
		count += c.count
		if c.ms < earliest {
			steps[0].count = count
			continue
		}
		steps = append(steps, step{c.ms, count})
	}
	return steps
}

func (p *anatomyPicture) bars(perSecond []int) {
	for i, n := range perSecond {
		from := int64(earliest + i*1000)
		height := p.unit * float64(n)
		p.Rect(p.x(from)+1, plotBottom-height, p.x(from+1000)-p.x(from)-2, height, "mute")
	}
}

func (p *anatomyPicture) curve(steps []step) {
	var points []float64
	y := func(s step) float64 { return plotBottom - p.unit*float64(s.count) }
	for i, s := range steps {
		if i > 0 {
			points = append(points, p.x(s.ms), y(steps[i-1]))
		}
		points = append(points, p.x(s.ms), y(s))
	}
	p.Path("curve", points...)
}

// silence shades the time from the last byte to the signal.
func (p *anatomyPicture) silence() {
	from, to := p.x(p.Report.LastByteMS), p.x(p.Report.Sent[0].AtMS)
	p.Rect(from, plotTop, to-from, plotBottom-plotTop, "shade")
	p.TextMiddle((from+to)/2, plotTop+58, "h", "silence")
	p.TextMiddle((from+to)/2, plotTop+74, "", inSeconds(p.Report.Sent[0].AtMS-p.Report.LastByteMS))
}

func (p *anatomyPicture) legend() {
	x := p.x(p.Report.UsedMS) + 24
	p.Rect(x, plotTop+29, 14, 10, "mute")
	p.Text(x+22, plotTop+38, "q", fmt.Sprintf("new connections each second: %d, the last at +%s", p.Report.Accepted, inSeconds(p.Report.LastNewMS)))
	p.Path("curve", x, plotTop+52, x+14, plotTop+52)
	p.Text(x+22, plotTop+56, "q", fmt.Sprintf("requests in flight: %d at the signal", p.Report.InFlight))
}

func (p *anatomyPicture) axis(most int) {
	p.Path("mark", plotLeft, plotBottom, plotRight, plotBottom)
	for s := int64(0); s*1000 <= p.GraceMS; s += 5 {
		p.Path("mark", p.x(s*1000), plotBottom, p.x(s*1000), plotBottom+5)
		p.TextMiddle(p.x(s*1000), plotBottom+18, "q", fmt.Sprintf("%d s", s))
	}
	for n := 0; n <= most; n += 5 {
		y := plotBottom - p.unit*float64(n)
		p.TextEnd(plotLeft-8, y+4, "q", fmt.Sprint(n))
		p.Path("mark", plotLeft-5, y, plotLeft, y)
	}
}

// The baselines of the text of the events, from the top.
const (
	firstLine  = 58
	secondLine = 76
	thirdLine  = 94
)

// events draws the moments, as lines with text above.
func (p *anatomyPicture) events() {
	r := &p.Report
	sent := r.Sent[0]
	p.event(0, firstLine, "mark")
	p.Text(p.x(0)-4, firstLine, "h", "trigger: "+r.Trigger)
	p.event(p.LagMS, thirdLine, "bound")
	p.TextEnd(p.x(p.LagMS)+4, thirdLine, "q", "balancer lets go")
	p.event(r.LastByteMS, secondLine, "mark")
	p.TextEnd(p.x(r.LastByteMS)+4, secondLine, "", "last request, +"+inSeconds(r.LastByteMS))
	p.event(sent.AtMS, firstLine, "mark")
	p.Text(p.x(sent.AtMS)-4, firstLine, "h", fmt.Sprintf("signal: %s, +%s", sent.Signal, inSeconds(sent.AtMS)))
	p.event(r.UsedMS, secondLine, "mark")
	p.Text(p.x(r.UsedMS)-4, secondLine, "", fmt.Sprintf("exit: %d, +%s", *r.ExitCode, inSeconds(r.UsedMS)))
	p.event(p.GraceMS, firstLine, "kill")
	p.TextEnd(p.x(p.GraceMS)+4, firstLine, "h bad", "KILL, not needed")
}

// event draws a line from the text at a baseline to the axis.
func (p *anatomyPicture) event(ms int64, baseline float64, class string) {
	p.Path(class, p.x(ms), baseline+5, p.x(ms), plotBottom)
}

// spans draws the times below the axis, each with a text.
func (p *anatomyPicture) spans() {
	r := &p.Report
	p.span(r.FloorMS, 268, "span", fmt.Sprintf("floor %s: --delay", inSeconds(r.FloorMS)))
	p.Rect(p.x(0), 290, p.x(r.HeldMS)-p.x(0), 8, "time")
	p.span(r.HeldMS, 294, "span", fmt.Sprintf("held %s, until %s", inSeconds(r.HeldMS), r.Ended))
	p.span(r.CeilingMS, 320, "span", fmt.Sprintf("ceiling %s: no hold is longer", inSeconds(r.CeilingMS)))
	p.span(p.GraceMS, 346, "span", "")
	p.TextMiddle(p.x(p.GraceMS/2), 364, "", fmt.Sprintf("grace period %s: %s used", inSeconds(p.GraceMS), inSeconds(r.UsedMS)))
}

// span draws a time from the trigger on, with text behind.
func (p *anatomyPicture) span(to int64, y float64, class, text string) {
	const end = 6
	p.Path(class, p.x(0), y-end, p.x(0), y+end)
	p.Path(class, p.x(0), y, p.x(to), y)
	p.Path(class, p.x(to), y-end, p.x(to), y+end)
	p.Text(p.x(to)+10, y+4, "", text)
}

func inSeconds(ms int64) string { return fmt.Sprintf("%.1f s", float64(ms)/1000) }
