package stop

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// proceed sends the signals that are next, until the schedule says to wait. A step
// counts from the one before.
func (m *Machine) proceed(now time.Time) (acts []Action) {
	steps := m.record.Steps
	m.stepAt = time.Time{}
	for m.step < len(steps) && m.stepAt.IsZero() {
		step := steps[m.step]
		m.step++
		switch {
		case step.Forever:
			m.repeat = m.step
		case step.Signal != 0:
			acts = append(acts, m.send(now, step.Signal)...)
		default:
			m.stepAt = now.Add(step.Wait)
		}
		if m.step == len(steps) && m.repeat > 0 {
			m.step = m.repeat
		}
	}
	return acts
}

// send sends a step to the command. One that is stopped is woken, or it could not
// handle it.
func (m *Machine) send(now time.Time, s sig.Signal) []Action {
	r := &m.record
	if len(r.Sent) == 0 && m.cfg.KillAfter > 0 {
		m.killAt = now.Add(m.cfg.KillAfter)
	}
	if s == sig.KILL {
		m.killAt = time.Time{}
	}
	r.Sent = append(r.Sent[:min(len(r.Sent), mostSent-1)], Sent{Signal: s, At: now})
	acts := []Action{{Verb: Send, Signal: s}}
	if m.stopped && s != sig.KILL {
		acts = append(acts, Action{Verb: Wake})
	}
	return acts
}

// hurry moves on to the next step, if there is one.
func (m *Machine) hurry(now time.Time) []Action {
	if m.stepAt.IsZero() {
		return nil // nothing is sent twice
	}
	return m.proceed(now)
}

// exited ends everything, whatever the state: the command is gone.
func (m *Machine) exited(now time.Time, e Event) (acts []Action) {
	if m.state == Starting || m.state == Lingering {
		return nil // there is no command: somebody else's child
	}
	if m.state == Holding {
		m.record.Ended, m.record.EndedAt = ChildExit, now
	}
	m.record.Exit, m.record.ExitedAt = e, now
	m.stepAt, m.killAt = time.Time{}, time.Time{}
	if to, ok := m.cfg.Rewrites.Of(sig.TERM); ok && m.cfg.Farewell {
		acts = append(acts, Action{Verb: Farewell, Signal: to})
	}
	if m.cfg.Linger == 0 {
		return append(acts, m.leave()...)
	}
	m.state, m.lingerEnds = Lingering, now.Add(m.cfg.Linger)
	return append(acts, Action{Verb: TermRest})
}

// thinned answers to the end of some other process: while lingering, its
// children may have become ours, and when there are none left we may go.
func (m *Machine) thinned(e Event) []Action {
	switch {
	case m.state != Lingering:
		return nil
	case e.Kind == Childless:
		return m.leave()
	}
	return []Action{{Verb: TermRest}}
}

// leave is the end, with the report where there was a stop.
func (m *Machine) leave() (acts []Action) {
	r := &m.record
	switch {
	case !r.TriggeredAt.IsZero():
		acts = append(acts, Action{Verb: Conclude})
	case m.cfg.Gate.Holds() && m.cfg.endedBy(r):
		acts = append(acts, Action{Verb: NoteNoHold, Signal: r.Passed})
	}
	if m.hooked {
		acts = append(acts, Action{Verb: KillHook})
	}
	m.state = Gone
	m.reportAt, m.hookEnds = time.Time{}, time.Time{}
	return append(acts, Action{Verb: Exit, Signal: r.Exit.Signal, Code: r.Exit.Code})
}
