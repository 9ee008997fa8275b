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

	Sequence  bool          // a stop is a sequence even without a hold
	Schedule  Schedule      // what to do after the hold; nil: Preset's, or to send the stop signal
	KillAfter time.Duration // from the first signal sent to KILL; 0: never
	Preset    Preset
	Retires   bool // somebody asks for our health
	Terminal  bool // standard input is a terminal, of which WINCH tells the size

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

	passedBefore LastPassed // what the last signal replaced in the record

	stopped bool // the command is stopped, and can handle nothing
	left    bool // something that the hold waits for is still there
	hooked  bool // what was to run when the stop begins has not ended

	consumed   sig.Signal // the last signal that moved the sequence,
	consumedAt time.Time  // and when: what repeats it within double is no news
	look       Look       // what the last look said
	holdEnds   time.Time  // whatever happens
	lingerEnds time.Time
	step       int       // of the schedule, that comes next
	repeat     int       // the first one of those that are repeated; 0: none
	stepAt     time.Time // when; zero: never
	killAt     time.Time // zero: done or never
	hookEnds   time.Time // zero: done or never
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
	var ends time.Time
	switch m.state {
	case Holding:
		ends = m.holdEnds
	case Lingering:
		ends = m.lingerEnds
	}
	for _, t := range [...]time.Time{ends, m.stepAt, m.killAt, m.hookEnds, m.reportAt} {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	return at, !at.IsZero()
}

// Adopt takes the preset for a server that was found out late, in a hold even:
// nothing was sent yet.
func (m *Machine) Adopt(p Preset) {
	m.cfg.Preset = p
	m.cfg.Stops |= p.Stops
	if s := m.record.Trigger; m.state == Holding && s != 0 {
		to, _ := m.cfg.Rewrites.Of(s)
		m.record.Steps = m.cfg.steps(s, to)
	}
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
		if m.cfg.StopToo && m.state != Gone && terminalStops.Has(e.Signal) {
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
		return m.looked(now, e)
	case HookEnded:
		return m.hookEnded(now)
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
	case !m.cfg.sequence() && isStop:
		return append(m.retire(), m.unheld(now, s, to)...)
	case m.cfg.sequence() && m.repeats(now, s):
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
	m.consume(now, s)
	return m.hurry(now)
}

// sequence reports whether a stop is more than to pass the signal on.
func (c *Config) sequence() bool { return c.Gate.Holds() || c.Sequence }

// unheld passes a stop signal on, as many as there come.
func (m *Machine) unheld(now time.Time, s, to sig.Signal) []Action {
	m.consume(now, s)
	return []Action{{Verb: Send, Signal: to}, {Verb: NoteUnheld, Signal: s}}
}

// retire is for the first stop signal.
func (m *Machine) retire() []Action {
	if !m.cfg.Retires {
		return nil
	}
	m.cfg.Retires = false
	return []Action{{Verb: Retire}}
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
	m.notePassed(now, s, to)
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

// tick does all that is due by now.
func (m *Machine) tick(now time.Time) (acts []Action) {
	due := func(at time.Time) bool { return !at.IsZero() && !now.Before(at) }
	if due(m.hookEnds) {
		m.hooked, m.hookEnds = false, time.Time{}
		acts = append(acts, Action{Verb: KillHook})
	}
	if m.state == Holding && due(m.holdEnds) {
		acts = append(acts, m.endHold(now, 0, m.cfg.Gate.atLongest(m.look))...)
	}
	if due(m.stepAt) {
		acts = append(acts, m.proceed(now)...)
	}
	if due(m.killAt) {
		m.stepAt = time.Time{} // what is killed need not be told more
		acts = append(acts, m.send(now, sig.KILL)...)
	}
	if m.state == Lingering && due(m.lingerEnds) {
		return append(append(acts, Action{Verb: KillRest}), m.leave()...)
	}
	if due(m.reportAt) {
		m.reportAt = time.Time{}
		acts = append(acts, Action{Verb: Overtime})
	}
	return acts
}
