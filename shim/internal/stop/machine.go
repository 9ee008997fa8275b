package stop

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// dedupWindow is the time in which two stop signals count as one: orchestrators and
// terminals race each other to deliver the same wish.
const dedupWindow = time.Second

// ReportMargin is the time between ReportLate and the end of the grace period.
const ReportMargin = time.Second

// Config describes the sequence. The zero value forwards every signal and never holds.
type Config struct {
	StopSignals sig.Set       // start the sequence, matched before rewriting
	Rewrites    sig.Rewrites  // signals to send in place of others
	Gate        Gate          // ends the hold; the zero value: no hold
	Grace       time.Duration // the grace period
	Linger      time.Duration // time for descendants after the command's exit; 0: no lingering

	SequenceWithoutHold bool          // run the schedule even if the gate does not hold
	Schedule            Schedule      // signals after the hold; nil: from Preset, or the stop signal
	KillAfter           time.Duration // from the first signal of the schedule to KILL; 0: never
	Preset              Preset
	HealthListener      bool // a health listener runs
	StdinIsTerminal     bool // WINCH then reports a new window size

	JobControl     bool // lameduck may be a job of a shell: stop with the command
	StopSelfOnTSTP bool // forward TSTP, TTIN and TTOU, then stop lameduck (dumb-init)
	TermGroup      bool // send TERM, rewritten, to the group of the exited command
}

// terminalStopSignals are the signals by which a terminal stops a job.
var terminalStopSignals = sig.SetOf(sig.TSTP, sig.TTIN, sig.TTOU)

// Machine is the stop sequence. New makes a Machine; the zero value is not usable.
type Machine struct {
	cfg    Config
	state  State
	record Record

	earlySignals  []sig.Signal // to forward when the command starts
	warnedNotHeld sig.Set      // by WarnNotHeld
	lastTrigger   Sent         // the last signal that moved the sequence, for isDuplicate

	commandStopped bool
	onStopRunning  bool // the --on-stop command runs
	latestSample
	searchFor Reason // why the hold ends at the end of a search for a lull; "": no search
	schedulePosition
	due deadlines
}

// latestSample is the result of the latest sample of the hold.
type latestSample struct {
	traffic      TrafficState
	requests     Requests
	pathsPresent bool // a --wait-gone path exists
}

// schedulePosition is an index into Record.Steps.
type schedulePosition struct {
	nextStep  int
	loopStart int // the first step after the last forever; 0: none so far
}

// deadlines are absolute times; zero means never, or already past.
type deadlines struct {
	holdEnd    time.Time
	searchEnd  time.Time
	lingerEnd  time.Time
	step       time.Time // the next step of the schedule
	kill       time.Time // --kill-after
	onStopKill time.Time // the --on-stop command is killed
	report     time.Time // ReportLate
}

// New returns a machine whose command has not been started.
func New(cfg Config) *Machine { return &Machine{cfg: cfg} }

// State returns the current state.
func (m *Machine) State() State { return m.state }

// Record returns the history so far.
func (m *Machine) Record() Record { return m.record }

// Deadline returns the time of the next Tick; ok is false if no Tick is needed. An
// early or repeated Tick changes nothing.
func (m *Machine) Deadline() (at time.Time, ok bool) {
	d := &m.due
	for _, t := range [...]time.Time{d.holdEnd, d.searchEnd, d.lingerEnd, d.step, d.kill, d.onStopKill, d.report} {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	return at, !at.IsZero()
}

// UsePreset sets the preset of a server recognized after the start, even during the
// hold: no signal of the schedule has been sent so far.
func (m *Machine) UsePreset(p Preset) {
	m.cfg.Preset = p
	m.cfg.StopSignals |= p.StopSignals
	if s := m.record.Trigger; m.state == Holding && s != 0 {
		to, _ := m.cfg.Rewrites.Of(s)
		m.record.Steps = m.cfg.resolveSchedule(s, to)
	}
}

// Handle returns the actions, in order, for an event at time now.
func (m *Machine) Handle(now time.Time, e Event) []Action {
	if m.state == Gone {
		return nil
	}
	switch e.Kind {
	case CommandStarted:
		return m.onStarted()
	case SignalArrived:
		acts := m.onSignal(now, e)
		if m.cfg.StopSelfOnTSTP && m.state != Gone && terminalStopSignals.Has(e.Signal) {
			acts = append(acts, Action{Verb: StopSelf, Signal: sig.STOP})
		}
		return acts
	case CommandStopped, CommandContinued:
		return m.onStopOrContinue(e)
	case CommandExited:
		return m.onExit(now, e)
	case OrphanReaped, NoChildren:
		return m.onOtherExit(e)
	case Sampled:
		return m.onSample(now, e)
	case OnStopEnded:
		return m.onStopEnded(now)
	case PreStop:
		return m.beginPreStop(now)
	default:
		return m.onTick(now)
	}
}

// onStarted forwards the signals that arrived before the start.
func (m *Machine) onStarted() (acts []Action) {
	if m.state != Starting {
		return nil
	}
	m.state = Running
	for _, s := range m.earlySignals {
		acts = append(acts, Action{Verb: Forward, Signal: s})
	}
	m.earlySignals = nil
	return acts
}

// onSignal handles an arriving signal. Stop signals are matched before rewriting; a
// signal rewritten to 0 is dropped and starts nothing.
func (m *Machine) onSignal(now time.Time, e Event) []Action {
	s := e.Signal
	to, ok := m.cfg.Rewrites.Of(s)
	isStop := m.cfg.StopSignals.Has(s)
	switch {
	case !ok:
		return nil
	case m.state == Starting:
		return m.beforeStart(s, to)
	case m.state == Lingering && (!isStop || m.isDuplicate(now, s)):
		return nil // the command has exited
	case m.state == Lingering:
		return append([]Action{{Verb: KillDescendants}}, m.finish()...)
	case !m.cfg.runsSequence() && isStop:
		return append(m.stopHealth(), m.forwardAtOnce(now, s, to)...)
	case m.cfg.runsSequence() && m.isDuplicate(now, s):
		return nil
	case m.state == Holding && s == sig.INT:
		return m.endHold(now, s, Interrupt)
	case !isStop:
		return append(m.forward(s, to), m.warnNotHeld(e)...)
	case m.state == Running:
		return m.beginStop(now, s, to)
	case m.state == Holding:
		return m.endHold(now, s, SecondSignal)
	}
	m.noteTrigger(now, s)
	return m.skipWait(now)
}

// runsSequence reports whether a stop does more than forward the stop signal.
func (c *Config) runsSequence() bool { return c.Gate.Holds() || c.SequenceWithoutHold }

// forwardAtOnce forwards a stop signal without a sequence, repeated signals included.
func (m *Machine) forwardAtOnce(now time.Time, s, to sig.Signal) []Action {
	m.noteTrigger(now, s)
	return []Action{{Verb: Send, Signal: to}, {Verb: NoteForwardedAtOnce, Signal: s}}
}

// stopHealth returns StopHealth at the first stop signal.
func (m *Machine) stopHealth() []Action {
	if !m.cfg.HealthListener {
		return nil
	}
	m.cfg.HealthListener = false
	return []Action{{Verb: StopHealth}}
}

// beforeStart handles a signal in Starting: a stop signal prevents the start, other
// signals wait for the start.
func (m *Machine) beforeStart(s, to sig.Signal) []Action {
	if m.cfg.StopSignals.Has(s) {
		m.state = Gone
		return []Action{{Verb: NoteBeforeStart, Signal: s}, {Verb: Exit, Signal: s}}
	}
	m.earlySignals = append(m.earlySignals, to)
	return nil
}

// isDuplicate reports whether s arrived within dedupWindow of lastTrigger, and is a
// stop signal or the same signal.
func (m *Machine) isDuplicate(now time.Time, s sig.Signal) bool {
	last := m.lastTrigger
	return last.Signal != 0 && now.Sub(last.At) < dedupWindow && (m.cfg.StopSignals.Has(s) || s == last.Signal)
}

func (m *Machine) noteTrigger(now time.Time, s sig.Signal) { m.lastTrigger = Sent{s, now} }

// forward forwards a signal. A shell that continues lameduck's job hands the terminal
// to lameduck, but the command needs the terminal.
func (m *Machine) forward(s, to sig.Signal) []Action {
	if m.cfg.JobControl && s == sig.CONT {
		return []Action{{Verb: GiveTerminal}, {Verb: Forward, Signal: to}}
	}
	return []Action{{Verb: Forward, Signal: to}}
}

// onStopOrContinue notes that the command was stopped or continued. A shell that
// started lameduck expects the whole job to stop.
func (m *Machine) onStopOrContinue(e Event) []Action {
	if m.state == Starting || m.state == Lingering {
		return nil // the command does not run
	}
	m.commandStopped = e.Kind == CommandStopped
	switch {
	case !m.commandStopped || !m.cfg.JobControl || !terminalStopSignals.Has(e.Signal):
		return nil
	case e.Signal == sig.TSTP:
		return []Action{{Verb: StopSelf, Signal: sig.TSTP}}
	}
	return []Action{{Verb: GiveTerminalOrStop}} // TTIN, TTOU: the command needs the terminal
}

// onTick does everything due by now.
func (m *Machine) onTick(now time.Time) (acts []Action) {
	past := func(at time.Time) bool { return !at.IsZero() && !now.Before(at) }
	if past(m.due.onStopKill) {
		m.onStopRunning, m.due.onStopKill = false, time.Time{}
		acts = append(acts, Action{Verb: KillOnStop})
	}
	if past(m.due.searchEnd) {
		acts = append(acts, m.endHold(now, 0, m.searchFor)...)
	}
	if past(m.due.holdEnd) {
		acts = append(acts, m.endAtLull(now, m.cfg.Gate.endReasonAtMax(m.traffic))...)
	}
	if past(m.due.step) {
		acts = append(acts, m.runSteps(now)...)
	}
	if past(m.due.kill) {
		m.due.step = time.Time{} // a killed command handles no further signal
		acts = append(acts, m.sendStep(now, sig.KILL)...)
	}
	if past(m.due.lingerEnd) {
		return append(append(acts, Action{Verb: KillDescendants}), m.finish()...)
	}
	if past(m.due.report) {
		m.due.report = time.Time{}
		acts = append(acts, Action{Verb: ReportLate})
	}
	return acts
}
