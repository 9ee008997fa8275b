//go:build linux

package shim

import (
	"strings"
	"syscall"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/report"
	"github.com/lameduck-init/lameduck/shim/internal/stderr"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// levelNames are the names of the levels in JSON.
var levelNames = [...]string{Error: "error", Warn: "warn", Info: "info", Debug: "debug"}

// outputs are where lameduck writes lines: standard error, and for a preStop hook also that
// of PID 1, since Kubernetes discards a hook's output.
type outputs []*stderr.Writer

func newOutputs(inJSON, asHook bool) (outs outputs) {
	fds := []int{syscall.Stderr}
	if asHook {
		fds = append(fds, pid1Stderr()...)
	}
	for _, fd := range fds {
		outs = append(outs, stderr.New(fd, func(text string) string { return logLine(Warn, text, inJSON) }))
	}
	return outs
}

func (outs outputs) line(lines ...string) {
	for _, out := range outs {
		out.Line(lines...)
	}
}

func (outs outputs) flush() {
	for _, out := range outs {
		out.Flush()
	}
}

// Say writes one line, such as the error that ends lameduck, and waits only a moment for the line
// to be read.
func Say(text string, inJSON bool) {
	outs := newOutputs(inJSON, false)
	outs.line(logLine(Error, text, inJSON))
	outs.flush()
}

func logLine(level Level, text string, inJSON bool) string {
	switch {
	case inJSON:
		return jsonLine(level, text, nil)
	case level == Warn:
		return "lameduck: warning: " + text
	}
	return "lameduck: " + text
}

func jsonLine(level Level, message string, figures report.Fields) string {
	return report.Line(time.Now(), levelNames[level], message, figures, stderr.MaxLine)
}

// log writes a message if the level allows it.
func (l *loop) log(level Level, format string, args ...any) {
	if level <= l.plan.Level {
		l.host.writeLine(logLine(level, report.InWords(format, args...), l.plan.JSON))
	}
}

// warnOnce writes a warning, unless the same was written before.
func (l *loop) warnOnce(format string, args ...any) { l.sayOnce(report.InWords(format, args...), true) }

// sayOnce writes a text, unless it is empty or was written before.
func (l *loop) sayOnce(text string, isWarning bool) {
	level := Info
	if isWarning {
		level = Warn
	}
	if text != "" && !l.said[text] {
		l.said[text] = true
		l.log(level, "%s", text)
	}
}

// inFormat returns lines of the report as they are written: in JSON they are one object.
func (l *loop) inFormat(prefix string, lines []string) (written []string) {
	if l.plan.JSON {
		return []string{jsonLine(Info, strings.Join(lines, "; "), l.stop.Figures())}
	}
	for _, line := range lines {
		written = append(written, prefix+line)
	}
	return written
}

// stopReport returns what can be reported about the stop now.
func (l *loop) stopReport() *report.Stop {
	l.stop.Plan = l.plan
	l.stop.Record = l.machine.Record()
	l.stop.Now = time.Now()
	return &l.stop
}

// reportStop writes lines about the stop to standard error, which no level turns off, and to the
// termination log.
func (l *loop) reportStop(lines ...string) {
	l.host.writeLine(l.inFormat("lameduck: ", lines)...)
	l.writeTermlog(lines)
}

// writeTermlog writes lines of the report to the termination log. Once the command has
// failed by itself, the log is the command's, and lameduck's lines are removed.
func (l *loop) writeTermlog(lines []string) {
	written := l.inFormat("", lines)
	if l.stop.Ended == stop.ChildExit && l.stop.ExitStatus() != 0 {
		written = nil
	}
	if err := l.host.writeTermlog(written...); err != nil {
		l.warnOnce("cannot write the termination log: %v", err)
	}
}
