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

// send sends a signal to the command, or to its process group. The PID is still the
// command's: only this goroutine reaps.
func (l *loop) send(s sig.Signal) error {
	if l.command == 0 {
		return nil
	}
	target := l.command
	if l.grouped() {
		target = -l.group
	}
	l.log(Debug, "sending %v to the command", s)
	err := l.host.Kill(target, s)
	l.handled = 0
	if err != nil {
		l.log(Warn, "cannot send %v to the command: %v", s, err)
	}
	return err
}

// grouped reports whether the command's process group is signaled.
func (l *loop) grouped() bool { return l.plan.Group || l.plan.Session }

// look shows the history the processes below lameduck, without --on-stop and its children.
func (l *loop) look() {
	beside := map[int]bool{}
	var list []stop.Process
	for _, p := range l.host.Descendants() {
		switch {
		case p.Dead() && p.Threads <= 1:
		case l.onStop != 0 && (p.PID == l.onStop || beside[p.Parent]):
			beside[p.PID] = true
		default:
			list = append(list, l.process(p))
		}
	}
	l.history.Look(l.command, list)
}

// process returns what a stop goes by of a process. With a preset asked for, a known server is asked to
// end by its own signal.
func (l *loop) process(p proc.Process) stop.Process {
	shown := stop.Process{
		ID: stop.ID{PID: p.PID, Start: p.Start}, Parent: p.Parent, Group: p.Group, Stopped: p.Stopped(),
	}
	shown.Handled, shown.Awaited, shown.Ignored = l.host.Handled(p)
	shown.Handled |= shown.Awaited
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
	if l.plan.Server != nil && len(l.plan.Server.Programs) > 0 { // else it has no name that tells
		server = l.plan.Server.Name
	}
	below := l.history.Aim(s, server)
	if !l.stopSent {
		l.stop.SentTo, l.stop.OtherProgram = workers(below), ""
		if command, _ := l.history.Command(); command.Server != server && len(below) == 0 {
			l.stop.OtherProgram = command.Program
		}
	}
	return below
}

// workers names processes for the report.
func workers(list []stop.Process) (named []report.Worker) {
	for _, p := range list {
		named = append(named, report.Worker{Program: cmp.Or(p.Server, p.Program, "?"), PID: p.PID})
	}
	return named
}

// sendStep sends a signal of the schedule to the command, or to those below it. At a lull there is no time
// for a look.
func (l *loop) sendStep(s sig.Signal) {
	if !l.machine.Record().Lull.Found || l.stopSent {
		l.look()
	}
	targets := l.aim(s)
	if l.plan.Hook {
		targets = l.besides(s, targets)
	}
	if l.plan.Hook && !l.stopSent && len(targets) > 0 { // it may end with the command
		l.reportStop((*report.Stop).Conclusion)
	}
	sent := false
	for _, p := range targets {
		sent = l.signal(stop.Order{Process: p, Signal: s}) == nil || sent
	}
	switch at := l.host.Ticks(); {
	case sent:
		l.pending = append(l.pending, stop.Event{Kind: stop.SentBelow, Waiting: len(l.stop.SentTo) == 0})
	case l.plan.Hook, isRefusal(l.send(s)):
		l.pending = append(l.pending, stop.Event{Kind: stop.Refused, Signal: s})
	default:
		l.noteSent(s, at)
	}
	if !sent && !l.stopSent {
		l.stop.SentTo = nil
	}
	l.stopSent = true
}

// besides returns whom a hook sends s: those below the command that s is for, or else the command, or at
// KILL everybody. PID 1 gets from its own PID namespace only what it handles, and never KILL.
func (l *loop) besides(s sig.Signal, below []stop.Process) []stop.Process {
	command, _ := l.history.Command()
	switch {
	case s == sig.KILL:
		return l.history.Processes()
	case len(below) > 0:
		return below
	case l.reaches(s):
		return []stop.Process{command}
	case len(l.stop.SentTo) > 0: // and they have ended
	case command.Program == "":
		l.log(Warn, "cannot tell which process handles %v: the orchestrator's signal follows", s)
	default:
		l.log(Warn, "no process handles %v: the orchestrator's signal follows", s)
	}
	return nil
}

// noteSent notes that the command, or its process group, was sent s, at a time in Ticks.
func (l *loop) noteSent(s sig.Signal, at uint64) {
	group := 0
	if l.grouped() {
		group = l.group
	}
	l.history.SignaledCommand(s, group, at)
}

// reaches reports whether s of a hook reaches the command: PID 1 gets from its own PID namespace only what it
// handles.
func (l *loop) reaches(s sig.Signal) bool {
	command, seen := l.history.Command()
	return seen && (command.PID != 1 || command.Handled.Has(s))
}

// noteDeaf notes, for the report of a hook, the program of a PID 1 that TERM does not reach.
func (l *loop) noteDeaf() {
	if !l.plan.Hook {
		return
	}
	l.look()
	if !l.reaches(sig.TERM) {
		command, _ := l.history.Command()
		l.stop.Deaf = command.Program
	}
}

// isRefusal reports whether a signal was not sent although there is a process to send it to.
func isRefusal(err error) bool { return err != nil && err != unix.ESRCH }

// signal sends a signal of the stop to a process below lameduck, which is continued if it is stopped.
func (l *loop) signal(o stop.Order) error {
	p := proc.Process{PID: o.PID, Start: o.Start}
	l.log(Debug, "sending %v to process %d", o.Signal, o.PID)
	l.history.Signaled(o.ID)
	err := l.host.KillDescendant(p, o.Signal)
	if isRefusal(err) {
		l.log(Warn, "cannot send %v to process %d: %v", o.Signal, o.PID, err)
	}
	if o.Stopped {
		l.host.KillDescendant(p, sig.CONT)
	}
	return err
}

// lookBelow tells the machine when the processes below the command have ended that the schedule is for.
func (l *loop) lookBelow() {
	l.look()
	if len(l.stop.SentTo) > 0 && len(l.history.Below()) == 0 {
		command, _ := l.history.Command()
		l.pending = append(l.pending, stop.Event{Kind: stop.BelowEnded, Waiting: command.IsShell()})
	}
}

// signalRemaining sends their signal to the processes that the command has left behind, those whose turn
// it is, and tells the machine when none is at work.
func (l *loop) signalRemaining() {
	l.look()
	orders, atWork, last := l.history.Left(time.Now(), l.machine.LingerEnd())
	l.signalAll(orders)
	l.noteAtWork(atWork)
	if len(atWork) == 0 {
		l.pending = append(l.pending, stop.Event{Kind: stop.NoneAtWork, Waiting: len(last) > 0})
	}
}

// signalLast sends their signal to the remaining processes that do not handle it, as the last look showed them.
func (l *loop) signalLast() {
	_, _, last := l.history.Left(time.Now(), l.machine.LingerEnd())
	l.signalAll(last)
}

func (l *loop) signalAll(orders []stop.Order) {
	for _, o := range orders {
		l.signal(o)
	}
}

// noteAtWork records, for the report, which processes lameduck waits for and when each has ended.
func (l *loop) noteAtWork(atWork []stop.Order) {
	isNew := map[int]bool{}
	for _, o := range atWork {
		isNew[o.PID] = true
	}
	for i := range l.stop.Workers {
		w := &l.stop.Workers[i]
		switch {
		case !w.EndedAt.IsZero():
		case isNew[w.PID]:
			delete(isNew, w.PID)
		default:
			w.EndedAt = time.Now()
		}
	}
	for _, o := range atWork {
		if isNew[o.PID] && o.PID > 0 { // -1: all of them, without /proc
			l.stop.Workers = append(l.stop.Workers, workers([]stop.Process{o.Process})...)
		}
	}
}

// tell sends the signal of --on-stop to the processes that the schedule's signals are for; a hook
// sends the signal to PID 1. It is not sent to a process that does not handle it: its default action
// would end most processes.
func (l *loop) tell(s sig.Signal) {
	target, name := l.command, l.plan.Told()
	switch {
	case l.plan.Hook:
		target = max(l.command, 1)
	case l.grouped():
		target = -l.group
	default:
		l.look()
		if below := l.aim(s); len(below) > 0 {
			target, name = below[0].PID, report.Workers(l.stop.SentTo)
		}
	}
	told, err := l.host.Tell(target, s)
	switch {
	case err != nil:
		l.log(Warn, "%s: cannot send %v: %v", plan.Flag("on-stop", s), s, err)
	case !told:
		l.log(Warn, "%s was not sent: %s does not handle %v", plan.Flag("on-stop", s), name, s)
	default:
		l.stop.Told = s
	}
}

// accept reports whether the command handles s, or ignores it, so that s does not end it. A command that was
// not seen is taken to accept everything.
func (l *loop) accept(s sig.Signal) bool {
	command, seen := l.history.Command()
	return !seen || (command.Handled | command.Ignored).Has(s)
}

// requests are the signals by which processes ask others for something else than their end.
var requests = sig.SetOf(sig.HUP, sig.USR1, sig.USR2)

// forward passes on a signal that begins no stop. As PID 1 the command would not end by a request that it
// does not handle, so below lameduck it does not either: a known server below the command gets the
// request, or nobody.
func (l *loop) forward(s sig.Signal) {
	named := slices.ContainsFunc(l.plan.Rewrites, func(r sig.Rewrite) bool { return r.From == s || r.To == s })
	isRequest := requests.Has(s) && l.host.fromProcess(s) && l.plan.PID1 && !l.plan.PassAll && !named && !l.grouped()
	switch {
	case l.plan.Hook:
		return
	case isRequest:
		caught, _, ignored := l.host.Handled(proc.Process{PID: l.command})
		isRequest = !(caught | ignored).Has(s)
	}
	if !isRequest {
		l.send(s)
		return
	}
	l.look()
	switch server, found := l.history.Server(s); {
	case l.accept(s): // it waits for s
		l.send(s)
	case found && server.Handled.Has(s):
		l.host.KillDescendant(proc.Process{PID: server.PID, Start: server.Start}, s)
	case !l.refused.Has(s):
		l.refused = l.refused.With(s)
		l.log(Warn, "%v is not passed on: the command does not handle it, and would end; "+
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
			l.host.KillDescendant(p, sig.KILL)
		}
		l.pending = append(l.pending, l.reap()...)
		if len(descendants) == 0 {
			return
		}
	}
}
