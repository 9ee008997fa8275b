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
	if len(r.Sent) < mostSent {
		r.Sent = append(r.Sent, Sent{Signal: s, At: now})
	}
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
	case m.cfg.Gate.Holds() && r.Passed != 0 && r.ExitedAt.Sub(r.PassedAt) <= m.cfg.Grace:
		acts = append(acts, Action{Verb: NoteNoHold, Signal: r.Passed})
	}
	if m.hooked {
		acts = append(acts, Action{Verb: KillHook})
	}
	m.state = Gone
	m.reportAt, m.hookEnds = time.Time{}, time.Time{}
	return append(acts, Action{Verb: Exit, Signal: r.Exit.Signal, Code: r.Exit.Code})
}

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
