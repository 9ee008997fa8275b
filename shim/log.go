package shim

import (
	"fmt"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/observe"
	"github.com/lameduck-init/lameduck/shim/internal/report"
	"github.com/lameduck-init/lameduck/shim/internal/stderr"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// levelNames are the names of the levels in JSON.
var levelNames = [...]string{Error: "error", Warn: "warn", Info: "info", Debug: "debug"}

// Say writes one line to standard error, the error that ends lameduck, and waits only a
// moment for the line to be read.
func Say(text string, inJSON bool) { say(newStderr(2, inJSON), text, inJSON) }

func say(out *stderr.Writer, text string, inJSON bool) {
	if inJSON {
		text = jsonLine(Error, text, nil)
	} else {
		text = "lameduck: " + text
	}
	out.Line(text)
	out.Flush()
}

// newStderr returns a writer to fd that reports dropped lines in the format of the other
// lines.
func newStderr(fd int, inJSON bool) *stderr.Writer {
	out := stderr.New(fd)
	if inJSON {
		out.DroppedText = func(n int) string {
			return jsonLine(Warn, fmt.Sprintf("%d lines dropped: standard error was not read in time", n), nil)
		}
	}
	return out
}

func jsonLine(level Level, message string, figures *report.Figures) string {
	return report.Line(time.Now(), levelNames[level], message, figures, stderr.MaxLine)
}

// log writes a message if the level allows it.
func (l *loop) log(level Level, format string, args ...any) {
	if level > l.cfg.Level {
		return
	}
	text := fmt.Sprintf(format, args...)
	switch {
	case l.cfg.JSON:
		text = jsonLine(level, text, nil)
	case level == Warn:
		text = "lameduck: warning: " + text
	default:
		text = "lameduck: " + text
	}
	l.host.writeLine(text)
}

// report writes lines of the report, which no level turns off. In JSON they are one object.
func (l *loop) report(lines []string, figures *report.Figures) {
	if l.cfg.JSON {
		l.host.writeLine(jsonLine(Info, strings.Join(lines, "; "), figures))
		return
	}
	var named []string
	for _, line := range lines {
		named = append(named, "lameduck: "+line)
	}
	l.host.writeLine(named...)
}

// stopReport returns what can be reported about the stop now.
func (l *loop) stopReport() *report.Stop {
	s := &report.Stop{
		Terms:        l.plan.terms(),
		Record:       l.machine.Record(),
		Now:          time.Now(),
		InHold:       observation(&l.samples.inHold),
		ShellDropped: l.shellDropped,
		OtherProgram: l.otherProgram,
		OnStopUntil:  l.children.onStopUntil,
	}
	if l.samples.afterHold != nil {
		after := observation(l.samples.afterHold)
		s.AfterHold = &after
	}
	return s
}

// terms returns the parts of the plan that a report refers to.
func (p *plan) terms() report.Terms {
	terms := report.Terms{
		StopConfig: &p.stop, TrafficConfig: &p.traffic, Hook: p.hook, WaitGone: p.paths,
		GraceAssumed: p.grace.assumed, AssumedFrom: p.grace.from, GraceCaveat: p.grace.caveat,
	}
	if known := p.server.preset; known != nil {
		terms.Server = known.Name
		terms.ClosesKept = known.ClosesKept
		terms.Caveat = known.Caveat
	}
	return terms
}

// observation returns the parts of a sample that a report shows.
func observation(s *observe.Snapshot) report.Observation {
	return report.Observation{
		Traffic:         s.Traffic,
		Observer:        s.Observer,
		Blind:           s.Observer == observe.None,
		InFlightUnknown: s.Observer == observe.ProcNet,
		ScopeName:       s.Listeners.Method.Name(),
		UDPPorts:        s.Listeners.UDP,
		LatePorts:       s.Listeners.Late,
		Unseen:          unseen(&s.Listeners),
		PathsPresent:    s.PathsPresent,
	}
}

// unseen returns where the container serves and cannot be observed, in words, UDP aside.
func unseen(l *observe.Listeners) []string {
	if len(l.Unix) == 0 {
		return l.Unseen
	}
	return append([]string{"Unix sockets"}, l.Unseen...)
}

// reportStop writes lines about the stop to standard error and to the termination log.
func (l *loop) reportStop(lines func(*report.Stop) []string) {
	s := l.stopReport()
	text := lines(s)
	l.report(text, s.Figures())
	l.writeTermlog(s, text)
}

// writeTermlog writes lines of the report to the termination log. Once the command has
// failed by itself, the log is the command's, and lameduck's lines are removed.
func (l *loop) writeTermlog(s *report.Stop, lines []string) {
	if l.cfg.JSON {
		lines = []string{jsonLine(Info, strings.Join(lines, "; "), s.Figures())}
	}
	if s.Ended == stop.ChildExit && (s.Exit.Signal != 0 || s.Exit.Code != 0) {
		lines = nil
	}
	err := l.host.writeTermlog(lines...)
	if err != nil && !l.termlogWarned {
		l.termlogWarned = true
		l.log(Warn, "cannot write the termination log: %v", err)
	}
}
