//go:build linux

package shim

import (
	"cmp"
	"fmt"
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

// handles reports whether the command handles the stop signal s itself. Shells catch INT, but only to
// wait for their child.
func (l *loop) handles(s sig.Signal) bool {
	return l.catches(s) && (s != sig.INT || l.catches(sig.TERM))
}

// catches reports whether the command has a handler for s. An init that passes signals on has none.
func (l *loop) catches(s sig.Signal) bool {
	return l.host.Signals(l.command).Caught.Has(s)
}

// grouped reports whether the command's process group is signaled.
func (l *loop) grouped() bool { return l.plan.Group || l.plan.Session }

// sendStep sends a signal of the schedule to the command, or to the known server below it.
func (l *loop) sendStep(s sig.Signal) {
	if server, below := l.target(s); below {
		l.log(Debug, "sending %v to %s", s, l.stop.SentTo)
		if !isRefusal(l.signal(server, s)) {
			l.stopSent = true
			l.pending = append(l.pending, stop.Event{Kind: stop.SentToServer})
			return
		}
		l.stop.SentTo = ""
	}
	l.noteGroup(s)
	if isRefusal(l.send(s)) {
		l.groupSignaled = 0
		l.pending = append(l.pending, stop.Event{Kind: stop.Refused, Signal: s})
	}
	l.stopSent = true
}

// isRefusal reports whether a signal was not sent although there is a process to send it to.
func isRefusal(err error) bool { return err != nil && err != unix.ESRCH }

// noteGroup notes that the members of the command's process group are sent s.
func (l *loop) noteGroup(s sig.Signal) {
	if l.grouped() {
		l.groupSignal, l.groupSignaled = s, l.host.Ticks()
	}
}

// signal sends a signal of the stop to a process below lameduck, which is continued if it is stopped.
func (l *loop) signal(p stop.Process, s sig.Signal) error {
	l.signaled[identity(p)] = true
	err := l.host.KillDescendant(identity(p), s)
	if isRefusal(err) {
		l.log(Warn, "cannot send %v to process %d: %v", s, p.PID, err)
	}
	if p.Stopped {
		l.host.KillDescendant(identity(p), sig.CONT)
	}
	return err
}

// identity tells a process from a later one with the same PID.
func identity(p stop.Process) proc.Process { return proc.Process{PID: p.PID, Start: p.Start} }

// target returns the process that a signal of the stop is for if that is not the command: the
// server of the preset, where the command is another program, such as a shell, that does not
// handle the signal. KILL is for the command, whose end ends the container.
func (l *loop) target(s sig.Signal) (server stop.Process, below bool) {
	isKnown := l.plan.Server != nil && len(l.plan.Server.Programs) > 0 // by its name
	if !isKnown || l.command == 0 || l.serverEnded || l.grouped() || s == sig.KILL {
		return server, false
	}
	exe, argv := l.host.Program(l.command)
	if found := preset.Match(exe, argv); exe == "" || found != nil && found.Name == l.plan.Server.Name {
		return server, false
	}
	if l.stop.SentTo != "" || !l.handles(s) { // all signals of a stop are for the same process
		server, below = l.findServer()
	}
	if below {
		l.stop.SentTo, l.stop.OtherProgram = fmt.Sprintf("%s (pid %d)", l.plan.Server.Name, server.PID), ""
	} else {
		l.stop.SentTo, l.stop.OtherProgram = "", path.Base(exe)
	}
	return server, below
}

// findServer returns the server below the command, as found before if that still runs.
func (l *loop) findServer() (server stop.Process, found bool) {
	found = l.server.PID != 0 && l.host.Runs(identity(l.server))
	if !found {
		l.server, found = stop.ServerBelow(l.descendants(), l.command, l.plan.Server.Name)
	}
	return l.server, found
}

// lookForServer tells the machine when the server has ended that a signal of the schedule went to.
func (l *loop) lookForServer() {
	if !l.host.Runs(identity(l.server)) {
		l.serverEnded = true
		l.pending = append(l.pending, stop.Event{Kind: stop.ServerEnded})
	}
}

// descendants returns the processes below lameduck, without --on-stop and its children.
func (l *loop) descendants() (list []stop.Process) {
	beside := map[int]bool{}
	for _, p := range l.host.Descendants() {
		switch {
		case p.Dead() && p.Threads <= 1:
		case l.onStop != 0 && (p.PID == l.onStop || beside[p.Parent]):
			beside[p.PID] = true
		default:
			list = append(list, l.choice(p))
		}
	}
	return list
}

// choice returns what the choice of the processes that a stop signals depends on. The signal that
// asks a process to end is, with a preset asked for, that of the server that the process is; else
// TERM, rewritten; and TERM where the process does not handle that.
func (l *loop) choice(p proc.Process) stop.Process {
	c := stop.Process{PID: p.PID, Parent: p.Parent, Start: p.Start, Stopped: p.Stopped(), Signal: sig.TERM}
	signals := l.host.Signals(p.PID)
	handled := signals.Caught
	if p.Threads > 1 { // one of them may wait for what all of them block: see sigwait(3)
		handled |= signals.Blocked
	}
	if to, passes := l.plan.Stop.Rewrites.Of(sig.TERM); passes && handled.Has(to) {
		c.Signal = to
	}
	if l.plan.Preset != "" {
		if server := preset.Match(l.host.Program(p.PID)); server != nil {
			c.Server = server.Name
			if s := server.Schedule.FirstSignal(sig.TERM); handled.Has(s) {
				c.Signal = s
			}
		}
	}
	c.Handles, c.Ignores = handled.Has(c.Signal), signals.Ignored.Has(c.Signal)
	inGroup := l.groupSignaled > 0 && p.Group == l.group && p.Start <= l.groupSignaled
	c.Signaled = l.signaled[identity(c)] || inGroup && !signals.Ignored.Has(l.groupSignal)
	return c
}

// signalRemaining sends their signal to the processes that the command has left behind and that are
// at work, those whose turn it is, and tells the machine when none is.
func (l *loop) signalRemaining() {
	now, atWork, last := stop.Wave(l.descendants())
	l.signalAll(now)
	for _, p := range atWork {
		if p.Signaled && p.Stopped { // a member of the group, signaled while it was stopped
			l.host.KillDescendant(identity(p), sig.CONT)
		}
	}
	l.noteAtWork(atWork)
	if len(atWork) == 0 {
		l.pending = append(l.pending, stop.Event{Kind: stop.NoneAtWork, Waiting: len(last) > 0})
	}
}

// signalLast sends their signal to the remaining processes that do not handle it.
func (l *loop) signalLast() {
	_, _, last := stop.Wave(l.descendants())
	l.signalAll(last)
}

func (l *loop) signalAll(list []stop.Process) {
	for _, p := range list {
		l.log(Debug, "sending %v to process %d", p.Signal, p.PID)
		l.signal(p, p.Signal)
	}
}

// noteAtWork records, for the report, which processes lameduck waits for and when each has ended.
func (l *loop) noteAtWork(atWork []stop.Process) {
	isNew := map[int]bool{}
	for _, p := range atWork {
		isNew[p.PID] = true
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
	for _, p := range atWork {
		if isNew[p.PID] && p.PID > 0 { // -1: all of them, without /proc
			exe, argv := l.host.Program(p.PID)
			l.stop.Workers = append(l.stop.Workers, report.Worker{
				Program: path.Base(cmp.Or(exe, slices.Concat(argv, []string{"?"})[0])), PID: p.PID,
			})
		}
	}
}

// tell sends the signal of --on-stop to the process that the schedule's signals are for; a hook
// sends the signal to PID 1. It is not sent to a process that does not handle it: its default action
// would end most processes.
func (l *loop) tell(s sig.Signal) {
	target, name := l.command, l.plan.Told()
	if server, below := l.target(s); below {
		target, name = server.PID, l.stop.SentTo
	}
	switch {
	case l.plan.Hook:
		target = 1
	case l.grouped():
		target = -l.group
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
