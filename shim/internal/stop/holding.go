package stop

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// beginStop begins the sequence. The deadlines are set here, once.
func (m *Machine) beginStop(now time.Time, s, to sig.Signal) []Action {
	m.noteTrigger(now, s)
	m.record.Trigger, m.record.Steps, m.record.TriggeredAt = s, m.cfg.resolveSchedule(s, to), now
	return append(m.stopHealth(), m.beginHold(now)...)
}

// beginPreStop begins a hook's hold, after which there is nothing to send.
func (m *Machine) beginPreStop(now time.Time) []Action {
	if m.state != Starting {
		return nil
	}
	m.record.TriggeredAt = now
	return m.beginHold(now)
}

// beginHold begins the hold, if there is one.
func (m *Machine) beginHold(now time.Time) []Action {
	gate := &m.cfg.Gate
	m.state = Holding
	m.reportAt = now.Add(m.cfg.Grace - ReportMargin)
	if !gate.Holds() {
		return append([]Action{{Verb: ReportStart}}, m.endHold(now, 0, Elapsed)...)
	}
	m.holdEnds = now.Add(gate.MaxHold())
	m.pathsPresent, m.onStopRunning = gate.WaitGone, gate.OnStop
	if m.onStopRunning {
		m.onStopDeadline = m.holdEnds
		return []Action{{Verb: ReportStart}, {Verb: RunOnStop}, {Verb: StartSampling}}
	}
	return []Action{{Verb: ReportStart}, {Verb: StartSampling}}
}

// onSample goes by what a look at the traffic said.
func (m *Machine) onSample(now time.Time, e Event) []Action {
	if m.state != Holding || !m.cfg.Gate.conditional() {
		return nil
	}
	m.traffic, m.pathsPresent = e.Traffic, e.Waiting
	return m.checkGate(now)
}

// onStopEnded notes that what ran beside the hold has ended. An adaptive hold takes
// another look.
func (m *Machine) onStopEnded(now time.Time) []Action {
	m.onStopRunning, m.onStopDeadline = false, time.Time{}
	if m.state != Holding || m.cfg.Gate.adaptive() {
		return nil
	}
	return m.checkGate(now)
}

// checkGate ends the hold if what it waits for is so.
func (m *Machine) checkGate(now time.Time) []Action {
	if why := m.cfg.Gate.endReason(m.traffic, now.Sub(m.record.TriggeredAt), m.pathsPresent || m.onStopRunning); why != "" {
		return m.endHold(now, 0, why)
	}
	return nil
}

// endHold begins the schedule. A hook has done its part.
func (m *Machine) endHold(now time.Time, s sig.Signal, why Reason) []Action {
	if s != 0 {
		m.noteTrigger(now, s)
	}
	m.record.Ended, m.record.EndedAt = why, now
	if len(m.record.Steps) == 0 {
		return m.finish()
	}
	m.state = Stopping
	return m.runSteps(now)
}
