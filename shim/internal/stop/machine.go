package stop

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// double is how close together two stop signals count as one: orchestrators
// and terminals race each other to deliver the same wish twice.
const double = time.Second

// Margin is how long before the end of the grace period the report is written
// as it stands.
const Margin = time.Second

// Config is what the sequence is to be. The zero value asks for no hold, and
// passes every signal on.
type Config struct {
	Stops    sig.Set       // what starts the sequence, as it arrives
	Rewrites sig.Rewrites  // what is sent in place of what arrives
	Floor    time.Duration // keep serving at least this long; 0: no hold
	Grace    time.Duration // what the orchestrator gives in all
}

// holds reports whether a stop signal begins a sequence at all.
func (c *Config) holds() bool { return c.Floor > 0 }

// Machine is the stop sequence. It is a value that owns no clock, process or
// file: the loop tells it what happened and when, and does what it answers.
// The zero value is not usable; see New.
type Machine struct {
	cfg    Config
	state  State
	record Record
	early  []sig.Signal // arrived before the command was started, to be passed

	consumed   sig.Signal // the last signal that moved the sequence,
	consumedAt time.Time  // and when: what repeats it within double is no news
	holdEnds   time.Time
	reportAt   time.Time // when to write the report as it stands; zero: done or never
}

// New is a machine before the command has been started.
func New(cfg Config) *Machine { return &Machine{cfg: cfg} }

// State is where the sequence is.
func (m *Machine) State() State { return m.state }

// Record is what has happened so far.
func (m *Machine) Record() Record { return m.record }

// Deadline is when a Tick is due, if one is. A Tick too early or too many
// changes nothing.
func (m *Machine) Deadline() (at time.Time, ok bool) {
	if m.state == Holding {
		at = m.holdEnds
	}
	if !m.reportAt.IsZero() && (at.IsZero() || m.reportAt.Before(at)) {
		at = m.reportAt
	}
	return at, !at.IsZero()
}

// Handle is told what happened at now, and answers what is to be done, in order.
func (m *Machine) Handle(now time.Time, e Event) []Action {
	if m.state == Gone {
		return nil
	}
	switch e.Kind {
	case Started:
		return m.started()
	case Arrived:
		return m.arrived(now, e.Signal)
	case Exited:
		return m.exited(now, e)
	default:
		return m.tick(now)
	}
}

func (m *Machine) started() (acts []Action) {
	if m.state != Starting {
		return nil
	}
	m.state = Running
	for _, s := range m.early {
		acts = append(acts, Action{Verb: Pass, Signal: s})
	}
	m.early = nil
	return acts
}

// arrived decides about a signal; it is looked up as it arrived, before any
// rewriting, and one that is dropped starts nothing.
func (m *Machine) arrived(now time.Time, s sig.Signal) []Action {
	to, ok := m.cfg.Rewrites.Of(s)
	switch {
	case !ok:
		return nil
	case m.state == Starting:
		return m.beforeStart(s, to)
	case !m.cfg.holds():
		return m.pass(now, s, to)
	case m.repeats(now, s):
		return nil
	case m.state == Holding && s == sig.INT:
		return m.endHold(now, s, Interrupt)
	case !m.cfg.Stops.Has(s):
		return m.pass(now, s, to)
	case m.state == Running:
		return m.trigger(now, s, to)
	case m.state == Holding:
		return m.endHold(now, s, SecondSignal)
	}
	// Stopping, with no step left to move on to: nothing is sent twice.
	m.consume(now, s)
	return nil
}

// beforeStart answers what came before there was a command to send it to.
func (m *Machine) beforeStart(s, to sig.Signal) []Action {
	if m.cfg.Stops.Has(s) {
		m.state = Gone
		return []Action{{Verb: NoteEarly, Signal: s}, {Verb: Exit, Signal: s}}
	}
	m.early = append(m.early, to)
	return nil
}

// repeats reports whether s only repeats the signal that last moved the sequence.
func (m *Machine) repeats(now time.Time, s sig.Signal) bool {
	return m.consumed != 0 && now.Sub(m.consumedAt) < double && (m.cfg.Stops.Has(s) || s == m.consumed)
}

func (m *Machine) consume(now time.Time, s sig.Signal) { m.consumed, m.consumedAt = s, now }

func (m *Machine) pass(now time.Time, s, to sig.Signal) []Action {
	m.record.Passed, m.record.PassedAt = s, now
	if !m.cfg.holds() && m.cfg.Stops.Has(s) {
		return []Action{{Verb: Pass, Signal: to}, {Verb: NoteUnheld, Signal: s}}
	}
	return []Action{{Verb: Pass, Signal: to}}
}

// trigger begins the sequence. The deadlines are set here, once.
func (m *Machine) trigger(now time.Time, s, to sig.Signal) []Action {
	m.consume(now, s)
	m.state = Holding
	m.record.Trigger, m.record.Step, m.record.TriggeredAt = s, to, now
	m.holdEnds = now.Add(m.cfg.Floor)
	m.reportAt = now.Add(m.cfg.Grace - Margin)
	return []Action{{Verb: Announce, Signal: s}}
}

// endHold sends the first step: the trigger's rewrite, or the trigger itself.
func (m *Machine) endHold(now time.Time, s sig.Signal, why Reason) []Action {
	if s != 0 {
		m.consume(now, s)
	}
	m.state = Stopping
	m.record.Ended, m.record.EndedAt = why, now
	m.record.Sent = append(m.record.Sent, Sent{Signal: m.record.Step, At: now})
	return []Action{{Verb: Send, Signal: m.record.Step}}
}

// exited ends everything, whatever the state: the command is gone.
func (m *Machine) exited(now time.Time, e Event) (acts []Action) {
	if m.state == Starting {
		return nil // there is no command yet: somebody else's child
	}
	if m.state == Holding {
		m.record.Ended, m.record.EndedAt = ChildExit, now
	}
	m.record.Exit, m.record.ExitedAt = e, now
	switch {
	case m.state != Running:
		acts = append(acts, Action{Verb: Conclude})
	case m.cfg.holds() && m.record.Passed != 0 && now.Sub(m.record.PassedAt) <= m.cfg.Grace:
		acts = append(acts, Action{Verb: NoteNoHold, Signal: m.record.Passed})
	}
	m.state = Gone
	m.reportAt = time.Time{}
	return append(acts, Action{Verb: Exit, Signal: e.Signal, Code: e.Code})
}

func (m *Machine) tick(now time.Time) (acts []Action) {
	if m.state == Holding && !now.Before(m.holdEnds) {
		acts = m.endHold(now, 0, Elapsed)
	}
	if !m.reportAt.IsZero() && !now.Before(m.reportAt) {
		m.reportAt = time.Time{}
		acts = append(acts, Action{Verb: Overtime})
	}
	return acts
}
