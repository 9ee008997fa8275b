package shim

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/observe"
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
		l.sendStep(a.Signal)
	case stop.Continue:
		l.send(sig.CONT)
	case stop.GiveTerminal:
		l.host.processes.GiveTerminal(l.children.group)
	case stop.StopSelf:
		l.host.processes.StopSelf(a.Signal)
	case stop.GiveTerminalOrStop:
		l.giveTerminalOrStop()
	case stop.TermGroup:
		l.host.processes.Kill(-l.children.group, a.Signal) // the group may be empty
	case stop.TermDescendants:
		l.termDescendants()
	case stop.KillDescendants:
		l.killDescendants()
	case stop.StartSampling:
		l.startSampling()
	case stop.StopHealth:
		l.host.setHealthMode(l.health, l.cfg.HealthDuring)
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
		l.warnNotHeld(a.Signal)
	case stop.NoteBeforeStart:
		l.log(Info, "%v arrived before the start; the command is not started", a.Signal)
	case stop.Exit:
		l.exit(a.Status())
	}
}

// exit ends the loop with the exit code for the command's own status.
func (l *loop) exit(status int) {
	stopped := !l.machine.Record().TriggeredAt.IsZero()
	l.code = l.plan.exitCode(status, stopped)
	l.done = true
}

// startSampling starts to sample the traffic.
func (l *loop) startSampling() {
	c := l.plan.observeConfig()
	c.Start = l.machine.Record().TriggeredAt
	c.Health = l.health
	l.sampler = l.host.startSampling(c)
}

// observeConfig returns the configuration of the sampler for a hold.
func (p *plan) observeConfig() observe.Config {
	return observe.Config{
		Traffic:           p.traffic,
		Ports:             p.ports,
		WholePIDNamespace: p.hook || p.pid1,
		WaitGone:          p.paths,
		Until:             p.stop.Gate.Until,
		Floor:             p.stop.Gate.Floor,
		Ceiling:           p.stop.Gate.MaxHold(),
		LullStart:         p.stop.Gate.LullStart(),
		DetectServerGone:  p.hook,
		Wake:              sigcatch.Wake,
	}
}

// giveTerminalOrStop handles a command that was stopped because the command is in the
// terminal's background. A shell that moved lameduck to the foreground did not say so.
func (l *loop) giveTerminalOrStop() {
	if l.host.processes.GiveTerminal(l.children.group) {
		l.send(sig.CONT)
		return
	}
	l.host.processes.StopSelf(sig.TSTP)
}

// warnNotHeld warns that a signal that came from outside of the container does not
// start a stop.
func (l *loop) warnNotHeld(s sig.Signal) {
	missed := "without a hold"
	if !l.plan.stop.Gate.Holds() {
		missed = "and does not start a stop"
	}
	l.log(Warn, "%v was passed on at once, %s: if %[1]v stops this container, give --stop-signal=%[1]v", s, missed)
}

// sendStep sends the command a signal of the stop schedule.
func (l *loop) sendStep(s sig.Signal) {
	if l.shellChecked != s {
		l.checkShell(s)
	}
	l.shellChecked = 0
	l.checkProgram()
	l.send(s)
}

// checkShell records whether the command is a shell that drops s. That takes longer than
// to take a sample, and happens before a search for a lull.
func (l *loop) checkShell(s sig.Signal) {
	l.shellChecked = s
	if l.sampler != nil && l.shellDrops(s) {
		l.shellDropped = s
	}
}

// checkProgram records what the command runs if that is not its preset's server.
func (l *loop) checkProgram() {
	if l.plan.server.preset == nil || l.children.command == 0 {
		return
	}
	exe, argv := l.host.processes.Program(l.children.command)
	found := preset.Match(exe, argv)
	if exe != "" && (found == nil || found.Name != l.plan.server.preset.Name) {
		l.otherProgram = path.Base(exe)
	}
}

// send sends a signal to the command, or to its process group. The PID is still the
// command's: only this goroutine reaps.
func (l *loop) send(s sig.Signal) {
	if l.children.command == 0 {
		return
	}
	target := l.children.command
	if l.cfg.Group || l.cfg.Session {
		target = -l.children.group
	}
	l.log(Debug, "sending %v to the command", s)
	if err := l.host.processes.Kill(target, s); err != nil {
		l.log(Warn, "cannot send %v to the command: %v", s, err)
	}
}

// shellDrops reports whether the command is a shell that does not react to s while its
// children go on serving.
func (l *loop) shellDrops(s sig.Signal) bool {
	if l.cfg.Group || l.cfg.Session || l.children.command == 0 || !l.host.processes.IsShell(l.children.command) {
		return false
	}
	caught, ok := l.host.processes.Caught(l.children.command)
	return ok && !caught.Has(s)
}

// termDescendants sends TERM to every descendant that has not had TERM. After the first
// time, a descendant whose parent had TERM is left to its parent's cleanup. Without /proc,
// PID 1 signals all processes.
func (l *loop) termDescendants() {
	descendants, ok := l.host.processes.Descendants()
	if !ok {
		descendants = []proc.Process{allProcesses}
	}
	before := l.children.sentTERM
	l.children.sentTERM = map[int]bool{}
	for _, p := range descendants {
		if !before[p.PID] && before[p.Parent] {
			continue
		}
		l.children.sentTERM[p.PID] = true
		if !before[p.PID] {
			l.killDescendant(p, sig.TERM)
			l.killDescendant(p, sig.CONT) // a stopped process handles TERM only when continued
		}
	}
}

// maxKillRounds bounds killDescendants. Each round finds fewer processes, unless a process
// forks faster than lameduck kills.
const maxKillRounds = 10

// killDescendants sends KILL to every descendant, and reaps.
func (l *loop) killDescendants() {
	for range maxKillRounds {
		descendants, ok := l.host.processes.Descendants()
		if !ok {
			l.killDescendant(allProcesses, sig.KILL)
			return
		}
		for _, p := range descendants {
			l.killDescendant(p, sig.KILL)
		}
		l.reapAll()
		if len(descendants) == 0 {
			return
		}
	}
}

// allProcesses stands for every process but lameduck itself; see kill(2). Only PID 1 may
// signal them: elsewhere some of the processes are not lameduck's.
var allProcesses = proc.Process{PID: -1}

func (l *loop) killDescendant(p proc.Process, s sig.Signal) {
	switch {
	case p != allProcesses:
		l.host.processes.KillDescendant(p, s)
	case l.plan.pid1:
		l.host.processes.Kill(p.PID, s)
	}
}

// runOnStop starts --on-stop. A failure is logged, and does not stand in the way of the
// stop.
func (l *loop) runOnStop() {
	env := onStopEnv(l.cfg.Env, max(l.children.command, 1), l.machine.Record().Trigger)
	pid, err := l.host.processes.StartBeside(l.plan.workDir, l.cfg.OnStop, env)
	l.children.onStop = pid
	if err != nil {
		l.log(Warn, "--on-stop: %v", err)
		l.children.onStopFailed = true
	}
}

// The variables of --on-stop.
const (
	pidVariable    = "LAMEDUCK_PID="
	signalVariable = "LAMEDUCK_SIGNAL="
)

// onStopEnv returns the environment of --on-stop: env with the PID of the command, which
// is PID 1 for a preStop hook, and the signal that began the stop.
func onStopEnv(env []string, command int, trigger sig.Signal) []string {
	if trigger == 0 {
		trigger = sig.TERM
	}
	var extended []string
	for _, entry := range env {
		if !strings.HasPrefix(entry, pidVariable) && !strings.HasPrefix(entry, signalVariable) { // of an outer lameduck
			extended = append(extended, entry)
		}
	}
	return append(extended, fmt.Sprintf("%s%d", pidVariable, command), fmt.Sprintf("%s%v", signalVariable, trigger))
}

// killOnStop kills --on-stop and the other processes of its group.
func (l *loop) killOnStop() {
	if l.children.onStop != 0 {
		l.log(Warn, "--on-stop still runs, and is killed")
		l.host.processes.Kill(-l.children.onStop, sig.KILL)
		l.children.onStopUntil = time.Now()
	}
}
