//go:build linux

package shim

import (
	"cmp"
	"path"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/plan"
	"github.com/lameduck-init/lameduck/shim/internal/preset"
	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/report"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// send sends a signal to the command, or to its process group, and reports whether that was refused although there
// is a process to send it to. The PID is still the command's: only this goroutine reaps.
func (l *loop) send(s sig.Signal) (isRefused bool) {
	if l.command == 0 || l.plan.Hook {
		return false
	}
	l.log(Debug, "sending %v to the command", s)
	err := l.host.Kill(l.target(), s)
	l.arrived = 0
	isRefused = err != nil && err != unix.ESRCH
	if isRefused {
		l.log(Warn, "cannot send %v to the command: %v", s, err)
	}
	return isRefused
}

// grouped reports whether the command's process group is signaled.
func (l *loop) grouped() bool { return l.plan.Group || l.plan.Session }

// target returns where signals for the command are sent; see kill(2).
func (l *loop) target() int {
	if l.grouped() {
		return -l.group
	}
	return l.command
}

// look shows the history the processes below lameduck, without --on-stop and its children, some of which
// make a process group of their own, such as timeout(1).
func (l *loop) look() {
	beside := map[int]bool{l.onStop: l.onStop != 0}
	var list []stop.Process
	for _, p := range l.host.Descendants() {
		beside[p.PID] = beside[p.PID] || beside[p.Parent]
		if isDead := p.Dead() && p.Threads <= 1; !isDead && !beside[p.PID] {
			list = append(list, l.process(p))
		}
	}
	l.history.Look(l.command, list)
}

// process returns what a stop goes by of a process. With a preset asked for, a known server is asked to
// end by its own signal.
func (l *loop) process(p proc.Process) stop.Process {
	shown := stop.Process{
		PID: p.PID, Start: p.Start, Parent: p.Parent, Group: p.Group, Stopped: p.Stopped(),
	}
	shown.Handled, shown.Awaited, shown.Ignored = l.host.Handled(p)
	exe, argv := l.host.Program(p.PID, l.plan.Preset != "")
	if exe != "" {
		shown.Program = path.Base(exe)
	}
	if l.plan.Preset != "" {
		if server := preset.Match(exe, argv); server != nil {
			shown.Server, shown.Asks = server.Name, server.Schedule.FirstSignal(sig.TERM)
		}
	}
	return shown
}

// aim returns the processes below the command that s, of the stop, is for; none if it is for the
// command.
func (l *loop) aim(s sig.Signal) []stop.Process {
	if l.command == 0 || l.grouped() {
		return nil
	}
	server := ""
	if len(l.plan.Server.Programs) > 0 { // else it has no name that tells
		server = l.plan.Server.Name
	}
	below := l.history.Aim(s, server)
	if !l.stopSent {
		l.stop.SentTo, l.stop.OtherProgram = workers(below), ""
		if command := l.history.Command(); command.Server != server && len(below) == 0 {
			l.stop.OtherProgram = command.Program
		}
	}
	return below
}

// workers names processes for the report.
func workers(list []stop.Process) (named []report.Worker) {
	for _, p := range list {
		if p.PID > 0 { // else all of them, without /proc
			named = append(named, report.Worker{Program: cmp.Or(p.Server, p.Program, "?"), PID: p.PID})
		}
	}
	return named
}

// sendStep sends a signal of the schedule to those below the command that it is for, or else to the command. At
// a lull there is no time for a look.
func (l *loop) sendStep(s sig.Signal) {
	if !l.machine.Record().Lull.Found || l.stopSent {
		l.look()
	}
	targets := l.aim(s)
	if l.plan.Hook {
		switch {
		case s == sig.KILL: // which PID 1 does not get from its own PID namespace
			targets = l.history.Processes()
		case len(targets) > 0:
		case l.reaches(s):
			targets = []stop.Process{l.history.Command()}
		case len(l.stop.SentTo) > 0: // and they have ended
		default:
			l.log(Warn, "no process handles %v, as far as is known: the orchestrator's signal follows", s)
		}
		if !l.stopSent && len(targets) > 0 { // it may end with the command
			l.reportStop(l.stopReport().Conclusion()...)
		}
	}
	at, sent := l.host.Ticks(), false
	for _, p := range targets {
		sent = l.signal(p, s) == nil || sent
	}
	switch {
	case sent && len(l.stop.SentTo) > 0:
		l.queue(stop.Event{Kind: stop.SentBelow})
	case sent:
	case l.plan.Hook, l.send(s):
		l.queue(stop.Event{Kind: stop.Refused, Signal: s})
	case l.grouped():
		l.history.SignaledGroup(l.group, s, at)
	default:
		l.history.Signaled(l.history.Command())
	}
	if !sent && !l.stopSent {
		l.stop.SentTo = nil
	}
	l.stopSent = true
}

// reaches reports whether s of a hook reaches the command: PID 1 gets from its own PID namespace only what it
// handles.
func (l *loop) reaches(s sig.Signal) bool {
	command := l.history.Command()
	return command.PID > 1 || command.Handled.Has(s)
}

// signal sends a signal of the stop to a process below lameduck, which is continued if it is stopped.
func (l *loop) signal(p stop.Process, s sig.Signal) error {
	l.log(Debug, "sending %v to process %d", s, p.PID)
	l.history.Signaled(p)
	err := l.host.KillDescendant(p.PID, p.Start, s)
	if err != nil && err != unix.ESRCH {
		l.log(Warn, "cannot send %v to process %d: %v", s, p.PID, err)
	}
	if p.Stopped {
		l.host.KillDescendant(p.PID, p.Start, sig.CONT)
	}
	return err
}

// lookAgain tells the machine when none of the processes is at work any more that are waited for: those below
// the command that the schedule is for, or those that the command has left behind. Of the latter it signals
// those whose turn it is.
func (l *loop) lookAgain() {
	l.look()
	if l.command != 0 {
		if len(l.history.Below()) == 0 {
			l.queue(stop.Event{Kind: stop.NoneAtWork})
		}
		return
	}
	next, atWork, waits := l.history.Left(time.Now(), l.machine.LingerEnd())
	for _, p := range next {
		l.signal(p, p.Asks)
	}
	l.noteAtWork(atWork)
	if len(atWork) == 0 {
		l.queue(stop.Event{Kind: stop.NoneAtWork, Waiting: waits})
	}
}

// noteAtWork records, for the report, which processes lameduck waits for and when each has ended.
func (l *loop) noteAtWork(atWork []stop.Process) {
	for i := range l.stop.Workers {
		w := &l.stop.Workers[i]
		known := slices.IndexFunc(atWork, func(p stop.Process) bool { return p.PID == w.PID })
		switch {
		case !w.EndedAt.IsZero():
		case known >= 0:
			atWork = slices.Delete(atWork, known, known+1)
		default:
			w.EndedAt = time.Now()
		}
	}
	l.stop.Workers = append(l.stop.Workers, workers(atWork)...)
}

// tell sends the signal of --on-stop to the processes that the schedule's signals are for; a hook
// sends the signal to PID 1. It is not sent to a process that does not handle it: its default action would
// end most processes. PID 1 is spared that, and may wait for signals in a way that does not show.
func (l *loop) tell(s sig.Signal) {
	l.look()
	targets, name := []stop.Process{l.history.Command()}, l.plan.Recipient()
	switch {
	case l.plan.Hook: // PID 1 gets it even where /proc does not show PID 1
		targets[0].PID = max(l.command, 1)
	case l.grouped():
		targets = slices.DeleteFunc(l.history.Processes(), func(p stop.Process) bool { return p.Group != l.group })
	default:
		if below := l.aim(s); len(below) > 0 {
			targets, name = below, report.Workers(l.stop.SentTo)
		}
	}
	told, err := false, error(nil)
	for _, p := range targets {
		if p.Handled.Has(s) || p.PID == 1 && !p.IsShell() {
			told = true
			err = cmp.Or(err, l.host.KillDescendant(p.PID, p.Start, s))
		}
	}
	switch {
	case err != nil:
		l.log(Warn, "%s: cannot send %v: %v", plan.Flag("on-stop", s), s, err)
	case !told:
		l.log(Warn, "%s was not sent: %s does not handle %v", plan.Flag("on-stop", s), name, s)
	default:
		l.stop.Told = s
	}
}

// requests are the signals by which processes ask others for something else than their end.
var requests = sig.SetOf(sig.HUP, sig.USR1, sig.USR2)

// forward passes on a signal that begins no stop. A command that may not handle a request would end by it, but
// would not as PID 1, so below lameduck it does not either: a known server below it gets the request, or nobody.
func (l *loop) forward(s sig.Signal) {
	named := slices.ContainsFunc(l.plan.Rewrites, func(r sig.Rewrite) bool { return r.From == s || r.To == s })
	isProcess, _ := l.host.sender(s)
	isRequest := requests.Has(s) && isProcess && l.plan.PID1 && !l.plan.PassAll && !named && !l.grouped()
	if !isRequest || l.process(proc.Process{PID: l.command}).Accepts(s) {
		l.send(s)
		return
	}
	l.look()
	switch server, found := l.history.Server(s); {
	case l.history.Command().Accepts(s): // it waits for s
		l.send(s)
	case found && server.Handled.Has(s):
		l.host.KillDescendant(server.PID, server.Start, s)
	default:
		l.warnOnce("%v is not passed on: the command does not handle it, and would end; "+
			"--rewrite=%[1]v:%[1]v (LAMEDUCK_REWRITE) passes it on all the same", s)
	}
}

// maxKillRounds bounds killDescendants. Each round finds fewer processes, unless a process
// forks faster than lameduck kills.
const maxKillRounds = 10

// killDescendants sends KILL to every descendant, and reaps.
func (l *loop) killDescendants() {
	for range maxKillRounds {
		descendants := l.host.Descendants()
		for _, p := range descendants {
			l.host.KillDescendant(p.PID, p.Start, sig.KILL)
		}
		l.reap()
		if len(descendants) == 0 {
			return
		}
	}
}
