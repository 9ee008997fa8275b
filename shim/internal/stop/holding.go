package stop

import "time"

// holdReports is the time between two of ReportHold.
const holdReports = time.Minute

// beginHold begins the hold, and ends a hold of length zero at once.
func (m *Machine) beginHold() {
	gate := &m.cfg.Gate
	m.state = Holding
	m.record.TriggeredAt = m.now
	m.wait(lateReport, m.cfg.Grace-ReportMargin)
	if m.cfg.Tell != 0 && gate.Holds() {
		m.doWith(Tell, m.cfg.Tell)
	}
	m.do(ReportStart)
	if !gate.Holds() {
		m.endHold(Elapsed)
		return
	}
	m.wait(holdEnd, gate.MaxHold())
	m.wait(longHold, holdReports)
	m.sample.Waiting = gate.WaitGone
	if gate.OnStop {
		m.due[onStopKill] = m.due[holdEnd]
		m.do(RunOnStop)
	}
	m.do(StartSampling)
}

// onSample ends the hold if the sample meets the gate, or shows the lull that is sought. If
// the hold is not adaptive, the verdict on the traffic does not matter.
func (m *Machine) onSample(e Event) {
	if m.state != Holding {
		return
	}
	m.sample = e
	if !m.cfg.Gate.Adaptive() {
		m.sample.Traffic = Busy
	}
	m.checkGate()
	if m.Searching() && !e.Stale {
		m.record.Lull.InFlight = e.AtRisk
		m.record.Lull.Found = e.AtRisk == 0
		if m.record.Lull.Found {
			m.endHold(m.searchFor)
		}
	}
}

// checkGate ends the hold if the gate is met, or begins or abandons a search for a lull.
func (m *Machine) checkGate() {
	gate := &m.cfg.Gate
	held := m.now.Sub(m.record.TriggeredAt)
	waiting := m.sample.Waiting || m.awaits(onStopKill)
	why := gate.endReason(m.sample.Traffic, held, waiting)
	isLast := held >= gate.LullStart() && gate.endReasonAtMax(m.sample.Traffic) == Ceiling
	if why == "" && !waiting && isLast && m.mayFindLull() {
		why = Ceiling
	}
	switch {
	case why == "":
		m.searchFor, m.record.Lull = "", Lull{}
		m.due[holdEnd] = m.record.TriggeredAt.Add(gate.MaxHold())
	case !m.Searching(), why.searchTime() == 0:
		m.endAtLull(why)
	}
}

// endHold begins the schedule. An empty schedule (PreStop) ends the sequence, and so does a signal to a hook.
func (m *Machine) endHold(why Reason) {
	m.noteHoldEnd(why)
	isTold := why == SecondSignal || why == Interrupt
	if len(m.record.Steps) == 0 || m.cfg.StopsBeside && isTold {
		m.finish()
		return
	}
	m.state = Stopping
	m.runSteps()
}

func (m *Machine) noteHoldEnd(why Reason) {
	if why != m.searchFor {
		m.record.Lull = Lull{}
	}
	m.searchFor = ""
	m.cancel(holdEnd)
	m.cancel(longHold)
	m.record.Ended, m.record.EndedAt = why, m.now
}
