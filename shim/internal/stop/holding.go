package stop

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// trigger begins the sequence. The deadlines are set here, once.
func (m *Machine) trigger(now time.Time, s, to sig.Signal) []Action {
	m.consume(now, s)
	m.record.Trigger, m.record.Steps, m.record.TriggeredAt = s, m.cfg.steps(s, to), now
	return append(m.retire(), m.hold(now)...)
}

// asked begins a hook's hold, after which there is nothing to send.
func (m *Machine) asked(now time.Time) []Action {
	if m.state != Starting {
		return nil
	}
	m.record.TriggeredAt = now
	return m.hold(now)
}

// hold begins the hold, if there is one.
func (m *Machine) hold(now time.Time) []Action {
	gate := &m.cfg.Gate
	m.state = Holding
	m.reportAt = now.Add(m.cfg.Grace - Margin)
	if !gate.Holds() {
		return append([]Action{{Verb: Announce}}, m.endHold(now, 0, Elapsed)...)
	}
	m.holdEnds = now.Add(gate.Longest())
	m.left, m.hooked = gate.WaitGone, gate.OnStop
	if m.hooked {
		m.hookEnds = m.holdEnds
		return []Action{{Verb: Announce}, {Verb: RunHook}, {Verb: Watch}}
	}
	return []Action{{Verb: Announce}, {Verb: Watch}}
}

// looked goes by what a look at the traffic said.
func (m *Machine) looked(now time.Time, e Event) []Action {
	if m.state != Holding || !m.cfg.Gate.open() {
		return nil
	}
	m.look, m.left = e.Look, e.Left
	return m.ripe(now)
}

// hookEnded notes that what ran beside the hold has ended. An adaptive hold takes
// another look.
func (m *Machine) hookEnded(now time.Time) []Action {
	m.hooked, m.hookEnds = false, time.Time{}
	if m.state != Holding || m.cfg.Gate.adaptive() {
		return nil
	}
	return m.ripe(now)
}

// ripe ends the hold if what it waits for is so.
func (m *Machine) ripe(now time.Time) []Action {
	if why := m.cfg.Gate.after(m.look, now.Sub(m.record.TriggeredAt), m.left || m.hooked); why != "" {
		return m.endHold(now, 0, why)
	}
	return nil
}

// endHold begins the schedule. A hook has done its part.
func (m *Machine) endHold(now time.Time, s sig.Signal, why Reason) []Action {
	if s != 0 {
		m.consume(now, s)
	}
	m.record.Ended, m.record.EndedAt = why, now
	if len(m.record.Steps) == 0 {
		return m.leave()
	}
	m.state = Stopping
	return m.proceed(now)
}
