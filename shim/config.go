package shim

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/health"
	"github.com/lameduck-init/lameduck/shim/internal/observe"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/sigcatch"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// Signal is a Linux signal; see signal(7).
type Signal = sig.Signal

// Rewrite is one FROM:TO of --rewrite.
type Rewrite = sig.Rewrite

// Step is one item of --stop-schedule, and Schedule all of it.
type (
	Step     = stop.Step
	Schedule = stop.Schedule
)

// HealthSpec is --health, and HealthMode what becomes of checks once a stop has
// begun.
type (
	HealthSpec = health.Spec
	HealthMode = health.Mode
)

// The ways to answer health checks while the command stops.
const (
	HealthPass  = health.Pass
	HealthFail  = health.Fail
	HealthClose = health.Close
)

// ParseHealth reads LISTEN[=TARGET].
func ParseHealth(text string) (HealthSpec, error) { return health.Parse(text) }

// ParseHealthMode reads pass, fail or close.
func ParseHealthMode(text string) (HealthMode, error) { return health.ParseMode(text) }

// Level is how much is said on standard error. The report of a stop is written
// at any level.
type Level int

// The levels, each with those before it.
const (
	Error Level = iota
	Warn
	Info
	Debug
)

// Condition is what ends a hold once its floor has passed. Each is stricter than
// those before it.
type Condition = stop.Reason

// The conditions; see the gate.
const (
	Elapsed Condition = "" // the floor is all
	Settled           = stop.Settled
	Quiet             = stop.Quiet
	Drained           = stop.Drained
)

// ExitMap reports exit code From as To.
type ExitMap struct{ From, To int }

// Choice is what was asked for; where nothing was, what works is done.
type Choice int

// The choices.
const (
	Auto Choice = iota
	Yes         // and a failure is an error
	No
)

// Config is what Run is to do: plain values, one for each flag. The zero value
// of everything but Command and Env is the flag's default, except Level.
type Config struct {
	Command []string // the program and its arguments
	Env     []string // its environment

	Rewrites    []Rewrite
	StopSignals []Signal // beside TERM and what TERM is rewritten to
	Preset      string   // a preset's name, or AutoPreset; "": none

	Delay       time.Duration // the floor of the hold
	DelayGiven  bool          // it is no default, even if it is 0
	Until       Condition     // what ends the hold after the floor
	QuietFor    time.Duration // how long silence must last; 0: the default
	MaxSilence  time.Duration // when a request without a byte no longer holds; 0: the default
	MaxDelay    time.Duration // the ceiling; 0: from the grace period
	GracePeriod time.Duration // 0: assumed from Env

	CountPorts   []uint16       // the local ports that count; none: our listeners'
	IgnorePorts  []uint16       // local ports that do not
	IgnorePeers  []netip.Prefix // peers that do not
	IgnoreProbes bool           // nor what looks like a health probe

	WaitGone  []string // paths: hold while one of them exists
	OnStop    []string // what to run when the stop begins: a program and its arguments
	AliveFile string   // what is there while the command runs; "": nothing

	Health       *HealthSpec // where health checks are answered; nil: nowhere
	HealthDuring HealthMode  // how, from the first stop signal on

	Schedule  Schedule      // what to send after the hold; none: the stop signal
	KillAfter time.Duration // from the first signal sent to KILL; 0: never
	Linger    time.Duration // how long what is left may outlive the command

	Group         bool // signal the command's process group
	DropUnhandled bool // pass on only what the command catches

	Subreaper         Choice // become the reaper of orphans where not PID 1
	ParentDeathSignal Signal // what we get when our parent ends; 0: nothing

	// For the drop-in names; no flag of lameduck's own sets them.
	Session      bool // the command leads a session of its own, which is signalled as a group
	SameGroup    bool // the command stays in lameduck's own process group
	ResetSignals bool // the command starts with no signal blocked and 1 to 31 at their defaults
	StopToo      bool // TSTP, TTIN and TTOU stop us as well
	Farewell     bool // TERM to the command's group when the command has exited
	WarnReaped   bool // say at Warn what else says at Debug: that an orphan was reaped
	TERMDropped  bool // a flag of the other program drops TERM: no warning, unless there is a hold

	Spelling Spelling // how messages spell lameduck's flags

	ExitCodes []ExitMap

	TerminationLog string // where the report goes as well; "": DefaultTerminationLog where there is one, NoTerminationLog: nowhere
	JSON           bool   // say all in JSON, a line each
	Level          Level
	Warnings       []string // what the caller has found already
}

// plan is a Config made whole: defaults filled in, contradictions refused.
type plan struct {
	stop     stop.Config
	traffic  traffic.Config
	ports    []uint16         // that count
	waits    []string         // the paths that are to go
	health   *health.Listener // that answers health checks; nil: none
	dir      string           // where what runs at the stop does; "": where we are
	pid1     bool             // we are, so all there is is ours
	hook     bool             // there is no command: we hold beside one that others stop
	assumed  bool             // the grace period was assumed
	caveat   string
	warnings []string
	spelling Spelling // of flags, in messages
	exits    map[int]int

	terminal bool    // our standard input is one
	preset   *Preset // what the command is known as; nil: nothing yet
	auto     bool    // to be found out when a signal comes
}

// Validate reports what in the configuration contradicts itself, in terms of
// the flags. Nothing happens.
func (c *Config) Validate() error {
	_, err := c.plan(false, true)
	return err
}

// plan resolves c. Where there is a terminal, WINCH comes from resizing it and
// stops nothing. PID 1 is nobody's job, and nothing can stop it;
// a STOP to itself would only discard a CONT that is on its way.
func (c *Config) plan(terminal, pid1 bool) (p plan, err error) {
	p.stop = stop.Config{Schedule: c.Schedule, KillAfter: c.KillAfter, SequenceWithoutHold: c.Schedule != nil || c.KillAfter > 0,
		HealthListener: c.Health != nil, Linger: c.Linger, StdinIsTerminal: terminal, JobControl: !pid1 && !c.SameGroup, StopSelfOnTSTP: c.StopToo && !pid1, TermGroup: c.Farewell}
	p.ports, p.waits = c.CountPorts, c.WaitGone
	p.traffic = traffic.Config{IgnorePorts: c.IgnorePorts, IgnorePeers: c.IgnorePeers, IgnoreProbes: c.IgnoreProbes}
	p.pid1, p.warnings, p.spelling = pid1, slices.Clone(c.Warnings), c.Spelling
	for _, r := range c.Rewrites {
		if err := p.stop.Rewrites.Add(r); err != nil {
			return p, c.errorf("--rewrite=%v: %w", r, err)
		}
	}
	p.terminal = terminal
	if err := p.setStops(c); err != nil {
		return p, err
	}
	if err := p.setPreset(c); err != nil {
		return p, err
	}
	if err := c.checkKill(); err != nil {
		return p, err
	}
	p.dropInternal()
	if err := p.setGrace(c); err != nil {
		return p, err
	}
	return p, p.setExits(c)
}

// observe is what to observe during a hold that begins at start.
func (p *plan) observe(start time.Time) observe.Config {
	gate := &p.stop.Gate
	return observe.Config{
		Start: start, Traffic: p.traffic, Ports: p.ports,
		WholePIDNamespace: p.hook || p.pid1, Health: p.health, WaitGone: p.waits,
		Until: gate.Until, Floor: gate.Floor, Ceiling: gate.MaxHold(),
		DetectServerGone: p.hook, Wake: sigcatch.Wake,
	}
}

// errorf is fmt.Errorf, with the flags in format spelled as they are to be given.
func (c *Config) errorf(format string, args ...any) error {
	return fmt.Errorf(c.Spelling.In(format), args...)
}

// warn adds a warning, with the flags in format spelled as they are to be given.
func (p *plan) warn(format string, args ...any) {
	p.warnings = append(p.warnings, fmt.Sprintf(p.spelling.In(format), args...))
}

// setStops collects what starts the sequence: TERM, what TERM is rewritten to
// (an image's STOPSIGNAL comes in TERM's place) and what was given.
func (p *plan) setStops(c *Config) error {
	set := sig.SetOf(sig.TERM)
	to, passes := p.stop.Rewrites.Of(sig.TERM)
	switch {
	case !passes && c.TERMDropped && !c.Holds():
	case !passes:
		p.warn("--rewrite=TERM:0 drops TERM before it can start anything: the command goes on until it is killed")
	case to != sig.INT && sigcatch.Uncatchable(to) == "":
		set = set.With(to)
	}
	for _, s := range c.StopSignals {
		if why := sigcatch.Uncatchable(s); why != "" {
			return c.errorf("--stop-signal=%v never reaches lameduck: %s", s, why)
		}
		set = set.With(s)
	}
	p.stop.StopSignals = p.stops(set)
	return nil
}

// dropInternal drops the signals of the C library's threads, unless the configuration
// names them: no init passes them on, and they end a program in C.
func (p *plan) dropInternal() {
	for s := range sig.Internal.Without(p.stop.Rewrites.Given() | p.stop.StopSignals).All {
		p.stop.Rewrites.Add(Rewrite{From: s}) // cannot fail: not given
	}
}

// stops is a set of stop signals, without what a terminal sends for another reason.
func (p *plan) stops(set sig.Set) sig.Set {
	if p.terminal {
		return set.Without(sig.SetOf(sig.WINCH))
	}
	return set
}

func (p *plan) setExits(c *Config) error {
	p.exits = make(map[int]int, len(c.ExitCodes))
	for _, m := range c.ExitCodes {
		if _, twice := p.exits[m.From]; twice {
			return c.errorf("--exit-code=%d:%d: exit code %d is mapped twice: keep one of them", m.From, m.To, m.From)
		}
		p.exits[m.From] = m.To
	}
	return nil
}

// exit is the status to leave with where the command's own figure is code; a
// preset's map is for one that was asked to stop.
func (p *plan) exit(code int, stopped bool) int {
	if to, ok := p.exits[code]; ok {
		return to
	}
	if stopped && p.preset != nil {
		for _, m := range p.preset.Exit {
			if m.From == code {
				return m.To
			}
		}
	}
	return code
}

// Holds reports whether a stop begins with a hold.
func (c *Config) Holds() bool {
	return c.Delay > 0 || c.Until != Elapsed || len(c.WaitGone) > 0 || len(c.OnStop) > 0
}

// threads is how many are needed beside the usual ones.
func (c *Config) threads() int {
	n := 0
	if c.Health != nil {
		n++
	}
	if c.TerminationLog != NoTerminationLog && (c.Holds() || c.Schedule != nil || c.KillAfter > 0 || c.Preset != "") {
		n++ // to write it
	}
	return n
}
