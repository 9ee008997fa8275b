package shim

import (
	"fmt"
	"strings"

	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// act does one action.
func (l *loop) act(a stop.Action) {
	switch a.Verb {
	case stop.Forward:
		l.pass(a.Signal)
	case stop.Send:
		if l.watching && l.drops(a.Signal) {
			l.deaf = a.Signal
		}
		l.send(a.Signal)
	case stop.Continue:
		l.send(sig.CONT)
	case stop.GiveTerminal:
		l.handOver(l.group)
	case stop.StopSelf:
		l.stopSelf(a.Signal)
	case stop.GiveTerminalOrStop:
		l.lendOrStop()
	case stop.TermGroup:
		l.kill(-l.group, a.Signal) // where there is nobody left in it, so be it
	case stop.TermDescendants:
		l.termRest()
	case stop.KillDescendants:
		l.killRest()
	case stop.StartSampling:
		l.watching = true
		l.watch(&l.plan, l.machine.Record().TriggeredAt)
	case stop.StopHealth:
		l.retire(l.cfg.HealthDuring)
	case stop.RunOnStop:
		l.runHook()
	case stop.KillOnStop:
		l.killHook()
	case stop.ReportStart:
		l.declare((*drain).announcement)
	case stop.ReportLate:
		l.declare((*drain).overtime)
	case stop.ReportEnd:
		l.declare((*drain).conclusion)
	case stop.NoteForwardedAtOnce:
		l.log(Info, "%v passed on at once; no hold asked for", a.Signal)
	case stop.NoteBeforeStart:
		l.log(Info, "%v came before the command was started; it is not started", a.Signal)
	case stop.NoteHoldMissed:
		l.report(l.account().noHold())
	case stop.Exit:
		l.done, l.code = true, l.plan.exit(a.Status(), !l.machine.Record().TriggeredAt.IsZero())
	}
}

// lendOrStop is for a command that was stopped because it is in the terminal's
// background. A shell that moved us to the foreground did not tell us so.
func (l *loop) lendOrStop() {
	if l.handOver(l.group) {
		l.send(sig.CONT)
		return
	}
	l.stopSelf(sig.TSTP)
}

// pass sends a signal that arrived, unless it is to be dropped because the
// command does not catch it. What stops and continues is never caught.
func (l *loop) pass(s sig.Signal) {
	if l.cfg.DropUnhandled && !sig.SetOf(sig.KILL, sig.STOP, sig.CONT).Has(s) {
		if set, ok := l.caught(l.command); ok && !set.Has(s) {
			l.machine.NotForwarded()
			l.log(Info, "%v dropped: the command does not catch it", s)
			return
		}
	}
	l.send(s)
}

// send signals the command, or its group. Its pid cannot have been used again:
// only we reap.
func (l *loop) send(s sig.Signal) {
	if l.command == 0 {
		return
	}
	to := l.command
	if l.cfg.Group || l.cfg.Session {
		to = -l.group
	}
	l.log(Debug, "sending %v to the command", s)
	if err := l.kill(to, s); err != nil {
		l.log(Warn, "cannot send %v to the command: %v", s, err)
	}
}

// termRest asks what is left to end, each once, and after the first time none
// whose parent was asked: it belongs to that one's clean-up. Where /proc cannot
// say what is left, PID 1 may ask all there is.
func (l *loop) termRest() {
	rest, ok := l.descendants()
	if !ok {
		rest = []proc.Process{everybody}
	}
	termed := map[int]bool{}
	for _, p := range rest {
		if !l.termed[p.PID] && l.termed[p.Parent] {
			continue
		}
		if termed[p.PID] = true; !l.termed[p.PID] {
			l.killOne(p, sig.TERM)
			l.killOne(p, sig.CONT) // or what is stopped could not end
		}
	}
	l.termed = termed
}

// killRest ends what is left. Between two looks there may be more; each look
// finds fewer, unless somebody forks faster than we can kill.
func (l *loop) killRest() {
	for range 10 {
		rest, ok := l.descendants()
		if !ok {
			l.killOne(everybody, sig.KILL)
			return
		}
		for _, p := range rest {
			l.killOne(p, sig.KILL)
		}
		if l.sweep(); len(rest) == 0 {
			return
		}
	}
}

// everybody has kill(2)'s word for every process but ourselves. Only PID 1 may
// say it: for others there are processes that are none of their business.
var everybody = proc.Process{PID: -1}

func (l *loop) killOne(p proc.Process, s sig.Signal) {
	switch {
	case p != everybody:
		l.killOther(p, s)
	case l.plan.pid1:
		l.kill(p.PID, s)
	}
}

// runHook starts what is to run when the stop begins. That it cannot be is no
// obstacle to the stop.
func (l *loop) runHook() {
	pid, err := l.run(l.plan.dir, l.cfg.OnStop, hookEnv(l.cfg.Env, max(l.command, 1), l.machine.Record().Trigger))
	if l.hook = pid; err != nil {
		l.log(Warn, "--on-stop: %v", err)
		l.unhooked = true
	}
}

// The variables that a hook is given begin so.
const (
	pidVariable    = "LAMEDUCK_PID="
	signalVariable = "LAMEDUCK_SIGNAL="
)

// hookEnv is an environment with what a hook is told: the pid of the command, or
// of PID 1 where we are a hook beside it, and the signal that began the stop.
func hookEnv(env []string, command int, trigger sig.Signal) []string {
	if trigger == 0 {
		trigger = sig.TERM
	}
	var told []string
	for _, entry := range env {
		if !strings.HasPrefix(entry, pidVariable) && !strings.HasPrefix(entry, signalVariable) { // of a lameduck around us
			told = append(told, entry)
		}
	}
	return append(told, fmt.Sprintf("%s%d", pidVariable, command), fmt.Sprintf("%s%v", signalVariable, trigger))
}

// killHook ends it, and what it has started.
func (l *loop) killHook() {
	if l.hook != 0 {
		l.log(Warn, "--on-stop still runs, and is killed")
		l.kill(-l.hook, sig.KILL)
	}
}

// drops reports whether the command is a shell that keeps s to itself while what
// it has started serves on.
func (l *loop) drops(s sig.Signal) bool {
	if l.cfg.Group || l.cfg.Session || l.command == 0 || !l.isShell(l.command) {
		return false
	}
	set, ok := l.caught(l.command)
	return ok && !set.Has(s)
}
