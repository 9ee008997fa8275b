package stop

import (
	"cmp"
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
	Tell        sig.Signal    // tells the command when the hold begins; 0: none
	Grace       time.Duration // the grace period
	Linger      time.Duration // time for what the command leaves behind, and then KILL; 0: none
	AwaitWork   bool          // without Linger: after a stop signal, what is at work has the grace period

	SequenceWithoutHold bool          // run the schedule even if the gate does not hold
	Schedule            Schedule      // signals after the hold; nil: from Preset, or the stop signal
	KillAfter           time.Duration // from the first signal of the schedule to KILL; 0: never
	Preset              Schedule      // what a known server expects; nil: unknown
	HealthListener      bool          // a health listener runs

	StopsBeside     bool // a hook stops the command, PID 1, which it is not the parent of
	ExitEndsCommand bool // lameduck is PID 1: the kernel kills the command at lameduck's exit

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
	due    [deadlines]time.Time // zero: never, or already past

	now     time.Time // of the event that Handle answers
	actions []Action  // the answer so far

	lastTrigger    Sent // the last signal that moved the sequence, for isDuplicate
	commandStopped bool
	sample         Event  // the latest sample of the hold
	searchFor      Reason // why the hold ends at the end of a search for a lull; "": no search
	nextStep       int    // an index into Record.Steps

	lookedAt  time.Time // when the processes were looked at last
	killsRest bool      // the end of the linger is a KILL
}

// The deadlines, in the order in which onTick handles those that have passed.
const (
	onStopKill = iota // the --on-stop command is killed: it runs until then
	holdEnd           // the hold ends, or the search for a lull does
	stepStart         // the next steps of the schedule begin
	killAfter         // --kill-after
	lingerEnd
	look       // the processes that lameduck is not the parent of are looked at
	lateReport // ReportLate
	longHold   // ReportHold
	deadlines  // their number
)

// New returns a machine whose command runs.
func New(cfg Config) *Machine { return &Machine{cfg: cfg} }

// State returns the current state.
func (m *Machine) State() State { return m.state }

// Record returns the history so far.
func (m *Machine) Record() Record { return m.record }

// Deadline returns the time of the next Tick; ok is false if no Tick is needed. An
// early or repeated Tick changes nothing.
func (m *Machine) Deadline() (at time.Time, ok bool) {
	for _, t := range m.due {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	return at, !at.IsZero()
}

// wait sets a deadline.
func (m *Machine) wait(which int, d time.Duration) { m.due[which] = m.now.Add(d) }

// cancel removes a deadline.
func (m *Machine) cancel(which int) { m.due[which] = time.Time{} }

// awaits reports whether a deadline is set.
func (m *Machine) awaits(which int) bool { return !m.due[which].IsZero() }

// HoldEnd returns when the hold ends at the latest, zero outside of a hold.
func (m *Machine) HoldEnd() time.Time { return m.due[holdEnd] }

// LingerEnd returns when lameduck leaves at the latest, zero unless it lingers.
func (m *Machine) LingerEnd() time.Time { return m.due[lingerEnd] }

// Replan goes on by the configuration for a server recognized after the start, even during the
// hold: no signal of the schedule has been sent so far. The gate stays as it was.
func (m *Machine) Replan(cfg Config) {
	m.cfg = cfg
	if m.state == Holding && len(m.record.Steps) > 0 {
		m.record.Steps = m.cfg.ScheduleFor(cmp.Or(m.record.Trigger, sig.TERM))
	}
}

// Handle returns the actions, in order, for an event at time now.
func (m *Machine) Handle(now time.Time, e Event) []Action {
	m.now, m.actions = now, nil
	if m.state == Gone {
		return nil
	}
	switch e.Kind {
	case PreStop:
		if m.state == Running {
			if m.cfg.StopsBeside {
				m.record.Steps = m.cfg.ScheduleFor(sig.TERM)
			}
			m.beginHold()
		}
	case SignalArrived:
		m.onSignal(e)
		if m.cfg.StopSelfOnTSTP && m.state != Gone && terminalStopSignals.Has(e.Signal) {
			m.doWith(StopSelf, sig.STOP)
		}
	case CommandStopped, CommandContinued:
		m.onStopOrContinue(e)
	case CommandExited:
		m.onExit(e)
	case OrphanReaped:
		m.onOrphan()
	case NoneAtWork:
		switch {
		case m.state != Lingering:
			m.onBelowEnded()
		case e.Waiting:
			m.wait(look, readTime)
		case m.cfg.Linger == 0: // else there is a time for what was signaled last, too
			m.finish()
		}
	case NoChildren:
		if m.state == Lingering {
			m.finish()
		}
	case SentBelow:
		m.wait(look, lookInterval)
	case Sampled:
		m.onSample(e)
	case OnStopEnded:
		m.cancel(onStopKill)
		if m.state == Holding && !m.cfg.Gate.Adaptive() { // else the next sample checks
			m.checkGate()
		}
	case Refused:
		m.onRefused(e.Signal)
	default:
		m.onTick()
	}
	return m.actions
}

// do adds an action about no signal in particular.
func (m *Machine) do(v Verb) { m.doWith(v, 0) }

func (m *Machine) doWith(v Verb, s sig.Signal) {
	m.actions = append(m.actions, Action{Verb: v, Signal: s})
}

// finishSignals ask servers and service managers to finish, as in the presets and
// systemd(1). USR1 is HAProxy's, though it makes most others reopen their logs. HUP and USR2 reload.
//
// A container is sometimes stopped by one that starts no stop sequence: the image's STOPSIGNAL, forwarded like
// any other signal. If the runtime sent it, from outside, a warning names --stop-signal at once: the command may
// ignore the signal, and KILL leaves no time for words. A JVM's thread dump (kill -QUIT 1) comes from inside.
var finishSignals = sig.SetOf(sig.TERM, sig.INT, sig.QUIT, sig.WINCH, sig.PWR, sig.USR1, sig.RTMin+3)

// onSignal forwards an arriving signal, or moves the sequence on. Without a sequence, each stop signal is
// forwarded at once. Stop signals are matched before rewriting; a signal rewritten to 0 is dropped and starts
// nothing.
func (m *Machine) onSignal(e Event) {
	s := e.Signal
	to, _ := m.cfg.Rewrites.Of(s)
	moves := m.cfg.StopSignals.Has(s) || m.state == Holding && s == sig.INT
	if to == 0 || m.isDuplicate(s) {
		return
	}
	if moves {
		m.lastTrigger = Sent{s, m.now}
		if m.cfg.HealthListener && m.record.SignaledAt().IsZero() {
			m.do(StopHealth)
		}
	}
	switch {
	case !moves && m.state == Lingering: // the command has exited
	case !moves:
		isExpected := s == sig.USR1 && to != s
		mayStop := e.Outside && finishSignals.Has(s) && !isExpected
		if mayStop && m.state == Running && m.cfg.RunsSequence() {
			m.doWith(WarnNotHeld, s)
		}
		if m.cfg.JobControl && s == sig.CONT { // a shell that continues the job hands lameduck the terminal
			m.do(GiveTerminal)
		}
		m.doWith(Forward, to)
	case m.state == Lingering:
		m.endLinger()
	case !m.cfg.RunsSequence():
		m.record.PassedAt = m.now
		m.doWith(Send, to)
		m.doWith(NoteForwardedAtOnce, s)
	case m.state == Running:
		m.record.Trigger = s
		m.record.Steps = m.cfg.ScheduleFor(s)
		m.beginHold()
	case m.state == Holding && s == sig.INT:
		m.endHold(Interrupt)
	case m.state == Holding:
		m.endHold(SecondSignal)
	case m.cfg.StopsBeside:
		m.finish()
	case m.awaits(stepStart): // after the last step, no signal is sent again
		m.runSteps()
	}
}

// RunsSequence reports whether a stop does more than forward the stop signal.
func (c *Config) RunsSequence() bool { return c.Gate.Holds() || c.SequenceWithoutHold }

// isDuplicate reports whether s arrived within dedupWindow of lastTrigger, and is a
// stop signal or the same signal. Without a sequence, repeated signals pass.
func (m *Machine) isDuplicate(s sig.Signal) bool {
	recent := m.now.Sub(m.lastTrigger.At) < dedupWindow
	sequence := m.cfg.RunsSequence() || m.state == Lingering
	return sequence && recent && (m.cfg.StopSignals.Has(s) || s == m.lastTrigger.Signal)
}

// onStopOrContinue notes that the command was stopped or continued. A shell that
// started lameduck expects the whole job to stop.
func (m *Machine) onStopOrContinue(e Event) {
	if m.state == Lingering {
		return // the command does not run
	}
	m.commandStopped = e.Kind == CommandStopped
	switch {
	case !m.commandStopped || !m.cfg.JobControl || !terminalStopSignals.Has(e.Signal):
	case e.Signal == sig.TSTP:
		m.doWith(StopSelf, sig.TSTP)
	default: // TTIN, TTOU: the command needs the terminal
		m.do(GiveTerminalOrStop)
	}
}

// onTick does everything due by now.
func (m *Machine) onTick() {
	for which := range m.due {
		if !m.awaits(which) || m.now.Before(m.due[which]) {
			continue
		}
		m.cancel(which)
		switch which {
		case onStopKill:
			m.do(KillOnStop)
		case holdEnd:
			if m.Searching() {
				m.endHold(m.searchFor)
			} else { // the latest end
				m.endAtLull(m.cfg.Gate.endReasonAtMax(m.sample.Traffic))
			}
		case stepStart:
			m.runSteps()
		case killAfter:
			m.cancel(stepStart) // a killed command handles no further signal
			m.sendStep(sig.KILL)
		case lingerEnd:
			m.endLinger()
		case look:
			m.lookAgain()
		case lateReport:
			if m.cfg.StopsBeside {
				m.finish()
				return
			}
			m.do(ReportLate)
		case longHold:
			m.wait(longHold, holdReports)
			m.do(ReportHold)
		}
	}
}
