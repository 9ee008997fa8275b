package stop

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// runSteps sends the signals that are next, until the schedule says to wait. A step
// counts from the one before.
func (m *Machine) runSteps(now time.Time) (acts []Action) {
	steps := m.record.Steps
	m.nextStepAt = time.Time{}
	for m.nextStep < len(steps) && m.nextStepAt.IsZero() {
		step := steps[m.nextStep]
		m.nextStep++
		switch {
		case step.Forever:
			m.loopStart = m.nextStep
		case step.Signal != 0:
			acts = append(acts, m.sendStep(now, step.Signal)...)
		default:
			m.nextStepAt = now.Add(step.Wait)
		}
		if m.nextStep == len(steps) && m.loopStart > 0 {
			m.nextStep = m.loopStart
		}
	}
	return acts
}

// sendStep sends a step to the command. One that is stopped is woken, or it could not
// handle it.
func (m *Machine) sendStep(now time.Time, s sig.Signal) []Action {
	r := &m.record
	if len(r.Sent) == 0 && m.cfg.KillAfter > 0 {
		m.killAt = now.Add(m.cfg.KillAfter)
	}
	if s == sig.KILL {
		m.killAt = time.Time{}
	}
	r.Sent = append(r.Sent[:min(len(r.Sent), maxSent-1)], Sent{Signal: s, At: now})
	acts := []Action{{Verb: Send, Signal: s}}
	if m.stopped && s != sig.KILL {
		acts = append(acts, Action{Verb: Continue})
	}
	return acts
}

// skipWait moves on to the next step, if there is one.
func (m *Machine) skipWait(now time.Time) []Action {
	if m.nextStepAt.IsZero() {
		return nil // nothing is sent twice
	}
	return m.runSteps(now)
}

// onExit ends everything, whatever the state: the command is gone.
func (m *Machine) onExit(now time.Time, e Event) (acts []Action) {
	if m.state == Starting || m.state == Lingering {
		return nil // there is no command: somebody else's child
	}
	if m.state == Holding {
		m.record.Ended, m.record.EndedAt = ChildExit, now
	}
	m.record.Exit, m.record.ExitedAt = e, now
	m.nextStepAt, m.killAt = time.Time{}, time.Time{}
	if to, ok := m.cfg.Rewrites.Of(sig.TERM); ok && m.cfg.TermGroup {
		acts = append(acts, Action{Verb: TermGroup, Signal: to})
	}
	if m.cfg.Linger == 0 {
		return append(acts, m.finish()...)
	}
	m.state, m.lingerEnds = Lingering, now.Add(m.cfg.Linger)
	return append(acts, Action{Verb: TermDescendants})
}

// onOtherExit answers to the end of some other process: while lingering, its
// children may have become ours, and when there are none left we may go.
func (m *Machine) onOtherExit(e Event) []Action {
	switch {
	case m.state != Lingering:
		return nil
	case e.Kind == NoChildren:
		return m.finish()
	}
	return []Action{{Verb: TermDescendants}}
}

// finish is the end, with the report where there was a stop.
func (m *Machine) finish() (acts []Action) {
	r := &m.record
	switch {
	case !r.TriggeredAt.IsZero():
		acts = append(acts, Action{Verb: ReportEnd})
	case m.cfg.Gate.Holds() && m.cfg.endedByForwarded(r):
		acts = append(acts, Action{Verb: NoteHoldMissed, Signal: r.Forwarded})
	}
	if m.onStopRunning {
		acts = append(acts, Action{Verb: KillOnStop})
	}
	m.state = Gone
	m.reportAt, m.onStopDeadline = time.Time{}, time.Time{}
	return append(acts, Action{Verb: Exit, Signal: r.Exit.Signal, Code: r.Exit.Code})
}
