//go:build linux

package shim

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/observe"
	"github.com/lameduck-init/lameduck/shim/internal/plan"
	"github.com/lameduck-init/lameduck/shim/internal/preset"
	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/report"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/sigcatch"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// act performs one action of the stop machine.
func (l *loop) act(a stop.Action) {
	switch a.Verb {
	case stop.Forward:
		l.send(a.Signal)
	case stop.Send:
		l.checkShell(a.Signal)
		l.checkProgram()
		if l.send(a.Signal) == unix.EPERM {
			l.pending = append(l.pending, stop.Event{Kind: stop.Refused})
		}
	case stop.Tell:
		l.tell(a.Signal)
	case stop.Continue:
		l.send(sig.CONT)
	case stop.GiveTerminal:
		l.host.GiveTerminal(l.group)
	case stop.StopSelf:
		l.host.StopSelf(a.Signal)
	case stop.GiveTerminalOrStop:
		l.giveTerminalOrStop()
	case stop.TermGroup:
		l.host.Kill(-l.group, a.Signal) // the group may be empty
	case stop.TermDescendants:
		l.termDescendants()
	case stop.KillDescendants:
		l.killDescendants()
	case stop.StartSampling:
		l.startSampling()
	case stop.StopHealth:
		l.host.setHealthMode(l.plan.HealthDuring)
	case stop.RunOnStop:
		l.runOnStop()
	case stop.KillOnStop:
		l.killOnStop()
	case stop.ReportStart:
		l.reportStop((*report.Stop).Announcement)
	case stop.ReportLate:
		l.reportStop((*report.Stop).Late)
	case stop.ReportEnd:
		l.reportStop((*report.Stop).Conclusion)
	case stop.NoteForwardedAtOnce:
		l.log(Info, "%v passed on at once; no hold asked for", a.Signal)
	case stop.WarnNotHeld:
		l.log(Warn, "%v was passed on at once, and did not start a stop: if %[1]v stops this container, "+
			"give --stop-signal=%[1]v (LAMEDUCK_STOP_SIGNAL)", a.Signal)
	case stop.WarnOutOfReach:
		l.log(Warn, "no signal reaches the command: lameduck exits, which ends the container")
	case stop.NoteBeforeStart:
		l.log(Info, "%v arrived before the start; the command is not started", a.Signal)
	case stop.Exit:
		l.code = l.plan.ExitCode(a.Status(), !l.machine.Record().TriggeredAt.IsZero())
		l.done = true
	}
}

// startSampling starts to sample the traffic.
func (l *loop) startSampling() {
	c := observeConfig(l.plan)
	c.Start = l.machine.Record().TriggeredAt
	l.sampler = l.host.startSampling(c)
	l.wasShell = !l.plan.Group && !l.plan.Session && l.host.IsShell(l.command)
}

// observeConfig returns the configuration of the sampler for a hold.
func observeConfig(p *plan.Plan) observe.Config {
	return observe.Config{
		Traffic:           p.Traffic,
		Ports:             p.CountPorts,
		WholePIDNamespace: p.Hook || p.PID1,
		WaitGone:          p.WaitGone,
		Gate:              p.Stop.Gate,
		DetectServerGone:  p.Hook,
		Wake:              sigcatch.Wake,
	}
}

// giveTerminalOrStop handles a command that was stopped because the command is in the
// terminal's background. A shell that moved lameduck to the foreground did not say so.
func (l *loop) giveTerminalOrStop() {
	if l.host.GiveTerminal(l.group) {
		l.send(sig.CONT)
		return
	}
	l.host.StopSelf(sig.TSTP)
}

// checkShell records whether the command is a shell that does not react to s, a signal of the
// stop schedule, while its children go on serving. Only what was a shell at the trigger is
// looked at, since that takes longer than to take a sample: a search for a lull would miss
// the lull.
func (l *loop) checkShell(s sig.Signal) {
	isChild := func(p proc.Process) bool { return p.Parent == l.command }
	if l.wasShell && l.host.IsShell(l.command) && !l.host.Catches(l.command, s) &&
		slices.ContainsFunc(l.host.Descendants(), isChild) {
		l.stop.ShellDropped = s
	}
}

// checkProgram records what the command runs if that is not its preset's server.
func (l *loop) checkProgram() {
	if l.plan.Server == nil || l.command == 0 {
		return
	}
	exe, argv := l.host.Program(l.command)
	found := preset.Match(exe, argv)
	if exe != "" && (found == nil || found.Name != l.plan.Server.Name) {
		l.stop.OtherProgram = path.Base(exe)
	}
}

// send sends a signal to the command, or to its process group. The PID is still the
// command's: only this goroutine reaps.
func (l *loop) send(s sig.Signal) error {
	if l.command == 0 {
		return nil
	}
	target := l.command
	if l.plan.Group || l.plan.Session {
		target = -l.group
	}
	l.log(Debug, "sending %v to the command", s)
	err := l.host.Kill(target, s)
	if err != nil {
		l.log(Warn, "cannot send %v to the command: %v", s, err)
	}
	return err
}

// tell sends the signal of --on-stop to the command, or to its process group; a hook sends the
// signal to PID 1. It is not sent to a process that does not handle it: its default action would
// end most processes.
func (l *loop) tell(s sig.Signal) {
	target := l.command
	switch {
	case l.plan.Hook:
		target = 1
	case l.plan.Group || l.plan.Session:
		target = -l.group
	}
	told, err := l.host.Tell(target, s)
	switch {
	case err != nil:
		l.log(Warn, "%s: cannot send %v: %v", plan.Flag("on-stop", s), s, err)
	case !told:
		l.log(Warn, "%s was not sent: %s does not handle %v", plan.Flag("on-stop", s), l.plan.Told(), s)
	default:
		l.stop.Told = s
	}
}

// termDescendants sends TERM to every descendant that has not had TERM. After the first
// time, a descendant whose parent had TERM is left to its parent's cleanup.
func (l *loop) termDescendants() {
	before := l.sentTERM
	l.sentTERM = map[int]bool{}
	for _, p := range l.host.Descendants() {
		switch {
		case before[p.PID]:
		case before[p.Parent]:
			continue
		default:
			l.host.KillDescendant(p, sig.TERM)
			l.host.KillDescendant(p, sig.CONT) // a stopped process handles TERM only when continued
		}
		l.sentTERM[p.PID] = true
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

// runOnStop starts --on-stop. A failure is logged, and does not stand in the way of the
// stop.
func (l *loop) runOnStop() {
	trigger := cmp.Or(l.machine.Record().Trigger, sig.TERM)
	env := onStopEnv(l.plan.Env, max(l.command, 1), trigger)
	pid, err := l.host.StartBeside(l.plan.OnStop, env)
	l.onStop = pid
	if err != nil {
		l.log(Warn, "--on-stop (LAMEDUCK_ON_STOP): %v", err)
		l.pending = append(l.pending, stop.Event{Kind: stop.OnStopEnded})
	}
}

// onStopEnv returns the environment of --on-stop: env with the PID of the command, which
// is PID 1 for a preStop hook, and the signal that began the stop, instead of those of an outer
// lameduck.
func onStopEnv(env []string, command int, trigger sig.Signal) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		return strings.HasPrefix(entry, "LAMEDUCK_PID=") || strings.HasPrefix(entry, "LAMEDUCK_SIGNAL=")
	})
	return append(env, fmt.Sprintf("LAMEDUCK_PID=%d", command), fmt.Sprintf("LAMEDUCK_SIGNAL=%v", trigger))
}

// killOnStop kills --on-stop and the other processes of its group.
func (l *loop) killOnStop() {
	if l.onStop != 0 {
		l.log(Warn, "--on-stop (LAMEDUCK_ON_STOP) still runs, and is killed")
		l.host.Kill(-l.onStop, sig.KILL)
		l.stop.OnStopUntil = time.Now()
	}
}
