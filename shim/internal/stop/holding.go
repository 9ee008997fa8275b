package stop

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// beginStop begins the sequence at signal s, which is rewritten as to.
func (m *Machine) beginStop(now time.Time, s, to sig.Signal) []Action {
	m.noteTrigger(now, s)
	m.record.Trigger = s
	m.record.Steps = m.cfg.resolveSchedule(s, to)
	return append(m.stopHealth(), m.beginHold(now)...)
}

// beginPreStop begins the hold of lameduck hold, with no schedule to follow.
func (m *Machine) beginPreStop(now time.Time) []Action {
	if m.state != Starting {
		return nil
	}
	return m.beginHold(now)
}

// beginHold begins the hold, and ends a hold of length zero at once.
func (m *Machine) beginHold(now time.Time) []Action {
	gate := &m.cfg.Gate
	m.state = Holding
	m.record.TriggeredAt = now
	m.due.report = now.Add(m.cfg.Grace - ReportMargin)
	if !gate.Holds() {
		return append([]Action{{Verb: ReportStart}}, m.endHold(now, 0, Elapsed)...)
	}
	m.due.holdEnd = now.Add(gate.MaxHold())
	m.pathsPresent, m.onStopRunning = gate.WaitGone, gate.OnStop
	if m.onStopRunning {
		m.due.onStopKill = m.due.holdEnd
		return []Action{{Verb: ReportStart}, {Verb: RunOnStop}, {Verb: StartSampling}}
	}
	return []Action{{Verb: ReportStart}, {Verb: StartSampling}}
}

// onSample ends the hold if the sample meets the gate.
func (m *Machine) onSample(now time.Time, e Event) []Action {
	if m.state != Holding {
		return nil
	}
	m.latestSample = latestSample{e.Traffic, e.Requests, e.Waiting && m.cfg.Gate.WaitGone}
	if acts := m.checkGate(now); acts != nil {
		return acts
	}
	return m.continueSearch(now)
}

// onStopEnded notes the end of the --on-stop command. An adaptive hold ends only at
// the next sample.
func (m *Machine) onStopEnded(now time.Time) []Action {
	m.onStopRunning, m.due.onStopKill = false, time.Time{}
	if m.state != Holding || m.cfg.Gate.adaptive() {
		return nil
	}
	return m.checkGate(now)
}

// checkGate ends the hold if the gate is met, or begins or abandons a search for a lull.
// The result is nil if the hold goes on.
func (m *Machine) checkGate(now time.Time) []Action {
	gate := &m.cfg.Gate
	held := now.Sub(m.record.TriggeredAt)
	waiting := m.pathsPresent || m.onStopRunning
	why := gate.endReason(m.traffic, held, waiting)
	nearCeiling := held >= gate.LullStart() && held < gate.Ceiling && gate.endReasonAtMax(m.traffic) == Ceiling
	if why == "" && !waiting && nearCeiling && m.mayFindLull() {
		why = Ceiling
	}
	switch {
	case why == "" && m.Searching():
		m.abandonSearch()
	case why == "":
	case why.searchTime() == 0:
		m.abandonSearch()
		return m.endHold(now, 0, why)
	case !m.Searching():
		return m.endAtLull(now, why)
	}
	return nil
}

// endHold begins the schedule. s is the signal that ended the hold, or 0. An empty
// schedule (PreStop) ends the sequence.
func (m *Machine) endHold(now time.Time, s sig.Signal, why Reason) []Action {
	if s != 0 {
		m.noteTrigger(now, s)
		m.abandonSearch()
	}
	m.record.Ended, m.record.EndedAt = why, now
	m.due.holdEnd = time.Time{}
	m.due.searchEnd = time.Time{}
	m.searchFor = ""
	if len(m.record.Steps) == 0 {
		return m.finish()
	}
	m.state = Stopping
	return m.runSteps(now)
}
