package stop

import (
	"slices"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// runSteps sends the next signals of the schedule, up to the next wait. The wait
// begins now, not when the step was due.
func (m *Machine) runSteps() {
	steps := m.record.Steps
	m.cancel(stepStart)
	for m.nextStep < len(steps) && !m.awaits(stepStart) {
		step := steps[m.nextStep]
		m.nextStep++
		switch {
		case step.Forever:
		case step.Signal != 0:
			m.sendStep(step.Signal)
		default:
			m.wait(stepStart, step.Wait)
		}
		if forever := slices.Index(steps, Step{Forever: true}); forever >= 0 && m.nextStep == len(steps) {
			m.nextStep = forever
		}
	}
}

// sendStep sends s to the command, followed by CONT if the command is stopped and
// could not handle s. The first signal starts --kill-after.
func (m *Machine) sendStep(s sig.Signal) {
	r := &m.record
	if s != sig.KILL && m.cfg.KillAfter > 0 && !m.awaits(killAfter) {
		m.wait(killAfter, m.cfg.KillAfter)
	}
	r.Sent = append(r.Sent[:min(len(r.Sent), maxSent-1)], Sent{Signal: s, At: m.now})
	m.doWith(Send, s)
	if m.commandStopped && s != sig.KILL {
		m.doWith(Forward, sig.CONT)
	}
}

// onRefused notes that s was not sent (see kill(2); some security modules refuse). If it was the last
// of the schedule, lameduck's own exit ends the container: nothing else would end the command before
// the orchestrator's KILL. The kernel kills the command then.
func (m *Machine) onRefused(s sig.Signal) {
	r := &m.record
	r.Refused++
	for i, sent := range slices.Backward(r.Sent) {
		if sent.Signal == s {
			r.Sent = slices.Delete(r.Sent, i, i+1)
			break
		}
	}
	isLast := !m.awaits(stepStart) && !m.awaits(killAfter)
	switch {
	case !isLast:
	case m.cfg.StopsBeside:
		m.finish()
	case m.cfg.ExitEndsCommand && m.state == Stopping:
		r.Exit = Event{Kind: CommandExited, Signal: sig.KILL}
		m.do(WarnOutOfReach)
		m.finish()
	}
}

// onExit ends the sequence in every state, perhaps after lingering.
func (m *Machine) onExit(e Event) {
	if m.state == Lingering {
		return // the command does not run: a child of another program
	}
	if m.state == Holding {
		m.noteHoldEnd(ChildExit)
	}
	m.record.Exit, m.record.ExitedAt = e, m.now
	m.cancel(stepStart)
	m.cancel(killAfter)
	if to, _ := m.cfg.Rewrites.Of(sig.TERM); to != 0 && m.cfg.TermGroup {
		m.doWith(TermGroup, to)
	}
	end := m.lingerEnd()
	if end.IsZero() {
		m.finish()
		return
	}
	m.state = Lingering
	m.due[lingerEnd] = end
	m.lookAgain()
}

// finish enters Gone, with the final report if there was a stop.
func (m *Machine) finish() {
	r := &m.record
	switch {
	case r.TriggeredAt.IsZero():
	case m.cfg.StopsBeside && len(r.Sent) > 0: // the signal was reported before it was sent
		m.do(ReportLate)
	default:
		m.do(ReportEnd)
	}
	if m.awaits(onStopKill) {
		m.do(KillOnStop)
	}
	m.state = Gone
	clear(m.due[:])
}
