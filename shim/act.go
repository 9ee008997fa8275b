//go:build linux

package shim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/observe"
	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/report"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/sigcatch"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// act performs one action of the stop machine.
func (l *loop) act(a stop.Action) {
	fault(a)
	switch a.Verb {
	case stop.Forward:
		l.forward(a.Signal)
	case stop.Send:
		l.sendStep(a.Signal)
	case stop.Tell:
		l.tell(a.Signal)
	case stop.GiveTerminal:
		l.host.GiveTerminal(l.group)
	case stop.StopSelf:
		l.host.StopSelf(a.Signal)
	case stop.GiveTerminalOrStop: // a shell that moved lameduck to the foreground did not say so
		if l.host.GiveTerminal(l.group) {
			l.send(sig.CONT)
		} else {
			l.host.StopSelf(sig.TSTP)
		}
	case stop.TermGroup:
		if at := l.host.Ticks(); l.host.Kill(-l.group, a.Signal) == nil { // else the group is empty, or refused
			l.history.SignaledGroup(l.group, a.Signal, at)
		}
	case stop.Look:
		l.lookAgain()
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
	case stop.ReportHold:
		l.reportStop((*report.Stop).Continuation)
	case stop.ReportLate:
		if l.stopSent && !l.plan.Hook {
			l.look()
			l.stop.Untold = workers(l.history.Untold())
		}
		l.reportStop((*report.Stop).Late)
	case stop.ReportEnd:
		if l.plan.Hook {
			l.look()
			if !l.reaches(sig.TERM) {
				l.stop.Deaf = l.history.Command().Program
			}
		}
		l.reportStop((*report.Stop).Conclusion)
	case stop.NoteForwardedAtOnce:
		l.log(Info, "%v passed on at once; no hold asked for", a.Signal)
	case stop.WarnNotHeld:
		l.warnNotHeld(a)
	case stop.WarnOutOfReach:
		l.log(Warn, "no signal reaches the command: lameduck exits, which ends the container")
	}
}

// warnNotHeld warns, once, that a signal which may be how the container is stopped started no stop. An image
// may inherit the signal from another image, whose server handled it.
func (l *loop) warnNotHeld(a stop.Action) {
	if l.warned[a] {
		return // without a look
	}
	l.look()
	flags := "--stop-signal=%[1]v (LAMEDUCK_STOP_SIGNAL)"
	if command := l.history.Command(); !command.Accepts(a.Signal) && command.Accepts(sig.TERM) {
		flags = "--stop-signal=%[1]v --rewrite=%[1]v:TERM (LAMEDUCK_REWRITE), since the command handles TERM alone"
	}
	l.warnOnce(a, "%v did not start a stop: if %[1]v stops this container, give "+flags, a.Signal)
}

// startSampling starts to sample the traffic.
func (l *loop) startSampling() {
	p, record := l.plan, l.machine.Record()
	l.sampler = l.host.startSampling(observe.Config{
		Start:             record.TriggeredAt,
		Traffic:           p.Traffic,
		Letgo:             p.Letgo,
		Ports:             p.CountPorts,
		WholePIDNamespace: p.Hook || p.PID1,
		WaitGone:          p.WaitGone,
		WaitURL:           p.WaitURL,
		Gate:              p.Stop.Gate,
		DetectServerGone:  p.Hook,
		Wake: func() {
			sigcatch.Wake()
			fault("sampler")
		},
	})
	if len(record.Steps) > 0 {
		l.look() // at a lull a look would take too long
	}
}

// runOnStop starts --on-stop, or sends its request. A failure is logged, and does not stand in the
// way of the stop.
func (l *loop) runOnStop() {
	if request := l.plan.OnStop.Request; request != nil {
		l.host.ask(request, l.plan.Stop.Gate.MaxHold())
		return
	}
	pid, err := l.host.Start(proc.Command{Argv: l.plan.OnStop.Command, Env: l.onStopEnv(), Background: true})
	l.onStop = pid
	if err != nil {
		l.endOnStop(": %v", err)
	}
}

// onStopEnv returns the environment of --on-stop: the command's, with its PID, which
// is PID 1 for a preStop hook, and the signal that began the stop, instead of those of an outer
// lameduck.
func (l *loop) onStopEnv() []string {
	env := slices.DeleteFunc(slices.Clone(l.plan.Env), func(entry string) bool {
		return strings.HasPrefix(entry, "LAMEDUCK_PID=") || strings.HasPrefix(entry, "LAMEDUCK_SIGNAL=")
	})
	return append(env, fmt.Sprintf("LAMEDUCK_PID=%d", max(l.command, 1)),
		fmt.Sprintf("LAMEDUCK_SIGNAL=%v", cmp.Or(l.machine.Record().Trigger, sig.TERM)))
}

// killOnStop kills --on-stop and the other processes of its group. A request that has no answer is
// given up.
func (l *loop) killOnStop() {
	switch request := l.plan.OnStop.Request; {
	case request != nil:
		l.endOnStop(": %v has not been answered", request)
	case l.onStop != 0: // else reaped together with the command
		l.endOnStop(" still runs, and is killed")
		l.host.Kill(-l.onStop, sig.KILL)
	}
}

// endOnStop tells the machine that --on-stop has ended, and warns of a failure, unless lameduck has killed it
// or given it up, and said so.
func (l *loop) endOnStop(failure string, args ...any) {
	if l.stop.OnStopUntil.IsZero() {
		l.stop.OnStopUntil = time.Now()
		if failure != "" {
			l.log(Warn, "--on-stop (LAMEDUCK_ON_STOP)"+failure, args...)
		}
	}
	l.queue(stop.Event{Kind: stop.OnStopEnded})
}
