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
	Gate     Gate          // what ends a hold; the zero value: there is none
	Grace    time.Duration // what the orchestrator gives in all
	Linger   time.Duration // how long what is left may outlive the command; 0: not asked for

	JobControl bool // we may be a job of somebody's shell: stop when the command is
	StopToo    bool // stop ourselves on TSTP, TTIN and TTOU, whatever becomes of them
	Farewell   bool // send TERM, rewritten, to the command's group when the command has exited
}

// terminalStops are the signals with which a terminal stops a job.
var terminalStops = sig.SetOf(sig.TSTP, sig.TTIN, sig.TTOU)

// Machine is the stop sequence. It is a value that owns no clock, process or
// file: the loop tells it what happened and when, and does what it answers.
// The zero value is not usable; see New.
type Machine struct {
	cfg    Config
	state  State
	record Record
	early  []sig.Signal // arrived before the command was started, to be passed

	stopped bool // the command is stopped, and can handle nothing

	consumed   sig.Signal // the last signal that moved the sequence,
	consumedAt time.Time  // and when: what repeats it within double is no news
	look       Look       // what the last look said
	holdEnds   time.Time  // whatever happens
	lingerEnds time.Time
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
	switch m.state {
	case Holding:
		at = m.holdEnds
	case Lingering:
		at = m.lingerEnds
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
		acts := m.arrived(now, e.Signal)
		if m.cfg.StopToo && terminalStops.Has(e.Signal) {
			acts = append(acts, Action{Verb: StopSelf, Signal: sig.STOP})
		}
		return acts
	case Halted, Continued:
		return m.halted(e)
	case Exited:
		return m.exited(now, e)
	case Reaped, Childless:
		return m.thinned(e)
	case Looked:
		return m.looked(now, e.Look)
	case Asked:
		return m.asked(now)
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
	isStop := m.cfg.Stops.Has(s)
	switch {
	case !ok:
		return nil
	case m.state == Starting:
		return m.beforeStart(s, to)
	case m.state == Lingering && (!isStop || m.repeats(now, s)):
		return nil // nobody is left to tell
	case m.state == Lingering:
		return append([]Action{{Verb: KillRest}}, m.leave()...)
	case !m.cfg.Gate.holds() && isStop:
		m.consume(now, s)
		return []Action{{Verb: Send, Signal: to}, {Verb: NoteUnheld, Signal: s}}
	case m.cfg.Gate.holds() && m.repeats(now, s):
		return nil
	case m.state == Holding && s == sig.INT:
		return m.endHold(now, s, Interrupt)
	case !isStop:
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

// pass passes a signal on. A shell that continues us gives us the terminal, and
// it is the command that needs it.
func (m *Machine) pass(now time.Time, s, to sig.Signal) []Action {
	m.record.Passed, m.record.PassedAt = s, now
	if m.cfg.JobControl && s == sig.CONT {
		return []Action{{Verb: HandOver}, {Verb: Pass, Signal: to}}
	}
	return []Action{{Verb: Pass, Signal: to}}
}

// halted notes that the command was stopped or continued. Who started us from
// a shell expects the whole job to stop.
func (m *Machine) halted(e Event) []Action {
	if m.state == Starting || m.state == Lingering {
		return nil // there is no command
	}
	m.stopped = e.Kind == Halted
	switch {
	case !m.stopped || !m.cfg.JobControl || !terminalStops.Has(e.Signal):
		return nil
	case e.Signal == sig.TSTP:
		return []Action{{Verb: StopSelf, Signal: sig.TSTP}}
	}
	return []Action{{Verb: LendOrStop}} // it wants the terminal
}

// trigger begins the sequence. The deadlines are set here, once.
func (m *Machine) trigger(now time.Time, s, to sig.Signal) []Action {
	m.consume(now, s)
	m.state = Holding
	m.record.Trigger, m.record.Step, m.record.TriggeredAt = s, to, now
	m.holdEnds = now.Add(m.cfg.Gate.Longest())
	m.reportAt = now.Add(m.cfg.Grace - Margin)
	return []Action{{Verb: Announce, Signal: s}, {Verb: Watch}}
}

// asked begins a hook's hold, after which there is nothing to send.
func (m *Machine) asked(now time.Time) []Action {
	if m.state != Starting {
		return nil
	}
	acts := m.trigger(now, 0, 0)
	m.consumed = 0 // no signal repeats it
	return acts
}

// looked goes by what a look at the traffic said.
func (m *Machine) looked(now time.Time, l Look) []Action {
	if m.state != Holding || !m.cfg.Gate.adaptive() {
		return nil
	}
	m.look = l
	if why := m.cfg.Gate.after(l, now.Sub(m.record.TriggeredAt)); why != "" {
		return m.endHold(now, 0, why)
	}
	return nil
}

// endHold sends the first step: the trigger's rewrite, or the trigger itself. A
// command that is stopped is woken, or it could not handle it. A hook has done its
// part.
func (m *Machine) endHold(now time.Time, s sig.Signal, why Reason) []Action {
	if s != 0 {
		m.consume(now, s)
	}
	m.record.Ended, m.record.EndedAt = why, now
	if m.record.Step == 0 {
		return m.leave()
	}
	m.state = Stopping
	m.record.Sent = append(m.record.Sent, Sent{Signal: m.record.Step, At: now})
	acts := []Action{{Verb: Send, Signal: m.record.Step}}
	if m.stopped {
		acts = append(acts, Action{Verb: Wake})
	}
	return acts
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
	case m.cfg.Gate.holds() && r.Passed != 0 && r.ExitedAt.Sub(r.PassedAt) <= m.cfg.Grace:
		acts = append(acts, Action{Verb: NoteNoHold, Signal: r.Passed})
	}
	m.state = Gone
	m.reportAt = time.Time{}
	return append(acts, Action{Verb: Exit, Signal: r.Exit.Signal, Code: r.Exit.Code})
}

func (m *Machine) tick(now time.Time) (acts []Action) {
	if m.state == Holding && !now.Before(m.holdEnds) {
		acts = m.endHold(now, 0, m.cfg.Gate.atLongest(m.look))
	}
	if m.state == Lingering && !now.Before(m.lingerEnds) {
		return append([]Action{{Verb: KillRest}}, m.leave()...)
	}
	if !m.reportAt.IsZero() && !now.Before(m.reportAt) {
		m.reportAt = time.Time{}
		acts = append(acts, Action{Verb: Overtime})
	}
	return acts
}
