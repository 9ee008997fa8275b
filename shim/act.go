package shim

import (
	"fmt"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// act does one action.
func (l *loop) act(a stop.Action) {
	switch a.Verb {
	case stop.Pass, stop.Send:
		l.send(a.Signal)
	case stop.Announce:
		l.report(announcement(&l.plan, l.machine.Record()))
	case stop.Overtime:
		l.report(overtime(&l.plan, l.machine.Record()))
	case stop.Conclude:
		l.report(conclusion(&l.plan, l.machine.Record()))
	case stop.NoteUnheld:
		l.log(Info, fmt.Sprintf("%v passed on at once; no hold asked for", a.Signal))
	case stop.NoteEarly:
		l.log(Info, fmt.Sprintf("%v came before the command was started; it is not started", a.Signal))
	case stop.NoteNoHold:
		l.report(noHold(l.machine.Record()))
	case stop.Exit:
		l.done, l.code = true, l.plan.exit(a.Status())
	}
}

// send signals the command. Its pid cannot have been used again: only we reap.
func (l *loop) send(s sig.Signal) {
	if l.pid == 0 {
		return
	}
	l.log(Debug, fmt.Sprintf("sending %v to the command", s))
	if err := l.kill(l.pid, s); err != nil {
		l.log(Warn, fmt.Sprintf("cannot send %v to the command: %v", s, err))
	}
}

// log says text where the level asks for it.
func (l *loop) log(level Level, text string) {
	if level > l.level {
		return
	}
	if level == Warn {
		text = "warning: " + text
	}
	l.report(text)
}

// report says text at any level.
func (l *loop) report(text string) { l.line("lameduck: " + text) }
