package stop

import (
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

const (
	// lookInterval is how often lameduck looks at processes whose end only their parent learns of.
	lookInterval = 250 * time.Millisecond

	// looksApart is the shortest time between two looks at what is left, each of which reads all of /proc:
	// hundreds of processes may end one by one.
	looksApart = 100 * time.Millisecond

	// wrapperTime is how long a command may go on when those below it have ended by their signal: a shell for
	// its next commands, others to end by themselves, for which an interpreter may need half a second. No preset
	// waits longer between its steps.
	wrapperTime = 2 * time.Second
)

// lingerEnd returns until when lameduck lingers after the command's exit, zero if it does not: for
// the time that was given, or after a stop signal for as long as the grace period lasts, or until the
// KILL that was asked for. A KILL that was sent was meant to end everything.
func (m *Machine) lingerEnd() time.Time {
	r := &m.record
	killed := slices.ContainsFunc(r.Sent, func(s Sent) bool { return s.Signal == sig.KILL })
	switch {
	case m.cfg.Linger > 0:
		m.killsRest = true
		return m.now.Add(m.cfg.Linger)
	case !m.cfg.AwaitWork || r.SignaledAt().IsZero() || killed:
		return time.Time{}
	}
	end := r.SignaledAt().Add(m.cfg.Grace - ReportMargin)
	if after, kills := r.Steps.TimeToEnd(m.cfg.KillAfter); kills {
		first := m.now
		if len(r.Sent) > 0 {
			first = r.Sent[0].At
		}
		if kill := first.Add(after); kill.Before(end) {
			m.killsRest = true
			return kill
		}
	}
	return end
}

// lookAgain looks who is at work. What lameduck waits for need not be its child, so it is looked at again before
// long.
func (m *Machine) lookAgain() {
	m.do(Look)
	m.lookedAt = m.now
	if m.state == Lingering || m.now.Before(m.record.SignaledAt().Add(m.cfg.Grace)) {
		m.wait(look, lookInterval)
	}
}

// onOrphan looks at what is left: the children of the orphan may be lameduck's now.
func (m *Machine) onOrphan() {
	switch next := m.lookedAt.Add(looksApart); {
	case m.state != Lingering:
	case !m.now.Before(next):
		m.lookAgain()
	case next.Before(m.due[look]):
		m.due[look] = next
	}
}

// onBelowEnded has a command sent TERM that outlives those below it that were signaled, unless the schedule
// goes on: it may start them again, or sleep. A hook leaves PID 1 to the orchestrator then.
func (m *Machine) onBelowEnded() {
	m.cancel(look)
	isSent := m.state == Stopping || m.state == Running // where it was passed on at once
	if !isSent || m.awaits(stepStart) {
		return
	}
	if m.cfg.StopsBeside {
		if at := m.now.Add(wrapperTime); at.Before(m.due[lateReport]) {
			m.due[lateReport] = at
		}
		return
	}
	m.record.Steps = slices.Concat(m.record.Steps, Schedule{{Wait: wrapperTime}, {Signal: sig.TERM}})
	m.runSteps()
}

// endLinger leaves, after KILL for what remains, or a signal for what of it is not at work.
func (m *Machine) endLinger() {
	if m.killsRest {
		m.do(KillDescendants)
	} else {
		m.do(Look)
	}
	m.finish()
}
