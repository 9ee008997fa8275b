package stop

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// runSteps sends the next signals of the schedule, up to the next wait. The wait
// begins now, not when the step was due.
func (m *Machine) runSteps(now time.Time) (acts []Action) {
	steps := m.record.Steps
	m.due.step = time.Time{}
	for m.nextStep < len(steps) && m.due.step.IsZero() {
		step := steps[m.nextStep]
		m.nextStep++
		switch {
		case step.Forever:
			m.loopStart = m.nextStep
		case step.Signal != 0:
			acts = append(acts, m.sendStep(now, step.Signal)...)
		default:
			m.due.step = now.Add(step.Wait)
		}
		if m.nextStep == len(steps) && m.loopStart > 0 {
			m.nextStep = m.loopStart
		}
	}
	return acts
}

// sendStep sends s to the command, followed by CONT if the command is stopped and
// could not handle s. The first signal starts --kill-after.
func (m *Machine) sendStep(now time.Time, s sig.Signal) []Action {
	r := &m.record
	if len(r.Sent) == 0 && m.cfg.KillAfter > 0 {
		m.due.kill = now.Add(m.cfg.KillAfter)
	}
	if s == sig.KILL {
		m.due.kill = time.Time{}
	}
	r.Sent = append(r.Sent[:min(len(r.Sent), maxSent-1)], Sent{Signal: s, At: now})
	acts := []Action{{Verb: Send, Signal: s}}
	if m.commandStopped && s != sig.KILL {
		acts = append(acts, Action{Verb: Continue})
	}
	return acts
}

// skipWait moves on to the next step. After the last step, no signal is sent again.
func (m *Machine) skipWait(now time.Time) []Action {
	if m.due.step.IsZero() {
		return nil
	}
	return m.runSteps(now)
}

// onExit ends the sequence in every state, after lingering if Config.Linger is set.
func (m *Machine) onExit(now time.Time, e Event) (acts []Action) {
	if m.state == Starting || m.state == Lingering {
		return nil // the command does not run: a child of another program
	}
	if m.state == Holding {
		m.abandonSearch()
		m.record.Ended, m.record.EndedAt = ChildExit, now
	}
	m.record.Exit, m.record.ExitedAt = e, now
	m.due.holdEnd, m.due.step = time.Time{}, time.Time{}
	m.due.kill = time.Time{}
	if to, ok := m.cfg.Rewrites.Of(sig.TERM); ok && m.cfg.TermGroup {
		acts = append(acts, Action{Verb: TermGroup, Signal: to})
	}
	if m.cfg.Linger == 0 {
		return append(acts, m.finish()...)
	}
	m.state = Lingering
	m.due.lingerEnd = now.Add(m.cfg.Linger)
	return append(acts, Action{Verb: TermDescendants})
}

// onOtherExit handles OrphanReaped and NoChildren. While lingering, the children of a
// reaped process may have become ours and need a TERM; without children the sequence
// is over.
func (m *Machine) onOtherExit(e Event) []Action {
	switch {
	case m.state != Lingering:
		return nil
	case e.Kind == NoChildren:
		return m.finish()
	}
	return []Action{{Verb: TermDescendants}}
}

// finish enters Gone and exits, with the final report if there was a stop.
func (m *Machine) finish() (acts []Action) {
	r := &m.record
	if !r.TriggeredAt.IsZero() {
		acts = append(acts, Action{Verb: ReportEnd})
	}
	if m.onStopRunning {
		acts = append(acts, Action{Verb: KillOnStop})
	}
	m.state = Gone
	m.due = deadlines{}
	return append(acts, Action{Verb: Exit, Signal: r.Exit.Signal, Code: r.Exit.Code})
}
