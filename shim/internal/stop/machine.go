package stop

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// dedupWindow is how close together two stop signals count as one: orchestrators
// and terminals race each other to deliver the same wish twice.
const dedupWindow = time.Second

// ReportMargin is how long before the end of the grace period the report is written
// as it stands.
const ReportMargin = time.Second

// Config is what the sequence is to be. The zero value asks for no hold, and
// passes every signal on.
type Config struct {
	StopSignals sig.Set       // what starts the sequence, as it arrives
	Rewrites    sig.Rewrites  // what is sent in place of what arrives
	Gate        Gate          // what ends a hold; the zero value: there is none
	Grace       time.Duration // what the orchestrator gives in all
	Linger      time.Duration // how long what is left may outlive the command; 0: not asked for

	SequenceWithoutHold bool          // a stop is a sequence even without a hold
	Schedule            Schedule      // what to do after the hold; nil: Preset's, or to send the stop signal
	KillAfter           time.Duration // from the first signal sent to KILL; 0: never
	Preset              Preset
	HealthListener      bool // somebody asks for our health
	StdinIsTerminal     bool // standard input is a terminal, of which WINCH tells the size

	JobControl     bool // we may be a job of somebody's shell: stop when the command is
	StopSelfOnTSTP bool // stop ourselves on TSTP, TTIN and TTOU, whatever becomes of them
	TermGroup      bool // send TERM, rewritten, to the command's group when the command has exited
}

// terminalStopSignals are the signals with which a terminal stops a job.
var terminalStopSignals = sig.SetOf(sig.TSTP, sig.TTIN, sig.TTOU)

// Machine is the stop sequence. It is a value that owns no clock, process or
// file: the loop tells it what happened and when, and does what it answers.
// The zero value is not usable; see New.
type Machine struct {
	cfg          Config
	state        State
	record       Record
	earlySignals []sig.Signal // arrived before the command was started, to be passed

	previousForwarded LastForwarded // what the last signal replaced in the record

	stopped       bool // the command is stopped, and can handle nothing
	pathsPresent  bool // something that the hold waits for is still there
	onStopRunning bool // what was to run when the stop begins has not ended

	lastTrigger    sig.Signal   // the last signal that moved the sequence,
	lastTriggerAt  time.Time    // and when: what repeats it within dedupWindow is no news
	traffic        TrafficState // what the last look said
	holdEnds       time.Time    // whatever happens
	lingerEnds     time.Time
	nextStep       int       // of the schedule, that comes next
	loopStart      int       // the first one of those that are repeated; 0: none
	nextStepAt     time.Time // when; zero: never
	killAt         time.Time // zero: done or never
	onStopDeadline time.Time // zero: done or never
	reportAt       time.Time // when to write the report as it stands; zero: done or never
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
	for _, t := range [...]time.Time{ends, m.nextStepAt, m.killAt, m.onStopDeadline, m.reportAt} {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	return at, !at.IsZero()
}

// UsePreset takes the preset for a server that was found out late, in a hold even:
// nothing was sent yet.
func (m *Machine) UsePreset(p Preset) {
	m.cfg.Preset = p
	m.cfg.StopSignals |= p.StopSignals
	if s := m.record.Trigger; m.state == Holding && s != 0 {
		to, _ := m.cfg.Rewrites.Of(s)
		m.record.Steps = m.cfg.resolveSchedule(s, to)
	}
}

// Handle is told what happened at now, and answers what is to be done, in order.
func (m *Machine) Handle(now time.Time, e Event) []Action {
	if m.state == Gone {
		return nil
	}
	switch e.Kind {
	case CommandStarted:
		return m.onStarted()
	case SignalArrived:
		acts := m.onSignal(now, e.Signal)
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

// onSignal decides about a signal; it is looked up as it arrived, before any
// rewriting, and one that is dropped starts nothing.
func (m *Machine) onSignal(now time.Time, s sig.Signal) []Action {
	to, ok := m.cfg.Rewrites.Of(s)
	isStop := m.cfg.StopSignals.Has(s)
	switch {
	case !ok:
		return nil
	case m.state == Starting:
		return m.beforeStart(s, to)
	case m.state == Lingering && (!isStop || m.isDuplicate(now, s)):
		return nil // nobody is left to tell
	case m.state == Lingering:
		return append([]Action{{Verb: KillDescendants}}, m.finish()...)
	case !m.cfg.runsSequence() && isStop:
		return append(m.stopHealth(), m.forwardAtOnce(now, s, to)...)
	case m.cfg.runsSequence() && m.isDuplicate(now, s):
		return nil
	case m.state == Holding && s == sig.INT:
		return m.endHold(now, s, Interrupt)
	case !isStop:
		return m.forward(now, s, to)
	case m.state == Running:
		return m.beginStop(now, s, to)
	case m.state == Holding:
		return m.endHold(now, s, SecondSignal)
	}
	m.noteTrigger(now, s)
	return m.skipWait(now)
}

// runsSequence reports whether a stop is more than to pass the signal on.
func (c *Config) runsSequence() bool { return c.Gate.Holds() || c.SequenceWithoutHold }

// forwardAtOnce passes a stop signal on, as many as there come.
func (m *Machine) forwardAtOnce(now time.Time, s, to sig.Signal) []Action {
	m.noteTrigger(now, s)
	return []Action{{Verb: Send, Signal: to}, {Verb: NoteForwardedAtOnce, Signal: s}}
}

// stopHealth is for the first stop signal.
func (m *Machine) stopHealth() []Action {
	if !m.cfg.HealthListener {
		return nil
	}
	m.cfg.HealthListener = false
	return []Action{{Verb: StopHealth}}
}

// beforeStart answers what came before there was a command to send it to.
func (m *Machine) beforeStart(s, to sig.Signal) []Action {
	if m.cfg.StopSignals.Has(s) {
		m.state = Gone
		return []Action{{Verb: NoteBeforeStart, Signal: s}, {Verb: Exit, Signal: s}}
	}
	m.earlySignals = append(m.earlySignals, to)
	return nil
}

// isDuplicate reports whether s only repeats the signal that last moved the sequence.
func (m *Machine) isDuplicate(now time.Time, s sig.Signal) bool {
	return m.lastTrigger != 0 && now.Sub(m.lastTriggerAt) < dedupWindow && (m.cfg.StopSignals.Has(s) || s == m.lastTrigger)
}

func (m *Machine) noteTrigger(now time.Time, s sig.Signal) { m.lastTrigger, m.lastTriggerAt = s, now }

// forward passes a signal on. A shell that continues us gives us the terminal, and
// it is the command that needs it.
func (m *Machine) forward(now time.Time, s, to sig.Signal) []Action {
	m.noteForwarded(now, s, to)
	if m.cfg.JobControl && s == sig.CONT {
		return []Action{{Verb: GiveTerminal}, {Verb: Forward, Signal: to}}
	}
	return []Action{{Verb: Forward, Signal: to}}
}

// onStopOrContinue notes that the command was stopped or continued. Who started us from
// a shell expects the whole job to stop.
func (m *Machine) onStopOrContinue(e Event) []Action {
	if m.state == Starting || m.state == Lingering {
		return nil // there is no command
	}
	m.stopped = e.Kind == CommandStopped
	switch {
	case !m.stopped || !m.cfg.JobControl || !terminalStopSignals.Has(e.Signal):
		return nil
	case e.Signal == sig.TSTP:
		return []Action{{Verb: StopSelf, Signal: sig.TSTP}}
	}
	return []Action{{Verb: GiveTerminalOrStop}} // it wants the terminal
}

// onTick does all that is due by now.
func (m *Machine) onTick(now time.Time) (acts []Action) {
	due := func(at time.Time) bool { return !at.IsZero() && !now.Before(at) }
	if due(m.onStopDeadline) {
		m.onStopRunning, m.onStopDeadline = false, time.Time{}
		acts = append(acts, Action{Verb: KillOnStop})
	}
	if m.state == Holding && due(m.holdEnds) {
		acts = append(acts, m.endHold(now, 0, m.cfg.Gate.endReasonAtMax(m.traffic))...)
	}
	if due(m.nextStepAt) {
		acts = append(acts, m.runSteps(now)...)
	}
	if due(m.killAt) {
		m.nextStepAt = time.Time{} // what is killed need not be told more
		acts = append(acts, m.sendStep(now, sig.KILL)...)
	}
	if m.state == Lingering && due(m.lingerEnds) {
		return append(append(acts, Action{Verb: KillDescendants}), m.finish()...)
	}
	if due(m.reportAt) {
		m.reportAt = time.Time{}
		acts = append(acts, Action{Verb: ReportLate})
	}
	return acts
}
